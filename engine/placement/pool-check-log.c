/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-check-log.c: the checkpoint's chunks and the journal's entries, each
 * looked at on its own and as one after the other. See pool-check.h.
 *
 * What cannot be read ends the chain; the journal goes on at the next entry
 * that says an earlier one was durable. Both leave the map incomplete.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "../base/cleanup.h"
#include "pool-check.h"

static bool in_units(uint64_t n)
{
	return n % POOL_UNIT == 0;
}

/* --- the checkpoint ------------------------------------------------------ */

static bool chunk_can_be(const struct check *c, const struct chunk_at *at)
{
	const struct super *s = &c->super;
	uint64_t start = s->journal_offset + s->journal_size;

	return at->length >= POOL_UNIT && at->length <= POOL_CHUNK_MAX &&
		in_units(at->length) && in_units(at->offset) &&
		at->offset >= start && at->offset < s->physical_size &&
		at->length <= s->physical_size - at->offset;
}

/* Why this is not the chunk it should be; NULL: it is. */
static const char *chunk_fault(const struct check *c,
	const struct disk_chunk *d, const struct chunk_at *at)
{
	if (memcmp(d->magic, POOL_MAGIC_CHUNK, sizeof(d->magic)))
		return "there is none";
	if (!format_holds(d, at->length, POOL_MAGIC_CHUNK))
		return "its checksum is wrong";
	if (get32(d->length) != at->length)
		return "it is of another length";
	if (get64(d->pool) != super_pool(&c->super))
		return "it is another pool's";
	if (get64(d->generation) != c->super.generation)
		return "it is of another generation";
	if (get32(d->index) != c->chain.count)
		return "it is another one of the chain";
	if (get32(d->count) > pool_records_in(at->length))
		return "it has no room for as many extents as it says";
	return NULL;
}

/* Read one, and have *at name the next; 0 length: no going on. */
static int check_chunk(struct check *c, char *buf, struct chunk_at *at)
{
	const struct disk_chunk *d = (struct disk_chunk *)(void *)buf;
	uint64_t offset = at->offset;
	uint32_t index = c->chain.count, length = at->length;
	const char *fault;
	int err;

	*at = (struct chunk_at){0};
	if (!chunk_can_be(c, &(struct chunk_at){offset, length})) {
		check_found(c, offset,
			"chunk %" PRIu32 " of the checkpoint cannot lie there, "
			"%" PRIu32 " bytes long",
			index, length);
		check_incomplete(c);
		return 0;
	}
	err = check_read(c, offset, length, buf);
	if (err)
		return err;
	fault = chunk_fault(c, d, &(struct chunk_at){offset, length});
	if (fault) {
		check_found(c, offset,
			"chunk %" PRIu32 " of the checkpoint: %s", index,
			fault);
		return 0;
	}
	if (chain_add(&c->chain, offset, length))
		return check_no_memory(c);
	c->chain.extents += get32(d->count);
	check_zero(c, d, d->reserved, sizeof(d->reserved), offset);
	*at = (struct chunk_at){get64(d->next_offset), get32(d->next_length)};
	return check_records(c, d, length, get32(d->count), offset, true);
}

int check_chain(struct check *c)
{
	const struct super *s = &c->super;
	CLEANUP_FREE char *buf = aligned_alloc(POOL_UNIT, POOL_CHUNK_MAX);
	struct chunk_at at = {s->checkpoint_offset, s->checkpoint_length};
	int err = 0;

	if (!buf)
		return check_no_memory(c);
	while (!err && at.offset && c->chain.count < s->checkpoint_chunks)
		err = check_chunk(c, buf, &at);
	if (err || !c->out->complete)
		return err;
	if (at.offset || c->chain.count != s->checkpoint_chunks ||
		c->chain.extents != s->checkpoint_extents) {
		check_found(c, super_offset(s->generation),
			"the superblock says %" PRIu32 " chunks and %" PRIu64
			" extents of a checkpoint, %s%" PRIu32 " and %" PRIu64
			" are there",
			s->checkpoint_chunks, s->checkpoint_extents,
			at.offset ? "more than " : "", c->chain.count,
			c->chain.extents);
		check_incomplete(c);
	}
	return 0;
}

/* --- the journal --------------------------------------------------------- */

