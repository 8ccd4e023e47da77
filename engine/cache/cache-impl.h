/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache-impl.h: the cache's own structures. Included only in this folder.
 *
 *   cache -> 64 shards -> hash of nodes -> 16 pages each -> frames
 *
 * A shard owns whole stretches of the device (1 MiB or more), so that a run
 * of pages takes one lock. Everything below a shard is under its lock.
 */
#ifndef WEIR_CACHE_IMPL_H
#define WEIR_CACHE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../base/bitmap.h"
#include "../base/cleanup.h"
#include "arena.h"
#include "cache.h"
#include "stream.h"

#define SHARDS 64U
#define NODE_SHIFT 4U
#define NODE_PAGES (1U << NODE_SHIFT)
/* At least 1 MiB of device in a row: with more, two loops that are busy in one
 * place meet at its lock. */
#define SHARD_RANGE_SHIFT 20U

enum page_map {
	MAP_UPTODATE,
	MAP_DIRTY,
	MAP_WRITEBACK,
	MAP_UNSTABLE,
	MAP_FILLING,
	PAGE_MAPS,
};

#define NOT_USED UINT16_MAX /* more than the blocks of a page */
#define PAGE_ACTIVE 1U      /* on the active list, or will be when clean */
#define PAGE_REFERENCED 2U  /* used again since it was last looked at */
#define PAGE_AHEAD 4U       /* read ahead and not used yet */
#define PAGE_MARK 8U        /* a reader that comes here wants more ahead */
#define PAGE_LISTED 16U     /* on a reclaim list */

struct page {
	uint64_t index;            /* device offset / page size */
	struct list lru;           /* linked exactly while reclaimable */
	struct list unstable_link; /* linked while an unstable block */
	struct cache_waiter *waiters;
	uint64_t dirty_epoch;    /* when a block first became dirty */
	uint64_t unstable_flush; /* the last flush begun before a write ended */
	uint32_t refs;           /* fills under way */
	uint32_t dirty, writeback, unstable; /* blocks */
	uint16_t flags;
	uint16_t next_block; /* where a sequential reader goes on; NOT_USED */
	uint64_t bits[]; /* PAGE_MAPS bitmaps, then frame_t for each frame */
};

struct node {
	uint64_t key; /* page index / NODE_PAGES */
	struct node *hash_next;
	struct list dirty_link; /* linked while a page has a dirty block */
	uint64_t dirty_since;   /* ns on the cache's clock */
	unsigned pages, dirty_pages;
	struct page *page[NODE_PAGES];
};

/* Pages on the reclaim lists of all shards. */
struct lru_counts {
	_Atomic(int64_t) inactive, active;
};

struct shard {
	_Alignas(64) pthread_mutex_t lock;
	struct node **bucket;
	unsigned buckets, nodes;
	uint64_t hits, misses, partial_hits;
	struct list inactive, active;
	unsigned ninactive, nactive;
	struct lru_counts *lru;  /* of the whole cache */
	struct list dirty_nodes; /* oldest first */
	struct list unstable;    /* pages, by unstable_flush */
};

/* Changes to the cache's counters, gathered under a lock, applied after. */
struct delta {
	int64_t dirty, writeback, unstable, used; /* bytes */
	uint64_t uncharge;                        /* bytes */
};

struct cache {
	struct placement *placement;
	struct reactor *clock;
	uint64_t size, room;
	_Atomic(uint64_t) cache_size;
	uint64_t page_bytes, block_bytes;
	unsigned page_shift, block_shift, shard_shift;
	unsigned page_blocks, page_frames, map_words;
	unsigned frames_at;    /* in page.bits */
	size_t page_struct;    /* bytes of a struct page */
	_Atomic(bool) subpage; /* as in cache_config */
	struct arena arena;

	_Alignas(64) _Atomic(uint64_t) charged;
	_Atomic(uint64_t) charged_peak;
	_Atomic(int64_t) dirty, writeback, unstable;
	_Alignas(64) _Atomic(int64_t) used;
	_Atomic(int64_t) pages;
	_Atomic(uint64_t) epoch, flushes, fill_reads, reclaimed;
	_Atomic(unsigned) filling; /* fills under way */
	_Atomic(unsigned) hand;    /* the shard to reclaim from next */
	struct lru_counts lru;
	_Atomic(uint64_t) readahead; /* the window, bytes; 0: off */
	_Atomic(uint64_t) ahead_bytes, ahead_unused;
	_Atomic(bool) want_wake;
	void (*wake)(void *arg);
	void *wake_arg;

