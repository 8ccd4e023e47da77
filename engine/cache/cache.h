/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache.h: pages of blocks in memory over one placement.
 *
 * A page is the unit of lookup, a block the unit of state. Each block of a
 * page has four bits:
 *
 *   uptodate   memory holds what a read must see
 *   dirty      memory is newer than the store
 *   writeback  a store write of it is under way
 *   unstable   the store has it, but no flush of the store covers it yet
 *
 *                   +--------------- write ----------------+
 *                   v                                      |
 *  absent --fill--> uptodate --write--> dirty --take--> writeback
 *     ^                ^                  ^                |
 *     |                |                  +---- error -----+
 *     +---reclaim------+                  |                v
 *                      |                  +-- failed -- unstable
 *                      +------------------- flush ok ------+
 *
 * State rules (cache_check_page() walks them):
 *  1. dirty is a subset of uptodate. A block may be dirty and writeback: it
 *     is written again. An unstable block that is written becomes dirty only.
 *  2. Only a page with no dirty, writeback or unstable block and no holder
 *     may be reclaimed; just those pages are on the reclaim lists.
 *  3. A read whose blocks are all uptodate does no store I/O. Without
 *     `subpage` all blocks of its pages have to be.
 *  4. A write that covers whole blocks reads nothing; one that covers part
 *     of a block fills that block first.
 *  5. A fill never overwrites an uptodate block; one filler per block.
 *  6. Memory that a reader or a store write holds does not change: writes
 *     go to a copy.
 *
 * The charge is the bytes that are dirty, under writeback, unstable or
 * reserved by a write that is about to make them so; a block that is dirty
 * and under writeback counts twice. It is exact.
 *
 * Locks, in order: a shard's, then the range locks', then the arena's. None
 * is held across I/O or a call out of the cache.
 */
#ifndef WEIR_CACHE_CACHE_H
#define WEIR_CACHE_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "../base/list.h"
#include "../base/reactor.h"
#include "../placement/placement.h"

struct cache;

struct cache_config {
	struct reactor *clock; /* whose time the age of dirt is in */
	uint64_t size;         /* of the device, bytes */
	uint64_t cache_size;   /* bytes of memory, state included */
	uint64_t room;         /* bytes it may grow to; 0: cache_size */
	uint64_t extra;        /* bytes of address space for payloads */
	uint64_t readahead;    /* bytes, see cache_set_readahead() */
	uint64_t direct;       /* bytes set aside: cache_direct_payload() */
	bool populate;         /* have the memory at once */
	uint32_t page_size;    /* bytes, a power of two */
	uint32_t block_size;   /* bytes, a power of two <= page_size */
	bool subpage;          /* a page is readable in part */
};

/* 0 or -ENOMEM. */
int cache_new(const struct cache_config *config, struct placement *placement,
	struct cache **out);
/* Nothing may be in flight. Accepts NULL. */
void cache_free(struct cache *c);
/* Is a fill under way? One may outlive the read that asked for more than it
 * needed. Any thread. */
bool cache_filling(struct cache *c);
/* Bytes. */
uint64_t cache_block_size(const struct cache *c);

/* As in cache_config, for reads from now on. Any thread. */
void cache_set_subpage(struct cache *c, bool subpage);

/* The memory it may use, bytes. Any thread. */
uint64_t cache_budget(const struct cache *c);
/* The most that can be set: what there is address space for. */
uint64_t cache_budget_max(const struct cache *c);
/* Change it, and reclaim down to it. False: dirty pages are in the way, and
 * have to be written first. Any thread; takes short locks. */
bool cache_set_budget(struct cache *c, uint64_t bytes);

/*
 * Call `wake` whenever the charge fell or memory became reclaimable, if
 * cache_want_wake() was called since the last time. Any thread; no lock is
 * held. Set before any request.
 */
void cache_set_wake(struct cache *c, void (*wake)(void *arg), void *arg);
void cache_want_wake(struct cache *c);

/* --- charge and memory --------------------------------------------------- */

