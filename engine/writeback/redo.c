/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redo.c: what reached the store past the cache, and a flush that failed.
 *
 * Data written through the cache stays in memory until a flush covers it. A
 * zeroed range leaves nothing in memory, so it is remembered until then:
 *
 *   noted --flush begins--> flushing --succeeds--> forgotten
 *     ^                        | fails
 *     |                        v
 *     +-----zeroed again---- redo       (no store flush begins before)
 *
 * Zeroing again must not destroy what was written on top meanwhile. While the
 * range is locked and idle: what is dirty is written later anyway; what is
 * unstable becomes dirty; what is stable got there by FUA, and was taken out
 * of the remembered range when it did (redo_forget()).
 *
 * The data of a direct write is nowhere but on the store. If a flush that had
 * to cover one fails it may be lost, and no later flush may say otherwise:
 * from then on every flush answers EIO.
 *
 * A trim promises nothing about what is read back: nothing to do again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "writeback-impl.h"

struct wb_zero {
	struct list link;
	uint64_t offset, end;
	unsigned flags;
};

#define ZEROES_MANY 4096U /* then the store is flushed to forget them */

/* --- remembering --------------------------------------------------------- */

static int note_zero(
	struct writeback *wb, unsigned flags, uint64_t offset, uint64_t end)
{
	SCOPED_LOCK(&wb->zero_lock);
	struct wb_zero *last = list_empty(&wb->zeroes)
		? NULL
		: list_entry(wb->zeroes.prev, struct wb_zero, link);

	if (last && last->end == offset && last->flags == flags) {
		last->end = end;
		return 0;
	}
	last = malloc(sizeof(*last));
	if (!last)
		return -ENOMEM;
	*last = (struct wb_zero){.offset = offset, .end = end, .flags = flags};
	list_push_tail(&wb->zeroes, &last->link);
	atomic_fetch_add(&wb->nzeroes, 1);
	return 0;
}

int writeback_note_through(struct writeback *wb, enum store_op op,
	unsigned flags, uint64_t offset, uint64_t end)
{
	int err = 0;

	if (op == STORE_ZERO)
		err = note_zero(wb, flags & STORE_NO_HOLE, offset, end);
	if (op == STORE_WRITE) {
		redo_forget(wb, offset, end);
		if (!(flags & STORE_FUA))
			atomic_fetch_add(&wb->direct_unflushed, 1);
	}
	atomic_fetch_add(&wb->through_unflushed, 1);
	atomic_fetch_add(&wb->unflushed, 1);
	failing_clear(wb, offset, end);
	if (atomic_load(&wb->nzeroes) >= ZEROES_MANY)
		writeback_press(wb);
	return err;
}

static void drop(struct writeback *wb, struct wb_zero *z)
{
	list_remove(&z->link);
	free(z);
	atomic_fetch_sub(&wb->nzeroes, 1);
}

/* Take [offset, end) out of one remembered range. Lock held. */
static void cut(
	struct writeback *wb, struct wb_zero *z, uint64_t offset, uint64_t end)
{
	struct wb_zero *tail;

	if (z->end <= offset || end <= z->offset)
		return;
	if (z->offset < offset && end < z->end) {
		tail = malloc(sizeof(*tail));
		if (tail) {
			*tail = *z;
			tail->offset = end;
			list_insert(&tail->link, &z->link);
			atomic_fetch_add(&wb->nzeroes, 1);
		} else {
			/* Better an error that is not one than lost data. */
			atomic_store(&wb->lost, true);
		}
		z->end = offset;
	} else if (z->offset < offset) {
		z->end = offset;
	} else if (end < z->end) {
		z->offset = end;
	} else {
		drop(wb, z);
	}
}

void redo_forget(struct writeback *wb, uint64_t offset, uint64_t end)
{
	struct list *all[] = {&wb->zeroes, &wb->zeroes_flushing, &wb->redo};

	if (!atomic_load(&wb->nzeroes))
		return;

	SCOPED_LOCK(&wb->zero_lock);

	for (unsigned i = 0; i < 3; i++) {
		list_for_each_safe (at, all[i])
			cut(wb, list_entry(at, struct wb_zero, link), offset,
				end);
	}
}

/* --- store flushes ------------------------------------------------------- */

void redo_flush_begin(struct writeback *wb)
{
	SCOPED_LOCK(&wb->zero_lock);

	wb->through_covers = atomic_exchange(&wb->through_unflushed, 0);
	wb->direct_covers = atomic_exchange(&wb->direct_unflushed, 0);
	list_splice_tail(&wb->zeroes_flushing, &wb->zeroes);
}

