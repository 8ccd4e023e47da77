/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw-zero.c: TRIM and ZERO of the raw store.
 *
 * Each tries its ways in turn until one is not "unsupported":
 *
 *                     file                         device
 *   TRIM              punch, nothing               discard, nothing
 *   ZERO              punch, zero range, write     the same
 *   ZERO NO_HOLE      zero range, write            the same
 *   ZERO FAST         without write; -ENOTSUP      only punch; -ENOTSUP
 *   FUA               then fdatasync
 *
 * On a device PUNCH is a zeroing that gives up rather than write, and ZERO
 * one that may write (fallocate(2) of a block device). What was found to be
 * unsupported is remembered and not tried again.
 */
#include <stdlib.h>
#include <sys/ioctl.h>
#include <linux/fs.h>

#include "raw.h"

#define ZERO_IOV 64

enum zero_way {
	WAY_DISCARD,
	WAY_PUNCH,
	WAY_ZERO_RANGE,
	WAY_WRITE,
	WAY_NONE
};

struct zero {
	struct raw *raw;
	struct store_io *io;
	enum zero_way way; /* being tried */
	uint64_t at;       /* WAY_WRITE: written up to there */
	struct reactor_work work;
	int discard_error;
	struct iovec iov[ZERO_IOV];
};

static void zero_try(struct zero *z, enum zero_way way);

static void zero_end(struct zero *z, int error)
{
	struct store_io *io = z->io;

	raw_durable_ended(z->raw, io, error == -ENOTSUP ? 0 : error);
	raw_forget_dense(z->raw, io);
	free(z);
	store_io_done(io, error);
}

static void zero_synced(struct reactor_io *rio)
{
	struct store_io *io = container_of(rio, struct store_io, rio);

	if (rio->result == -EINTR)
		reactor_io(io->reactor, rio);
	else
		zero_end(io->priv, (int)rio->result);
}

/* It is done; make it durable if asked to. */
static void zero_finish(struct zero *z)
{
	struct store_io *io = z->io;

	if (!(io->flags & STORE_FUA)) {
		zero_end(z, 0);
		return;
	}
	io->rio = (struct reactor_io){
		.op = REACTOR_FSYNC,
		.fd = z->raw->fd,
		.done = zero_synced,
	};
	reactor_io(io->reactor, &io->rio);
}

/* --- the ways ------------------------------------------------------------- */

static atomic_bool *way_missing(struct raw *r, enum zero_way way)
{
	switch (way) {
	case WAY_DISCARD:
		return &r->no_discard;
	case WAY_PUNCH:
		return &r->no_punch;
	case WAY_ZERO_RANGE:
		return &r->no_zero_range;
	default:
		return NULL;
	}
}

/* The way to try when `way` is unsupported. */
static enum zero_way way_after(const struct zero *z, enum zero_way way)
{
	bool fast = z->io->flags & STORE_FAST;

	if (z->io->op == STORE_TRIM)
		return WAY_NONE;
	if (way == WAY_PUNCH && !(fast && z->raw->block))
		return WAY_ZERO_RANGE;
	return fast ? WAY_NONE : WAY_WRITE;
}

static enum zero_way way_first(const struct zero *z)
{
	if (z->io->op == STORE_TRIM)
		return z->raw->block ? WAY_DISCARD : WAY_PUNCH;
	return z->io->flags & STORE_NO_HOLE ? way_after(z, WAY_PUNCH)
					    : WAY_PUNCH;
}

/* A way came back with `result`. */
static void zero_tried(struct zero *z, int64_t result)
{
	if (raw_interrupted(result)) {
		zero_try(z, z->way);
	} else if (raw_unsupported(result)) {
		atomic_store(way_missing(z->raw, z->way), true);
		zero_try(z, way_after(z, z->way));
	} else if (result < 0) {
		zero_end(z, (int)result);
	} else {
		zero_finish(z);
	}
}

