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
 * Zeroing again must not destroy what was written on top meanwhile. What was
 * written when the flush failed is dirty again, if it is in memory; what is
 * not in memory, or is durable by FUA, was taken out of the remembered range
 * (redo_written()). From then on all that is written is taken out. The range
 * is locked and idle meanwhile: what is dirty is written later.
 *
 * The data of a direct write is nowhere but on the store. If a flush that had
 * to cover one fails it may be lost, and no later flush may say otherwise:
 * from then on every flush answers EIO.
 *
 * A trim promises nothing about what is read back: nothing to do again. But of
 * a store that forgets (store.h) it is remembered as a zero is: else what is
 * trimmed would come back under a server that runs on.
 *
 * When ZEROES_MANY ranges are remembered, a zero more waits for a flush, which
 * forgets them. Direct writes may cut them into twice that many; what then
 * finds no room, or no memory, counts like a direct write itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "writeback-impl.h"

#define ZEROES_MANY 4096U     /* then the store is flushed to forget them */
#define REDO_PIECE (1U << 30) /* bytes of one zeroing */
#define REDO_TRIM (1U << 31)  /* in a range's flags: it was trimmed */

/* --- remembering --------------------------------------------------------- */

static void recount(struct writeback *wb)
{
	atomic_store(&wb->nzeroes,
		wb->zeroes.count + wb->zeroes_flushing.count + wb->redo.count);
}

static bool full(struct writeback *wb)
{
	return atomic_load(&wb->nzeroes) >= ZEROES_MANY;
}

bool writeback_redoes_trims(const struct writeback *wb)
{
	return wb->placement->info.forgets;
}

int writeback_zero_room(struct writeback *wb)
{
	if (!full(wb))
		return 0;
	return atomic_load(&wb->flush_failing_ns) ? -EIO : -EAGAIN;
}

static void note_lost(struct writeback *wb)
{
	if (!atomic_exchange(&wb->lost, true))
		log_error("store %s: direct writes that were answered may be "
			  "lost: every flush will answer EIO",
			wb->name);
}

/* [offset, end) was zeroed, and is not durable. Lock held. */
static void note_zero(
	struct writeback *wb, unsigned flags, uint64_t offset, uint64_t end)
{
	if (zero_set_add(&wb->zeroes, offset, end, flags) &&
		!(flags & REDO_TRIM))
		atomic_fetch_add(&wb->direct_unflushed, 1);
	recount(wb);
}

/* Take [offset, end) out of a set, or more if there is no room for the two
 * ends: false. Lock held. */
static bool cut(struct writeback *wb, struct zero_set *set, uint64_t offset,
	uint64_t end)
{
	bool room = atomic_load(&wb->nzeroes) < 2 * ZEROES_MANY ||
		!zero_set_splits(set, offset, end);

	if (room && !zero_set_cut(set, offset, end))
		return true;
	zero_set_drop(set, offset, end);
	return false;
}

/* Take it out of what has to be done again. Lock held. */
static void cut_redo(struct writeback *wb, uint64_t offset, uint64_t end)
{
	if (!zero_set_cut(&wb->redo, offset, end))
		return;
	zero_set_drop(&wb->redo, offset, end);
	note_lost(wb);
}

void redo_written(
	struct writeback *wb, uint64_t offset, uint64_t end, bool kept)
{
	if (!atomic_load(&wb->nzeroes))
		return;

	SCOPED_LOCK(&wb->zero_lock);

	if (!kept && !cut(wb, &wb->zeroes, offset, end))
		atomic_fetch_add(&wb->direct_unflushed, 1);
	if (!kept && !cut(wb, &wb->zeroes_flushing, offset, end))
		atomic_fetch_add(&wb->direct_unflushed, 1);
	cut_redo(wb, offset, end);
	recount(wb);
}

