/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dirty.c: what is dirty, and taking it for writeback.
 *
 * Dirty nodes hang on a list of their shard, oldest first: making one dirty
 * costs nothing; whoever writes back gathers and sorts them once for many.
 */
#include <errno.h>
#include <stdlib.h>

#include "cache-impl.h"

uint64_t cache_new_epoch(struct cache *c)
{
	return atomic_fetch_add(&c->epoch, 1);
}

struct region_list {
	uint64_t *at;
	size_t count, room;
};

static int region_add(struct region_list *l, uint64_t region)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		uint64_t *at = realloc(l->at, room * sizeof(*at));

		if (!at)
			return -ENOMEM;
		l->at = at;
		l->room = room;
	}
	l->at[l->count++] = region;
	return 0;
}

static int gather(struct cache *c, struct shard *sh, uint64_t before_ns,
	struct region_list *l)
{
	SCOPED_LOCK(&sh->lock);

	list_for_each (at, &sh->dirty_nodes) {
		struct node *n = list_entry(at, struct node, dirty_link);

		if (n->dirty_since > before_ns)
			break;
		if (region_add(l, n->key << (c->page_shift + NODE_SHIFT)))
			return -ENOMEM;
	}
	return 0;
}

static int gather_all(struct cache *c, struct shard *sh, struct region_list *l)
{
	SCOPED_LOCK(&sh->lock);

	for (unsigned i = 0; i < sh->buckets; i++) {
		for (struct node *n = sh->bucket[i]; n; n = n->hash_next) {
			if (region_add(
				    l, n->key << (c->page_shift + NODE_SHIFT)))
				return -ENOMEM;
		}
	}
	return 0;
}

int cache_regions(struct cache *c, uint64_t **out, size_t *count)
{
	struct region_list l = {0};

	for (unsigned i = 0; i < SHARDS; i++) {
		if (gather_all(c, &c->shard[i], &l)) {
			free(l.at);
			return -ENOMEM;
		}
	}
	*out = l.at;
	*count = l.count;
	return 0;
}

int cache_dirty_regions(
	struct cache *c, uint64_t before_ns, uint64_t **out, size_t *count)
{
	struct region_list l = {0};

	for (unsigned i = 0; i < SHARDS; i++) {
		if (gather(c, &c->shard[i], before_ns, &l)) {
			free(l.at);
			return -ENOMEM;
		}
	}
	*out = l.at;
	*count = l.count;
	return 0;
}

/* --- taking -------------------------------------------------------------- */

static int run_push(
	struct cache *c, struct cache_run *run, frame_t f, size_t in, size_t n)
{
	unsigned char *data = arena_data(&c->arena, f) + in;
	struct iovec *last = run->niov ? &run->iov[run->niov - 1] : NULL;

	if (last && (unsigned char *)last->iov_base + last->iov_len == data) {
		last->iov_len += n;
	} else {
		if (run->niov == run->max_iov)
			return -E2BIG;
		run->iov[run->niov].iov_base = data;
		run->iov[run->niov++].iov_len = n;
	}
	arena_get(&c->arena, f, 1);
	run->end += n;
	return 0;
}

/* Append the memory of [run->end, to) of the page; whole blocks are kept
 * together by starting a block only if all its frames fit. */
static void run_append(
	struct cache *c, struct page *p, struct cache_run *run, uint64_t to)
{
	uint64_t base = page_offset(c, p);
	uint64_t unit = max_u64(block_size(c), FRAME_SIZE);

	while (run->end < to) {
		uint64_t stop = min_u64(round_down(run->end, unit) + unit,
			min_u64(to, c->size));

		if ((uint64_t)(run->max_iov - run->niov) < unit >> FRAME_SHIFT)
			return;
		while (run->end < stop) {
			size_t in = run->end & (FRAME_SIZE - 1);
			size_t n = min_u64(FRAME_SIZE - in, stop - run->end);
			frame_t f = page_frames(
				c, p)[(run->end - base) >> FRAME_SHIFT];

			if (run_push(c, run, f, in, n))
				return;
		}
		if (stop == c->size)
			return;
	}
}

/* Is none of the block locked, by a shared lock neither? */
static bool block_free(struct cache *c, const struct page *p, unsigned block)
{
	uint64_t at = page_offset(c, p) + ((uint64_t)block << c->block_shift);

	return range_free(c, at, at + block_size(c), true) > at;
}