static void zero_fallocated(struct reactor_io *rio)
{
	struct store_io *io = container_of(rio, struct store_io, rio);

	zero_tried(io->priv, rio->result);
}

static void zero_fallocate(struct zero *z, enum reactor_io_op op)
{
	struct store_io *io = z->io;

	io->rio = (struct reactor_io){
		.op = op,
		.fd = z->raw->fd,
		.offset = io->offset,
		.length = io->length,
		.done = zero_fallocated,
	};
	reactor_io(io->reactor, &io->rio);
}

static void zero_discard_run(struct reactor_work *work)
{
	struct zero *z = container_of(work, struct zero, work);
	uint64_t range[2] = {z->io->offset, z->io->length};

	z->discard_error = ioctl(z->raw->fd, BLKDISCARD, range) ? -errno : 0;
}

static void zero_discarded(struct reactor_work *work)
{
	struct zero *z = container_of(work, struct zero, work);

	zero_tried(z, z->discard_error);
}

static void zero_discard(struct zero *z)
{
	z->work.run = zero_discard_run;
	z->work.done = zero_discarded;
	reactor_work(z->io->reactor, &z->work);
}

/* --- writing zeroes ------------------------------------------------------- */

static void zero_written(struct reactor_io *rio);

static void zero_write(struct zero *z)
{
	struct store_io *io = z->io;
	uint64_t left = io->offset + io->length - z->at;
	int n;

	for (n = 0; n < ZERO_IOV && left; n++) {
		z->iov[n].iov_base = z->raw->zeroes;
		z->iov[n].iov_len = left < RAW_ZEROES ? left : RAW_ZEROES;
		left -= z->iov[n].iov_len;
	}
	io->rio = (struct reactor_io){
		.op = REACTOR_WRITE,
		.fd = z->raw->fd,
		.iov = z->iov,
		.niov = n,
		.offset = z->at,
		.done = zero_written,
	};
	reactor_io(io->reactor, &io->rio);
}

static void zero_written(struct reactor_io *rio)
{
	struct store_io *io = container_of(rio, struct store_io, rio);
	struct zero *z = io->priv;
	uint64_t n = rio->result > 0 ? (uint64_t)rio->result : 0;

	n -= n % z->raw->base.info.align;
	z->at += n;
	if (z->at == io->offset + io->length)
		zero_finish(z);
	else if (n || raw_interrupted(rio->result))
		zero_write(z);
	else
		zero_end(z, rio->result < 0 ? (int)rio->result : -EIO);
}

/* -------------------------------------------------------------------------- */

/* From a callback on the io's loop, except that no way ends in here that
 * starts an operation. */
static void zero_try(struct zero *z, enum zero_way way)
{
	while (way_missing(z->raw, way) &&
		atomic_load(way_missing(z->raw, way)))
		way = way_after(z, way);
	z->way = way;
	switch (way) {
	case WAY_DISCARD:
		zero_discard(z);
		break;
	case WAY_PUNCH:
		zero_fallocate(z, REACTOR_PUNCH);
		break;
	case WAY_ZERO_RANGE:
		zero_fallocate(z, REACTOR_ZERO);
		break;
	case WAY_WRITE:
		zero_write(z);
		break;
	case WAY_NONE:
		zero_end(z, z->io->op == STORE_TRIM ? 0 : -ENOTSUP);
		break;
	}
}

static void zero_begin(struct reactor_task *task)
{
	struct store_io *io = container_of(task, struct store_io, task);
	struct zero *z = io->priv;

	zero_try(z, way_first(z));
}

void raw_zero(struct raw *r, struct store_io *io)
{
	struct zero *z = calloc(1, sizeof *z);

	if (!z) {
		store_io_post(io, -ENOMEM);
		return;
	}
	z->raw = r;
	z->io = io;
	z->at = io->offset;
	io->priv = z;
	raw_forget_dense(r, io);
	/* It may end at once, which it must not do inside submit. */
	io->task.fn = zero_begin;
	reactor_post(io->reactor, &io->task);
}
