/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * placement.c: from a spec to a placement on an open store.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cleanup.h"
#include "pool-impl.h"
#include "raw.h"

/* The spec of a pool's store: what follows "pool:", brackets taken off. NULL:
 * no memory. */
static char *inner_spec(const char *spec)
{
	size_t n;

	spec += strlen("pool:");
	n = strlen(spec);
	if (n > 1 && spec[0] == '[' && spec[n - 1] == ']')
		return strndup(spec + 1, n - 2);
	return strdup(spec);
}

static int make_pool(const struct placement_config *config, struct store *store,
	struct error *error)
{
	struct pool_geometry g = {.logical_size = config->fresh};

	return config->fresh ? pool_format(store, &g, error) : 0;
}

static int open_pool(const struct placement_config *config,
	struct placement **out, struct error *error)
{
	CLEANUP_FREE char *inner = inner_spec(config->spec);
	CLEANUP_FREE char *what = NULL;
	struct store *store;
	int err;

	if (!inner)
		return error_set(error, -ENOMEM, "out of memory");
	err = store_open_on(inner, config->flags, config->home, &store, error);
	if (err)
		return err;
	err = make_pool(config, store, error);
	if (err)
		store_close(store);
	else
		err = pool_open(config, store, out, error);
	if (err && asprintf(&what, "store %s", config->spec) > 0)
		error_prefix(error, err, what);
	return err;
}

int placement_open(const struct placement_config *config,
	struct placement **out, struct error *error)
{
	struct store *store;
	int err;

	if (!strncmp(config->spec, "pool:", 5))
		return open_pool(config, out, error);
	err = store_open_on(
		config->spec, config->flags, config->home, &store, error);
	return err ? err : raw_open(store, out, error);
}

void placement_close(struct placement *p)
{
	if (p)
		p->ops->close(p);
}
