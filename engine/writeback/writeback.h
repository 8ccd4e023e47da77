/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeback.h: the flusher: one for each store, on one loop.
 *
 * Writes dirty blocks to the placement in ascending order and in long runs:
 * in the background above a threshold, when they are old, when memory is
 * short, and when somebody asks for durability. Flushes the store.
 *
 *   flush   stamp what is dirty -> write it -> wait for every write that is
 *           under way -> store flush -> answer. A flush that arrives after
 *           the stamp waits for the next pass; all that wait share it.
 *   range   the same for one range; with a store that has FUA, no flush.
 *
 * A failed write leaves its blocks dirty; they are tried again with a delay
 * that doubles, at once when a flush asks for them. A failed store flush
 * makes every unstable block dirty again. Either is EIO for the flush that
 * met it, and the next flush succeeds only when the data went through.
 */
#ifndef WEIR_WRITEBACK_WRITEBACK_H
#define WEIR_WRITEBACK_WRITEBACK_H

#include "../base/list.h"
#include "../base/log.h"
#include "../base/reactor.h"
#include "../cache/cache.h"
#include "../placement/placement.h"

struct writeback;

struct writeback_config {
	uint64_t dirty_limit;      /* bytes */
	uint64_t dirty_background; /* bytes */
	uint64_t dirty_expire_ns;
	uint64_t error_timeout_ns;
	uint64_t inflight; /* bytes of store writes at once */
	const char *name;  /* of the store, for messages; outlives it */
};

/* 0 or -ENOMEM. Everything the flusher does runs on `loop`. */
int writeback_new(const struct writeback_config *config, struct cache *c,
	struct placement *p, struct reactor *loop, struct writeback **out);
/* Nothing may be in flight. Accepts NULL. */
void writeback_free(struct writeback *wb);

/* Take over what is configured, but for limit and name. Any thread. */
void writeback_set(struct writeback *wb, const struct writeback_config *config);
/* The limit in force from now on, bytes. Any thread. */
void writeback_set_limit(struct writeback *wb, uint64_t limit);

/*
 * How much of one stretch the background writes before it goes on to the next
 * one, at first all of it; how much it keeps under way at most; and how far
 * below the limit it begins at the latest, so that the store has work while
 * writers pause. Bytes. Any thread.
 */
void writeback_set_pace(
	struct writeback *wb, uint64_t chunk, uint64_t depth, uint64_t slack);

/* How much was written, and on a clock that stands still while neither a write
 * nor a flush of the store is under way. On the loop. */
struct writeback_progress {
	uint64_t written; /* bytes */
	uint64_t busy_ns;
};
void writeback_progress(
	const struct writeback *wb, struct writeback_progress *out);

/* Call `progress` on the loop whenever a store write has ended. Set before
 * there is any. */
void writeback_set_progress(
	struct writeback *wb, void (*progress)(void *arg), void *arg);

/* Look whether there is work: something became dirty, or a writer waits for
 * room. Any thread; never blocks; cheap when the flusher is awake. */
void writeback_kick(struct writeback *wb);
/* A writer is parked: write until it can go on. Any thread. */
void writeback_press(struct writeback *wb);

/* A writer that writes back itself (throttle=legacy). */
struct writeback_some {
	struct list link; /* the flusher's */
	/* on the flusher's loop; may ask again from inside */
	void (*done)(struct writeback_some *s);
	uint64_t place; /* bytes: where to begin; moves on */
	uint64_t bytes; /* still to be written */
};

/* Give `bytes` of what is dirty to the store, from `place` on and round the
 * end. `done` when that is in its queue, or nothing is left that could be:
 * then `bytes` says so. Any thread; takes a short lock. */
void writeback_some(struct writeback *wb, struct writeback_some *s);

/* Somebody who waits for durability. */
struct writeback_sync {
	struct list link;
	struct reactor *reactor; /* where done runs */
	void (*done)(struct writeback_sync *s);
	int error;
	/* range only */
	uint64_t offset, end; /* bytes */
	bool stable;          /* also make it durable, not only written */
	/* the flusher's */
	struct reactor_task task;
	struct writeback *wb;
	uint64_t epoch;
	unsigned writes;
	bool whole, flushing;
};

/* Make durable all that was answered before the call. Any thread. */
void writeback_flush(struct writeback *wb, struct writeback_sync *s);
/* Write [offset, end), and make it durable if `stable`; then also what went to
 * the store past the cache, wherever it lies. Any thread. */
void writeback_range(struct writeback *wb, struct writeback_sync *s);

/*
 * A trim, zero or direct write of [offset, end) reached the store past the
 * cache, with these flags of the store's: nothing fails there any more and,
 * unless it was a write with STORE_FUA, the next flush must flush the store.
 * Before the range is unlocked. Any thread.
 */
void writeback_note_through(struct writeback *wb, enum store_op op,
	unsigned flags, uint64_t offset, uint64_t end);

/* May one more zero be remembered until a flush? 0, -EAGAIN: it has to wait
 * for a flush itself; -EIO: so, and the store cannot be flushed. Any thread. */
int writeback_zero_room(struct writeback *wb);

/* Are trims remembered as zeroes are? Any thread. */
bool writeback_redoes_trims(const struct writeback *wb);

/* Has a write of part of [offset, end) been failing for longer than the
 * error timeout? Any thread; a load while nothing fails. */
bool writeback_failing(struct writeback *wb, uint64_t offset, uint64_t end);

/* Has a write of part of [offset, end) failed, and not gone through since? The
 * store may hold half of it. Any thread; a load while nothing fails. */
bool writeback_torn(struct writeback *wb, uint64_t offset, uint64_t end);

/* Was something lost that no flush can make durable any more (redo.c)? Any
 * thread. */
bool writeback_lost(struct writeback *wb);

/* Log what is still dirty: ranges (the first few) and bytes. Any thread. */
void writeback_log_dirty(struct writeback *wb);

/* Do nothing more on its own; call `done` when nothing is under way and no
 * timer is armed. On the loop. */
void writeback_quiesce(
	struct writeback *wb, void (*done)(void *arg), void *arg);

struct writeback_counts {
	uint64_t writes, passes, errors;
	uint64_t write_us_total; /* the store's time per write, summed */
	unsigned failing;        /* ranges whose writes fail, about */
	bool flush_failing;      /* and so does its flush */
};
void writeback_counts(struct writeback *wb, struct writeback_counts *out);

#endif
