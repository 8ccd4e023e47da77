/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-op.c: see pool-op.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/iov.h"
#include "pool-op.h"

struct pool_op *op_new(struct pool *p, struct store_io *io)
{
	struct pool_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->pool = p;
	op->outer = io;
	op->piece = op->few;
	op->room = OP_PIECES;
	return op;
}

/* It uses nothing of the store any more. */
static void op_leave(struct pool_op *op)
{
	if (op->entered)
		pool_leave(op->pool, op->parity);
	op->entered = false;
}

static void op_free(struct pool_op *op)
{
	op_leave(op);
	if (op->append)
		append_ended(op->pool);
	if (op->piece != op->few)
		free(op->piece);
	free(op->child);
	free(op->iov);
	free(op);
}

void op_end(struct pool_op *op, int error)
{
	struct store_io *io = op->outer;

	op_free(op);
	io->error = error;
	io->done(io);
}

void op_end_later(struct pool_op *op, int error)
{
	struct store_io *io = op->outer;

	op_free(op);
	pool_answer(io, error);
}

static int grow(struct pool_op *op)
{
	unsigned room = 4 * op->room;
	struct piece *all = malloc(room * sizeof(*all));

	if (!all)
		return -ENOMEM;
	memcpy(all, op->piece, op->npieces * sizeof(*all));
	if (op->piece != op->few)
		free(op->piece);
	op->piece = all;
	op->room = room;
	return 0;
}

int op_add(struct pool_op *op, uint64_t logical, uint64_t physical,
	uint64_t length, enum piece_kind kind)
{
	if (op->npieces == op->room && grow(op))
		return -ENOMEM;
	op->piece[op->npieces++] = (struct piece){
		.logical = logical,
		.physical = physical,
		.length = length,
		.kind = kind,
	};
	return 0;
}

/* --- to the store -------------------------------------------------------- */

static void child_done(struct store_io *io)
{
	struct pool_op *op = container_of(io, struct child, io)->op;

	if (io->error && !op->error)
		op->error = io->error;
	if (!--op->left)
		op->done(op);
}

static void nothing_to_do(struct reactor_task *task)
{
	struct store_io *io = container_of(task, struct store_io, task);
	struct pool_op *op = io->priv;

	op->done(op);
}

/* Cut the memory up: a child for each piece of the store. */
static unsigned make_children(
	struct pool_op *op, enum store_op what, unsigned flags)
{
	struct store_io *outer = op->outer;
	struct iov_cursor c = {.iov = outer->iov};
	struct iovec *iov = op->iov;
	unsigned n = 0;

	for (unsigned i = 0; i < op->npieces; i++) {
		const struct piece *piece = &op->piece[i];
		struct child *child = &op->child[n];
		size_t bytes;

		if (piece->kind == PIECE_ZEROES) {
			iov_zero(&c, piece->length);
			continue;
		}
		child->op = op;
		child->io = (struct store_io){
			.op = what,
			.flags = flags,
			.offset = piece->physical,
			.length = piece->length,
			.iov = iov,
			.niov = iov_slice(&c, piece->length, iov,
				outer->niov + 1, &bytes),
			.reactor = outer->reactor,
			.done = child_done,
		};
		iov += child->io.niov;
		n++;
	}
	return n;
}

void op_submit(struct pool_op *op, enum store_op what, unsigned flags,
	void (*done)(struct pool_op *op))
{
	struct store_io *outer = op->outer;
	unsigned n;

	op->done = done;
	op->child = malloc(op->npieces * sizeof(*op->child));
	op->iov =
		malloc(((size_t)outer->niov + op->npieces) * sizeof(*op->iov));
	if (op->child && op->iov) {
		n = make_children(op, what, flags);
	} else {
		op->error = -ENOMEM;
		n = 0;
	}
	if (!n) {
		outer->priv = op;
		outer->task.fn = nothing_to_do;
		reactor_post(outer->reactor, &outer->task);
		return;
	}
	op->left = n; /* none comes back inside the call */
	for (unsigned i = 0; i < n; i++)
		store_submit(op->pool->base.store, &op->child[i].io);
}

/* --- commits ------------------------------------------------------------- */

static void op_committed(struct commit_waiter *w)
{
	op_end(container_of(w, struct pool_op, wait.commit), w->error);
}

void op_commit(struct pool_op *op)
{
	op_leave(op);
	op->wait.commit = (struct commit_waiter){
		.reactor = op->outer->reactor,
		.done = op_committed,
		.flush = op->outer->op == STORE_FLUSH,
		.since = op->failures,
	};
	commit_wait(op->pool, &op->wait.commit);
}