	_Alignas(64) _Atomic(unsigned) nlocks;
	pthread_mutex_t locks_mutex;
	struct list locks; /* held first, then those that wait, in order */

	pthread_mutex_t streams_lock;
	struct streams streams;

	struct shard shard[SHARDS];
};

/* --- geometry ------------------------------------------------------------ */

static inline uint64_t page_size(const struct cache *c)
{
	return c->page_bytes;
}

static inline uint64_t block_size(const struct cache *c)
{
	return c->block_bytes;
}

static inline uint64_t round_down(uint64_t n, uint64_t unit)
{
	return n & ~(unit - 1);
}

static inline uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) & ~(unit - 1);
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t page_offset(const struct cache *c, const struct page *p)
{
	return p->index << c->page_shift;
}

/* The end of the page that `offset` lies in, or of the device. */
static inline uint64_t page_end(const struct cache *c, uint64_t offset)
{
	return min_u64(
		round_down(offset, page_size(c)) + page_size(c), c->size);
}

/* The block of its page that `offset` lies in. */
static inline unsigned block_of(const struct cache *c, uint64_t offset)
{
	return (unsigned)((offset & (page_size(c) - 1)) >> c->block_shift);
}

/* The frame of its page that `offset` lies in. */
static inline unsigned frame_of(const struct cache *c, uint64_t offset)
{
	return (unsigned)((offset & (page_size(c) - 1)) >> FRAME_SHIFT);
}

/* The blocks of one page that the bytes [offset, end) touch. */
static inline unsigned blocks_touched(
	const struct cache *c, uint64_t offset, uint64_t end)
{
	return (unsigned)(((end - 1) >> c->block_shift) -
		       (offset >> c->block_shift)) +
		1;
}

static inline struct shard *shard_of(struct cache *c, uint64_t offset)
{
	uint64_t h = (offset >> c->shard_shift) * UINT64_C(0x9e3779b97f4a7c15);

	return &c->shard[h >> 58];
}

/* The end of the stretch of the shard that `offset` lies in. */
static inline uint64_t shard_end(const struct cache *c, uint64_t offset)
{
	uint64_t range = UINT64_C(1) << c->shard_shift;

	return round_down(offset, range) + range;
}

/* --- pages --------------------------------------------------------------- */

static inline uint64_t *page_map(
	const struct cache *c, const struct page *p, enum page_map map)
{
	return (uint64_t *)p->bits + (size_t)map * c->map_words;
}

static inline frame_t *page_frames(const struct cache *c, const struct page *p)
{
	return (frame_t *)((uint64_t *)p->bits + c->frames_at);
}

/* How many of the `n` frames from frame[0] on lie in one piece of memory? */
static inline unsigned frames_in_a_row(const frame_t *frame, unsigned n)
{
	unsigned run = 1;

	while (run < n && frame[run] == frame[0] + run)
		run++;
	return run;
}

/* The frames that the bytes [pos, stop) touch. */
static inline unsigned frames_touched(uint64_t pos, uint64_t stop)
{
	return (unsigned)(((stop - 1) >> FRAME_SHIFT) - (pos >> FRAME_SHIFT)) +
		1;
}

static inline bool page_busy(const struct page *p)
{
	return p->dirty | p->writeback | p->unstable | p->refs;
}

/* Under the shard's lock, all of these. */
struct node *index_find_node(
	const struct cache *c, const struct shard *sh, uint64_t offset);
struct page *index_find(
	const struct cache *c, const struct shard *sh, uint64_t offset);
/* Find or make; NULL: no memory. */
struct page *index_get(struct cache *c, struct shard *sh, uint64_t offset);
struct node *index_node_of(
	const struct cache *c, const struct shard *sh, const struct page *p);
/* Free an idle page and its frames. */
void index_drop(struct cache *c, struct shard *sh, struct page *p);
/* Call fn for each page; it may drop the page. */
void index_for_each(struct cache *c, struct shard *sh,
	void (*fn)(
		struct cache *c, struct shard *sh, struct page *p, void *arg),
	void *arg);
int index_init(struct shard *sh);
void index_destroy(struct cache *c, struct shard *sh);

/* --- state --------------------------------------------------------------- */

/* Take an idle page off the reclaim lists, or put it on. */
void lru_remove(struct shard *sh, struct page *p);
void lru_add(struct shard *sh, struct page *p);

