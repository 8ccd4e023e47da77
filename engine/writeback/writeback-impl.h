/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeback-impl.h: the flusher's own structures. Included only in this
 * folder. Everything not marked otherwise belongs to the flusher's loop.
 */
#ifndef WEIR_WRITEBACK_IMPL_H
#define WEIR_WRITEBACK_IMPL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "../base/cleanup.h"
#include "writeback.h"
#include "zero-set.h"

#define RUN_MAX (1U << 20) /* bytes of one store write */
#define RUN_IOV 512        /* entries of its iovec; a 1M block needs 256 */
#define INFLIGHT_MAX 64U   /* store writes at once */
#define TICK_NS (5 * NSEC_PER_SEC)
#define FLUSH_MOST_NS NSEC_PER_SEC
#define FLUSH_SHARE 16U /* of the time at most one part is flushes */
#define LOCKED_RETRY_NS NSEC_PER_MSEC
#define RETRY_FIRST_NS (100 * NSEC_PER_MSEC)
#define RETRY_MAX_NS (10 * NSEC_PER_SEC)
#define FAILING_MAX 1024U

/*
 * How a store flush or write failed, to who waits for it: -EIO, or -ESTALE if
 * the store has only forgotten what was not flushed (store.h). That is worth
 * another try before anybody is told. The worse of two:
 */
static inline int wb_worse(int a, int b)
{
	if (!a || !b)
		return a ? a : b;
	return a == b ? a : -EIO;
}

/* One store write under way. */
struct wb_io {
	struct list link; /* in flight or free */
	struct writeback *wb;
	struct writeback_sync *sync; /* the range that asked for it, or NULL */
	uint64_t start_ns;
	bool in_pass; /* the flush pass waits for it */
	bool stable;
	int suspect; /* a store flush failed so meanwhile: it may be lost */
	struct store_io io;
	struct cache_run run;
	struct iovec iov[RUN_IOV];
};

/* A range whose writes fail: what of it is on one member, if the store has
 * some (store.h). Under the failing lock. */
struct wb_failing {
	uint64_t offset, end;
	unsigned member;
	uint64_t since_ns, retry_ns, delay_ns;
};

/* A walk over dirty regions in ascending order. */
struct wb_walk {
	uint64_t *region; /* owned */
	size_t count, next;
	uint64_t pos;    /* go on from here */
	uint64_t epoch;  /* take pages dirtied up to this one */
	bool busy;       /* met blocks that could not be taken yet */
	bool took;       /* took some */
	bool background; /* in short runs */
	bool follow;     /* a stretch into regions that became dirty later */
	uint64_t streak; /* bytes taken without a gap, up to pos */
};

enum pass_phase {
	PASS_NONE,
	PASS_WRITE, /* writing what was stamped; waiting for it */
	PASS_FLUSH, /* a store flush that began after that */
};

struct writeback {
	struct cache *cache;
	struct placement *placement;
	struct reactor *loop;
	const char *name;
	_Atomic(uint64_t) limit, background, expire_ns, error_timeout_ns;
	_Atomic(uint64_t) inflight_max; /* bytes of store writes at once */
	_Atomic(uint64_t) slack;        /* bytes; see writeback_set_pace() */
	_Atomic(uint64_t) chunk, depth; /* bytes; of the background */

	/* any thread */
	_Atomic(bool) kicked, ticking, pressed, saturated;
	struct reactor_task kick;
	pthread_mutex_t incoming_lock;
	struct list incoming; /* syncs */
	struct list some_incoming;
	_Atomic(uint64_t) unflushed;
	pthread_mutex_t failing_lock;
	_Atomic(unsigned) nfailing;
	struct wb_failing *failing; /* room for FAILING_MAX */

	/* what went past the cache; any thread (redo.c) */
	pthread_mutex_t zero_lock;
	struct zero_set zeroes, zeroes_flushing, redo;
	_Atomic(size_t) nzeroes; /* of all three */
	_Atomic(uint64_t) direct_unflushed;
	_Atomic(uint64_t) through_unflushed; /* past the cache, all of it */
	_Atomic(bool) lost;                  /* direct writes; for good */
	uint64_t direct_covers, through_covers;
	bool redoing, redo_locked;
	struct cache_range_lock redo_lock;
	struct store_io redo_io;

	/* writes under way */
	struct list inflight, spare;
	unsigned ninflight;
	uint64_t inflight_bytes;

	/* how fast the store is */
	uint64_t written; /* bytes */
	uint64_t busy_ns; /* in all, up to busy_since_ns if busy */
	uint64_t busy_since_ns;
	bool busy;
	void (*progress)(void *arg);
	void *progress_arg;

	/* the flush pass */
	enum pass_phase phase;
	struct list pass_waiters, pass_queue; /* syncs */
	struct wb_walk pass;
	unsigned pass_writes;
	int pass_error;

	struct list some;    /* writers that write back themselves */
	struct list ranges;  /* range syncs under way */
	struct wb_walk back; /* the background's walk */
	bool back_expired;   /* it goes through to its end */
	bool pressing;       /* until the charge is at the goal */
	uint64_t press_goal;
	bool retry_soon; /* met a locked range */

