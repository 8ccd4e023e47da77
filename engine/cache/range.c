/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * range.c: what state a range of the device is in.
 */
#include "cache-impl.h"

static unsigned page_state(const struct cache *c, const struct page *p,
	unsigned first, unsigned count, uint64_t epoch)
{
	unsigned state = 0;

	if (p->dirty && bitmap_any(page_map(c, p, MAP_DIRTY), first, count))
		state |= p->dirty_epoch <= epoch ? CACHE_HAS_DIRTY
						 : CACHE_HAS_DIRTY_LATER;
	if (p->writeback &&
		bitmap_any(page_map(c, p, MAP_WRITEBACK), first, count))
		state |= CACHE_HAS_WRITEBACK;
	if (p->unstable &&
		bitmap_any(page_map(c, p, MAP_UNSTABLE), first, count))
		state |= CACHE_HAS_UNSTABLE;
	return state;
}

unsigned cache_range_state(
	struct cache *c, uint64_t offset, uint64_t end, uint64_t epoch)
{
	unsigned state = 0;

	end = min_u64(end, c->size);
	while (offset < end) {
		uint64_t stop = min_u64(page_end(c, offset), end);
		struct shard *sh = shard_of(c, offset);
		SCOPED_LOCK(&sh->lock);
		const struct page *p = index_find(c, sh, offset);

		if (p)
			state |= page_state(c, p, block_of(c, offset),
				blocks_touched(c, offset, stop), epoch);
		offset = stop;
	}
	return state;
}

/* The first busy run of blocks of the page in [*start, *stop), as bytes. */
static bool busy_in_page(const struct cache *c, const struct page *p,
	uint64_t *start, uint64_t *stop)
{
	unsigned first = block_of(c, *start);
	unsigned end = first + blocks_touched(c, *start, *stop);
	uint64_t base = page_offset(c, p);
	unsigned from = end, b;

	for (b = first; b < end; b++) {
		bool busy = bitmap_test(page_map(c, p, MAP_DIRTY), b) ||
			bitmap_test(page_map(c, p, MAP_WRITEBACK), b) ||
			bitmap_test(page_map(c, p, MAP_UNSTABLE), b);

		if (busy && from == end)
			from = b;
		if (!busy && from != end)
			break;
	}
	if (from == end)
		return false;
	*start = max_u64(*start, base + ((uint64_t)from << c->block_shift));
	*stop = min_u64(*stop, base + ((uint64_t)b << c->block_shift));
	return true;
}

bool cache_next_busy(struct cache *c, uint64_t offset, uint64_t end,
	unsigned max_pages, uint64_t *start, uint64_t *stop, uint64_t *seen)
{
	end = min_u64(end, c->size);
	for (; offset < end && max_pages; max_pages--) {
		struct shard *sh = shard_of(c, offset);
		SCOPED_LOCK(&sh->lock);
		const struct page *p = index_find(c, sh, offset);

		*start = offset;
		*stop = min_u64(page_end(c, offset), end);
		offset = *stop;
		if (p && busy_in_page(c, p, start, stop)) {
			*seen = *stop;
			return true;
		}
	}
	*seen = offset;
	return false;
}

/* --- block by block ------------------------------------------------------ */

/* The state of the page's block `b`; *end, a block behind it, is moved to the
 * first that differs. Lock held. */
static unsigned state_in_page(
	const struct cache *c, const struct page *p, unsigned b, unsigned *end)
{
	static const enum page_map maps[] = {
		MAP_UPTODATE, MAP_DIRTY, MAP_WRITEBACK, MAP_UNSTABLE};
	unsigned state = 0;

	for (unsigned i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		const uint64_t *map = page_map(c, p, maps[i]);
		bool set = bitmap_test(map, b);

		state |= set ? 1U << i : 0;
		*end = bitmap_find(map, b, *end, !set);
	}
	return state;
}

/* The end of the stretch of the node that `offset` lies in. */
static uint64_t node_end(const struct cache *c, uint64_t offset)
{
	uint64_t span = cache_span(c);

	return round_down(offset, span) + span;
}

unsigned cache_block_state(
	struct cache *c, uint64_t offset, uint64_t end, uint64_t *stop)
{
	struct shard *sh = shard_of(c, offset);
	SCOPED_LOCK(&sh->lock);
	const struct page *p = index_find(c, sh, offset);
	unsigned last, state;

	if (!p) {
		*stop = min_u64(end,
			index_find_node(c, sh, offset) ? page_end(c, offset)
						       : node_end(c, offset));
		return 0;
	}
	*stop = min_u64(end, page_end(c, offset));
	last = block_of(c, offset) + blocks_touched(c, offset, *stop);
	state = state_in_page(c, p, block_of(c, offset), &last);
	*stop = min_u64(
		*stop, page_offset(c, p) + ((uint64_t)last << c->block_shift));
	return state;
}
