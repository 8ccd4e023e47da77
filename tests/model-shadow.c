/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-shadow.c: changes: how the set of possible contents grows when one
 * begins and shrinks when it is answered.
 *
 *  1. states holds every (content, mask) that can be reached from what was
 *     there by letting any of the changes in flight take effect in any order.
 *  2. A content leaves states only when an answer or a read shows that the
 *     block does not have it; then it is past.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model-block.h"

#define CROWD 40U /* states of one block; more take too long */

uint64_t shadow_tick(struct shadow *s)
{
	return ++s->clock;
}

uint32_t block_length(const struct shadow *s, uint64_t i)
{
	uint64_t left = s->size - i * s->block_size;

	return left < s->block_size ? (uint32_t)left : s->block_size;
}

void block_part(const struct shadow *s, uint64_t i, uint64_t offset,
	uint64_t length, uint32_t *from, uint32_t *to)
{
	uint64_t base = i * s->block_size, end = offset + length;
	uint32_t size = block_length(s, i);

	*from = offset > base ? (uint32_t)(offset - base) : 0;
	*to = end < base + size ? (uint32_t)(end - base) : size;
}

static uint64_t first_block(const struct shadow *s, uint64_t offset)
{
	return offset / s->block_size;
}

static uint64_t end_block(
	const struct shadow *s, uint64_t offset, uint64_t length)
{
	return (offset + length + s->block_size - 1) / s->block_size;
}

/* --- states -------------------------------------------------------------- */

/* Takes the reference. */
static void add_state(struct block *b, struct content *c, unsigned mask)
{
	for (unsigned i = 0; i < b->nstates; i++) {
		if (b->states[i].mask == mask &&
			content_equal(b->states[i].c, c)) {
			content_put(c);
			return;
		}
	}
	if (b->nstates == b->max_states) {
		b->max_states = b->max_states ? b->max_states * 2 : 4;
		b->states = realloc(
			b->states, b->max_states * sizeof(b->states[0]));
		assert(b->states);
	}
	b->states[b->nstates++] = (struct state){c, mask};
}

static bool has_content(const struct block *b, const struct content *c)
{
	for (unsigned i = 0; i < b->nstates; i++) {
		if (content_equal(b->states[i].c, c))
			return true;
	}
	return false;
}

void block_close(struct shadow *s, uint64_t i)
{
	struct block *b = &s->block[i];
	uint32_t from, to;

	for (unsigned n = 0; n < b->nstates; n++) {
		for (unsigned slot = 0; slot < SHADOW_OVERLAP; slot++) {
			const struct change *c = b->inflight[slot];
			struct state st = b->states[n];

			if (!c || st.mask & 1U << slot)
				continue;
			block_part(s, i, c->offset, c->length, &from, &to);
			add_state(b, content_write(st.c, from, to, c->id),
				st.mask | 1U << slot);
		}
	}
}

static bool same_missing(const struct past *p, const struct past *q)
{
	if (p->nmissing != q->nmissing)
		return false;
	for (unsigned i = 0; i < p->nmissing; i++) {
		if (p->missing[i].number != q->missing[i].number)
			return false;
	}
	return true;
}

/* Takes the reference of p. */
static void add_past(struct block *b, const struct past *p)
{
	for (unsigned i = 0; i < b->npast; i++) {
		if (same_missing(&b->past[i], p) &&
			content_equal(b->past[i].c, p->c)) {
			b->past[i].until = p->until;
			if (b->past[i].lasting < p->lasting)
				b->past[i].lasting = p->lasting;
			content_put(p->c);
			return;
		}
	}
	if (b->npast == b->max_past) {
		b->max_past = b->max_past ? b->max_past * 2 : 4;
		b->past = realloc(b->past, b->max_past * sizeof(b->past[0]));
		assert(b->past);
	}
	b->past[b->npast++] = *p;
}

static void make_past(
	struct block *b, const struct state *st, uint64_t now, bool seen)
{
	struct past p = {.c = st->c, .until = now, .lasting = now};

