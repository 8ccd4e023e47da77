/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor-uring.c: file I/O of a live loop through io_uring.
 *
 *   uring_io ─> waiting ─> submission ring ─(submit)─> kernel
 *                                                        │
 *   done <──────── loop, the ring's fd readable <────────┘
 *
 * 1. Submission is one system call an iteration, more only when there is
 *    more than a ring of it.
 * 2. No more is in flight than the completion ring holds: it never overflows.
 * 3. I/O of one piece of memory that lies in what was fixed goes by that: the
 *    kernel need not look up and pin its pages, which is a tenth of what a
 *    direct I/O of 64K costs it.
 */
#include <errno.h>
#include <stdlib.h>

#include "reactor-live.h"

#ifdef HAVE_LIBURING

#include <fcntl.h>
#include <liburing.h>
#include <linux/falloc.h>

#define URING_ENTRIES 256U

struct uring {
	struct live *live;
	struct io_uring ring;
	struct list waiting; /* struct reactor_io */
	unsigned inflight;   /* queued in the ring or with the kernel */
	bool has_table;      /* of fixed memory */
	ev_io watch;
};

/* The piece of fixed memory that the I/O lies in; -1: none. */
static int uring_fixed(const struct live *l, const struct reactor_io *io)
{
	uintptr_t from;

	if (io->niov != 1)
		return -1;
	from = (uintptr_t)io->iov->iov_base;
	for (int i = 0; i < LIVE_FIXED; i++) {
		size_t length = atomic_load_explicit(
			&l->fixed[i].length, memory_order_acquire);
		uintptr_t base = atomic_load_explicit(
			&l->fixed[i].base, memory_order_relaxed);

		if (from >= base && from - base < length &&
			io->iov->iov_len <= length - (from - base))
			return i;
	}
	return -1;
}

static void uring_prepare_fixed(
	struct io_uring_sqe *sqe, struct reactor_io *io, int slot)
{
	unsigned length = (unsigned)io->iov->iov_len;

	if (io->op == REACTOR_READ)
		io_uring_prep_read_fixed(sqe, io->fd, io->iov->iov_base, length,
			io->offset, slot);
	else
		io_uring_prep_write_fixed(sqe, io->fd, io->iov->iov_base,
			length, io->offset, slot);
}

static void uring_prepare_vector(
	struct io_uring_sqe *sqe, struct reactor_io *io)
{
	unsigned niov = (unsigned)io->niov;

	if (io->op == REACTOR_READ)
		io_uring_prep_readv(sqe, io->fd, io->iov, niov, io->offset);
	else
		io_uring_prep_writev(sqe, io->fd, io->iov, niov, io->offset);
}

static void uring_prepare(
	const struct live *l, struct io_uring_sqe *sqe, struct reactor_io *io)
{
	int slot;

	switch (io->op) {
	case REACTOR_READ:
	case REACTOR_WRITE:
		slot = uring_fixed(l, io);
		if (slot < 0)
			uring_prepare_vector(sqe, io);
		else
			uring_prepare_fixed(sqe, io, slot);
		if (io->op == REACTOR_WRITE && io->flags & REACTOR_IO_DSYNC)
			sqe->rw_flags = RWF_DSYNC;
		break;
	case REACTOR_FSYNC:
		io_uring_prep_fsync(sqe, io->fd, IORING_FSYNC_DATASYNC);
		break;
	case REACTOR_PUNCH:
	case REACTOR_ZERO:
		io_uring_prep_fallocate(sqe, io->fd,
			FALLOC_FL_KEEP_SIZE |
				(io->op == REACTOR_PUNCH
						? FALLOC_FL_PUNCH_HOLE
						: FALLOC_FL_ZERO_RANGE),
			(off_t)io->offset, (off_t)io->length);
		break;
	}
	io_uring_sqe_set_data(sqe, io);
}

