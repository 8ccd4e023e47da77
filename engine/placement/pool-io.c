/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-io.c: reads and writes.
 *
 *   read    look up -> the store, zeroes for what has no place
 *   write   look up, take space for what has none -> the store -> map what
 *           was taken, record it -> answer, or for FUA wait for a commit
 *
 *  1. What is taken is mapped only when its data is written. If the write
 *     fails the space is free again and promised again: it will be tried
 *     again.
 *  2. A write that a failing store flush overlaps may be lost like those
 *     before it: what it maps is tainted (rule 3 of pool-impl.h), and the
 *     write fails, since nobody else may still have the data.
 *  3. FUA goes to the store only if nothing but the data has to be durable:
 *     the place is mapped, by a record that is durable.
 */
#include <errno.h>

#include "pool-op.h"

static uint64_t end_of(const struct store_io *io)
{
	return io->offset + io->length;
}

/* --- reads --------------------------------------------------------------- */

/* Lock held. */
static int look_up_read(struct pool_op *op)
{
	uint64_t end = end_of(op->outer), at = op->outer->offset, stop;
	int err = 0;

	for (; !err && at < end; at = stop) {
		enum piece_kind kind = PIECE_ZEROES;
		uint64_t physical = 0;
		struct extent e;

		stop = end;
		if (!extent_map_find(&op->pool->map, at, &e)) {
			;
		} else if (e.logical > at) {
			stop = e.logical < end ? e.logical : end;
		} else {
			if (e.logical + e.length < end)
				stop = e.logical + e.length;
			if (!e.unwritten)
				kind = PIECE_PLACED;
			physical = e.physical + (at - e.logical);
		}
		err = op_add(op, at, physical, stop - at, kind);
	}
	return err;
}

static void read_done(struct pool_op *op)
{
	op_end(op, op->error);
}

void pool_read(struct pool *p, struct store_io *io)
{
	struct pool_op *op = op_new(p, io);
	int err;

	if (!op) {
		pool_answer(io, -ENOMEM);
		return;
	}
	pthread_rwlock_rdlock(&p->lock);
	err = look_up_read(op);
	op->parity = pool_enter(p);
	op->entered = true;
	pthread_rwlock_unlock(&p->lock);
	if (err)
		op_end_later(op, err);
	else
		op_submit(op, STORE_READ, 0, read_done);
}

/* --- writes: what is to be done ------------------------------------------ */

/* Is `at` to be recorded as written again? Whichever it is, up to *stop. */
static bool is_tainted(const struct pool *p, uint64_t at, uint64_t *stop)
{
	struct extent e;
	bool tainted;

	if (!extent_map_find(&p->tainted, at, &e))
		return false;
	tainted = e.logical <= at;
	if (tainted && e.logical + e.length < *stop)
		*stop = e.logical + e.length;
	if (!tainted && e.logical < *stop)
		*stop = e.logical;
	return tainted;
}

/* Take space for [at, end), which has none. Lock held for writing. */
static int take(struct pool_op *op, uint64_t at, uint64_t end)
{
	struct pool *p = op->pool;

	while (at < end) {
		uint64_t physical, length;
		int err = pool_alloc(p, at, end - at, &physical, &length);

		if (!err) {
			err = op_add(op, at, physical, length, PIECE_NEW);
			if (err) {
				pool_placed(p, at, length);
				free_space_add(&p->space, physical, length);
			}
		}
		if (err)
			return err;
		pool_unreserve_locked(p, at, at + length);
		at += length;
	}
	return 0;
}

/* The piece at `at`, which `e` covers, up to *stop at most. */
static int add_mapped(struct pool_op *op, const struct extent *e, uint64_t at,
	uint64_t *stop, bool placed)
{
	bool mark;

	if (e->logical + e->length < *stop)
		*stop = e->logical + e->length;
	mark = is_tainted(op->pool, at, stop) || e->unwritten;
	if (mark && placed)
		return -EAGAIN;
	return op_add(op, at, e->physical + (at - e->logical), *stop - at,
		mark ? PIECE_MARKED : PIECE_PLACED);
}

/* Cut the range at what is mapped. `placed`: all of it must be, and nothing
 * else to do: then -EAGAIN if not, and the lock may be held for reading. */
static int look_up_write(struct pool_op *op, bool placed)
{
	uint64_t end = end_of(op->outer), at = op->outer->offset, stop;
	int err = 0;

	for (; !err && at < end; at = stop) {
		struct extent e;
		bool any = extent_map_find(&op->pool->map, at, &e);

		stop = end;
		if (any && e.logical <= at) {
			err = add_mapped(op, &e, at, &stop, placed);
			continue;
		}
		if (placed)
			return -EAGAIN;
		if (any && e.logical < end)
			stop = e.logical;
		err = take(op, at, stop);
	}
	return err;
}

/* Nothing of it will be: lock held for writing. */
static void put_back(struct pool_op *op)
{
	struct pool *p = op->pool;

	for (unsigned i = 0; i < op->npieces; i++) {
		const struct piece *at = &op->piece[i];

		if (at->kind != PIECE_NEW)
			continue;
		pool_placed(p, at->logical, at->length);
		free_space_add(&p->space, at->physical, at->length);
		/* Without memory the next try has to ask for it. */
		pool_reserve_locked(p, at->logical, at->logical + at->length);
	}
	op->npieces = 0;
}

