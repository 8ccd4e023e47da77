/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reload.h: between the steps of a reload (reload.c) and what it comes to
 * (reload-plan.c). Loop 0, but where a helper thread is said.
 */
#ifndef WEIR_SERVER_RELOAD_H
#define WEIR_SERVER_RELOAD_H

#include "server.h"

enum reload_what {
	RELOAD_KEEP,
	RELOAD_OPEN,
	RELOAD_CHANGE, /* live keys, of a store that goes on */
	RELOAD_REOPEN, /* others, and nobody is there */
	RELOAD_HELD,   /* others, and somebody is */
	RELOAD_LATE,   /* to be opened when another has been closed */
};

/* What becomes of a store that is wanted. */
struct reload_store {
	const struct store_options *options;
	enum reload_what what;
	struct server_store *old;    /* or NULL */
	struct server_store *opened; /* in no list yet */
	char keys[256];              /* that differ and are not live */
};

struct reload {
	struct server *server;
	struct reactor_work work;
	struct options *options; /* owned; read anew, or NULL */
	struct errors errors;
	struct reload_store *plan; /* owned */
	unsigned nplan;
};

/* Fill the plan, for the stores of `o`; what cannot be is in r->errors. How
 * many are to be opened now. */
unsigned reload_plan(struct reload *r, const struct options *o);

/* End the exports that the plan leaves without their store, or r->options does
 * not have. */
void reload_end_exports(struct reload *r);

/* Make the exports of the stores that are open those of `o`. */
void reload_exports(struct server *s, const struct options *o);

#endif
