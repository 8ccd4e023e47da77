/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reload.c: the configuration again, while clients are served.
 *
 *	helper: parse -> loop 0: compare -> helper: open what is new
 *	  -> loop 0: change, add and remove
 *	  ... a store is closed -> helper: open what waited for that -> loop 0: add
 *
 *  1. Until all that is new has been opened nothing is changed: an error leaves
 *     everything as it was.
 *  2. One reload at a time. What the last good one said is `wanted`; a store of
 *     it that could not be opened yet, for an older one has the same name or
 *     place and is being closed, is opened when that is gone.
 *  3. Connections are ended where their export is gone, or is of another store
 *     now; where it is another view of the same they go on as they were told.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "option-keys.h"
#include "reload.h"
#include "tls.h"

/* --- the end -------------------------------------------------------------- */

static void open_late(struct server *s);

static void finish(struct reload *r)
{
	struct server *s = r->server;

	if (r->options) {
		options_free(r->options);
		free(r->options);
	}
	errors_free(&r->errors);
	free(r->plan);
	free(r);
	s->reload = NULL;
	server_check_end(s);
	if (s->stopping)
		return;
	open_late(s);
	if (s->reload_again && !s->reload) {
		s->reload_again = false;
		reload_start(s);
	}
}

static void refuse(struct reload *r)
{
	errors_log(&r->errors);
	log_error("%s: nothing is changed", r->server->options->config);
	for (unsigned i = 0; i < r->nplan; i++) {
		if (r->plan[i].opened)
			server_store_remove(r->plan[i].opened);
	}
	finish(r);
}

static struct reload *reload_new(struct server *s)
{
	struct reload *r = calloc(1, sizeof(*r));

	if (!r) {
		log_error("no memory to reload");
		return NULL;
	}
	r->server = s;
	s->reload = r;
	return r;
}

static void work(struct reload *r, void (*run)(struct reactor_work *work),
	void (*done)(struct reactor_work *work))
{
	r->work.run = run;
	r->work.done = done;
	reactor_work(r->server->workers[0].reactor, &r->work);
}

/* --- opening -------------------------------------------------------------- */

static void open_run(struct reactor_work *w)
{
	struct reload *r = container_of(w, struct reload, work);

	for (unsigned i = 0; i < r->nplan; i++) {
		struct reload_store *p = &r->plan[i];
		struct error error;
		int err;

		if (p->what != RELOAD_OPEN)
			continue;
		err = server_store_open(
			r->server, p->options, &p->opened, &error);
		if (err)
			errors_add(&r->errors, err, "%s", error.text);
	}
}

static void add_opened(struct reload *r)
{
	for (unsigned i = 0; i < r->nplan; i++) {
		struct reload_store *p = &r->plan[i];

		if (!p->opened)
			continue;
		server_store_add(p->opened);
		log_info("store %s: opened", p->opened->name);
		p->opened = NULL;
	}
}

static void open_late_done(struct reactor_work *w)
{
	struct reload *r = container_of(w, struct reload, work);

	errors_log(&r->errors);
	if (r->errors.n)
		log_error(
			"not all stores are served: correct that, and reload");
	add_opened(r);
	reload_exports(r->server, r->server->wanted);
	finish(r);
}

/* Open what had to wait for another to be closed. */
static void open_late(struct server *s)
{
	struct reload *r;

	if (s->stopping || s->reload || !s->late)
		return;
	s->late = false;
	r = reload_new(s);
	if (!r)
		return;
	if (reload_plan(r, s->wanted)) {
		work(r, open_run, open_late_done);
	} else {
		free(r->plan);
		free(r);
		s->reload = NULL;
	}
}

void reload_store_closed(struct server *s)
{
	s->late = true;
	open_late(s);
}

/* --- applying ------------------------------------------------------------- */

static void reload_tls(struct server *s)
{
	struct error error;

	if (!s->tls)
		return;
	if (tls_reload(s->tls, &error))
		log_error("%s; going on with what was read before", error.text);
	else
		log_info("certificates and keys are read again");
}

/* Change what is live in a store that stays. It was asked before. */
static void change_store(struct server_store *st, const struct reload_store *p)
{
	struct engine_config config = p->options->config;
	struct error error;
	char keys[256];

	engine_config_diff(&st->config, &config, true, keys, sizeof(keys));
	if (engine_adopt(st->engine, &st->config, &config, true, &error)) {
		log_error("store %s: %s", st->name, error.text);
		return;
	}
	log_info("store %s: changed: %s", st->name, keys);
	config.store = st->config.store;
	st->config = config;
}

/* It has to be closed first. */
static void remove_store(struct server_store *st, const char *why)
{
	log_info("store %s: %s; writing back what is dirty", st->name, why);
	server_store_remove(st);
}

static void apply_stores(struct reload *r)
{
	for (unsigned i = 0; i < r->nplan; i++) {
		struct reload_store *p = &r->plan[i];

		if (p->what == RELOAD_CHANGE)
			change_store(p->old, p);
		else if (p->what == RELOAD_REOPEN)
			remove_store(p->old, "is opened anew");
		else if (p->what == RELOAD_HELD)
			log_warning("store %s: %s: not changed while clients "
				    "are connected to it; reload again when "
				    "they have gone",
				p->old->name, p->keys);
	}
	list_for_each_safe (node, &r->server->stores) {
		struct server_store *st =
			list_entry(node, struct server_store, link);

		if (!options_find_store(r->options, st->name))
			remove_store(st, "removed");
	}
}

static void set_wanted(struct server *s, struct options *o)
{
	if (s->wanted != s->options) {
		options_free(s->wanted);
		free(s->wanted);
	}
	s->wanted = o;
}

static void apply(struct reload *r)
{
	struct server *s = r->server;
	char keys[512];

	reload_end_exports(r);
	apply_stores(r);
	add_opened(r);
	if (options_change(s->options, r->options, keys, sizeof(keys)))
		log_warning("%s: to take effect, the server has to be started "
			    "again",
			keys);
	listen_limit_changed(s);
	set_wanted(s, r->options);
	r->options = NULL;
	reload_exports(s, s->wanted);
	reload_tls(s);
	s->late = true;
	log_info("%s is read again", s->options->config);
	finish(r);
}

static void open_done(struct reactor_work *w)
{
	struct reload *r = container_of(w, struct reload, work);

	if (r->errors.n || r->server->stopping)
		refuse(r);
	else
		apply(r);
}

/* --- parsing -------------------------------------------------------------- */

static void parse_run(struct reactor_work *w)
{
	struct reload *r = container_of(w, struct reload, work);
	const struct options *now = r->server->options;

	r->options = calloc(1, sizeof(*r->options));
	if (!r->options) {
		errors_add(&r->errors, -ENOMEM, "no memory");
		return;
	}
	options_parse(r->options, now->argc, now->argv, &r->errors);
}

static void parse_done(struct reactor_work *w)
{
	struct reload *r = container_of(w, struct reload, work);

	if (!r->errors.n && !r->server->stopping)
		reload_plan(r, r->options);
	if (r->errors.n || r->server->stopping)
		refuse(r);
	else
		work(r, open_run, open_done);
}

void reload_start(struct server *s)
{
	struct reload *r;

	if (s->stopping)
		return;
	if (!s->options->config && s->tls) {
		reload_tls(s);
	} else if (!s->options->config) {
		log_info("SIGHUP: there is nothing to read again");
	} else if (s->reload) {
		s->reload_again = true;
	} else {
		r = reload_new(s);
		if (r)
			work(r, parse_run, parse_done);
	}
}