/* The first dirty block of [first, end) that is neither under writeback nor
 * locked. */
static unsigned find_takable(
	struct cache *c, const struct page *p, unsigned first, unsigned end)
{
	for (;; first++) {
		first = bitmap_find(
			page_map(c, p, MAP_DIRTY), first, end, true);
		if (first == end)
			return end;
		if (!bitmap_test(page_map(c, p, MAP_WRITEBACK), first) &&
			block_free(c, p, first))
			return first;
	}
}

/* Take blocks of the page from run->end on, contiguous, up to `stop`. False:
 * the run ends here. Lock held. */
static bool take_in_page(struct cache *c, struct shard *sh, struct page *p,
	uint64_t stop, struct cache_run *run, struct delta *d)
{
	uint64_t from = run->end;
	unsigned first = block_of(c, from);
	unsigned end = first + blocks_touched(c, from, stop), last, n;

	last = bitmap_find(page_map(c, p, MAP_DIRTY), first, end, false);
	last = bitmap_find(page_map(c, p, MAP_WRITEBACK), first, last, true);
	if (first == last)
		return false;
	run_append(c, p, run,
		range_free(c, from,
			page_offset(c, p) + ((uint64_t)last << c->block_shift),
			true));
	if (run->end == from)
		return false;
	n = blocks_touched(c, from, run->end);
	page_undirty(c, sh, p, first, n, d);
	bitmap_set(page_map(c, p, MAP_WRITEBACK), first, n);
	p->writeback += n;
	d->writeback += (int64_t)n << c->block_shift;
	page_settle(sh, p);
	page_assert(c, sh, p);
	return first + n == end && run->end == stop;
}

/* Find where a run may start in [from, region_end), one node's part: sets
 * run->offset. Lock held. 0, -ENOENT or -EBUSY. */
static int find_start(struct cache *c, struct shard *sh, uint64_t from,
	uint64_t region_end, uint64_t epoch, struct cache_run *run)
{
	run->skipped = false;
	while (from < region_end) {
		uint64_t stop = min_u64(page_end(c, from), region_end);
		struct page *p = index_find(c, sh, from);
		unsigned first = block_of(c, from), end, at;

		if (p && p->dirty && p->dirty_epoch <= epoch) {
			end = first + blocks_touched(c, from, stop);
			at = find_takable(c, p, first, end);
			if (at < end) {
				run->offset = page_offset(c, p) +
					((uint64_t)at << c->block_shift);
				run->skipped |=
					bitmap_any(page_map(c, p, MAP_DIRTY),
						first, at - first);
				return 0;
			}
			run->skipped |= bitmap_any(
				page_map(c, p, MAP_DIRTY), first, end - first);
		}
		from = stop;
	}
	return run->skipped ? -EBUSY : -ENOENT;
}

/* Take more of the run, in one shard, up to `stop`. False: it ends here. */
static bool extend(struct cache *c, struct shard *sh, uint64_t stop,
	struct cache_run *run, struct delta *d)
{
	while (run->end < stop) {
		uint64_t end = min_u64(page_end(c, run->end), stop);
		struct page *p = index_find(c, sh, run->end);

		if (!p || !p->dirty || !take_in_page(c, sh, p, end, run, d))
			return false;
	}
	return true;
}

int cache_take_dirty(struct cache *c, uint64_t from, uint64_t region_end,
	uint64_t stop, uint64_t max, uint64_t epoch, struct cache_run *run)
{
	struct delta d = {0};
	bool more = true;
	int err;

	run->niov = 0;
	region_end = min_u64(region_end, c->size);
	stop = min_u64(stop, c->size);
	{
		struct shard *sh = shard_of(c, from);
		SCOPED_LOCK(&sh->lock);

		err = find_start(c, sh, from, region_end, epoch, run);
		if (err)
			return err;
		run->end = run->offset;
		stop = min_u64(stop, run->offset + max);
		more = extend(c, sh, min_u64(stop, shard_end(c, run->offset)),
			run, &d);
	}
	while (more && run->end < stop) {
		struct shard *sh = shard_of(c, run->end);
		SCOPED_LOCK(&sh->lock);

		more = extend(
			c, sh, min_u64(stop, shard_end(c, run->end)), run, &d);
	}
	delta_apply(c, &d);
	/* The range was locked after we looked for a start. */
	return run->end > run->offset ? 0 : -EBUSY;
}

/* --- ending -------------------------------------------------------------- */

