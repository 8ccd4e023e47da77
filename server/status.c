/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.c: what the control socket tells of exports and clients.
 *
 * Runs on loop 0; connections of other loops stay in the list, and their
 * strings unchanged, while the lock is held.
 */
#include "base/json.h"
#include "conn.h"
#include "control.h"

static void write_exports(struct json *j, void *arg)
{
	const struct server *s = arg;

	for (unsigned i = 0; i < s->nexports; i++) {
		const struct server_export *x = &s->exports[i];

		json_object(j, NULL);
		json_string(j, "name", x->name);
		json_uint(j, "size", x->info.size);
		json_bool(j, "readonly", x->info.readonly);
		json_uint(j, "connections", atomic_load(&x->connections));
		json_end_object(j);
	}
}

static void counter(struct json *j, const char *key, _Atomic uint64_t *value)
{
	json_uint(j, key, atomic_load_explicit(value, memory_order_relaxed));
}

static void write_clients(struct json *j, void *arg)
{
	struct server *s = arg;

	pthread_mutex_lock(&s->lock);
	list_for_each (node, &s->all) {
		struct conn *c = list_entry(node, struct conn, all_link);

		json_object(j, NULL);
		json_string(j, "peer", c->peer);
		json_string(j, "client", c->identity);
		json_uint(j, "loop", (uint64_t)(c->worker - s->workers));
		counter(j, "requests", &c->stats.requests);
		counter(j, "read_bytes", &c->stats.read_bytes);
		counter(j, "write_bytes", &c->stats.write_bytes);
		counter(j, "errors", &c->stats.errors);
		counter(j, "inflight_bytes", &c->stats.inflight_bytes);
		json_end_object(j);
	}
	pthread_mutex_unlock(&s->lock);
}

int status_open(struct server *s, struct error *error)
{
	const struct control_store store = {
		.engine = s->engine,
		.name = s->options->config.store,
	};
	const struct control_section sections[] = {
		{"exports", write_exports, s},
		{"clients", write_clients, s},
	};
	const struct control_config config = {
		.path = s->options->control,
		.reactor = s->workers[0].reactor,
		.stores = &store,
		.nstores = 1,
		.sections = sections,
		.nsections = 2,
	};

	if (!config.path)
		return 0;
	return control_open(&s->control, &config, error);
}
