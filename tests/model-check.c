/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-check.c: is what was read, or what the store holds, possible?
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model-block.h"

/* A question about bytes [from, to) of a block. */
struct question {
	const struct block *block;
	uint64_t base; /* of the block, bytes */
	uint32_t from, to;
	const unsigned char *buf; /* of `from` */
	uint64_t since;           /* a past content counts if until > since */
	bool durable;             /* and if nothing durable is missing in it */
};

static bool excluded(const struct past *p, uint32_t sector)
{
	for (unsigned m = 0; m < p->nmissing; m++) {
		if (sector >= p->missing[m].lo && sector < p->missing[m].hi)
			return true;
	}
	return false;
}

/* A content that answers the question, or NULL. */
static struct content *find_content(const struct question *q)
{
	const struct block *b = q->block;

	for (unsigned n = 0; n < b->nstates; n++) {
		if (content_matches(
			    b->states[n].c, q->base, q->from, q->to, q->buf))
			return b->states[n].c;
	}
	for (unsigned n = 0; n < b->npast; n++) {
		const struct past *p = &b->past[n];

		if ((q->durable ? p->lasting : p->until) <= q->since ||
			(q->durable && excluded(p, q->from / SECTOR)))
			continue;
		if (content_matches(p->c, q->base, q->from, q->to, q->buf))
			return p->c;
	}
	return NULL;
}

/* The same question of the sector that begins at or holds `at`. */
static struct question of_sector(const struct question *q, uint32_t at)
{
	uint32_t end = (at / SECTOR + 1) * SECTOR;
	struct question part = *q;

	part.from = at;
	part.to = end < q->to ? end : q->to;
	if (q->buf)
		part.buf = q->buf + (at - q->from);
	return part;
}

/* --- words for a failure ------------------------------------------------- */

/* "7@512 9@1024": who wrote what was found. */
static void print_found(const struct question *q, char *buf, size_t size)
{
	uint32_t last = UINT32_MAX, id;
	uint64_t offset;
	size_t n = 0;

	buf[0] = '\0';
	for (uint32_t at = (q->from + 7) & ~7U;
		at + 8 <= q->to && n + 48 < size; at += 8) {
		const char *flaw = "";

		if (!data_decode(q->buf + (at - q->from), &id, &offset)) {
			flaw = "(torn)";
			id = UINT32_MAX - 1;
		} else if (id && offset != q->base + at) {
			flaw = "(misplaced)";
		}
		if (id != last)
			n += (size_t)snprintf(buf + n, size - n,
				"%" PRIu32 "@%" PRIu32 "%s ", id, at, flaw);
		last = id;
	}
}

static void explain(const struct question *q, char *why, size_t size)
{
	char found[400], may[400];
	size_t n;

	print_found(q, found, sizeof(found));
	n = (size_t)snprintf(why, size,
		"block at %" PRIu64 " bytes %" PRIu32 "..%" PRIu32
		": found %s; may be",
		q->base, q->from, q->to, found);
	for (unsigned i = 0; i < q->block->nstates && n < size; i++) {
		content_print(q->block->states[i].c, may, sizeof(may));
		n += (size_t)snprintf(why + n, size - n, " [%s]", may);
	}
	for (unsigned i = 0; i < q->block->npast && n < size; i++) {
		if (q->block->past[i].until <= q->since)
			continue;
		content_print(q->block->past[i].c, may, sizeof(may));
		n += (size_t)snprintf(why + n, size - n, " past [%s]", may);
	}
}

/* --- reads --------------------------------------------------------------- */

static bool read_sectors(const struct question *q, char *why, size_t size)
{
	for (uint32_t at = q->from; at < q->to;) {
		struct question part = of_sector(q, at);

		if (!find_content(&part)) {
			explain(&part, why, size);
			return false;
		}
		at = part.to;
	}
	return true;
}

/* The states that the read did not see are no more. Only if the read began
 * after they last changed: an older one may have seen what came before. */
static void narrow(struct shadow *s, uint64_t i, const struct question *q)
{
	struct block *b = &s->block[i];
	bool *keep, all = true;

	if (b->touched >= q->since || b->nstates == 1)
		return;
	keep = calloc(b->nstates, sizeof(*keep));
	assert(keep);
	for (unsigned n = 0; n < b->nstates; n++) {
		keep[n] = content_matches(
			b->states[n].c, q->base, q->from, q->to, q->buf);
		all = all && keep[n];
	}
	if (!all) {
		block_keep(s, i, keep, true);
		block_close(s, i);
	}
	free(keep);
}

/* May a read since `begun` have seen each sector for itself? */
static bool seen_mixed(const struct block *b, uint64_t begun)
{
	for (unsigned slot = 0; slot < SHADOW_OVERLAP; slot++) {
		const struct change *c = b->inflight[slot];

		if (c && c->fragile)
			return true;
	}
	return b->mixed || b->whole > begun;
}

