/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store.c: the stores: opened, flushed and closed while others go on.
 *
 * 1. What may block, opening and closing, is done on a helper thread.
 * 2. An engine is freed when nothing of it is queued on any loop: after its
 *    shutdown a task hops over all loops, behind whatever was posted before.
 * 3. A store that cannot be flushed is tried again, for as long as the server
 *    runs; at its end for shutdown-timeout.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "control.h"
#include "server.h"

/* --- open ----------------------------------------------------------------- */

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

void server_store_free(struct server_store *st)
{
	engine_close(st->engine);
	engine_config_free(&st->config);
	free(st->name);
	free(st);
}

int server_store_open(struct server *s, const struct store_options *o,
	struct server_store **out, struct error *error)
{
	struct server_store *st = calloc(1, sizeof(*st));
	int r;

	if (!st)
		return error_set(error, -ENOMEM, "no memory");
	list_init(&st->link);
	st->server = s;
	st->name = strdup(o->name);
	st->config = o->config;
	st->config.store = strdup(o->config.store);
	r = st->name && st->config.store
		? open_engine(st, &st->config, error)
		: error_set(error, -ENOMEM, "no memory");
	if (r)
		server_store_free(st);
	else
		*out = st;
	return r;
}

void server_store_add(struct server_store *st)
{
	const struct control_store control = {st->engine, st->name};
	struct server *s = st->server;

	if (control_add(s->control, &control))
		log_error("store %s: no memory to report on it", st->name);
	SCOPED_LOCK(&s->lock);
	list_push_tail(&s->stores, &st->link);
}

struct server_store *server_store_find(struct server *s, const char *name)
{
	list_for_each (node, &s->stores) {
		struct server_store *st =
			list_entry(node, struct server_store, link);

		if (!strcmp(st->name, name))
			return st;
	}
	return NULL;
}

/* --- close ---------------------------------------------------------------- */

static void close_run(struct reactor_work *work)
{
	struct server_store *st =
		container_of(work, struct server_store, close);

	engine_close(st->engine);
	st->engine = NULL;
}

static void close_done(struct reactor_work *work)
{
	struct server_store *st =
		container_of(work, struct server_store, close);
	struct server *s = st->server;

	log_info("store %s: flushed and closed", st->name);
	list_remove(&st->link);
	server_store_free(st);
	reload_store_closed(s);
	server_check_end(s);
}

/* On each loop in turn, loop 0 last: now nothing can be queued. */
static void close_hop(struct reactor_task *task)
{
	struct server_store *st = container_of(task, struct server_store, hop);
	struct server *s = st->server;

	if (st->hops < s->nworkers) {
		unsigned next = ++st->hops % s->nworkers;

		reactor_post(s->workers[next].reactor, &st->hop);
		return;
	}
	engine_rest(st->engine);
	st->close.run = close_run;
	st->close.done = close_done;
	reactor_work(s->workers[0].reactor, &st->close);
}

static void on_flushed(struct engine *e, int error, void *arg)
{
	struct server_store *st = arg;
	struct server *s = st->server;

	(void)e;
	if (error) {
		log_error("not everything could be flushed: store %s: %s",
			st->name,
			error == -ETIMEDOUT ? "shutdown-timeout has passed"
					    : strerror(-error));
		s->result = SERVER_EXIT_IO;
		s->gave_up |= error == -ETIMEDOUT;
	}
	st->state = STORE_CLOSING;
	if (s->stopping) {
		st->flushed = true;
		server_check_end(s);
		return;
	}
	st->hop.fn = close_hop;
	reactor_post(s->workers[0].reactor, &st->hop);
}

static void shut_down(struct server_store *st, uint64_t timeout_ns)
{
	st->state = STORE_FLUSHING;
	engine_shutdown(st->engine, timeout_ns, on_flushed, st);
}

void server_store_check(struct server_store *st)
{
	if (st->state == STORE_WAITING && !st->exports && !st->server->stopping)
		shut_down(st, 0);
}

void server_store_remove(struct server_store *st)
{
	struct server *s = st->server;

	control_forget(s->control, st->engine);
	pthread_mutex_lock(&s->lock);
	list_remove(&st->link);
	pthread_mutex_unlock(&s->lock);
	list_push_tail(&s->leaving, &st->link);
	st->state = STORE_WAITING;
	server_store_check(st);
}

/* --- the end -------------------------------------------------------------- */

static void shut_down_all(struct server *s, struct list *stores)
{
	uint64_t timeout = s->options->shutdown_timeout_ns;

	list_for_each (node, stores) {
		struct server_store *st =
			list_entry(node, struct server_store, link);

		if (st->state == STORE_FLUSHING)
			engine_shutdown_within(st->engine, timeout);
		else if (st->state != STORE_CLOSING)
			shut_down(st, timeout);
	}
}

void server_stores_shutdown(struct server *s)
{
	shut_down_all(s, &s->stores);
	shut_down_all(s, &s->leaving);
}

static bool all_done(const struct list *stores)
{
	list_for_each (node, stores) {
		if (!list_entry(node, struct server_store, link)->flushed)
			return false;
	}
	return true;
}

bool server_stores_done(const struct server *s)
{
	return all_done(&s->stores) && all_done(&s->leaving);
}
