/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status.c: the control socket, with what the plugin adds to the counters.
 *
 * It is answered on loop 0; the list of connections is read under its lock.
 */
#include <jansson.h>

#include "control.h"
#include "plugin.h"

/* "exports": the one there is. */
static json_t *make_exports(void *arg)
{
	struct plugin *p = arg;
	struct engine_info info;
	json_int_t n = 0;

	engine_export_info(p->export_rw, &info);
	pthread_mutex_lock(&p->lock);
	list_for_each (node, &p->connections)
		n++;
	pthread_mutex_unlock(&p->lock);
	return json_pack("[{s:s, s:s, s:I, s:b, s:I}]", "name", "", "store",
		p->config.store, "size_bytes", (json_int_t)info.size,
		"readonly", info.readonly, "connections", n);
}

/* "clients": each connection. */
static json_t *make_clients(void *arg)
{
	struct plugin *p = arg;
	json_t *all = json_array();

	pthread_mutex_lock(&p->lock);
	list_for_each (node, &p->connections) {
		const struct connection *c =
			list_entry(node, struct connection, link);

		json_array_append_new(all,
			json_pack("{s:s, s:s, s:b}", "client", c->identity,
				"export", "", "readonly", c->info.readonly));
	}
	pthread_mutex_unlock(&p->lock);
	return all;
}

int status_open(struct plugin *p, struct error *error)
{
	const struct control_store store = {p->engine, p->config.store};
	const struct control_section sections[] = {
		{"exports", make_exports, p},
		{"clients", make_clients, p},
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
