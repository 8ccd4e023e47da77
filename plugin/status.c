/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.c: the control socket, with what the plugin adds to the counters.
 *
 * It is answered on loop 0; the list of connections is read under its lock.
 */
#include "base/json.h"
#include "control.h"
#include "plugin.h"

/* "exports": the one there is. */
static void write_exports(struct json *j, void *arg)
{
	struct plugin *p = arg;
	struct engine_info info;
	unsigned n = 0;

	engine_export_info(p->export_rw, &info);
	pthread_mutex_lock(&p->lock);
	list_for_each (node, &p->connections)
		n++;
	pthread_mutex_unlock(&p->lock);
	json_object(j, NULL);
	json_string(j, "name", "");
	json_string(j, "store", p->config.store);
	json_uint(j, "size_bytes", info.size);
	json_bool(j, "readonly", info.readonly);
	json_uint(j, "connections", n);
	json_end_object(j);
}

/* "clients": each connection. */
static void write_clients(struct json *j, void *arg)
{
	struct plugin *p = arg;

	pthread_mutex_lock(&p->lock);
	list_for_each (node, &p->connections) {
		const struct connection *c =
			list_entry(node, struct connection, link);

		json_object(j, NULL);
		json_string(j, "client", c->identity);
		json_string(j, "export", "");
		json_bool(j, "readonly", c->info.readonly);
		json_end_object(j);
	}
	pthread_mutex_unlock(&p->lock);
}

int status_open(struct plugin *p, struct error *error)
{
	const struct control_store store = {p->engine, p->config.store};
	const struct control_section sections[] = {
		{"exports", write_exports, p},
		{"clients", write_clients, p},
	};
	const struct control_config config = {
		.path = p->control_path,
		.reactor = p->loops.reactor[0],
		.stores = &store,
		.nstores = 1,
		.sections = sections,
		.nsections = sizeof(sections) / sizeof(sections[0]),
	};

	return control_open(&p->control, &config, error);
}

void status_close(struct plugin *p)
{
	control_close(p->control);
	p->control = NULL;
}
