/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reclaim.c: which clean pages to forget when memory is needed.
 *
 * A scan-resistant two-list clock in each shard. New pages enter the tail of
 * the inactive list; one that was used again by the time it reaches the head
 * moves to the active list, so a scan passes through the inactive list and
 * leaves the active one alone. The active lists give what was not used lately
 * back to the inactive ones when they outgrow them. Pages that may not be
 * reclaimed are on neither list (state rule 2), so the walk never meets one.
 *
 * A scan fills one shard at a time and hot pages may lie in a few shards. So
 * the lists are balanced over the whole cache, and shards with more than their
 * share of inactive pages are reclaimed from first.
 */
#include "cache-impl.h"

#define ROUNDS 32U /* active pages passed over before one is given up */

static void move(struct shard *sh, struct page *p, bool active)
{
	lru_remove(sh, p);
	p->flags &= (uint16_t) ~(PAGE_ACTIVE | PAGE_REFERENCED);
	if (active)
		p->flags |= PAGE_ACTIVE;
	lru_add(sh, p);
}

static int64_t load(const _Atomic(int64_t) *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

/*
 * Active pages are to be no more than half of all there are. Those that may
 * not be reclaimed now count to the other half, else a writer, whose pages are
 * all dirty, would drive everything out of the active lists. But some must be
 * inactive: what was just given up has to be there for a while, so that it can
 * be used again.
 */
static bool too_active(const struct cache *c)
{
	int64_t active = load(&c->lru.active);

	return 2 * active > load(&c->pages) ||
		load(&c->lru.inactive) < active / 2;
}

/* Give up active pages, those first that were not used since they were last
 * looked at. */
static void balance(const struct cache *c, struct shard *sh)
{
	unsigned again = 0;

	while (!list_empty(&sh->active) && too_active(c)) {
		struct list *head = sh->active.next;
		struct page *p = list_entry(head, struct page, lru);
		bool used = p->flags & PAGE_REFERENCED;

		move(sh, p, used && again++ < ROUNDS);
	}
}

/* Has the shard its share of the inactive pages, or more? */
static bool has_share(const struct shard *sh)
{
	return (int64_t)sh->ninactive * SHARDS >= load(&sh->lru->inactive);
}

/* Reclaim from one shard, of what it has beyond its share or of all; bytes
 * freed. Lock held. */
static uint64_t reclaim_shard(
	struct cache *c, struct shard *sh, uint64_t need, bool all)
{
	int64_t before = atomic_load(&c->used);
	uint64_t freed = 0;

	while (freed < need) {
		struct page *p;

		balance(c, sh);
		if (list_empty(&sh->inactive) || !(all || has_share(sh)))
			break;
		p = list_entry(sh->inactive.next, struct page, lru);
		if (p->flags & PAGE_REFERENCED) {
			move(sh, p, true);
			continue;
		}
		index_drop(c, sh, p);
		atomic_fetch_add_explicit(
			&c->reclaimed, 1, memory_order_relaxed);
		freed = (uint64_t)(before - atomic_load(&c->used));
		if ((int64_t)freed < 0)
			freed = 0; /* others added meanwhile */
	}
	return freed;
}

uint64_t reclaim(struct cache *c, uint64_t need)
{
	uint64_t freed = 0;

	/* Once around for what is beyond its share, then for anything; pages
	 * that were used again are met twice before they go. */
	for (unsigned i = 0; i < 3 * SHARDS && freed < need; i++) {
		unsigned hand = atomic_load(&c->hand) % SHARDS;
		SCOPED_LOCK(&c->shard[hand].lock);

		freed += reclaim_shard(
			c, &c->shard[hand], need - freed, i >= SHARDS);
		if (freed < need)
			atomic_fetch_add(&c->hand, 1);
	}
	return freed;
}

bool cache_make_room(struct cache *c, uint64_t bytes)
{
	int64_t over = atomic_load_explicit(&c->used, memory_order_relaxed) +
		(int64_t)bytes - (int64_t)cache_budget(c);

	if (over <= 0)
		return true;
	reclaim(c, (uint64_t)over);
	return atomic_load(&c->used) + (int64_t)bytes <=
		(int64_t)cache_budget(c);
}

/* Pages are counted whole, as far as there can be so much. */
uint64_t cache_idle(struct cache *c)
{
	int64_t size = (int64_t)cache_budget(c);
	int64_t inactive = load(&c->lru.inactive) << c->page_shift;
	int64_t used = load(&c->used);
	int64_t clean = used - (int64_t)cache_charged(c);
	int64_t idle = size - used + (inactive < clean ? inactive : clean);

	return idle > 0 ? (uint64_t)idle : 0;
}

/* Forget the blocks of a busy page that are only a copy of the store's. One
 * that a fill is still under way for stays: the fill may bring older data. */
static void drop_clean(struct cache *c, struct page *p, struct delta *d)
{
	uint64_t *uptodate = page_map(c, p, MAP_UPTODATE);

	for (unsigned i = 0; i < c->map_words; i++)
		uptodate[i] &= page_map(c, p, MAP_DIRTY)[i] |
			page_map(c, p, MAP_WRITEBACK)[i] |
			page_map(c, p, MAP_UNSTABLE)[i] |
			page_map(c, p, MAP_FILLING)[i];
	page_drop_frames(c, p, 0, c->page_blocks, d);
}

bool cache_shrink(struct cache *c, uint64_t offset, uint64_t end)
{
	struct delta d = {0};

	if (cache_make_room(c, 0))
		return true;
	end = min_u64(end, c->size);
	while (offset < end) {
		struct shard *sh = shard_of(c, offset);
		SCOPED_LOCK(&sh->lock);
		struct page *p = index_find(c, sh, offset);

		if (p && page_busy(p)) {
			drop_clean(c, p, &d);
			page_assert(c, sh, p);
		}
		offset = round_down(offset, page_size(c)) + page_size(c);
	}
	delta_apply(c, &d);
	return !cache_pressed(c);
}

static void drop_idle(
	struct cache *c, struct shard *sh, struct page *p, void *arg)
{
	(void)arg;
	if (!page_busy(p))
		index_drop(c, sh, p);
}

uint64_t cache_drop_clean(struct cache *c)
{
	int64_t before = atomic_load(&c->used), after;

	for (unsigned i = 0; i < SHARDS; i++) {
		SCOPED_LOCK(&c->shard[i].lock);

		index_for_each(c, &c->shard[i], drop_idle, NULL);
	}
	after = atomic_load(&c->used);
	return after < before ? (uint64_t)(before - after) : 0;
}
