/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * placement.h: where on the store each block of the device lies.
 *
 * Speaks store_io in the device's offsets. The raw placement maps one to
 * one. Rules as in store.h; a placement adds none and takes none away.
 */
#ifndef WEIR_PLACEMENT_PLACEMENT_H
#define WEIR_PLACEMENT_PLACEMENT_H

#include <stdatomic.h>

#include "../store/store.h"

struct placement;

/* What was asked of the store, by enum store_op. */
struct placement_counts {
	_Atomic(uint64_t) ops[STORE_STATUS + 1];
	_Atomic(uint64_t) bytes[STORE_STATUS + 1];
};

struct placement_ops {
	const char *kind;
	/* Start an io; loop thread of io->reactor; never blocks. */
	void (*submit)(struct placement *p, struct store_io *io);
	void (*close)(struct placement *p);
};

struct placement {
	const struct placement_ops *ops;
	struct store *store;
	struct store_info info; /* of the device as placed */
	struct placement_counts counts;
};

/*
 * Put a placement on a store, which it owns from then on, also when this
 * fails. Blocks. 0 or a negative errno with `error` filled.
 */
int placement_open(
	struct store *store, struct placement **out, struct error *error);
/* Nothing may be in flight; closes the store. Accepts NULL. Blocks. */
void placement_close(struct placement *p);

/* Start an io. Loop thread of io->reactor only; never blocks. */
static inline void placement_submit(struct placement *p, struct store_io *io)
{
	atomic_fetch_add_explicit(
		&p->counts.ops[io->op], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&p->counts.bytes[io->op], io->length, memory_order_relaxed);
	p->ops->submit(p, io);
}

#endif