void writeback_note_through(struct writeback *wb, enum store_op op,
	unsigned flags, uint64_t offset, uint64_t end)
{
	failing_clear(wb, offset, end);
	if (op == STORE_WRITE)
		redo_written(wb, offset, end, false);
	if (op == STORE_ZERO ||
		(op == STORE_TRIM && writeback_redoes_trims(wb))) {
		SCOPED_LOCK(&wb->zero_lock);

		note_zero(wb,
			op == STORE_TRIM ? REDO_TRIM : flags & STORE_NO_HOLE,
			offset, end);
	}
	if (flags & STORE_FUA)
		return;
	if (op == STORE_WRITE)
		atomic_fetch_add(&wb->direct_unflushed, 1);
	atomic_fetch_add(&wb->through_unflushed, 1);
	atomic_fetch_add(&wb->unflushed, 1);
	if (full(wb) && !atomic_exchange(&wb->kicked, true))
		reactor_post(wb->loop, &wb->kick);
}

/* --- store flushes ------------------------------------------------------- */

void redo_flush_begin(struct writeback *wb)
{
	SCOPED_LOCK(&wb->zero_lock);
	struct zero_set empty = wb->zeroes_flushing;

	wb->through_covers = atomic_exchange(&wb->through_unflushed, 0);
	wb->direct_covers = atomic_exchange(&wb->direct_unflushed, 0);
	wb->zeroes_flushing = wb->zeroes;
	wb->zeroes = empty;
}

bool writeback_lost(struct writeback *wb)
{
	return atomic_load(&wb->lost);
}

/* All of a set has to be done again. Lock held. */
static void must_redo(struct writeback *wb, struct zero_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct zero_range *z = &set->range[i];

		if (zero_set_add(&wb->redo, z->offset, z->end, z->flags))
			note_lost(wb);
	}
	set->count = 0;
}

void redo_flush_end(struct writeback *wb, int error)
{
	SCOPED_LOCK(&wb->zero_lock);

	if (error) {
		atomic_fetch_add(&wb->through_unflushed, wb->through_covers);
		/* What came while it was under way is no safer. */
		must_redo(wb, &wb->zeroes_flushing);
		must_redo(wb, &wb->zeroes);
		if (error == -EAGAIN)
			atomic_fetch_add(
				&wb->direct_unflushed, wb->direct_covers);
		else if (wb->direct_covers ||
			atomic_load(&wb->direct_unflushed))
			note_lost(wb);
	}
	wb->zeroes_flushing.count = 0;
	recount(wb);
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
	uint64_t end = io->offset + io->length;

	if (!io->error) {
		SCOPED_LOCK(&wb->zero_lock);

		cut_redo(wb, io->offset, end);
		note_zero(wb,
			io->op == STORE_TRIM ? REDO_TRIM
					     : io->flags & STORE_NO_HOLE,
			io->offset, end);
	}
	redo_end(wb, io->error);
}

static void redo_woken(struct cache_waiter *w)
{
	redo_step(container_of(w, struct writeback, redo_lock.waiter));
}

/* What is to be zeroed next: false if nothing is. */
static bool redo_next(struct writeback *wb, struct zero_range *z)
{
	SCOPED_LOCK(&wb->zero_lock);

	if (!wb->redo.count)
		return false;
	*z = wb->redo.range[0];
	if (z->end - z->offset > REDO_PIECE)
		z->end = z->offset + REDO_PIECE;
	return true;
}

/* The range is ours and idle: zero what is still remembered of it. */
static void redo_submit(struct writeback *wb)
{
	struct zero_range z;

	if (!redo_next(wb, &z) || z.offset < wb->redo_lock.offset ||
		z.end > wb->redo_lock.end) {
		redo_end(wb, 0); /* it changed while we waited: look again */
		return;
	}
	wb->redo_io = (struct store_io){
		.op = z.flags & REDO_TRIM ? STORE_TRIM : STORE_ZERO,
		.flags = z.flags & STORE_NO_HOLE,
		.offset = z.offset,
		.length = z.end - z.offset,
		.reactor = wb->loop,
		.done = redo_zeroed,
	};
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
	struct zero_range z;

	if (wb->redoing)
		return true;
	if (!redo_next(wb, &z))
		return false;
	wb->redo_lock = (struct cache_range_lock){
		.offset = z.offset,
		.end = z.end,
		.waiter = {.wake = redo_woken, .reactor = wb->loop},
	};
	wb->redoing = true;
	wb->redo_locked = false;
	redo_step(wb);
	return true;
}

void redo_free(struct writeback *wb)
{
	zero_set_free(&wb->zeroes);
	zero_set_free(&wb->zeroes_flushing);
	zero_set_free(&wb->redo);
}