static void make_unstable(struct cache *c, struct shard *sh, struct page *p,
	unsigned first, unsigned count, struct delta *d)
{
	unsigned had = bitmap_count(page_map(c, p, MAP_UNSTABLE), first, count);

	bitmap_set(page_map(c, p, MAP_UNSTABLE), first, count);
	p->unstable += count - had;
	d->unstable += (int64_t)(count - had) << c->block_shift;
	/* An unstable block under writeback can't be: it was dirty between. */
	p->unstable_flush = atomic_load(&c->flushes);
	list_remove(&p->unstable_link);
	list_push_tail(&sh->unstable, &p->unstable_link);
}

/* Blocks [first, first + count), alike in whether they are dirty again. */
static void settle_blocks(struct cache *c, struct shard *sh, struct page *p,
	unsigned first, unsigned count, int error, bool stable, struct delta *d)
{
	bool again = bitmap_test(page_map(c, p, MAP_DIRTY), first);

	if (again || (!error && stable))
		d->uncharge += (uint64_t)count << c->block_shift;
	else if (error)
		page_dirty(c, sh, p, first, count, d);
	else
		make_unstable(c, sh, p, first, count, d);
}

static void run_done_page(
	struct cache *c, uint64_t at, uint64_t stop, int error, bool stable)
{
	struct shard *sh = shard_of(c, at);
	unsigned first = block_of(c, at);
	unsigned count = blocks_touched(c, at, stop), end = first + count;
	struct delta d = {0};

	{
		SCOPED_LOCK(&sh->lock);
		struct page *p = index_find(c, sh, at);
		const uint64_t *dirty = page_map(c, p, MAP_DIRTY);

		bitmap_clear(page_map(c, p, MAP_WRITEBACK), first, count);
		p->writeback -= count;
		d.writeback -= (int64_t)count << c->block_shift;
		for (unsigned b = first, next; b < end; b = next) {
			next = bitmap_find(
				dirty, b, end, !bitmap_test(dirty, b));
			settle_blocks(c, sh, p, b, next - b, error, stable, &d);
		}
		page_settle(sh, p);
		page_assert(c, sh, p);
		page_wake(p, first, count, 0);
	}
	delta_apply(c, &d);
}

void cache_run_done(
	struct cache *c, const struct cache_run *run, int error, bool stable)
{
	/* First the memory: a page that may be reclaimed holds it alone. */
	cache_release(c, run->iov, (unsigned)run->niov);
	for (uint64_t at = run->offset, stop; at < run->end; at = stop) {
		stop = min_u64(page_end(c, at), run->end);
		run_done_page(c, at, stop, error, stable);
	}
}

/* --- store flushes ------------------------------------------------------- */

uint64_t cache_flush_begin(struct cache *c)
{
	return atomic_fetch_add(&c->flushes, 1) + 1;
}

/* A flush that covers the page's writes succeeded. */
static void make_clean(
	struct cache *c, struct shard *sh, struct page *p, struct delta *d)
{
	d->uncharge += (uint64_t)p->unstable << c->block_shift;
	page_unstabilise(c, sh, p, 0, c->page_blocks, d);
}

void page_redirty(
	struct cache *c, struct shard *sh, struct page *p, struct delta *d)
{
	const uint64_t *unstable = page_map(c, p, MAP_UNSTABLE);
	unsigned b = 0, next;

	while (p->unstable) {
		b = bitmap_find(unstable, b, c->page_blocks, true);
		next = bitmap_find(unstable, b, c->page_blocks, false);
		page_dirty(c, sh, p, b, next - b, d);
		b = next;
	}
}

static void flush_end_shard(
	struct cache *c, struct shard *sh, uint64_t number, int error)
{
	struct delta d = {0};

	{
		SCOPED_LOCK(&sh->lock);

		while (!list_empty(&sh->unstable)) {
			struct page *p = list_entry(
				sh->unstable.next, struct page, unstable_link);

			if (error)
				page_redirty(c, sh, p, &d);
			else if (p->unstable_flush < number)
				make_clean(c, sh, p, &d);
			else
				break;
			page_settle(sh, p);
			page_assert(c, sh, p);
		}
	}
	delta_apply(c, &d);
}

void cache_flush_end(struct cache *c, uint64_t number, int error)
{
	for (unsigned i = 0; i < SHARDS; i++)
		flush_end_shard(c, &c->shard[i], number, error);
}