bool shadow_read(struct shadow *s, uint64_t begun, uint64_t offset,
	uint64_t length, const unsigned char *buf, char *why, size_t size)
{
	uint64_t end = offset + length;

	for (uint64_t i = offset / s->block_size; i * s->block_size < end;
		i++) {
		struct question q = {
			.block = &s->block[i],
			.base = i * s->block_size,
			.since = begun,
		};

		block_part(s, i, offset, length, &q.from, &q.to);
		q.buf = buf + (q.base + q.from - offset);
		if (seen_mixed(q.block, begun)) {
			if (!read_sectors(&q, why, size))
				return false;
			continue;
		}
		if (!find_content(&q)) {
			explain(&q, why, size);
			return false;
		}
		narrow(s, i, &q);
	}
	return true;
}

bool shadow_may_be_zero(
	struct shadow *s, uint64_t begun, uint64_t offset, uint64_t length)
{
	static const unsigned char zeroes[SECTOR];
	uint64_t end = offset + length;

	for (uint64_t i = offset / s->block_size; i * s->block_size < end;
		i++) {
		struct question q = {
			.block = &s->block[i],
			.base = i * s->block_size,
			.since = begun,
		};

		block_part(s, i, offset, length, &q.from, &q.to);
		for (uint32_t at = q.from; at < q.to;) {
			struct question part = of_sector(&q, at);

			part.buf = zeroes;
			if (!find_content(&part))
				return false;
			at = part.to;
		}
	}
	return true;
}

/* --- the store ----------------------------------------------------------- */

static bool any_trimmed(const struct shadow *s, uint64_t i)
{
	uint64_t k = i * s->block_size / SECTOR;
	uint64_t end = k + (block_length(s, i) + SECTOR - 1) / SECTOR;

	while (k < end && !s->trimmed[k])
		k++;
	return k < end;
}

void shadow_flushed(struct shadow *s, uint64_t begun, uint64_t oldest)
{
	uint64_t sectors = (s->size + SECTOR - 1) / SECTOR;
	uint64_t gone = begun < oldest ? begun : oldest;

	for (uint64_t k = 0; k < sectors; k++) {
		if (s->floor[k] < begun)
			s->floor[k] = begun;
		if (s->solid[k] > s->trimmed[k] && s->solid[k] < begun)
			s->trimmed[k] = 0;
	}
	for (uint64_t i = 0; i < s->nblocks; i++) {
		struct block *b = &s->block[i];
		unsigned kept = 0;

		if (any_trimmed(s, i))
			continue;

		for (unsigned n = 0; n < b->npast; n++) {
			if (b->past[n].until > gone ||
				b->past[n].lasting > gone)
				b->past[kept++] = b->past[n];
			else
				content_put(b->past[n].c);
		}
		b->npast = kept;
	}
}

/* The whole of block `i` of an image, as it may be durable. */
static struct question of_image(
	struct shadow *s, uint64_t i, const unsigned char *image)
{
	return (struct question){
		.block = &s->block[i],
		.base = i * s->block_size,
		.to = block_length(s, i),
		.buf = image + i * s->block_size,
		.durable = true,
	};
}

/* Which past contents may be on the store in the sector asked about. */
static void since_floor(const struct shadow *s, struct question *q)
{
	uint64_t k = (q->base + q->from) / SECTOR;

	q->since = s->trimmed[k] ? 0 : s->floor[k];
	q->durable = !s->trimmed[k];
}

bool shadow_durable(
	struct shadow *s, const unsigned char *image, char *why, size_t size)
{
	for (uint64_t i = 0; i < s->nblocks; i++) {
		struct question q = of_image(s, i, image);

		for (uint32_t at = 0; at < q.to; at += SECTOR) {
			struct question part = of_sector(&q, at);

			since_floor(s, &part);
			if (!find_content(&part)) {
				explain(&part, why, size);
				return false;
			}
		}
	}
	return true;
}

bool shadow_exact(
	struct shadow *s, const unsigned char *image, char *why, size_t size)
{
	for (uint64_t i = 0; i < s->nblocks; i++) {
		struct question q = of_image(s, i, image);
		bool whole = !q.block->mixed && !any_trimmed(s, i);

		for (uint32_t at = 0; at < q.to;) {
			struct question part = whole ? q : of_sector(&q, at);

			since_floor(s, &part);
			if (part.durable) /* not trimmed */
				part.since = UINT64_MAX;
			if (!find_content(&part)) {
				explain(&part, why, size);
				return false;
			}
			at = part.to;
		}
	}
	return true;
}

void shadow_reset(struct shadow *s, const unsigned char *image)
{
	for (uint64_t i = 0; i < s->nblocks; i++) {
		struct question q = of_image(s, i, image);
		struct content *c = content_get(q.block->states[0].c);

		for (uint32_t at = 0; at < q.to; at += SECTOR) {
			struct question part = of_sector(&q, at);
			struct content *seen, *next;

			since_floor(s, &part);
			seen = find_content(&part);
			assert(seen);
			next = content_merge(c, seen, part.from, part.to);
			content_put(c);
			c = next;
		}
		block_settle(s, i, c);
	}
	for (uint64_t k = 0; k < (s->size + SECTOR - 1) / SECTOR; k++) {
		s->floor[k] = s->clock;
		s->trimmed[k] = 0;
	}
}