	for (unsigned slot = 0; slot < SHADOW_OVERLAP; slot++) {
		if (b->inflight[slot] && !(st->mask & 1U << slot))
			p.missing[p.nmissing++].number =
				b->inflight[slot]->number;
	}
	if (seen && p.nmissing)
		p.lasting = UINT64_MAX;
	add_past(b, &p);
}

void block_keep(struct shadow *s, uint64_t i, const bool *keep, bool seen)
{
	struct block *b = &s->block[i];
	unsigned old = b->nstates;
	struct state *states = b->states;

	b->states = NULL;
	b->nstates = 0;
	b->max_states = 0;
	b->touched = shadow_tick(s);
	for (unsigned n = 0; n < old; n++) {
		if (keep[n])
			add_state(b, content_get(states[n].c), states[n].mask);
	}
	for (unsigned n = 0; n < old; n++) {
		if (keep[n] || has_content(b, states[n].c))
			content_put(states[n].c);
		else
			make_past(b, &states[n], b->touched, seen);
	}
	free(states);
	assert(b->nstates);
}

/* --- changes ------------------------------------------------------------- */

bool shadow_crowded(const struct shadow *s, uint64_t offset, uint64_t length)
{
	uint64_t end = end_block(s, offset, length);

	for (uint64_t i = first_block(s, offset); i < end; i++) {
		const struct block *b = &s->block[i];
		unsigned n = 0;

		for (unsigned slot = 0; slot < SHADOW_OVERLAP; slot++)
			n += b->inflight[slot] != NULL;
		if (n == SHADOW_OVERLAP || b->nstates > CROWD)
			return true;
	}
	return false;
}

/* Note for each sector whether what it held before may come back. */
static void mark_sectors(struct shadow *s, const struct change *c)
{
	uint64_t end = c->offset + c->length, now = shadow_tick(s);

	for (uint64_t k = c->offset / SECTOR; k * SECTOR < end; k++) {
		if (c->trim)
			s->trimmed[k] = now;
		else if (c->offset <= k * SECTOR && (k + 1) * SECTOR <= end &&
			c->begun > s->trimmed[k])
			s->solid[k] = now;
	}
}

void shadow_begin(struct shadow *s, struct change *c)
{
	uint64_t end = end_block(s, c->offset, c->length);

	c->begun = c->number = shadow_tick(s);
	if (c->trim)
		mark_sectors(s, c);
	for (uint64_t i = first_block(s, c->offset); i < end; i++) {
		struct block *b = &s->block[i];
		unsigned slot = 0;

		while (b->inflight[slot])
			slot++;
		assert(slot < SHADOW_OVERLAP);
		b->inflight[slot] = c;
		b->touched = c->begun;
		block_close(s, i);
	}
}

/* The change in `slot` is no longer in flight: its bit means nothing now. */
static void forget_slot(struct block *b, unsigned slot)
{
	unsigned old = b->nstates;
	struct state *states = b->states;

	b->states = NULL;
	b->nstates = 0;
	b->max_states = 0;
	for (unsigned n = 0; n < old; n++)
		add_state(b, states[n].c, states[n].mask & ~(1U << slot));
	free(states);
	b->inflight[slot] = NULL;
}

/* The change is answered: the store may have to have it from now on. */
static void end_past(struct block *b, const struct change *c, uint64_t now)
{
	for (unsigned n = 0; n < b->npast; n++) {
		struct past *p = &b->past[n];

		for (unsigned m = 0; m < p->nmissing; m++) {
			if (p->missing[m].number == c->number &&
				p->lasting == UINT64_MAX)
				p->lasting = now;
		}
	}
}

static void end_in_block(struct shadow *s, uint64_t i, const struct change *c,
	enum change_end how)
{
	struct block *b = &s->block[i];
	bool done = how == CHANGE_DONE || how == CHANGE_DURABLE;
	unsigned slot = 0;

