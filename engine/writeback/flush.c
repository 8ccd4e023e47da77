/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.c: the store flush: one at a time.
 *
 * `unflushed` counts what reached the store since the last flush began. Who
 * needs a flush waits for the next one, or for the one under way if nothing
 * reached the store since it began. After a failure everything unstable is
 * dirty again, and the flusher waits before it flushes on its own. If the store
 * has only forgotten it (-ESTALE), who waits goes on waiting until it is written
 * and flushed again.
 */
#include <errno.h>
#include <string.h>

#include "writeback-impl.h"

void flush_want(struct writeback *wb, struct writeback_sync *s)
{
	bool covered = wb->flushing && !atomic_load(&wb->unflushed);

	list_remove(&s->link);
	list_push_tail(covered ? &wb->flush_now : &wb->flush_next, &s->link);
}

/* All that was written and not flushed may be lost: it is dirty again, of a
 * later epoch (sync.c, 2), and no later flush says anything about it. */
static void spoil(struct writeback *wb, int error)
{
	atomic_fetch_add(&wb->unflushed, wb->flush_covers + 1);
	list_splice_tail(&wb->flush_now, &wb->flush_next);
	list_for_each (at, &wb->inflight) {
		struct wb_io *x = list_entry(at, struct wb_io, link);

		x->suspect = wb_worse(x->suspect, error);
	}
	if (wb->phase == PASS_WRITE)
		wb->pass_error = wb_worse(wb->pass_error, error);
	list_for_each (at, &wb->ranges) {
		struct writeback_sync *s =
			list_entry(at, struct writeback_sync, link);

		if (s->stable)
			s->error = wb_worse(s->error, error);
	}
}

static void note_failure(struct writeback *wb, int error)
{
	uint64_t now = reactor_now(wb->loop);

	if (!atomic_load(&wb->flush_failing_ns)) {
		log_error("store %s: cannot flush: %s; what it may have lost "
			  "is kept in memory and written again",
			wb->name, strerror(error == -EAGAIN ? EIO : -error));
		atomic_store(&wb->flush_failing_ns, now);
		wb->flush_delay_ns = RETRY_FIRST_NS;
	} else if (now >= wb->flush_retry_ns) {
		wb->flush_delay_ns = 2 * wb->flush_delay_ns < RETRY_MAX_NS
			? 2 * wb->flush_delay_ns
			: RETRY_MAX_NS;
	}
	wb->flush_retry_ns = now + wb->flush_delay_ns;
	atomic_fetch_add(&wb->errors, 1);
}

static void answer_one(
	struct writeback *wb, struct writeback_sync *s, int error)
{
	bool again = error == -ESTALE && !atomic_load(&wb->lost);

	if (s == &wb->pass_flush && again)
		pass_again(wb);
	else if (s == &wb->pass_flush)
		pass_end(wb, error ? -EIO : 0);
	else if (again)
		range_again(wb, s);
	else
		sync_done(s, error ? -EIO : 0);
}

static void answer(struct writeback *wb, int error)
{
	struct list *at;

	while ((at = list_pop_head(&wb->flush_now)))
		answer_one(
			wb, list_entry(at, struct writeback_sync, link), error);
}

void flush_failed(struct writeback *wb, int error)
{
	note_failure(wb, error);
	spoil(wb, -EIO);
	answer(wb, -EIO);
}

/* Nothing is wrong, but what was not flushed is gone. */
static void flush_stale(struct writeback *wb)
{
	log_warning("store %s: it may have lost what was not flushed: that is "
		    "written again",
		wb->name);
	spoil(wb, -ESTALE);
	answer(wb, -ESTALE);
}

static void flush_done(struct store_io *io)
{
	struct writeback *wb = container_of(io, struct writeback, flush_io);

	wb->flushing = false;
	wb->flush_ns = reactor_now(wb->loop) - wb->flushed_ns;
	cache_flush_end(wb->cache, wb->flush_number, io->error);
	redo_flush_end(wb, io->error);
	if (io->error == -ESTALE) {
		flush_stale(wb);
	} else if (io->error) {
		flush_failed(wb, io->error);
	} else if (atomic_exchange(&wb->flush_failing_ns, 0)) {
		wb->flush_retry_ns = 0;
		log_info("store %s: flushes again", wb->name);
	}
	answer(wb, 0);
	wb_advance(wb);
}

static void flush_begin(struct writeback *wb)
{
	wb->flushing = true;
	wb_busy(wb);
	wb->flush_wanted = false;
	wb->flushed_ns = reactor_now(wb->loop);
	list_splice_tail(&wb->flush_now, &wb->flush_next);
	wb->flush_covers = atomic_exchange(&wb->unflushed, 0);
	redo_flush_begin(wb);
	wb->flush_number = cache_flush_begin(wb->cache);
	wb->flush_io = (struct store_io){
		.op = STORE_FLUSH, .reactor = wb->loop, .done = flush_done};
	placement_submit(wb->placement, &wb->flush_io);
}

void flush_advance(struct writeback *wb)
{
	bool may = reactor_now(wb->loop) >= wb->flush_retry_ns;

	if (wb->flushing)
		return;
	if (list_empty(&wb->flush_next) && !(wb->flush_wanted && may))
		return;
	if (!redo_advance(wb))
		flush_begin(wb);
}
