/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * placement.h: where on the store each block of the device lies.
 *
 * Speaks store_io in the device's offsets. The raw placement maps one to
 * one. Rules as in store.h; a placement adds none and takes none away.
 */
#ifndef WEIR_PLACEMENT_PLACEMENT_H
#define WEIR_PLACEMENT_PLACEMENT_H

#include "../store/store.h"

struct placement;

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
};

/*
 * Put a placement on a store, which it owns from then on, also when this
 * fails. Blocks. 0 or a negative errno with `error` filled.
 */
int placement_open(
	struct store *store, struct placement **out, struct error *error);
/* Nothing may be in flight; closes the store. Accepts NULL. Blocks. */
void placement_close(struct placement *p);

static inline void placement_submit(struct placement *p, struct store_io *io)
{
	p->ops->submit(p, io);
}

#endif
