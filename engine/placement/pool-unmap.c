/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-unmap.c: trims, write-zeroes, and what has a place.
 *
 * A trim or zero touches the map only: one record, whatever the length. The
 * space comes back when that is durable (pool-space.c). A zero that is to
 * keep the space marks what there is as unwritten and takes the rest.
 */
#include <errno.h>

#include "pool-op.h"

/* --- giving it up -------------------------------------------------------- */

static bool is_mapped(const struct pool *p, uint64_t offset, uint64_t end)
{
	struct extent e;

	return extent_map_find(&p->map, offset, &e) && e.logical < end;
}

/* Lock held for writing. */
static int unmap(struct pool *p, uint64_t offset, uint64_t length)
{
	struct record r = {
		.logical = offset,
		.length = length,
		.op = POOL_OP_UNMAP,
	};
	int err;

	if (!is_mapped(p, offset, offset + length))
		return 0;
	err = pool_reserve_records(p, 1);
	if (err)
		return err;
	extent_map_clear(&p->map, offset, length, pool_retire, p);
	pool_kick(p); /* it knows for how long the space waits */
	if (extent_map_count(&p->tainted))
		extent_map_clear(&p->tainted, offset, length, NULL, NULL);
	pool_record(p, &r);
	return 0;
}

/* No record is for more than it can say. */
static int unmap_all(struct pool *p, uint64_t offset, uint64_t end)
{
	int err = 0;

	while (!err && offset < end) {
		uint64_t n = end - offset;

		if (n > EXTENT_LENGTH_MAX)
			n = EXTENT_LENGTH_MAX;
		err = unmap(p, offset, n);
		offset += n;
	}
	return err;
}

/* --- keeping it ---------------------------------------------------------- */

static int map_unwritten(struct pool *p, const struct extent *e)
{
	struct record r = {
		.logical = e->logical,
		.physical = e->physical,
		.length = e->length,
		.op = POOL_OP_MAP,
		.unwritten = true,
	};
	int err = pool_reserve_records(p, 1);

	if (err)
		return err;
	extent_map_set(&p->map, e, pool_retire, p);
	if (extent_map_count(&p->tainted))
		extent_map_clear(
			&p->tainted, e->logical, e->length, NULL, NULL);
	pool_record(p, &r);
	return 0;
}

/* Take space from `e->logical` on, up to `stop`; reserved before. */
static int take_unwritten(struct pool *p, struct extent *e, uint64_t stop)
{
	int err = pool_alloc(
		p, e->logical, stop - e->logical, &e->physical, &e->length);

	if (err)
		return err == -ENOSPC ? -EAGAIN : err;
	pool_unreserve_locked(p, e->logical, e->logical + e->length);
	pool_placed(p, e->logical, e->length);
	err = map_unwritten(p, e);
	if (err)
		free_space_add(&p->space, e->physical, e->length);
	return err;
}

/* Lock held for writing. What was done before an error stays: it is zero. */
static int keep(struct pool *p, uint64_t offset, uint64_t end)
{
	int err = pool_reserve_locked(p, offset, end);

	for (uint64_t at = offset; !err && at < end;) {
		struct extent e, piece = {.logical = at, .unwritten = true};
		bool any = extent_map_find(&p->map, at, &e);

		if (any && e.logical <= at) {
			piece.physical = e.physical + (at - e.logical);
			piece.length = e.logical + e.length - at;
			if (piece.length > end - at)
				piece.length = end - at;
			if (!e.unwritten)
				err = map_unwritten(p, &piece);
		} else {
			err = take_unwritten(p, &piece,
				any && e.logical < end ? e.logical : end);
		}
		at += piece.length;
	}
	return err;
}

/* --- the io -------------------------------------------------------------- */

static void unmap_begin(struct pool_op *op, bool last);

static void unmap_again(struct placement_waiter *w, bool last)
{
	unmap_begin(container_of(w, struct pool_op, wait.hungry), last);
}

static void unmap_begin(struct pool_op *op, bool last)
{
	struct store_io *io = op->outer;
	struct pool *p = op->pool;
	uint64_t end = io->offset + io->length;
	bool stay = io->op == STORE_ZERO && io->flags & STORE_NO_HOLE;
	int err;

	pthread_rwlock_wrlock(&p->lock);
	op->failures = p->failures;
	err = stay ? keep(p, io->offset, end) : unmap_all(p, io->offset, end);
	pthread_rwlock_unlock(&p->lock);
	if (err == -EAGAIN && !last) {
		op->wait.hungry = (struct placement_waiter){
			.reactor = io->reactor,
			.retry = unmap_again,
		};
		pool_hunger(p, &op->wait.hungry);
	} else if (!err && io->flags & STORE_FUA) {
		op_commit(op);
	} else {
		op_end_later(op, err == -EAGAIN ? -ENOSPC : err);
	}
}

void pool_unmap(struct pool *p, struct store_io *io)
{
	struct pool_op *op = op_new(p, io);

	if (op)
		unmap_begin(op, false);
	else
		pool_answer(io, -ENOMEM);
}

/* --- status -------------------------------------------------------------- */

/* The extent at `at`; its end in *stop. */
static unsigned status_of(
	const struct pool *p, uint64_t at, uint64_t end, uint64_t *stop)
{
	struct extent e;

	*stop = end;
	if (!extent_map_find(&p->map, at, &e))
		return STORE_HOLE | STORE_ZEROES;
	if (e.logical > at) {
		*stop = e.logical < end ? e.logical : end;
		return STORE_HOLE | STORE_ZEROES;
	}
	if (e.logical + e.length < end)
		*stop = e.logical + e.length;
	return e.unwritten ? STORE_ZEROES : 0;
}

/* So many extents are looked at. */
#define SPARSE_LOOKS 8

bool pool_sparse(struct placement *placement, uint64_t offset, uint64_t end)
{
	struct pool *p = pool_of(placement);
	bool data = true;
	uint64_t stop;

	pthread_rwlock_rdlock(&p->lock);
	for (int i = 0; data && offset < end; i++, offset = stop)
		data = i < SPARSE_LOOKS && !status_of(p, offset, end, &stop);
	pthread_rwlock_unlock(&p->lock);
	return !data;
}

/* What differs only in its place is one extent. */
void pool_status(struct pool *p, struct store_io *io)
{
	uint64_t end = io->offset + io->length, stop;
	int filled = 0;

	pthread_rwlock_rdlock(&p->lock);
	for (uint64_t at = io->offset; at < end; at = stop) {
		unsigned flags = status_of(p, at, end, &stop);

		if (!store_extent_add(io, &filled, stop - at, flags))
			break;
	}
	pthread_rwlock_unlock(&p->lock);
	io->nextents = filled;
	pool_answer(io, 0);
}