/* Put the page on, or take it off, the reclaim lists, as its state says. */
static inline void page_settle(struct shard *sh, struct page *p)
{
	bool listed = p->flags & PAGE_LISTED;

	if (page_busy(p) != listed)
		return;
	if (listed)
		lru_remove(sh, p);
	else
		lru_add(sh, p);
}

void page_touch(struct page *p, unsigned first, unsigned count);

/* Make blocks dirty; returns the bytes of charge that takes. */
uint64_t page_dirty(struct cache *c, struct shard *sh, struct page *p,
	unsigned first, unsigned count, struct delta *d);
/* Make dirty blocks clean of it (taken, forgotten). */
void page_undirty(struct cache *c, struct shard *sh, struct page *p,
	unsigned first, unsigned count, struct delta *d);
void page_unstabilise(struct cache *c, struct shard *sh, struct page *p,
	unsigned first, unsigned count, struct delta *d);
/* Drop the frames of blocks that are no longer uptodate. */
void page_drop_frames(struct cache *c, struct page *p, unsigned first,
	unsigned count, struct delta *d);
/* What the store has may be lost: unstable blocks become dirty (dirty.c). */
void page_redirty(
	struct cache *c, struct shard *sh, struct page *p, struct delta *d);
void delta_apply(struct cache *c, const struct delta *d);

#ifdef WEIR_DEBUG
void page_assert(struct cache *c, struct shard *sh, struct page *p);
#else
static inline void page_assert(
	struct cache *c, struct shard *sh, struct page *p)
{
	(void)c;
	(void)sh;
	(void)p;
}
#endif
const char *page_check(struct cache *c, struct shard *sh, const struct page *p);

/* --- waiting ------------------------------------------------------------- */

/* Wake the waiters of a page; those interested in [first, first + count) are
 * told `error`. Under the shard's lock: they run later, on their loops. */
void page_wake(struct page *p, unsigned first, unsigned count, int error);
void waiter_add(struct cache_waiter **list, struct cache_waiter *w);
void waiters_wake(struct cache_waiter **list);
/*
 * Is part of [offset, end) locked by somebody, not shared? Then the waiter,
 * if not NULL, is queued on that lock. Under a shard's lock.
 */
bool range_locked_among(
	struct cache *c, uint64_t offset, uint64_t end, struct cache_waiter *w);

static inline bool range_locked(
	struct cache *c, uint64_t offset, uint64_t end, struct cache_waiter *w)
{
	return atomic_load(&c->nlocks) && range_locked_among(c, offset, end, w);
}

/* How far from `offset` on is no part of [offset, end) locked; `shared`: by a
 * shared lock neither? A whole number of blocks, or `end`. Under a shard's
 * lock. */
uint64_t range_free(
	struct cache *c, uint64_t offset, uint64_t end, bool shared);

/* --- memory -------------------------------------------------------------- */

/* Make frame `i` of a page one that may be changed; `whole`: its old bytes
 * are not needed. 0 or -ENOMEM. */
int frame_writable(struct cache *c, struct page *p, unsigned i, bool whole,
	struct delta *d);
/* Memory for frame `i` of a page, which has none, and for what follows it and
 * has none either, some of `n`. 0 or -ENOMEM. */
int frames_new(struct cache *c, struct page *p, unsigned i, unsigned n,
	struct delta *d);
uint64_t reclaim(struct cache *c, uint64_t need);

/* --- fills --------------------------------------------------------------- */

/* Start fills of what is missing and not on its way in [offset, end);
 * `exact`: read nothing else from the store. 0 or -ENOMEM. No lock held; on
 * `r`. */
int fill_start(struct cache *c, uint64_t offset, uint64_t end, bool exact,
	struct reactor *r);
/*
 * Wait for the fill of the blocks that [offset, end), in one page, touch. 0:
 * they are uptodate, or nobody fills them; else -EINPROGRESS.
 */
int fill_wait(
	struct cache *c, uint64_t offset, uint64_t end, struct cache_waiter *w);

/* --- readahead ----------------------------------------------------------- */

/* A read found pos missing and has asked for [pos, end); it came to the page
 * of pos, which is marked. No lock held; on `r`. */
void readahead_missed(
	struct cache *c, uint64_t pos, uint64_t end, struct reactor *r);
void readahead_reached(struct cache *c, uint64_t pos, struct reactor *r);

#endif