/* Lock held for writing. */
static int look_up_take(struct pool_op *op)
{
	uint64_t from = op->outer->offset, end = end_of(op->outer);
	int err;

	op->npieces = 0;
	err = pool_reserve_locked(op->pool, from, end);
	if (!err)
		err = look_up_write(op, false);
	if (err)
		put_back(op);
	return err == -ENOSPC ? -EAGAIN : err;
}

static void look_up_done(struct pool_op *op)
{
	struct pool *p = op->pool;
	bool fua = op->outer->flags & STORE_FUA;

	op->parity = pool_enter(p);
	op->entered = true;
	op->failures = p->failures;
	op->commit = fua &&
		(!p->base.store->info.can_fua ||
			pool_is_fresh(p, op->outer->offset, end_of(op->outer)));
	for (unsigned i = 0; i < op->npieces; i++)
		op->commit |= fua && op->piece[i].kind != PIECE_PLACED;
}

/* 0, -EAGAIN: no space, or an error. */
static int look_up(struct pool_op *op)
{
	struct pool *p = op->pool;
	int err;

	pthread_rwlock_rdlock(&p->lock);
	err = look_up_write(op, true);
	if (!err)
		look_up_done(op);
	pthread_rwlock_unlock(&p->lock);
	if (err != -EAGAIN)
		return err;
	pthread_rwlock_wrlock(&p->lock);
	err = look_up_take(op);
	if (!err)
		look_up_done(op);
	pthread_rwlock_unlock(&p->lock);
	return err;
}

/* --- writes: the data is written ----------------------------------------- */

/* Room was reserved. Lock held for writing. */
static void map_piece(struct pool_op *op, const struct piece *at, bool lost)
{
	struct pool *p = op->pool;
	struct extent e = {
		.logical = at->logical,
		.physical = at->physical,
		.length = at->length,
	};
	struct record r = {
		.logical = e.logical,
		.physical = e.physical,
		.length = e.length,
		.op = POOL_OP_MAP,
		.unwritten = lost,
	};

	extent_map_set(&p->map, &e, pool_retire, p);
	if (lost)
		extent_map_set(&p->tainted, &e, NULL, NULL);
	else if (extent_map_count(&p->tainted))
		extent_map_clear(&p->tainted, e.logical, e.length, NULL, NULL);
	pool_record(p, &r);
}

/* Is a marked piece still where it was? Lock held. */
static bool still_there(const struct pool *p, const struct piece *at)
{
	struct extent e;

	return extent_map_find(&p->map, at->logical, &e) &&
		e.logical <= at->logical &&
		e.physical + (at->logical - e.logical) == at->physical &&
		e.logical + e.length >= at->logical + at->length;
}

static int map_pieces(struct pool_op *op)
{
	struct pool *p = op->pool;
	bool lost = op->failures != p->failures;
	/* A piece at most splits what it lies in, here and in `tainted`. */
	int err = pool_reserve_records(p, op->npieces);

	if (!err && lost)
		err = extent_map_reserve(&p->tainted, op->npieces);
	if (err) {
		put_back(op);
		return err;
	}
	for (unsigned i = 0; i < op->npieces; i++) {
		const struct piece *at = &op->piece[i];

		if (at->kind == PIECE_NEW)
			pool_placed(p, at->logical, at->length);
		if (at->kind == PIECE_NEW ||
			(at->kind == PIECE_MARKED && still_there(p, at)))
			map_piece(op, at, lost);
	}
	return pool_failure_locked(p, op->failures);
}

static bool only_placed(const struct pool_op *op)
{
	for (unsigned i = 0; i < op->npieces; i++) {
		if (op->piece[i].kind != PIECE_PLACED)
			return false;
	}
	return true;
}

static void write_done(struct pool_op *op)
{
	struct pool *p = op->pool;
	int err = op->error;

	if (!only_placed(op)) {
		pthread_rwlock_wrlock(&p->lock);
		if (err)
			put_back(op);
		else
			err = map_pieces(op);
		pthread_rwlock_unlock(&p->lock);
	}
	if (err || !op->commit)
		op_end(op, err);
	else
		op_commit(op);
}

static void write_begin(struct pool_op *op, bool last);

static void write_again(struct placement_waiter *w, bool last)
{
	write_begin(container_of(w, struct pool_op, wait.hungry), last);
}

static void write_begin(struct pool_op *op, bool last)
{
	bool fua = op->outer->flags & STORE_FUA;
	int err = look_up(op);

	if (err == -EAGAIN && !last) {
		op->wait.hungry = (struct placement_waiter){
			.reactor = op->outer->reactor,
			.retry = write_again,
		};
		pool_hunger(op->pool, &op->wait.hungry);
	} else if (err) {
		op_end_later(op, err == -EAGAIN ? -ENOSPC : err);
	} else {
		op_submit(op, STORE_WRITE, fua && !op->commit ? STORE_FUA : 0,
			write_done);
	}
}

void pool_write_begin(struct pool_op *op)
{
	write_begin(op, false);
}

void pool_write(struct pool *p, struct store_io *io)
{
	struct pool_op *op = op_new(p, io);

	if (!op)
		pool_answer(io, -ENOMEM);
	else if (!append_waits(op))
		write_begin(op, false);
}