static void note_lost(struct writeback *wb)
{
	if (!atomic_exchange(&wb->lost, true))
		log_error("store %s: direct writes that were answered may be "
			  "lost: every flush will answer EIO",
			wb->name);
}

bool writeback_lost(struct writeback *wb)
{
	return atomic_load(&wb->lost);
}

void redo_flush_end(struct writeback *wb, int error)
{
	SCOPED_LOCK(&wb->zero_lock);

	if (error) {
		atomic_fetch_add(&wb->through_unflushed, wb->through_covers);
		/* What came while it was under way is no safer. */
		list_splice_tail(&wb->redo, &wb->zeroes_flushing);
		list_splice_tail(&wb->redo, &wb->zeroes);
		if (wb->direct_covers || atomic_load(&wb->direct_unflushed))
			note_lost(wb);
		return;
	}
	while (!list_empty(&wb->zeroes_flushing))
		drop(wb,
			list_entry(wb->zeroes_flushing.next, struct wb_zero,
				link));
}

/* --- doing it again ------------------------------------------------------ */

static void redo_step(struct writeback *wb);

static void redo_end(struct writeback *wb, int error)
{
	cache_range_unlock(wb->cache, &wb->redo_lock);
	wb->redoing = false;
	if (error)
		flush_failed(wb, error);
	/* Maybe inside wb_advance(): go on when that is over. */
	if (!atomic_exchange(&wb->kicked, true))
		reactor_post(wb->loop, &wb->kick);
}

static void redo_zeroed(struct store_io *io)
{
	struct writeback *wb = container_of(io, struct writeback, redo_io);

	if (!io->error)
		io->error = note_zero(wb, io->flags & STORE_NO_HOLE, io->offset,
			io->offset + io->length);
	if (!io->error) {
		SCOPED_LOCK(&wb->zero_lock);

		list_for_each_safe (at, &wb->redo)
			cut(wb, list_entry(at, struct wb_zero, link),
				io->offset, io->offset + io->length);
	}
	redo_end(wb, io->error);
}

static void redo_woken(struct cache_waiter *w)
{
	redo_step(container_of(w, struct writeback, redo_lock.waiter));
}

/* The range is ours and idle: zero what is still remembered of it. */
static void redo_submit(struct writeback *wb)
{
	{
		SCOPED_LOCK(&wb->zero_lock);
		struct wb_zero *z;

		if (list_empty(&wb->redo)) {
			wb->redo_io.length = 0;
		} else {
			z = list_entry(wb->redo.next, struct wb_zero, link);
			wb->redo_io = (struct store_io){
				.op = STORE_ZERO,
				.flags = z->flags,
				.offset = z->offset,
				.length = z->end - z->offset,
				.reactor = wb->loop,
				.done = redo_zeroed,
			};
		}
	}
	if (!wb->redo_io.length || wb->redo_io.offset < wb->redo_lock.offset ||
		wb->redo_io.offset + wb->redo_io.length > wb->redo_lock.end) {
		redo_end(wb, 0); /* it changed while we waited: look again */
		return;
	}
	cache_destabilise(wb->cache, wb->redo_lock.offset, wb->redo_lock.end);
	placement_submit(wb->placement, &wb->redo_io);
}

static void redo_step(struct writeback *wb)
{
	if (!wb->redo_locked) {
		if (cache_range_lock(wb->cache, &wb->redo_lock))
			return;
		wb->redo_locked = true;
	}
	if (!cache_range_idle(wb->cache, &wb->redo_lock))
		redo_submit(wb);
}

bool redo_advance(struct writeback *wb)
{
	struct wb_zero *z;

	if (wb->redoing)
		return true;
	{
		SCOPED_LOCK(&wb->zero_lock);

		if (list_empty(&wb->redo))
			return false;
		z = list_entry(wb->redo.next, struct wb_zero, link);
		wb->redo_lock = (struct cache_range_lock){
			.offset = z->offset,
			.end = z->end,
			.waiter = {.wake = redo_woken, .reactor = wb->loop},
		};
	}
	wb->redoing = true;
	wb->redo_locked = false;
	redo_step(wb);
	return true;
}

void redo_free(struct writeback *wb)
{
	struct list *all[] = {&wb->zeroes, &wb->zeroes_flushing, &wb->redo};

	for (unsigned i = 0; i < 3; i++) {
		while (!list_empty(all[i]))
			drop(wb,
				list_entry(all[i]->next, struct wb_zero, link));
	}
}
