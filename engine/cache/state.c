/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.c: the state of blocks, its transitions and its rules.
 *
 * The rules are numbered in cache.h; page_check() walks them. Every function
 * here runs under the lock of the page's shard.
 */
#include <assert.h>
#include <stdio.h>

#include "cache-impl.h"

static void lru_count(struct shard *sh, const struct page *p, int n)
{
	bool active = p->flags & PAGE_ACTIVE;

	if (active)
		sh->nactive += (unsigned)n;
	else
		sh->ninactive += (unsigned)n;
	atomic_fetch_add_explicit(
		active ? &sh->lru->active : &sh->lru->inactive, n,
		memory_order_relaxed);
}

void lru_remove(struct shard *sh, struct page *p)
{
	list_remove(&p->lru);
	p->flags &= (uint16_t)~PAGE_LISTED;
	lru_count(sh, p, -1);
}

void lru_add(struct shard *sh, struct page *p)
{
	list_push_tail(
		p->flags & PAGE_ACTIVE ? &sh->active : &sh->inactive, &p->lru);
	p->flags |= PAGE_LISTED;
	lru_count(sh, p, 1);
}

/*
 * Note a use. The first says nothing yet, wherever it is. Going on where the
 * last one ended is the same use, else a scan in small steps would look like a
 * hot page.
 */
void page_touch(struct page *p, unsigned first, unsigned count)
{
	unsigned flags = p->flags & ~PAGE_AHEAD;

	if (flags & PAGE_REFERENCED && flags == p->flags)
		return;
	if (p->next_block != NOT_USED && first != p->next_block)
		flags |= PAGE_REFERENCED;
	p->flags = (uint16_t)flags;
	p->next_block = (uint16_t)(first + count);
}

static void node_gains_dirty(struct cache *c, struct shard *sh, struct page *p)
{
	struct node *n = index_node_of(c, sh, p);

	p->dirty_epoch = atomic_load(&c->epoch);
	if (!n->dirty_pages++) {
		n->dirty_since = reactor_now(c->clock);
		list_push_tail(&sh->dirty_nodes, &n->dirty_link);
	}
}

uint64_t page_dirty(struct cache *c, struct shard *sh, struct page *p,
	unsigned first, unsigned count, struct delta *d)
{
	unsigned had = 0, newly, unstable = 0;

	if (p->dirty) {
		if (bitmap_all(page_map(c, p, MAP_DIRTY), first, count))
			return 0;
		had = bitmap_count(page_map(c, p, MAP_DIRTY), first, count);
	}
	newly = count - had;
	if (p->unstable)
		unstable = bitmap_count(
			page_map(c, p, MAP_UNSTABLE), first, count);
	if (unstable)
		page_unstabilise(c, sh, p, first, count, d);
	if (!p->dirty)
		node_gains_dirty(c, sh, p);
	bitmap_set(page_map(c, p, MAP_DIRTY), first, count);
	p->dirty += newly;
	d->dirty += (int64_t)newly << c->block_shift;
	/* An unstable block was charged already: its charge moves over. */
	return (uint64_t)(newly - unstable) << c->block_shift;
}

void page_undirty(struct cache *c, struct shard *sh, struct page *p,
	unsigned first, unsigned count, struct delta *d)
{
	unsigned n = bitmap_count(page_map(c, p, MAP_DIRTY), first, count);

	if (!n)
		return;
	bitmap_clear(page_map(c, p, MAP_DIRTY), first, count);
	p->dirty -= n;
	d->dirty -= (int64_t)n << c->block_shift;
	if (!p->dirty) {
		struct node *node = index_node_of(c, sh, p);

		if (!--node->dirty_pages)
			list_remove(&node->dirty_link);
	}
}

void page_unstabilise(struct cache *c, struct shard *sh, struct page *p,
	unsigned first, unsigned count, struct delta *d)
{
	unsigned n = bitmap_count(page_map(c, p, MAP_UNSTABLE), first, count);

	(void)sh;
	if (!n)
		return;
	bitmap_clear(page_map(c, p, MAP_UNSTABLE), first, count);
	p->unstable -= n;
	d->unstable -= (int64_t)n << c->block_shift;
	if (!p->unstable)
		list_remove(&p->unstable_link);
}

