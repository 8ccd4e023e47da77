/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw.c: "raw:PATH", or just PATH: a file or a block device as it is.
 *
 * 1. The common io is one reactor_io in the caller's store_io: nothing is
 *    allocated. A short one goes on from where it stopped, with a copy of
 *    the rest of its iovec array (then rio.iov is not io->iov, and ours).
 * 2. The file never grows or shrinks by us. Reading nothing before its end
 *    means that someone cut it off: -EIO.
 * 3. -ENOSPC of the host filesystem under a sparse file is passed up as such.
 *
 * Any loops at once; nothing here is shared but hints (raw.h).
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "../base/iov.h"
#include "raw.h"

/* --- read and write ------------------------------------------------------ */

static void raw_rw_end(struct store_io *io, int error)
{
	if (io->rio.iov != io->iov)
		free((void *)(uintptr_t)io->rio.iov);
	raw_durable_ended(io->priv, io, error);
	store_io_done(io, error);
}

/* Go on with all but the first `done` bytes; -errno if there is no way. */
static int raw_rw_rest(struct store_io *io, uint64_t done)
{
	struct raw *r = io->priv;
	struct iov_cursor c = {.iov = io->iov};
	int room = io->niov < IOV_MAX ? io->niov : IOV_MAX;
	struct iovec *iov;
	size_t bytes;

	done -= done % r->base.info.align;
	if (io->offset + done <= io->rio.offset)
		return -EIO;
	iov = calloc((size_t)room, sizeof *iov);
	if (!iov)
		return -ENOMEM;
	iov_skip(&c, done);
	if (io->rio.iov != io->iov)
		free((void *)(uintptr_t)io->rio.iov);
	io->rio.iov = iov;
	io->rio.niov = iov_slice(&c, io->length - done, iov, room, &bytes);
	io->rio.offset = io->offset + done;
	reactor_io(io->reactor, &io->rio);
	return 0;
}

static void raw_rw_done(struct reactor_io *rio)
{
	struct store_io *io = container_of(rio, struct store_io, rio);
	uint64_t done;
	int err;

	if (raw_interrupted(rio->result)) {
		reactor_io(io->reactor, rio);
		return;
	}
	if (rio->result < 0) {
		raw_rw_end(io, (int)rio->result);
		return;
	}
	done = rio->offset - io->offset + (uint64_t)rio->result;
	if (done == io->length) {
		raw_rw_end(io, 0);
		return;
	}
	err = raw_rw_rest(io, done);
	if (err)
		raw_rw_end(io, err);
}

static void raw_rw(struct raw *r, struct store_io *io)
{
	io->rio = (struct reactor_io){
		.op = io->op == STORE_READ ? REACTOR_READ : REACTOR_WRITE,
		.flags = io->flags & STORE_FUA ? REACTOR_IO_DSYNC : 0,
		.fd = r->fd,
		.iov = io->iov,
		.niov = io->niov < IOV_MAX ? io->niov : IOV_MAX,
		.offset = io->offset,
		.done = raw_rw_done,
	};
	reactor_io(io->reactor, &io->rio);
}

/* --- flush ---------------------------------------------------------------- */

static void raw_flush_done(struct reactor_io *rio)
{
	struct store_io *io = container_of(rio, struct store_io, rio);
	struct raw *r = io->priv;
	int error = (int)rio->result;

	if (error == -EINTR) {
		reactor_io(io->reactor, rio);
		return;
	}
	if (atomic_exchange(&r->sync_failed, false) && !error)
		error = -EIO;
	store_io_done(io, error);
}

static void raw_flush(struct raw *r, struct store_io *io)
{
	io->rio = (struct reactor_io){
		.op = REACTOR_FSYNC,
		.fd = r->fd,
		.done = raw_flush_done,
	};
	reactor_io(io->reactor, &io->rio);
}

/* --- the store ------------------------------------------------------------ */

static void raw_submit(struct store *s, struct store_io *io)
{
	struct raw *r = container_of(s, struct raw, base);

	io->priv = r;
	if (store_io_modifies(io) && s->info.readonly) {
		store_io_post(io, -EROFS);
		return;
	}
	switch (io->op) {
	case STORE_READ:
	case STORE_WRITE:
		raw_rw(r, io);
		break;
	case STORE_FLUSH:
		raw_flush(r, io);
		break;
	case STORE_TRIM:
	case STORE_ZERO:
		raw_zero(r, io);
		break;
	case STORE_STATUS:
		raw_status(r, io);
		break;
	}
}

static void raw_close(struct store *s)
{
	struct raw *r = container_of(s, struct raw, base);

	if (r->fd >= 0)
		close(r->fd); /* and drop the lock */
	free(r->zeroes);
	free(r->dense);
	free(r);
}

static const struct store_ops raw_ops = {
	.kind = "raw",
	.submit = raw_submit,
	.close = raw_close,
	.sparse = raw_sparse,
};

static int raw_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	struct raw *r = calloc(1, sizeof *r);
	int err;

	if (!r)
		return error_set(error, -ENOMEM, "out of memory");
	r->base.ops = &raw_ops;
	r->fd = -1;
	r->zeroes = aligned_alloc(4096, RAW_ZEROES);
	if (r->zeroes) {
		memset(r->zeroes, 0, RAW_ZEROES);
		err = raw_setup(r, args->rest, args->flags, error);
		if (!err && raw_status_init(r))
			err = error_set(error, -ENOMEM, "out of memory");
	} else {
		err = error_set(error, -ENOMEM, "out of memory");
	}
	if (err) {
		raw_close(&r->base);
		return err;
	}
	*out = &r->base;
	return 0;
}

const struct store_kind store_kind_raw = {.name = "raw", .open = raw_open};
