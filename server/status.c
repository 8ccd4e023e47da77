/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.c: what the control socket tells of exports and clients.
 *
 * Runs on loop 0; connections of other loops stay in the list, and their
 * strings unchanged, while the lock is held.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "conn.h"
#include "control.h"

static json_t *make_exports(void *arg)
{
	const struct server *s = arg;
	json_t *all = json_array();

	list_for_each (node, &s->exports) {
		struct server_export *x =
			list_entry(node, struct server_export, link);

		json_array_append_new(all,
			json_pack("{s:s, s:s, s:s, s:I, s:b, s:I}", "name",
				x->name, "description", x->description, "store",
				x->store->name, "size_bytes",
				(json_int_t)x->info.size, "readonly",
				x->info.readonly, "connections",
				(json_int_t)atomic_load(&x->connections)));
	}
	return all;
}

static json_int_t counter(_Atomic uint64_t *value)
{
	return (json_int_t)atomic_load_explicit(value, memory_order_relaxed);
}

static json_t *make_clients(void *arg)
{
	struct server *s = arg;
	json_t *all = json_array();

	pthread_mutex_lock(&s->lock);
	list_for_each (node, &s->all) {
		struct conn *c = list_entry(node, struct conn, all_link);

		json_array_append_new(all,
			json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I}",
				"peer", c->peer, "client", c->identity, "loop",
				(json_int_t)(c->worker - s->workers),
				"requests", counter(&c->stats.requests),
				"read_bytes", counter(&c->stats.read_bytes),
				"write_bytes", counter(&c->stats.write_bytes),
				"errors", counter(&c->stats.errors),
				"inflight_bytes",
				counter(&c->stats.inflight_bytes)));
	}
	pthread_mutex_unlock(&s->lock);
	return all;
}

static unsigned list_stores(struct server *s, struct control_store *all)
{
	unsigned n = 0;

	list_for_each (node, &s->stores) {
		struct server_store *st =
			list_entry(node, struct server_store, link);

		if (all)
			all[n] = (struct control_store){st->engine, st->name};
		n++;
	}
	return n;
}

int status_open(struct server *s, struct error *error)
{
	const struct control_section sections[] = {
		{"exports", make_exports, s},
		{"clients", make_clients, s},
	};
	struct control_config config = {
		.path = s->options->control,
		.reactor = s->workers[0].reactor,
		.nstores = list_stores(s, NULL),
		.sections = sections,
		.nsections = 2,
	};
	struct control_store *stores;
	int r;

	if (!config.path)
		return 0;
	stores = calloc(config.nstores, sizeof(*stores));
	if (!stores)
		return error_set(error, -ENOMEM, "no memory");
	list_stores(s, stores);
	config.stores = stores;
	r = control_open(&s->control, &config, error);
	free(stores);
	return r;
}
