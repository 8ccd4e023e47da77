/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config-file.c: the file of --config.
 *
 *	[server]          option-keys.c's options, by their long names
 *	[store NAME]      the engine's keys
 *	[export NAME]     store=NAME, and how it is served; no NAME: the default
 *
 *  1. All that is wrong is told, each as "FILE:LINE: KEY=VALUE: why"; a section
 *     in error is not judged further.
 *  2. Sections may stand in any order; names are looked up at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spell.h"
#include "config-lines.h"
#include "option-keys.h"

#define GIVEN_MAX 128U /* keys of a section */

enum section {
	SECTION_NONE, /* before the first */
	SECTION_BAD,  /* what it says is not looked at */
	SECTION_SERVER,
	SECTION_STORE,
	SECTION_EXPORT,
};

struct config_file {
	struct options *o;
	struct errors *errors;
	const char *path;
	enum section section;
	struct store_options *store;
	struct export_options *export;
	unsigned server_line; /* of [server]; 0: not met yet */
	struct {
		char key[64];
		unsigned line;
	} given[GIVEN_MAX];
	unsigned ngiven;
};

/* A line of the file is wrong. */
#define COMPLAIN(f, line, fmt, ...)                                            \
	errors_add((f)->errors, -EINVAL, "%s:%u: " fmt, (f)->path, (line),     \
		__VA_ARGS__)

/* Note the nearest of some names to what was meant. */
struct guess {
	const char *meant, *nearest;
	unsigned best;
};

static void guess(struct guess *g, const char *name)
{
	if (spell_nearer(g->meant, name, &g->best))
		g->nearest = name;
}

/* --- sections ------------------------------------------------------------- */

static void begin_server(struct config_file *f, const char *name, unsigned line)
{
	if (*name) {
		COMPLAIN(f, line, "[server %s]: it has no name", name);
	} else if (f->server_line) {
		COMPLAIN(f, line, "[server]: given in line %u already",
			f->server_line);
	} else {
		f->server_line = line;
		f->section = SECTION_SERVER;
	}
}

static void begin_store(struct config_file *f, const char *name, unsigned line)
{
	struct store_options *s;
	struct error error;

	if (!*name) {
		COMPLAIN(f, line, "%s", "[store]: expected [store NAME]");
		return;
	}
	if (options_check_text("[store]: a name", name, &error)) {
		COMPLAIN(f, line, "%s", error.text);
		return;
	}
	s = options_find_store(f->o, name);
	if (s) {
		COMPLAIN(f, line, "[store %s]: given in line %u already", name,
			s->line);
		return;
	}
	f->store = s = options_add_store(f->o);
	if (!s || !(s->name = strdup(name))) {
		COMPLAIN(f, line, "%s", "no memory");
		return;
	}
	s->line = line;
	f->section = SECTION_STORE;
}

static void begin_export(struct config_file *f, const char *name, unsigned line)
{
	struct export_options *x;
	struct error error;

	if (options_check_text("[export]: a name", name, &error)) {
		COMPLAIN(f, line, "%s", error.text);
		return;
	}
	x = options_find_export(f->o, name);
	if (x) {
		COMPLAIN(f, line, "[export%s%s]: given in line %u already",
			*name ? " " : "", name, x->line);
		return;
	}
	f->export = x = options_add_export(f->o);
	if (!x || !(x->name = strdup(name))) {
		COMPLAIN(f, line, "%s", "no memory");
		return;
	}
	x->line = line;
	f->section = SECTION_EXPORT;
}

static const struct kind {
	const char *word;
	void (*begin)(struct config_file *f, const char *name, unsigned line);
} kinds[] = {
	{"server", begin_server},
	{"store", begin_store},
	{"export", begin_export},
};

#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static void unknown_section(
	struct config_file *f, const char *word, unsigned line)
{
	struct guess g = {word, NULL, SPELL_FAR};

	for (size_t i = 0; i < NKINDS; i++)
		guess(&g, kinds[i].word);
	if (g.nearest)
		COMPLAIN(f, line, "[%s]: unknown section, did you mean [%s]?",
			word, g.nearest);
	else
		COMPLAIN(f, line,
			"[%s]: unknown section; there are [server], [store "
			"NAME] and [export NAME]",
			word);
}

/* "WORD NAME", with blanks around and between. */
static void on_section(void *arg, const char *text, unsigned line)
{
	struct config_file *f = arg;
	char word[32];
	const char *name;
	size_t n;

	f->section = SECTION_BAD;
	f->ngiven = 0;
	if (!text)
		return;
	text += strspn(text, " \t");
	n = strcspn(text, " \t");
	name = text + n + strspn(text + n, " \t");
	snprintf(word, sizeof(word), "%.*s", (int)n, text);
	for (size_t i = 0; i < NKINDS; i++) {
		if (!strcmp(word, kinds[i].word)) {
			kinds[i].begin(f, name, line);
			return;
		}
	}
	unknown_section(f, word, line);
}

/* --- keys ----------------------------------------------------------------- */

static void unknown_key(struct config_file *f, struct guess *g,
	const char *value, const char *section, unsigned line)
{
	if (g->nearest)
		COMPLAIN(f, line, "%s=%s: unknown key, did you mean %s=?",
			g->meant, value, g->nearest);
	else
		COMPLAIN(f, line, "%s=%s: no key of [%s]", g->meant, value,
			section);
}

