/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-op.h: one read or write of a pool's device, cut into pieces of its
 * store. For files of this folder.
 */
#ifndef WEIR_PLACEMENT_POOL_OP_H
#define WEIR_PLACEMENT_POOL_OP_H

#include "pool-impl.h"

enum piece_kind {
	PIECE_PLACED, /* mapped and written */
	PIECE_MARKED, /* mapped, and to be recorded as written */
	PIECE_NEW,    /* taken for this write, not mapped yet */
	PIECE_ZEROES, /* read: nothing there */
};

struct piece {
	uint64_t logical, physical, length; /* bytes */
	enum piece_kind kind;
};

/* What goes to the store for one piece. */
struct child {
	struct pool_op *op;
	struct store_io io;
};

#define OP_PIECES 4U

/* Everything happens on the loop of `outer`. */
struct pool_op {
	struct pool *pool;
	struct store_io *outer;
	struct piece *piece; /* `few`, or owned */
	unsigned npieces, room;
	struct child *child; /* owned */
	struct iovec *iov;   /* owned */
	void (*done)(struct pool_op *op);
	unsigned left;   /* children under way */
	unsigned parity; /* of the epoch it looked the map up in */
	bool entered;
	bool commit;       /* FUA: a commit must follow */
	bool append;       /* of those that go one at a time */
	struct list link;  /* waits for its turn among them */
	uint64_t failures; /* of flushes, when it was submitted */
	int error;
	union {
		struct commit_waiter commit;
		struct placement_waiter hungry;
	} wait;
	struct piece few[OP_PIECES];
};

struct pool_op *op_new(struct pool *p, struct store_io *io);
/* Append a piece. 0 or -ENOMEM. */
int op_add(struct pool_op *op, uint64_t logical, uint64_t physical,
	uint64_t length, enum piece_kind kind);
/* Send all pieces to the store; `done` when they are back (never inside). */
void op_submit(struct pool_op *op, enum store_op what, unsigned flags,
	void (*done)(struct pool_op *op));
/* Free it and answer: at once from a callback, or from a task. */
void op_end(struct pool_op *op, int error);
void op_end_later(struct pool_op *op, int error);
/* pool-append.c: must it wait for its turn? Then it goes on by itself. */
bool append_waits(struct pool_op *op);
/* One that was `append` has ended: the next. */
void append_ended(struct pool *p);
/* pool-io.c: its turn has come. */
void pool_write_begin(struct pool_op *op);
/* Answer when all that is recorded is durable. */
void op_commit(struct pool_op *op);

#endif