/* The entry that may be at a place of the ring; NULL: none that checks. */
static const struct disk_entry *entry_at(
	const struct check *c, const char *ring, uint64_t position)
{
	const struct disk_entry *e =
		(const struct disk_entry *)(const void *)(ring + position);
	uint32_t length = get32(e->length);

	if (memcmp(e->magic, POOL_MAGIC_ENTRY, sizeof(e->magic)) ||
		get64(e->pool) != super_pool(&c->super) || length < POOL_UNIT ||
		length > POOL_ENTRY_MAX || !in_units(length) ||
		length > c->super.journal_size - position ||
		get32(e->count) > pool_records_in(length) ||
		!format_holds(e, length, POOL_MAGIC_ENTRY))
		return NULL;
	return e;
}

/* The first entry after the one that should be at `at`, of those that say
 * that one was durable; its place in *position. */
static const struct disk_entry *entry_after(const struct check *c,
	const char *ring, const struct journal_at *at, uint64_t *position)
{
	const struct disk_entry *best = NULL;

	for (uint64_t i = 0; i < c->super.journal_size; i += POOL_UNIT) {
		const struct disk_entry *e =
			(const struct disk_entry *)(const void *)(ring + i);

		if (get64(e->durable) < at->sequence ||
			get64(e->sequence) <= at->sequence ||
			(best && get64(e->sequence) >= get64(best->sequence)) ||
			!entry_at(c, ring, i))
			continue;
		best = e;
		*position = i;
	}
	return best;
}

/* Take in an entry and stand after it. */
static int check_entry(
	struct check *c, const struct disk_entry *e, struct journal_at *at)
{
	uint64_t offset = c->super.journal_offset + at->position;
	uint32_t length = get32(e->length);

	if (get64(e->durable) >= get64(e->sequence))
		check_found(c, offset,
			"journal entry %" PRIu64 " says of entry %" PRIu64
			" that it was durable before",
			get64(e->sequence), get64(e->durable));
	check_zero(c, e, e->reserved, sizeof(e->reserved), offset);
	at->sequence = get64(e->sequence) + 1;
	at->chain = get32(e->crc);
	at->position = (at->position + length) % c->super.journal_size;
	c->out->journal_entries++;
	c->out->journal_used += length;
	return check_records(c, e, length, get32(e->count), offset, false);
}

static bool is_next(const struct journal_at *at, const struct disk_entry *e)
{
	return e && get64(e->sequence) == at->sequence &&
		get32(e->chain) == at->chain;
}

/* Its end, or damage: *at then stands at a later entry, which is returned. */
static const struct disk_entry *check_end(
	struct check *c, const char *ring, struct journal_at *at)
{
	uint64_t position = 0, offset = c->super.journal_offset + at->position;
	const struct disk_entry *e = entry_after(c, ring, at, &position);

	if (!e)
		return NULL;
	check_found(c, offset,
		"journal entry %" PRIu64 " does not check, and entry %" PRIu64
		", at %" PRIu64 ", says it was durable",
		at->sequence, get64(e->sequence),
		c->super.journal_offset + position);
	check_incomplete(c);
	at->position = position;
	return e;
}

static int check_entries(struct check *c, const char *ring)
{
	const struct super *s = &c->super;
	struct journal_at at = {
		.sequence = s->replay_sequence,
		.position = s->replay_position,
		.chain = s->replay_chain,
	};
	int err = 0;

	while (!err) {
		const struct disk_entry *e = entry_at(c, ring, at.position);

		if (!is_next(&at, e))
			e = check_end(c, ring, &at);
		if (!e)
			return 0;
		if (get32(e->length) > s->journal_size - c->out->journal_used) {
			check_found(c, s->journal_offset + at.position,
				"journal entry %" PRIu64
				" lies where the first to replay is",
				get64(e->sequence));
			check_incomplete(c);
			return 0;
		}
		err = check_entry(c, e, &at);
	}
	return err;
}

int check_journal(struct check *c)
{
	const struct super *s = &c->super;
	CLEANUP_FREE char *ring = NULL;
	int err;

	if (s->journal_size > POOL_JOURNAL_MAX) {
		check_found(c, super_offset(s->generation),
			"a journal of %" PRIu64 " bytes; %u is the most",
			s->journal_size, POOL_JOURNAL_MAX);
		check_incomplete(c);
		return 0;
	}
	ring = aligned_alloc(POOL_UNIT, s->journal_size);
	if (!ring)
		return check_no_memory(c);
	err = check_read(c, s->journal_offset, s->journal_size, ring);
	return err ? err : check_entries(c, ring);
}
