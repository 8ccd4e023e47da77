/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options-lists.c: the stores and exports of the options, made and found.
 */
#include <stdlib.h>
#include <string.h>

#include "options.h"

/* Room for one more pointer; NULL: no memory. */
static void *grow(void *array, unsigned n)
{
	return reallocarray(array, n + 1, sizeof(void *));
}

struct store_options *options_add_store(struct options *o)
{
	struct store_options **all = grow(o->stores, o->nstores), *s;

	if (!all)
		return NULL;
	o->stores = all;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	engine_config_init(&s->config);
	return all[o->nstores++] = s;
}

struct export_options *options_add_export(struct options *o)
{
	struct export_options **all = grow(o->exports, o->nexports), *x;

	if (!all)
		return NULL;
	o->exports = all;
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	engine_config_init(&x->keys);
	return all[o->nexports++] = x;
}

struct store_options *options_find_store(
	const struct options *o, const char *name)
{
	for (unsigned i = 0; i < o->nstores; i++) {
		if (!strcmp(o->stores[i]->name, name))
			return o->stores[i];
	}
	return NULL;
}

struct export_options *options_find_export(
	const struct options *o, const char *name)
{
	for (unsigned i = 0; i < o->nexports; i++) {
		if (!strcmp(o->exports[i]->name, name))
			return o->exports[i];
	}
	return NULL;
}