/* Move what waits into the ring while there is room. */
static void uring_fill(struct uring *u)
{
	while (!list_empty(&u->waiting) &&
		u->inflight < *u->ring.cq.kring_entries) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
		struct list *node;

		if (!sqe)
			return;
		node = list_pop_head(&u->waiting);
		uring_prepare(u->live, sqe,
			list_entry(node, struct reactor_io, link));
		u->inflight++;
	}
}

void uring_io(struct uring *u, struct reactor_io *io)
{
	list_push_tail(&u->waiting, &io->link);
}

void uring_take(struct uring *u, struct list *to)
{
	list_splice_tail(to, &u->waiting);
}

bool uring_submit(struct uring *u)
{
	for (;;) {
		unsigned queued;

		uring_fill(u);
		queued = io_uring_sq_ready(&u->ring);
		if (!queued)
			return true;
		/* Refused or taken in part: the kernel is short of memory. */
		if (io_uring_submit(&u->ring) < (int)queued)
			return false;
	}
}

static void uring_ready(struct ev_loop *loop, ev_io *w, int events)
{
	struct uring *u = w->data;
	struct io_uring_cqe *cqe;

	(void)loop;
	(void)events;
	while (!io_uring_peek_cqe(&u->ring, &cqe)) {
		struct reactor_io *io = io_uring_cqe_get_data(cqe);

		io->result = cqe->res;
		io_uring_cqe_seen(&u->ring, cqe);
		u->inflight--;
		io->done(io);
	}
}

/* Does the kernel have all operations? */
static bool uring_probe(struct io_uring *ring)
{
	static const int ops[] = {
		IORING_OP_READV,
		IORING_OP_WRITEV,
		IORING_OP_READ_FIXED,
		IORING_OP_WRITE_FIXED,
		IORING_OP_FSYNC,
		IORING_OP_FALLOCATE,
	};
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool all = probe != NULL;

	for (size_t i = 0; all && i < sizeof ops / sizeof ops[0]; i++)
		all = io_uring_opcode_supported(probe, ops[i]);
	if (probe)
		io_uring_free_probe(probe);
	return all;
}

int uring_new(struct live *l, struct uring **out)
{
	struct uring *u = calloc(1, sizeof *u);
	int err;

	if (!u)
		return -ENOMEM;
	err = io_uring_queue_init(URING_ENTRIES, &u->ring, 0);
	if (err) {
		free(u);
		return err;
	}
	if (!uring_probe(&u->ring)) {
		io_uring_queue_exit(&u->ring);
		free(u);
		return -ENOSYS;
	}
	u->live = l;
	list_init(&u->waiting);
	ev_io_init(&u->watch, uring_ready, u->ring.ring_fd, EV_READ);
	u->watch.data = u;
	ev_io_start(l->loop, &u->watch);
	*out = u;
	return 0;
}

int uring_fix(struct uring *u, unsigned slot, const struct iovec *memory)
{
	__u64 tag = 0;
	int err = 0;

	if (!u->has_table)
		err = io_uring_register_buffers_sparse(&u->ring, LIVE_FIXED);
	if (err < 0)
		return err;
	u->has_table = true;
	err = io_uring_register_buffers_update_tag(
		&u->ring, slot, memory, &tag, 1);
	return err < 0 ? err : 0;
}

void uring_free(struct uring *u)
{
	ev_io_stop(u->live->loop, &u->watch);
	io_uring_queue_exit(&u->ring);
	free(u);
}

#else /* !HAVE_LIBURING */

int uring_new(struct live *l, struct uring **out)
{
	(void)l;
	(void)out;
	return -ENOSYS;
}

void uring_free(struct uring *u)
{
	(void)u;
}

void uring_io(struct uring *u, struct reactor_io *io)
{
	(void)u;
	(void)io;
}

void uring_take(struct uring *u, struct list *to)
{
	(void)u;
	(void)to;
}

bool uring_submit(struct uring *u)
{
	(void)u;
	return true;
}

int uring_fix(struct uring *u, unsigned slot, const struct iovec *memory)
{
	(void)u;
	(void)slot;
	(void)memory;
	return -ENOSYS;
}

#endif
