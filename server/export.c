/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export.c: the stores, and the names they are served under; server.h has the
 * rules of their lives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server.h"

/* --- stores --------------------------------------------------------------- */

static int open_engine(struct server_store *st, const struct engine_config *c,
	struct error *error)
{
	struct server *s = st->server;
	struct reactor **loops = calloc(s->nworkers, sizeof(struct reactor *));
	int r;

	if (!loops)
		return error_set(error, -ENOMEM, "no memory");
	for (unsigned i = 0; i < s->nworkers; i++)
		loops[i] = s->workers[i].reactor;
	r = engine_open(c, loops, s->nworkers, &st->engine, error);
	free(loops);
	return r;
}

static void store_free(struct server_store *st)
{
	engine_close(st->engine);
	free(st->name);
	free(st);
}

int export_open_store(
	struct server *s, const struct store_options *o, struct error *error)
{
	struct server_store *st = calloc(1, sizeof(*st));
	int r;

	if (!st)
		return error_set(error, -ENOMEM, "no memory");
	st->server = s;
	st->name = strdup(o->name);
	r = st->name ? open_engine(st, &o->config, error)
		     : error_set(error, -ENOMEM, "no memory");
	if (r) {
		store_free(st);
		return r;
	}
	SCOPED_LOCK(&s->lock);
	list_push_tail(&s->stores, &st->link);
	return 0;
}

static struct server_store *find_store(struct server *s, const char *name)
{
	list_for_each (node, &s->stores) {
		struct server_store *st =
			list_entry(node, struct server_store, link);

		if (!strcmp(st->name, name))
			return st;
	}
	return NULL;
}

/* --- exports -------------------------------------------------------------- */

static void export_free(struct server_export *x)
{
	if (x->export)
		engine_export_free(x->export);
	if (x->store)
		x->store->exports--;
	free(x->name);
	free(x->description);
	free(x);
}

int export_open(
	struct server *s, const struct export_options *o, struct error *error)
{
	struct server_export *x = calloc(1, sizeof(*x));
	struct server_store *st = find_store(s, o->store->name);

	if (!x)
		return error_set(error, -ENOMEM, "no memory");
	x->id = ++s->last_id;
	x->name = strdup(o->name);
	x->name_length = strlen(o->name);
	x->description = strdup(o->description ? o->description : "");
	x->export = engine_export_new(st->engine, o->readonly, o->cache);
	if (!x->name || !x->description || !x->export) {
		export_free(x);
		return error_set(error, -ENOMEM, "no memory");
	}
	engine_export_info(x->export, &x->info);
	atomic_init(&x->refs, 1);
	x->store = st;
	st->exports++;
	SCOPED_LOCK(&s->lock);
	list_push_tail(&s->exports, &x->link);
	return 0;
}

/* Is it the one export there is? */
static bool is_only(const struct server *s, const struct server_export *x)
{
	return s->exports.next == &x->link && s->exports.prev == &x->link;
}

static bool is_named(
	const struct server_export *x, const char *name, size_t length)
{
	return x->name_length == length && !memcmp(x->name, name, length);
}

struct server_export *export_get(
	struct server *s, const char *name, size_t length)
{
	SCOPED_LOCK(&s->lock);
	list_for_each (node, &s->exports) {
		struct server_export *x =
			list_entry(node, struct server_export, link);

		if (is_named(x, name, length) || (!length && is_only(s, x))) {
			atomic_fetch_add(&x->refs, 1);
			return x;
		}
	}
	return NULL;
}

void export_put(struct server_export *x)
{
	if (x)
		atomic_fetch_sub(&x->refs, 1);
}

const struct server_export *export_first(const struct server *s)
{
	return list_entry(s->exports.next, struct server_export, link);
}

void exports_close(struct server *s)
{
	list_for_each_safe (x, &s->exports)
		export_free(list_entry(x, struct server_export, link));
	list_for_each_safe (st, &s->stores)
		store_free(list_entry(st, struct server_store, link));
	list_init(&s->exports);
	list_init(&s->stores);
}