/* Add to the charge unless that makes it exceed `limit`. Any thread. */
bool cache_charge(struct cache *c, uint64_t bytes, uint64_t limit);
void cache_uncharge(struct cache *c, uint64_t bytes);

/*
 * Is there memory for `bytes` more, after reclaiming what can be? Any thread;
 * takes short locks.
 */
bool cache_make_room(struct cache *c, uint64_t bytes);

/*
 * Bytes of memory, about, that are free or hold what nobody used again: what
 * may be taken for data that nobody asked for yet. Any thread; cheap.
 */
uint64_t cache_idle(struct cache *c);

/*
 * Keep to the budget: reclaim, and if that is not enough forget the clean
 * blocks of [offset, end) in pages that others of their blocks keep. False:
 * dirty pages are in the way. Any thread; takes short locks.
 */
bool cache_shrink(struct cache *c, uint64_t offset, uint64_t end);

struct cache_counts {
	uint64_t charged, dirty, writeback, unstable; /* bytes */
	uint64_t dirty_peak; /* of dirty + writeback + unstable, bytes */
	uint64_t cached;     /* memory used, bytes, state included */
	uint64_t pages;
	/* Reads. partial_hits: those of the misses that found a part there or,
	 * read ahead, on its way. */
	uint64_t hits, misses, partial_hits;
	uint64_t fill_reads, reclaimed;
	uint64_t ahead;        /* bytes read ahead, in whole pages */
	uint64_t ahead_unused; /* of them, bytes dropped before a use */
};
void cache_counts(struct cache *c, struct cache_counts *out);
void cache_reset_peaks(struct cache *c);
/* Dirty bytes now; cheap. */
uint64_t cache_dirty(struct cache *c);
uint64_t cache_unstable(struct cache *c);
uint64_t cache_charged(struct cache *c);
/* Is the memory in use over the budget? */
bool cache_pressed(struct cache *c);

/* How far ahead of a sequential reader to read at most, bytes, rounded up to
 * pairs of pages; 0: not at all. Any thread, at any time. */
void cache_set_readahead(struct cache *c, uint64_t bytes);

/* --- memory for payloads ------------------------------------------------- */

/*
 * Memory for the bytes [offset, offset + length) of the device, laid out so
 * that it can become part of pages without a copy. Appends to iov, at most
 * `max` entries; returns how many, or -ENOMEM, -E2BIG with nothing taken.
 */
int cache_payload(struct cache *c, uint64_t offset, uint64_t length,
	struct iovec *iov, unsigned max);

/*
 * The same for a direct request: in the memory set aside for those, in one
 * piece, while there is room; else as cache_payload() does.
 */
int cache_direct_payload(struct cache *c, uint64_t offset, uint64_t length,
	struct iovec *iov, unsigned max);
/* Where that memory is; a length of 0: there is none. */
void cache_direct_memory(const struct cache *c, struct iovec *out);

/* The most entries cache_payload() and a read of `length` can need. */
unsigned cache_max_iov(uint64_t length);

/* Take one more reference to what is behind an iov of cache_payload(): the
 * memory may not change from then on. */
void cache_hold(struct cache *c, const struct iovec *iov, unsigned niov);

/* Drop the references behind an iov of cache_payload() or cache_read(). */
void cache_release(struct cache *c, const struct iovec *iov, unsigned niov);
/* The same for the payload of a write from `offset` on with `give`, which came
 * to io->pos: those that no page took. */
struct cache_io;
void cache_release_rest(struct cache *c, const struct cache_io *io,
	uint64_t offset, const struct iovec *iov, unsigned niov);

/* --- reads and writes ---------------------------------------------------- */

/* Called once, on `reactor`, never inside the call that set it up. */
struct cache_waiter {
	struct cache_waiter *next;
	void (*wake)(struct cache_waiter *w);
	struct reactor *reactor;
	struct reactor_task task;
	unsigned first, count; /* blocks of interest in the page */
	int error;             /* of the fill that was waited for */
};

