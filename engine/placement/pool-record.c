/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-record.c: changes of the map on their way to the journal. The pool's
 * lock is held for writing.
 *
 *  1. What a record needs is reserved before the map is changed.
 *  2. `fresh` counts, for each region of the device, the records that are not
 *     durable; regions share counters, so it may say yes too often, never no.
 */
#include <errno.h>
#include <stdlib.h>

#include "pool-impl.h"

int records_reserve(struct records *r, size_t more)
{
	size_t room = r->room ? r->room : 64;
	struct record *item;

	if (r->count + more <= r->room)
		return 0;
	while (room < r->count + more)
		room *= 2;
	item = realloc(r->item, room * sizeof(*item));
	if (!item)
		return -ENOMEM;
	r->item = item;
	r->room = room;
	return 0;
}

static int retiring_get(struct pool *p)
{
	if (!p->retiring)
		p->retiring = calloc(1, sizeof(*p->retiring));
	return p->retiring ? 0 : -ENOMEM;
}

int pool_reserve_records(struct pool *p, unsigned changes)
{
	if (records_reserve(&p->pending, changes) || retiring_get(p) ||
		extent_map_reserve(&p->map, changes))
		return -ENOMEM;
	if (!extent_map_count(&p->tainted))
		return 0;
	return extent_map_reserve(&p->tainted, changes);
}

static void count_fresh(struct pool *p, const struct record *r, int by)
{
	uint64_t first = r->logical / FRESH_REGION;
	uint64_t last = (r->logical + r->length - 1) / FRESH_REGION;

	if (last - first >= FRESH_BUCKETS)
		last = first + FRESH_BUCKETS - 1; /* all of them */
	for (uint64_t i = first; i <= last; i++)
		p->fresh[i % FRESH_BUCKETS] += (uint32_t)by;
}

void pool_record(struct pool *p, const struct record *r)
{
	p->pending.item[p->pending.count++] = *r;
	p->recorded++;
	count_fresh(p, r, 1);
	if (p->pending.count == p->pending_most)
		pool_kick(p);
}

bool pool_is_fresh(const struct pool *p, uint64_t offset, uint64_t end)
{
	uint64_t last = (end - 1) / FRESH_REGION;

	for (uint64_t i = offset / FRESH_REGION; i <= last; i++) {
		if (p->fresh[i % FRESH_BUCKETS])
			return true;
	}
	return false;
}

void pool_forget_fresh(struct pool *p, const struct records *r)
{
	for (size_t i = 0; i < r->count; i++)
		count_fresh(p, &r->item[i], -1);
}

/* Without memory the space is lost until the pool is opened again. */
void pool_retire(void *pool, const struct extent *piece)
{
	struct pool *p = pool;
	struct retired *b = p->retiring;
	struct retired_range *last = b->count ? &b->item[b->count - 1] : NULL;
	struct retired_range range = {
		.offset = piece->physical,
		.length = piece->length,
		.number = p->recorded + 1,
	};

	if (last && last->number == range.number &&
		last->offset + last->length == range.offset) {
		last->length += range.length;
		return;
	}
	if (b->count == b->room) {
		size_t room = b->room ? 2 * b->room : 16;
		void *item = realloc(b->item, room * sizeof(*b->item));

		if (!item)
			return;
		b->item = item;
		b->room = room;
	}
	b->item[b->count++] = range;
}

/*
 * Also one that says "unwritten": it may do so because it was tainted before,
 * and an older record that unmaps has just taken that back. If it was never
 * anything else this costs a record when it is written. If not even that can
 * be remembered, nothing is answered as durable again.
 */
static void taint(struct pool *p, const struct record *r)
{
	struct extent e = {
		.logical = r->logical,
		.physical = r->physical,
		.length = r->length,
	};
	int err = 0;

	if (r->op == POOL_OP_UNMAP)
		err = extent_map_clear(
			&p->tainted, r->logical, r->length, NULL, NULL);
	else
		err = extent_map_set(&p->tainted, &e, NULL, NULL);
	if (err)
		p->broken = true;
}

void pool_taint(struct pool *p)
{
	p->failures++;
	for (size_t i = 0; i < p->pending.count; i++) {
		struct record *r = &p->pending.item[i];

		taint(p, r);
		if (r->op == POOL_OP_MAP)
			r->unwritten = true;
	}
}
