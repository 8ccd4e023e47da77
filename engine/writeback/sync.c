/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync.c: those who wait for durability: the flush pass and the ranges.
 *
 *   queue --stamp--> PASS_WRITE --all written--> PASS_FLUSH --> answer
 *
 * What must hold:
 *  1. Every write under way when the pass is stamped, and every one started
 *     while it writes, is waited for (in_pass).
 *  2. A write or store flush that fails while somebody waits for it is that
 *     one's error: the blocks are dirty again, but of a later epoch.
 *  3. But if the store has only forgotten it (-ESTALE), all of it is written
 *     again before anybody is answered.
 *  4. Once a direct write is lost nobody is told of durability any more: it
 *     may have been on top of what he wrote.
 */
#include <errno.h>

#include "writeback-impl.h"

static void run_done(struct reactor_task *task)
{
	struct writeback_sync *s =
		container_of(task, struct writeback_sync, task);

	s->done(s);
}

void sync_done(struct writeback_sync *s, int error)
{
	if (!error && (s->whole || s->stable) && atomic_load(&s->wb->lost))
		error = -EIO;
	list_remove(&s->link);
	s->error = error;
	s->task.fn = run_done;
	reactor_post(s->reactor, &s->task);
}

static void submit(struct writeback *wb, struct writeback_sync *s, bool whole)
{
	s->wb = wb;
	s->whole = whole;
	s->flushing = false;
	s->writes = 0;
	s->error = 0;
	{
		SCOPED_LOCK(&wb->incoming_lock);

		list_push_tail(&wb->incoming, &s->link);
	}
	if (!atomic_exchange(&wb->kicked, true))
		reactor_post(wb->loop, &wb->kick);
}

void writeback_flush(struct writeback *wb, struct writeback_sync *s)
{
	submit(wb, s, true);
}

void writeback_range(struct writeback *wb, struct writeback_sync *s)
{
	submit(wb, s, false);
}

void sync_take_incoming(struct writeback *wb)
{
	struct list taken = LIST_INIT(taken), *at;

	{
		SCOPED_LOCK(&wb->incoming_lock);

		list_splice_tail(&taken, &wb->incoming);
	}
	while ((at = list_pop_head(&taken))) {
		struct writeback_sync *s =
			list_entry(at, struct writeback_sync, link);

		if (s->whole) {
			list_push_tail(&wb->pass_queue, &s->link);
			continue;
		}
		s->epoch = cache_new_epoch(wb->cache);
		list_push_tail(&wb->ranges, &s->link);
	}
}

/* --- the flush pass ------------------------------------------------------ */

static int pass_gather(struct writeback *wb, uint64_t epoch)
{
	return walk_begin(wb, &wb->pass, UINT64_MAX, epoch);
}

static void pass_start(struct writeback *wb)
{
	list_splice_tail(&wb->pass_waiters, &wb->pass_queue);
	wb->phase = PASS_WRITE;
	wb->pass_error = 0;
	wb->pass_writes = wb->ninflight;
	list_for_each (at, &wb->inflight)
		list_entry(at, struct wb_io, link)->in_pass = true;
	atomic_fetch_add(&wb->passes, 1);
	/* The background's walk would take the same regions again. */
	walk_end(&wb->back);
	wb->back_expired = false;
	if (pass_gather(wb, cache_new_epoch(wb->cache)))
		pass_end(wb, -ENOMEM);
}

static void pass_stop(struct writeback *wb, struct list *waiters)
{
	walk_end(&wb->pass);
	wb->phase = PASS_NONE;
	list_for_each (at, &wb->inflight)
		list_entry(at, struct wb_io, link)->in_pass = false;
	list_splice_tail(waiters, &wb->pass_waiters);
}

void pass_again(struct writeback *wb)
{
	struct list first = LIST_INIT(first);

	pass_stop(wb, &first);
	list_splice_tail(&first, &wb->pass_queue);
	list_splice_tail(&wb->pass_queue, &first);
}

void pass_end(struct writeback *wb, int error)
{
	struct list answered = LIST_INIT(answered);

	pass_stop(wb, &answered);
	while (!list_empty(&answered))
		sync_done(
			list_entry(answered.next, struct writeback_sync, link),
			error);
}

/* Everything stamped was written, or failed. */
static void pass_written(struct writeback *wb)
{
	if (wb->pass_error == -ESTALE) {
		pass_again(wb);
	} else if (wb->pass_error) {
		pass_end(wb, wb->pass_error);
	} else if (!wb->flushing && !atomic_load(&wb->unflushed)) {
		pass_end(wb, 0); /* nothing since the last store flush */
	} else {
		wb->phase = PASS_FLUSH;
		flush_want(wb, &wb->pass_flush);
	}
}