enum cache_source {
	CACHE_FLAT,    /* buf */
	CACHE_PAYLOAD, /* iov from cache_payload() of the whole request */
	CACHE_ZEROES,
};

/* A request's progress through the cache, from pos to end. */
struct cache_io {
	uint64_t pos, end;          /* bytes of the device; pos moves on */
	struct reactor *reactor;    /* NULL: never wait, never start I/O */
	struct cache_waiter waiter; /* wake is the caller's to set */
	unsigned char *buf;         /* flat: the byte for `pos`; moves on */
	/* write */
	enum cache_source source;
	uint64_t charge; /* bytes reserved, used up on the way */
	/* write: the payload from `pos` on. read without buf: the result */
	struct iovec *iov;
	unsigned niov, max_iov;
	size_t iov_skip; /* write: bytes of iov[0] that are behind pos */
	bool copy;       /* write: never keep the payload's memory */
	bool give;       /* write: pages take the payload's references */
	bool exact;      /* fill no more than is asked for */
	bool missed;     /* something was not there */
	bool filled;     /* a fill was asked for */
	/* read: what may be a hole of the store is not filled, see cache_read().
	 * `known`: of what is missing before there is none. */
	bool holes;
	uint64_t known, missing;
};

/*
 * Read [pos, end). 0: all done. -EINPROGRESS: pos says how far it came, the
 * waiter will be woken, call again then. -EAGAIN: would have to wait, and
 * reactor is NULL. -E2BIG: iov is full; -EIO and others from the store.
 * With neither buf nor iov the blocks are only brought in. Any thread if
 * reactor is NULL, else on that reactor.
 *
 * With `holes` also -ENODATA: nothing of [pos, missing) is there, and some of
 * it may be a hole of the placement. The caller asks that, with a STATUS that
 * begins after this call; what then reads as zeroes is given to the reader by
 * cache_read_hole(), what does not is below `known`, and it calls again. What
 * was written to the cache in between may be missed by the reader, as if it had
 * been written after the read.
 */
int cache_read(struct cache *c, struct cache_io *io);

/*
 * The bytes up to `stop` are zeroes: buf gets them, and iov one entry whose
 * base is NULL, for which no memory is held. 0 or -E2BIG: iov is full. To keep
 * to cache_max_iov() entries `stop` is a multiple of 4K, or the end.
 */
int cache_read_hole(struct cache_io *io, uint64_t stop);

/*
 * Write [pos, end): blocks become uptodate and dirty, charge is used for
 * those that were not; the caller returns what is left of it. Results as
 * for cache_read(); after an error or a wait nothing beyond pos is changed.
 */
int cache_write(struct cache *c, struct cache_io *io);

/* Bring the pages in that [offset, end) touches, unless they are there; nobody
 * waits for them. On `r`. */
void cache_fill(
	struct cache *c, uint64_t offset, uint64_t end, struct reactor *r);

/* --- ranges kept from everybody ------------------------------------------ */

/*
 * While a range lock is held, reads, writes, fills and writeback of the
 * range wait; while a shared one is, only writeback and locks that are not
 * shared do: the store does not change there. Ranges are rounded out to
 * blocks by the cache.
 */
struct cache_range_lock {
	struct list link; /* next is NULL before the first call */
	uint64_t offset, end;
	bool shared;
	struct cache_waiter waiter;   /* wake: the caller's */
	struct cache_waiter *waiters; /* of others, the cache's */
};

/*
 * Take the lock: 0, or -EINPROGRESS: call again when waiter is woken. Then
 * cache_range_idle() the same way: 0 when no writeback of the range is under
 * way and, if not shared, no fill. Only then is the range kept from others.
 */
int cache_range_lock(struct cache *c, struct cache_range_lock *l);
int cache_range_idle(struct cache *c, struct cache_range_lock *l);
void cache_range_unlock(struct cache *c, struct cache_range_lock *l);

/*
 * Forget the whole blocks of [offset, end), which is locked and idle: not
 * uptodate, not dirty, not unstable. O(pages present).
 */