static void server_key(struct config_file *f, const char *key,
	const char *value, unsigned line)
{
	const struct option_key *k = option_find(key);
	struct guess g = {key, NULL, SPELL_FAR};
	char text[128];
	const char *why;

	if (k && k->scope == OPTION_SERVER) {
		why = option_set(f->o, k, value, text, sizeof(text));
		if (why)
			COMPLAIN(f, line, "%s=%s: %s", key, value, why);
		return;
	}
	for (unsigned i = 0; (k = option_key(i)); i++) {
		if (k->scope == OPTION_SERVER)
			guess(&g, k->name);
	}
	unknown_key(f, &g, value, "server", line);
}

static void store_key(struct config_file *f, const char *key, const char *value,
	unsigned line)
{
	struct error error;

	if (engine_config_set(&f->store->config, key, value, &error))
		COMPLAIN(f, line, "%s", error.text);
}

/* A value of the engine's keys, for this export only. */
static const char *export_engine_key(struct export_options *x, const char *key,
	const char *value, struct error *error)
{
	return engine_config_set(&x->keys, key, value, error) ? error->text
							      : NULL;
}

static const char *export_store(struct export_options *x, const char *key,
	const char *value, struct error *error)
{
	(void)key, (void)error;
	if (!*value)
		return "store=: empty";
	free(x->store_name);
	x->store_name = strdup(value);
	return x->store_name ? NULL : "no memory";
}

static const char *export_description(struct export_options *x, const char *key,
	const char *value, struct error *error)
{
	(void)key;
	if (options_check_text("description=: a description", value, error))
		return error->text;
	free(x->description);
	x->description = strdup(value);
	return x->description ? NULL : "no memory";
}

static const struct export_key {
	const char *name;
	const char *(*set)(struct export_options *x, const char *key,
		const char *value, struct error *error);
} export_keys[] = {
	{"store", export_store},
	{"description", export_description},
	{"readonly", export_engine_key},
	{"cache", export_engine_key},
};

static void export_key(struct config_file *f, const char *key,
	const char *value, unsigned line)
{
	struct guess g = {key, NULL, SPELL_FAR};
	struct error error;
	const char *why;

	for (size_t i = 0; i < sizeof(export_keys) / sizeof(export_keys[0]);
		i++) {
		const struct export_key *k = &export_keys[i];

		guess(&g, k->name);
		if (strcmp(key, k->name))
			continue;
		why = k->set(f->export, key, value, &error);
		if (why)
			COMPLAIN(f, line, "%s", why);
		return;
	}
	unknown_key(f, &g, value, "export", line);
}

/* Was it there before, in this section? */
static bool given_twice(struct config_file *f, const char *key,
	const char *value, unsigned line)
{
	const struct option_key *k = option_find(key);

	if (f->section == SECTION_SERVER && k && k->kind == OPTION_ALLOW)
		return false;
	if (f->section == SECTION_SERVER && k)
		key = k->name;
	for (unsigned i = 0; i < f->ngiven; i++) {
		if (strcmp(f->given[i].key, key))
			continue;
		COMPLAIN(f, line, "%s=%s: given in line %u already", key, value,
			f->given[i].line);
		return true;
	}
	if (f->ngiven < GIVEN_MAX) {
		snprintf(f->given[f->ngiven].key, sizeof(f->given->key), "%s",
			key);
		f->given[f->ngiven++].line = line;
	}
	return false;
}

static void on_key(void *arg, const char *key, const char *value, unsigned line)
{
	struct config_file *f = arg;

	if (f->section == SECTION_BAD)
		return;
	if (f->section == SECTION_NONE) {
		COMPLAIN(f, line, "%s=%s: before any [section]", key, value);
		return;
	}
	if (given_twice(f, key, value, line))
		return;
	if (f->section == SECTION_SERVER)
		server_key(f, key, value, line);
	else if (f->section == SECTION_STORE)
		store_key(f, key, value, line);
	else
		export_key(f, key, value, line);
}

/* --- all together --------------------------------------------------------- */

static void check_store(struct config_file *f, struct store_options *s)
{
	struct error error;

	if (engine_config_check(&s->config, &error))
		COMPLAIN(f, s->line, "[store %s]: %s", s->name, error.text);
}

/* The store it names, or the only one there is. */
static struct store_options *store_of(
	const struct options *o, const struct export_options *x)
{
	if (x->store_name)
		return options_find_store(o, x->store_name);
	return o->nstores == 1 ? o->stores[0] : NULL;
}

static void check_export(struct config_file *f, struct export_options *x)
{
	const char *blank = *x->name ? " " : "";
	struct store_options *s = store_of(f->o, x);

	if (!s && x->store_name)
		COMPLAIN(f, x->line,
			"[export%s%s]: store=%s: there is no "
			"[store %s]",
			blank, x->name, x->store_name, x->store_name);
	else if (!s)
		COMPLAIN(f, x->line,
			"[export%s%s]: store=: missing, which of "
			"the stores is it?",
			blank, x->name);
	if (!s)
		return;
	x->store = s;
	x->readonly = x->keys.readonly || s->config.readonly;
	x->cache = engine_config_was_set(&x->keys, "cache") ? x->keys.cache
							    : s->config.cache;
	s->config.direct |= x->cache == ENGINE_NONE;
}

void config_file_read(struct options *o, struct errors *errors)
{
	struct config_file f = {.o = o, .errors = errors, .path = o->config};
	const struct config_events events = {on_section, on_key, &f};

	if (config_read_lines(o->config, &events, errors) || errors->n)
		return;
	for (unsigned i = 0; i < o->nstores; i++)
		check_store(&f, o->stores[i]);
	for (unsigned i = 0; i < o->nexports; i++)
		check_export(&f, o->exports[i]);
	if (!o->nexports)
		errors_add(errors, -EINVAL,
			"%s: nothing to serve: there is no [export NAME]",
			o->config);
}
