/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reload-plan.c: what there is against what is wanted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reload.h"

/* --- stores --------------------------------------------------------------- */

/* Does a client have an export of it? */
static bool is_used(struct server_store *st)
{
	unsigned listed = 0;

	list_for_each (node, &st->server->exports) {
		struct server_export *x =
			list_entry(node, struct server_export, link);

		if (x->store != st)
			continue;
		listed++;
		if (atomic_load(&x->refs) > 1)
			return true;
	}
	return st->exports > listed;
}

static bool in_the_way(
	const struct server_store *st, const struct store_options *wanted)
{
	return !strcmp(st->name, wanted->name) ||
		!strcmp(st->config.store, wanted->config.store);
}

/* Is there one of that name or place that has to be closed before? */
static bool has_to_wait(struct server *s, const struct options *o,
	const struct store_options *wanted)
{
	list_for_each (node, &s->leaving) {
		if (in_the_way(list_entry(node, struct server_store, link),
			    wanted))
			return true;
	}
	list_for_each (node, &s->stores) {
		struct server_store *st =
			list_entry(node, struct server_store, link);

		if (in_the_way(st, wanted) && !options_find_store(o, st->name))
			return true;
	}
	return false;
}

static enum reload_what compare(struct reload *r, struct reload_store *p)
{
	const struct engine_config *was = &p->old->config,
				   *is = &p->options->config;
	struct error error;
	char live[256];

	if (engine_config_diff(was, is, false, p->keys, sizeof(p->keys)))
		return is_used(p->old) ? RELOAD_HELD : RELOAD_REOPEN;
	if (!engine_config_diff(was, is, true, live, sizeof(live)))
		return RELOAD_KEEP;
	if (engine_adopt(p->old->engine, was, is, false, &error))
		errors_add(&r->errors, -EINVAL, "%s:%u: [store %s]: %s",
			r->server->options->config, p->options->line,
			p->old->name, error.text);
	return RELOAD_CHANGE;
}

unsigned reload_plan(struct reload *r, const struct options *o)
{
	unsigned n = 0;

	r->plan = calloc(o->nstores ? o->nstores : 1, sizeof(*r->plan));
	if (!r->plan) {
		errors_add(&r->errors, -ENOMEM, "no memory");
		return 0;
	}
	for (unsigned i = 0; i < o->nstores; i++) {
		struct reload_store *p = &r->plan[r->nplan++];

		p->options = o->stores[i];
		p->old = server_store_find(r->server, p->options->name);
		if (p->old)
			p->what = compare(r, p);
		else if (has_to_wait(r->server, o, p->options))
			p->what = RELOAD_LATE;
		else
			p->what = RELOAD_OPEN;
		n += p->what == RELOAD_OPEN;
	}
	return n;
}

/* --- exports -------------------------------------------------------------- */

static bool is_reopened(const struct reload *r, const struct server_store *st)
{
	for (unsigned i = 0; i < r->nplan; i++) {
		if (r->plan[i].old == st)
			return r->plan[i].what == RELOAD_REOPEN;
	}
	return false;
}

/* Will it have the same store, and that be there? */
static bool goes_on(const struct reload *r, const struct server_export *x)
{
	const struct export_options *o =
		options_find_export(r->options, x->name);

	return o && !strcmp(o->store->name, x->store->name) &&
		!is_reopened(r, x->store);
}

void reload_end_exports(struct reload *r)
{
	struct server *s = r->server;

	list_for_each_safe (node, &s->exports) {
		struct server_export *x =
			list_entry(node, struct server_export, link);

		if (goes_on(r, x))
			continue;
		log_info("export \"%s\": removed; its clients are ended",
			x->name);
		export_remove(x, true);
	}
	/* Those that go on with what they were told before. */
	list_for_each (node, &s->gone) {
		struct server_export *x =
			list_entry(node, struct server_export, link);

		if (!goes_on(r, x))
			export_end(x);
	}
}

/* May the one there is stay? */
static bool is_same(
	const struct server_export *x, const struct export_options *o)
{
	return x->readonly == o->readonly && x->cache == o->cache;
}

static void update(struct server *s, const struct export_options *o)
{
	struct server_export *x = export_find(s, o->name);
	struct server_store *st = server_store_find(s, o->store->name);
	struct error error;

	if (!st)
		return; /* it comes with its store */
	if (x && is_same(x, o)) {
		if (export_describe(x, o->description ? o->description : ""))
			log_error("export \"%s\": no memory", o->name);
		export_move_last(x);
		return;
	}
	if (x) {
		log_info("export \"%s\": changed, for who connects from now on",
			o->name);
		export_remove(x, false);
	} else {
		log_info("export \"%s\": added", o->name);
	}
	if (export_open(s, st, o, &error))
		log_error("export \"%s\": %s", o->name, error.text);
}

void reload_exports(struct server *s, const struct options *o)
{
	for (unsigned i = 0; i < o->nexports; i++)
		update(s, o->exports[i]);
}
