/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.c: making and freeing a cache; charge; counters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache-impl.h"

static unsigned log2_of(uint64_t power)
{
	return (unsigned)__builtin_ctzll(power);
}

static void set_geometry(struct cache *c, const struct cache_config *k)
{
	unsigned node_shift;

	c->clock = k->clock;
	c->size = k->size;
	atomic_init(&c->subpage, k->subpage);
	c->room = max_u64(k->room, k->cache_size);
	atomic_init(&c->cache_size, k->cache_size);
	c->page_bytes = k->page_size;
	c->block_bytes = k->block_size;
	c->page_shift = log2_of(k->page_size);
	c->block_shift = log2_of(k->block_size);
	c->page_blocks = k->page_size / k->block_size;
	c->page_frames = k->page_size / FRAME_SIZE;
	c->map_words = BITMAP_WORDS(c->page_blocks);
	c->frames_at = PAGE_MAPS * c->map_words;
	c->page_struct = sizeof(struct page) + c->frames_at * sizeof(uint64_t) +
		c->page_frames * sizeof(frame_t);
	node_shift = c->page_shift + NODE_SHIFT;
	c->shard_shift =
		node_shift > SHARD_RANGE_SHIFT ? node_shift : SHARD_RANGE_SHIFT;
}

/* Address space may be bounded, too (ulimit -v): then it can't grow. */
static int reserve(struct cache *c, const struct cache_config *k)
{
	uint64_t others = k->extra + k->direct;
	int err = arena_init(&c->arena, c->room + others);

	if (err && c->room > k->cache_size) {
		c->room = k->cache_size;
		err = arena_init(&c->arena, c->room + others);
	}
	if (!err && k->direct)
		err = arena_set_pool(&c->arena, k->direct);
	if (!err && k->populate)
		err = arena_populate(&c->arena, k->direct + k->cache_size);
	return err;
}

static void set_slack(struct cache *c)
{
	arena_set_slack(
		&c->arena, (uint32_t)(cache_budget(c) / FRAME_SIZE / 16));
}

int cache_new(const struct cache_config *config, struct placement *placement,
	struct cache **out)
{
	struct cache *c = aligned_alloc(64, sizeof(*c));

	if (!c)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
	c->placement = placement;
	set_geometry(c, config);
	list_init(&c->locks);
	pthread_mutex_init(&c->locks_mutex, NULL);
	pthread_mutex_init(&c->streams_lock, NULL);
	cache_set_readahead(c, config->readahead);
	for (unsigned i = 0; i < SHARDS; i++) {
		c->shard[i].lru = &c->lru;
		if (index_init(&c->shard[i])) {
			cache_free(c);
			return -ENOMEM;
		}
	}
	if (reserve(c, config)) {
		cache_free(c);
		return -ENOMEM;
	}
	set_slack(c);
	*out = c;
	return 0;
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < SHARDS; i++)
		index_destroy(c, &c->shard[i]);
	if (c->arena.base)
		arena_destroy(&c->arena);
	pthread_mutex_destroy(&c->locks_mutex);
	pthread_mutex_destroy(&c->streams_lock);
	free(c);
}

void cache_set_subpage(struct cache *c, bool subpage)
{
	atomic_store(&c->subpage, subpage);
}

uint64_t cache_budget(const struct cache *c)
{
	return atomic_load_explicit(&c->cache_size, memory_order_relaxed);
}

uint64_t cache_budget_max(const struct cache *c)
{
	return c->room;
}

bool cache_set_budget(struct cache *c, uint64_t bytes)
{
	atomic_store(&c->cache_size, bytes);
	set_slack(c);
	return cache_make_room(c, 0);
}

/* --- charge -------------------------------------------------------------- */

void cache_set_wake(struct cache *c, void (*wake)(void *arg), void *arg)
{
	c->wake = wake;
	c->wake_arg = arg;
}

void cache_want_wake(struct cache *c)
{
	atomic_store(&c->want_wake, true);
}

bool cache_charge(struct cache *c, uint64_t bytes, uint64_t limit)
{
	uint64_t old = atomic_load_explicit(&c->charged, memory_order_relaxed);
	uint64_t peak;

	do {
		if (old + bytes > limit)
			return false;
	} while (!atomic_compare_exchange_weak(&c->charged, &old, old + bytes));
	peak = atomic_load_explicit(&c->charged_peak, memory_order_relaxed);
	while (old + bytes > peak &&
		!atomic_compare_exchange_weak(
			&c->charged_peak, &peak, old + bytes))
		;
	return true;
}

void cache_uncharge(struct cache *c, uint64_t bytes)
{
	if (!bytes)
		return;
	atomic_fetch_sub(&c->charged, bytes);
	if (atomic_load(&c->want_wake) &&
		atomic_exchange(&c->want_wake, false) && c->wake)
		c->wake(c->wake_arg);
}

static uint64_t positive(const _Atomic(int64_t) *counter)
{
	int64_t n = atomic_load_explicit(counter, memory_order_relaxed);

	return n > 0 ? (uint64_t)n : 0;
}

uint64_t cache_dirty(struct cache *c)
{
	return positive(&c->dirty);
}

uint64_t cache_unstable(struct cache *c)
{
	return positive(&c->unstable);
}

uint64_t cache_charged(struct cache *c)
{
	return atomic_load(&c->charged);
}

bool cache_pressed(struct cache *c)
{
	return positive(&c->used) > cache_budget(c);
}

void cache_counts(struct cache *c, struct cache_counts *out)
{
	*out = (struct cache_counts){
		.charged = cache_charged(c),
		.dirty = positive(&c->dirty),
		.writeback = positive(&c->writeback),
		.unstable = positive(&c->unstable),
		.dirty_peak = atomic_load(&c->charged_peak),
		.cached = positive(&c->used),
		.pages = positive(&c->pages),
		.fill_reads = atomic_load(&c->fill_reads),
		.reclaimed = atomic_load(&c->reclaimed),
		.ahead = atomic_load(&c->ahead_bytes),
		.ahead_unused = atomic_load(&c->ahead_unused),
	};
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *sh = &c->shard[i];
		SCOPED_LOCK(&sh->lock);

		out->hits += sh->hits;
		out->misses += sh->misses;
		out->partial_hits += sh->partial_hits;
	}
}

void cache_reset_peaks(struct cache *c)
{
	atomic_store(&c->charged_peak, cache_charged(c));
}

uint64_t cache_block_size(const struct cache *c)
{
	return block_size(c);
}

uint64_t cache_span(const struct cache *c)
{
	return page_size(c) << NODE_SHIFT;
}

/* --- walking everything -------------------------------------------------- */

static void check_one(
	struct cache *c, struct shard *sh, struct page *p, void *arg)
{
	const char **wrong = arg;

	if (!*wrong)
		*wrong = page_check(c, sh, p);
}

const char *cache_check(struct cache *c)
{
	const char *wrong = NULL;

	for (unsigned i = 0; i < SHARDS && !wrong; i++) {
		SCOPED_LOCK(&c->shard[i].lock);

		index_for_each(c, &c->shard[i], check_one, &wrong);
	}
	return wrong;
}