	while (b->inflight[slot] != c)
		slot++;
	if (done || how == CHANGE_NOT) {
		bool *keep = calloc(b->nstates, sizeof(*keep));

		assert(keep);
		for (unsigned n = 0; n < b->nstates; n++)
			keep[n] = done == !!(b->states[n].mask & 1U << slot);
		block_keep(s, i, keep, false);
		free(keep);
	}
	forget_slot(b, slot);
	b->touched = shadow_tick(s);
	end_past(b, c, b->touched);
	if (how == CHANGE_MIXED)
		b->mixed = true;
	if (b->mixed && how != CHANGE_MIXED && b->nstates == 1) {
		b->mixed = false;
		b->whole = b->touched;
	}
}

/* The store has this change in sectors [from, to) of the block: contents
 * without it are gone. */
static void make_durable(struct shadow *s, uint64_t i, const struct change *c,
	uint32_t from, uint32_t to)
{
	struct block *b = &s->block[i];
	uint64_t base = i * s->block_size / SECTOR;

	for (uint64_t k = base + from; k < base + to; k++) {
		if (s->floor[k] < c->begun)
			s->floor[k] = c->begun;
		if (s->solid[k] > s->trimmed[k])
			s->trimmed[k] = 0;
	}
	for (unsigned n = 0; n < b->npast; n++) {
		struct past *p = &b->past[n];

		for (unsigned m = 0; m < p->nmissing; m++) {
			if (p->missing[m].number != c->number)
				continue;
			p->missing[m].lo = from;
			p->missing[m].hi = to;
		}
	}
}

void shadow_end(struct shadow *s, struct change *c, enum change_end how)
{
	uint64_t end = end_block(s, c->offset, c->length);
	uint32_t from, to;

	if (c->trim || how == CHANGE_DONE || how == CHANGE_DURABLE)
		mark_sectors(s, c);
	for (uint64_t i = first_block(s, c->offset); i < end; i++) {
		end_in_block(s, i, c, how);
		block_part(s, i, c->offset, c->length, &from, &to);
		if (how == CHANGE_DURABLE && !c->trim)
			make_durable(s, i, c, from / SECTOR,
				(to + SECTOR - 1) / SECTOR);
	}
}

/* --- life ---------------------------------------------------------------- */

static void drop_all(struct block *b)
{
	for (unsigned n = 0; n < b->nstates; n++)
		content_put(b->states[n].c);
	for (unsigned n = 0; n < b->npast; n++)
		content_put(b->past[n].c);
	b->nstates = 0;
	b->npast = 0;
}

void block_settle(struct shadow *s, uint64_t i, struct content *c)
{
	struct block *b = &s->block[i];

	drop_all(b);
	add_state(b, c, 0);
	b->mixed = false;
	b->touched = shadow_tick(s);
	for (unsigned slot = 0; slot < SHADOW_OVERLAP; slot++)
		b->inflight[slot] = NULL;
}

struct shadow *shadow_new(uint64_t size, uint32_t block_size, uint32_t id)
{
	uint64_t sectors = (size + SECTOR - 1) / SECTOR;
	struct shadow *s = calloc(1, sizeof(*s));

	assert(s);
	s->size = size;
	s->block_size = block_size;
	s->nblocks = (size + block_size - 1) / block_size;
	s->block = calloc(s->nblocks, sizeof(s->block[0]));
	s->floor = calloc(sectors, sizeof(s->floor[0]));
	s->trimmed = calloc(sectors, sizeof(s->trimmed[0]));
	s->solid = calloc(sectors, sizeof(s->solid[0]));
	assert(s->block && s->floor && s->trimmed && s->solid);
	for (uint64_t i = 0; i < s->nblocks; i++)
		block_settle(s, i, content_new(block_length(s, i), id));
	return s;
}

void shadow_free(struct shadow *s)
{
	if (!s)
		return;
	for (uint64_t i = 0; i < s->nblocks; i++) {
		drop_all(&s->block[i]);
		free(s->block[i].states);
		free(s->block[i].past);
	}
	free(s->block);
	free(s->floor);
	free(s->trimmed);
	free(s->solid);
	free(s);
}
