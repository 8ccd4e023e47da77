/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h: a socket to ask a running process of its state, and to change it.
 *
 * A unix socket, mode 0600. The client sends a line with a JSON object, and
 * is answered with a line with a JSON object; then it may send another.
 *
 *   {"cmd":"stats"}   {"stores":[{"name":...}],"exports":[...],...}
 *   {"cmd":"reset"}   {"ok":true}
 *   {"cmd":"drop"}    {"freed_bytes":N}
 *                     with "store":"NAME" of that one only
 *   {"cmd":"set","set":["dirty-limit=64M","STORE:subpage=off"]}
 *                     {"ok":true}, or an error and nothing is changed
 *   {"cmd":"dance"}   {"error":"unknown command: dance"}
 *
 * The one header of the engine besides engine.h that front ends include: the
 * server and the plugin have the same socket. Runs on one live reactor.
 */
#ifndef WEIR_CONTROL_H
#define WEIR_CONTROL_H

#include "engine.h"

struct control;
struct json_t;

/* A store to report on. */
struct control_store {
	struct engine *engine;
	const char *name;
};

/* What the front end adds to the stats: the member `name`, whose value `make`
 * returns (jansson's, a new reference; NULL: no memory). Called on the control
 * socket's loop. */
struct control_section {
	const char *name;
	struct json_t *(*make)(void *arg);
	void *arg;
};

struct control_config {
	const char *path;
	struct reactor *reactor;
	const struct control_store *stores;
	unsigned nstores;
	const struct control_section *sections;
	unsigned nsections;
};

/*
 * Open the socket. Copies the arrays; what they point to must outlive it.
 * 0, or a negative errno with `error` filled. Blocks for a moment; on the
 * reactor's thread or before it runs.
 */
int control_open(struct control **out, const struct control_config *config,
	struct error *error);

/* A store comes, with its name, or goes, before either is freed. On the loop.
 * Accept NULL. -ENOMEM: it is not known. */
int control_add(struct control *ctl, const struct control_store *store);
void control_forget(struct control *ctl, const struct engine *e);

/* Close it and its connections. The reactor's thread, or when it has ended.
 * Accepts NULL. */
void control_close(struct control *ctl);

#endif