/* Is any block that lies in frame i uptodate? */
static bool frame_needed(
	const struct cache *c, const struct page *p, unsigned i)
{
	unsigned first = (unsigned)((uint64_t)i * FRAME_SIZE >> c->block_shift);
	unsigned last = (unsigned)(((uint64_t)(i + 1) * FRAME_SIZE - 1) >>
		c->block_shift);

	return bitmap_any(
		page_map(c, p, MAP_UPTODATE), first, last - first + 1);
}

void page_drop_frames(struct cache *c, struct page *p, unsigned first,
	unsigned count, struct delta *d)
{
	frame_t *frame = page_frames(c, p);
	uint64_t from = (uint64_t)first << c->block_shift;
	uint64_t to = (uint64_t)(first + count) << c->block_shift;

	for (unsigned i = (unsigned)(from >> FRAME_SHIFT);
		(uint64_t)i << FRAME_SHIFT < to; i++) {
		if (!frame[i] || frame_needed(c, p, i))
			continue;
		arena_put(&c->arena, frame[i], 1);
		frame[i] = 0;
		d->used -= FRAME_SIZE;
	}
}

static void add(_Atomic(int64_t) *counter, int64_t n)
{
	if (n)
		atomic_fetch_add(counter, n);
}

void delta_apply(struct cache *c, const struct delta *d)
{
	add(&c->dirty, d->dirty);
	add(&c->writeback, d->writeback);
	add(&c->unstable, d->unstable);
	add(&c->used, d->used);
	if (d->uncharge)
		cache_uncharge(c, d->uncharge);
}

static bool subset(const struct cache *c, const uint64_t *a, const uint64_t *b)
{
	for (unsigned i = 0; i < c->map_words; i++) {
		if (a[i] & ~b[i])
			return false;
	}
	return true;
}

static bool disjoint(
	const struct cache *c, const uint64_t *a, const uint64_t *b)
{
	for (unsigned i = 0; i < c->map_words; i++) {
		if (a[i] & b[i])
			return false;
	}
	return true;
}

static const char *check_counts(const struct cache *c, const struct page *p)
{
	unsigned n = c->page_blocks;

	if (bitmap_count(page_map(c, p, MAP_DIRTY), 0, n) != p->dirty)
		return "a page's count of dirty blocks is off";
	if (bitmap_count(page_map(c, p, MAP_WRITEBACK), 0, n) != p->writeback)
		return "a page's count of writeback blocks is off";
	if (bitmap_count(page_map(c, p, MAP_UNSTABLE), 0, n) != p->unstable)
		return "a page's count of unstable blocks is off";
	return NULL;
}

const char *page_check(struct cache *c, struct shard *sh, const struct page *p)
{
	const uint64_t *uptodate = page_map(c, p, MAP_UPTODATE);
	const uint64_t *dirty = page_map(c, p, MAP_DIRTY);
	const uint64_t *unstable = page_map(c, p, MAP_UNSTABLE);
	const char *wrong = check_counts(c, p);

	(void)sh;
	if (wrong)
		return wrong;
	if (!subset(c, dirty, uptodate))
		return "rule 1: a dirty block is not uptodate";
	if (!subset(c, unstable, uptodate))
		return "rule 1: an unstable block is not uptodate";
	if (!subset(c, page_map(c, p, MAP_WRITEBACK), uptodate))
		return "rule 1: a block under writeback is not uptodate";
	if (!disjoint(c, dirty, unstable))
		return "rule 1: a block is dirty and unstable";
	if (page_busy(p) == !list_empty(&p->lru) ||
		list_empty(&p->lru) == !!(p->flags & PAGE_LISTED))
		return "rule 2: a busy page is on a reclaim list, or an idle "
		       "one is not";
	if (!disjoint(c, page_map(c, p, MAP_FILLING), dirty) && !p->refs)
		return "rule 5: a block is being filled with no filler";
	for (unsigned i = 0; i < c->page_frames; i++) {
		if (page_offset(c, p) + (uint64_t)i * FRAME_SIZE >= c->size)
			break; /* of the last block, past the device's end */
		if (frame_needed(c, p, i) && !page_frames(c, p)[i])
			return "an uptodate block has no memory";
	}
	return NULL;
}

#ifdef WEIR_DEBUG
void page_assert(struct cache *c, struct shard *sh, struct page *p)
{
	const char *wrong = page_check(c, sh, p);

	if (wrong)
		fprintf(stderr, "weir: page %llu: %s\n",
			(unsigned long long)p->index, wrong);
	assert(!wrong);
}
#endif
