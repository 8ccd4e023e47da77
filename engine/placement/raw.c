/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw.c: block n of the device is block n of the store, so the image stays an
 * ordinary raw image.
 */
#include <errno.h>
#include <stdlib.h>

#include "raw.h"

static void raw_submit(struct placement *p, struct store_io *io)
{
	store_submit(p->store, io);
}

static bool raw_sparse(struct placement *p, uint64_t offset, uint64_t end)
{
	return store_sparse(p->store, offset, end);
}

static void raw_close(struct placement *p)
{
	store_close(p->store);
	free(p);
}

static const struct placement_ops raw_ops = {
	.kind = "raw",
	.submit = raw_submit,
	.close = raw_close,
	.sparse = raw_sparse,
};

int raw_open(struct store *store, struct placement **out, struct error *error)
{
	struct placement *p = calloc(1, sizeof(*p));

	if (!p) {
		store_close(store);
		return error_set(error, -ENOMEM, "out of memory");
	}
	p->ops = &raw_ops;
	p->store = store;
	p->info = store->info;
	*out = p;
	return 0;
}