void cache_invalidate(struct cache *c, uint64_t offset, uint64_t end);

/* A block's four bits. */
#define CACHE_IS_UPTODATE 1U
#define CACHE_IS_DIRTY 2U
#define CACHE_IS_WRITEBACK 4U
#define CACHE_IS_UNSTABLE 8U

/*
 * What the block at `offset` is, CACHE_IS_*, and in *stop up to where, not past
 * `end`, what follows is the same; where it differs or where the look ends. A
 * look goes no further than a page that is there, or sixteen that are not. Any
 * thread; takes a short lock.
 */
unsigned cache_block_state(
	struct cache *c, uint64_t offset, uint64_t end, uint64_t *stop);

/* The first byte range in [offset, end) that is dirty, under writeback or
 * unstable, looking at no more than `max_pages` pages: false if none; *seen
 * is set to the end of what was looked at. */
bool cache_next_busy(struct cache *c, uint64_t offset, uint64_t end,
	unsigned max_pages, uint64_t *start, uint64_t *stop, uint64_t *seen);

/* --- for writeback ------------------------------------------------------- */

/* A new epoch: pages dirtied from now on belong to it. Returns the one that
 * ended. */
uint64_t cache_new_epoch(struct cache *c);

/* The starts (byte offsets, each aligned to the span) of the regions that
 * have a dirty page, unsorted, to free(); a region is cache_span() bytes.
 * Only regions first dirtied at or before `before_ns`. */
int cache_dirty_regions(
	struct cache *c, uint64_t before_ns, uint64_t **out, size_t *count);
uint64_t cache_span(const struct cache *c);

/* The same of all regions that have a page, for who looks for busy ones. */
int cache_regions(struct cache *c, uint64_t **out, size_t *count);

/* Blocks taken for writeback, contiguous on the device. */
struct cache_run {
	uint64_t offset, end; /* bytes; end is at most the device's size */
	struct iovec *iov;
	int niov, max_iov;
	bool skipped; /* others before it could not be taken yet */
};

/*
 * Find the first dirty block in [from, region_end) of a page with an epoch
 * <= `epoch` that is not under writeback, and take it and what follows it
 * contiguously, up to `stop` and `max` bytes or run->max_iov entries: dirty
 * becomes writeback. 0: run is filled; -ENOENT: there is none;
 * -EBUSY: there are, but under writeback or locked; run->skipped says so too
 * of those passed over. `from` and `stop` are
 * multiples of the block size.
 */
int cache_take_dirty(struct cache *c, uint64_t from, uint64_t region_end,
	uint64_t stop, uint64_t max, uint64_t epoch, struct cache_run *run);

/* The store write of a run ended. `stable`: it is durable already. */
void cache_run_done(
	struct cache *c, const struct cache_run *run, int error, bool stable);

/* A store flush begins (returns its number), and how it ended. */
uint64_t cache_flush_begin(struct cache *c);
void cache_flush_end(struct cache *c, uint64_t number, int error);

/* [offset, end) is locked and idle, and the store is about to lose it: what
 * is unstable becomes dirty. */
void cache_destabilise(struct cache *c, uint64_t offset, uint64_t end);

/* What is in [offset, end): any block unstable? Any dirty or in writeback of
 * an epoch <= epoch? */
#define CACHE_HAS_DIRTY 1U
#define CACHE_HAS_WRITEBACK 2U
#define CACHE_HAS_UNSTABLE 4U
#define CACHE_HAS_DIRTY_LATER 8U /* dirty, of a later epoch */
unsigned cache_range_state(
	struct cache *c, uint64_t offset, uint64_t end, uint64_t epoch);

/* Forget clean pages; bytes freed. */
uint64_t cache_drop_clean(struct cache *c);

/* --- for tests and debug builds ------------------------------------------ */

/* Walk every state rule over every page: NULL, or a sentence naming the
 * first that is broken. Takes each shard's lock in turn. */
const char *cache_check(struct cache *c);

#endif