static void pass_write(struct writeback *wb)
{
	bool again = false;

	for (;;) {
		int err = 0;

		while (!err && wb_room(wb))
			err = walk_step(wb, &wb->pass, false);
		if (err == -ENOMEM) {
			wb->retry_soon = true;
			return;
		}
		if (!err || wb->pass_writes)
			return;
		/* A block that failed is dirty again, and its page may be of
		 * this pass: who waits knows by now that it fails. */
		if (!wb->pass.busy || wb->pass_error)
			break;
		/* Blocks were under writeback, or a range was locked. */
		if (again && !wb->pass.took) {
			wb->retry_soon = true;
			return;
		}
		again = true;
		if (pass_gather(wb, wb->pass.epoch)) {
			wb->retry_soon = true;
			return;
		}
	}
	pass_written(wb);
}

void pass_advance(struct writeback *wb)
{
	do {
		if (wb->phase == PASS_NONE && !list_empty(&wb->pass_queue))
			pass_start(wb);
		if (wb->phase == PASS_WRITE)
			pass_write(wb);
	} while (wb->phase == PASS_NONE && !list_empty(&wb->pass_queue));
}

/* --- ranges -------------------------------------------------------------- */

/* Write what is dirty of one region's part of the range; the position after
 * it. */
static uint64_t range_write_region(
	struct writeback *wb, struct writeback_sync *s, uint64_t from)
{
	uint64_t span = cache_span(wb->cache);
	uint64_t next = from - from % span + span;

	while (from < s->end) {
		struct wb_io *x = wb_io_get(wb);
		uint64_t stop;

		if (!x)
			return next;
		stop = wb_run_stop(wb, from);
		if (stop > s->end)
			stop = s->end;
		if (cache_take_dirty(wb->cache, from, next < stop ? next : stop,
			    stop, wb_run_max(wb), s->epoch, &x->run)) {
			wb_io_put(wb, x);
			if (stop >= next || stop == s->end)
				return next;
			from = stop;
			continue;
		}
		x->sync = s;
		x->stable = s->stable && wb->placement->info.can_fua;
		s->writes++;
		from = x->run.end;
		wb_io_submit(wb, x);
		if (from >= next)
			return from;
	}
	return from;
}

/*
 * May the range hold what the store was given and not flushed? A block that
 * became dirty again while it was written is not unstable, but what was
 * written of it still counts; and a block that is clean may be so because
 * something went past the cache on top of it.
 */
static bool range_unflushed(struct writeback *wb, unsigned state)
{
	if (state & CACHE_HAS_UNSTABLE)
		return true;
	if (atomic_load(&wb->through_unflushed) ||
		(wb->flushing && wb->through_covers))
		return true;
	return (state & CACHE_HAS_DIRTY_LATER) &&
		(wb->flushing || atomic_load(&wb->unflushed));
}

static void range_settle(struct writeback *wb, struct writeback_sync *s)
{
	unsigned state =
		cache_range_state(wb->cache, s->offset, s->end, s->epoch);

	if (s->error) {
		sync_done(s, s->error);
	} else if (state & CACHE_HAS_WRITEBACK) {
		return; /* its end comes back here */
	} else if (state & CACHE_HAS_DIRTY) {
		wb->retry_soon = true; /* locked */
	} else if (s->stable && range_unflushed(wb, state)) {
		s->flushing = true;
		flush_want(wb, s);
	} else {
		sync_done(s, 0);
	}
}

void range_again(struct writeback *wb, struct writeback_sync *s)
{
	s->flushing = false;
	s->error = 0;
	s->epoch = cache_new_epoch(wb->cache);
	list_remove(&s->link);
	list_push_tail(&wb->ranges, &s->link);
}

void ranges_advance(struct writeback *wb)
{
	list_for_each_safe (at, &wb->ranges) {
		struct writeback_sync *s =
			list_entry(at, struct writeback_sync, link);

		if (s->error == -ESTALE && !s->writes) {
			s->error = 0;
			s->epoch = cache_new_epoch(wb->cache);
		}
		for (uint64_t pos = s->offset; !s->error && pos < s->end;)
			pos = range_write_region(wb, s, pos);
		if (!s->writes)
			range_settle(wb, s);
	}
}

void ranges_failed(struct writeback *wb, uint64_t offset, uint64_t end)
{
	list_for_each (at, &wb->ranges) {
		struct writeback_sync *s =
			list_entry(at, struct writeback_sync, link);

		if (s->offset < end && offset < s->end)
			s->error = -EIO;
	}
}