	/* the store flush */
	struct store_io flush_io;
	struct writeback_sync pass_flush; /* the pass, as one that waits */
	bool flushing, flush_wanted;
	uint64_t flush_number, flush_covers;
	uint64_t flushed_ns;                     /* when the last one began */
	uint64_t flush_ns;                       /* how long it took */
	uint64_t flush_retry_ns, flush_delay_ns; /* after a failure */
	_Atomic(uint64_t) flush_failing_ns;      /* since; 0: it works */
	struct list flush_next, flush_now;       /* syncs that wait for it */

	struct reactor_timer tick;
	void (*quiet)(void *arg);
	void *quiet_arg;
	bool was_quiet;

	_Atomic(uint64_t) writes, passes, errors, write_us;
};

/* flusher.c: look at everything and do what can be done. */
void wb_advance(struct writeback *wb);
/* Have the flusher look, whatever it thinks. Any thread. */
void wb_wake(struct writeback *wb);
void writeback_init_tasks(struct writeback *wb);

/* Is enough dirty for the background to write? The threshold is half of the
 * limit if it is not below it. */
static inline bool wb_over_background(const struct writeback *wb)
{
	uint64_t limit = atomic_load(&wb->limit);
	uint64_t background = atomic_load(&wb->background);

	uint64_t slack = atomic_load(&wb->slack);

	if (background >= limit)
		background = limit / 2;
	if (background > limit / 2 && background > limit - slack)
		background = slack < limit / 2 ? limit - slack : limit / 2;
	return cache_dirty(wb->cache) > background;
}

/* A write or flush of the store begins; all that were under way have ended
 * (wb_rest() looks). */
static inline void wb_busy(struct writeback *wb)
{
	if (wb->busy)
		return;
	wb->busy = true;
	wb->busy_since_ns = reactor_now(wb->loop);
}

static inline void wb_rest(struct writeback *wb)
{
	if (!wb->busy || wb->ninflight || wb->flushing)
		return;
	wb->busy = false;
	wb->busy_ns += reactor_now(wb->loop) - wb->busy_since_ns;
}

/* walk.c */
int walk_begin(struct writeback *wb, struct wb_walk *w, uint64_t before,
	uint64_t epoch);
void walk_end(struct wb_walk *w);
/* Write the next run of the walk. 0, or -ENOENT at its end, or -ENOMEM. */
int walk_step(struct writeback *wb, struct wb_walk *w, bool skip_failing);
/* Go on behind the regions that follow each other here. */
void walk_skip(struct writeback *wb, struct wb_walk *w);

/* io.c */
struct wb_io *wb_io_get(struct writeback *wb);
void wb_io_put(struct writeback *wb, struct wb_io *x);
void wb_io_submit(struct writeback *wb, struct wb_io *x);
void wb_io_free_all(struct writeback *wb);
uint64_t wb_run_max(const struct writeback *wb);
/* Where a run from `at` on has to end: while writes fail, at the end of what
 * fails together. UINT64_MAX: anywhere. */
uint64_t wb_run_stop(const struct writeback *wb, uint64_t at);
/* Is there room for one more write that nobody waits for by itself? */
bool wb_room(const struct writeback *wb);
uint64_t wb_run_background(const struct writeback *wb);
/* Is there room for one more background write? */
bool wb_room_background(const struct writeback *wb);

/* sync.c */
void sync_take_incoming(struct writeback *wb);
void sync_done(struct writeback_sync *s, int error);
void pass_advance(struct writeback *wb);
void pass_end(struct writeback *wb, int error);
/* The same after -ESTALE: those that wait are next in line. */
void pass_again(struct writeback *wb);
/* A range that waited for a flush is to be written and flushed again. */
void range_again(struct writeback *wb, struct writeback_sync *s);
void ranges_advance(struct writeback *wb);
/* A write of [offset, end) failed; whoever waits for it fails. */
void ranges_failed(struct writeback *wb, uint64_t offset, uint64_t end);

/* some.c */
void some_advance(struct writeback *wb);

/* flush.c */
/* Have `s` wait for a store flush that covers every write ended so far. */
void flush_want(struct writeback *wb, struct writeback_sync *s);
void flush_advance(struct writeback *wb);
/* A store flush, or what had to come before it, failed. */
void flush_failed(struct writeback *wb, int error);

/* redo.c */
/* [offset, end) was written: it is newer than any zero of it. `kept`: memory
 * has it until a flush covers it. */
void redo_written(
	struct writeback *wb, uint64_t offset, uint64_t end, bool kept);
void redo_flush_begin(struct writeback *wb);
void redo_flush_end(struct writeback *wb, int error);
/* Is there something to be done again before the store may be flushed? It is
 * under way then. */
bool redo_advance(struct writeback *wb);
void redo_free(struct writeback *wb);

/* failing.c */
void failing_add(struct writeback *wb, uint64_t offset, uint64_t end);
void failing_clear(struct writeback *wb, uint64_t offset, uint64_t end);
/* Does [offset, end) wait for its next try? */
bool failing_waits(struct writeback *wb, uint64_t offset, uint64_t end);
/* When the next try that is still to come is due; UINT64_MAX: none. `ready`:
 * some are due already. */
uint64_t failing_due(struct writeback *wb, bool *ready);

#endif
