/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export.c: the names under which the stores are served; server.h has the
 * rules of their lives.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "server.h"

/* A client that does not take its last answers has that long. */
#define GRACE_NS (10 * NSEC_PER_SEC)

static void sweep(struct server *s)
{
	for (unsigned i = 0; i < s->nworkers; i++)
		worker_sweep(&s->workers[i]);
}

static void on_grace(struct reactor_timer *timer)
{
	struct server_export *x =
		container_of(timer, struct server_export, grace);

	atomic_store(&x->killed, true);
	sweep(x->store->server);
}

static void export_free(struct server_export *x)
{
	struct server_store *st = x->store;

	if (x->export)
		engine_export_free(x->export);
	free(x->name);
	free(x->description);
	free(x);
	if (st)
		st->exports--;
}

static void free_posted(struct reactor_task *task)
{
	struct server_export *x =
		container_of(task, struct server_export, free_task);
	struct server_store *st = x->store;

	reactor_timer_cancel(st->server->workers[0].reactor, &x->grace);
	list_remove(&x->link);
	export_free(x);
	server_store_check(st);
}

/* --- opening and removing ------------------------------------------------- */

int export_open(struct server *s, struct server_store *st,
	const struct export_options *o, struct error *error)
{
	struct server_export *x = calloc(1, sizeof(*x));

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
	x->readonly = o->readonly;
	x->cache = o->cache;
	x->grace.fn = on_grace;
	x->free_task.fn = free_posted;
	x->store = st;
	st->exports++;
	SCOPED_LOCK(&s->lock);
	list_push_tail(&s->exports, &x->link);
	return 0;
}

void export_end(struct server_export *x)
{
	struct server *s = x->store->server;

	if (atomic_load(&x->ended))
		return;
	/* Who has got it but now is on its way to choose it, in a callback of
	 * a loop that sweeps after that. */
	atomic_store(&x->ended, true);
	reactor_timer_arm(s->workers[0].reactor, &x->grace, GRACE_NS);
	sweep(s);
}

void export_remove(struct server_export *x, bool end)
{
	struct server *s = x->store->server;

	pthread_mutex_lock(&s->lock);
	list_remove(&x->link);
	pthread_mutex_unlock(&s->lock);
	list_push_tail(&s->gone, &x->link);
	if (end)
		export_end(x);
	export_put(x);
}

struct server_export *export_find(struct server *s, const char *name)
{
	list_for_each (node, &s->exports) {
		struct server_export *x =
			list_entry(node, struct server_export, link);

		if (!strcmp(x->name, name))
			return x;
	}
	return NULL;
}

int export_describe(struct server_export *x, const char *description)
{
	char *copy = strdup(description);

	if (!copy)
		return -ENOMEM;
	SCOPED_LOCK(&x->store->server->lock);
	free(x->description);
	x->description = copy;
	return 0;
}

void export_move_last(struct server_export *x)
{
	struct server *s = x->store->server;
	SCOPED_LOCK(&s->lock);

	list_remove(&x->link);
	list_push_tail(&s->exports, &x->link);
}

/* --- using ---------------------------------------------------------------- */

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
	if (x && atomic_fetch_sub(&x->refs, 1) == 1)
		reactor_post(
			x->store->server->workers[0].reactor, &x->free_task);
}

const struct server_export *export_first(const struct server *s)
{
	return list_entry(s->exports.next, struct server_export, link);
}

static void close_exports(struct list *exports)
{
	list_for_each_safe (x, exports)
		export_free(list_entry(x, struct server_export, link));
	list_init(exports);
}

static void close_stores(struct list *stores)
{
	list_for_each_safe (st, stores)
		server_store_free(list_entry(st, struct server_store, link));
	list_init(stores);
}

void exports_close(struct server *s)
{
	close_exports(&s->exports);
	close_exports(&s->gone);
	close_stores(&s->stores);
	close_stores(&s->leaving);
}
