/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c: the command line, read and judged before anything is opened.
 *
 * The options are option-keys.c's. What is left are the engine's KEY=VALUE,
 * the same as for the plugin, or the path of a raw image: they make one store,
 * and one export of it.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option-keys.h"
#include "options.h"

#define DEFAULT_ADDR "127.0.0.1"
#define DEFAULT_PORT "10809"
#define DEFAULT_MAX_CONNECTIONS 1024U
#define DEFAULT_POLL_NS (100 * NSEC_PER_USEC)
#define DEFAULT_SHUTDOWN_NS (90 * NSEC_PER_SEC)

#define LONG_OPTIONS 128U
#define LONG_FIRST 256 /* above every letter */

static const char usage[] =
	"Usage: weir-server [options] KEY=VALUE...\n"
	"       weir-server [options] PATH\n"
	"       weir-server [options] --config FILE\n"
	"Serve a disk over NBD through a write-back cache.\n"
	"\n";

static const char usage_keys[] =
	"\n"
	"PATH, or any other SPEC, is short for store=PATH. The keys:\n"
	"\n";

static void options_init(struct options *o)
{
	*o = (struct options){
		.max_connections = DEFAULT_MAX_CONNECTIONS,
		.poll_ns = DEFAULT_POLL_NS,
		.shutdown_timeout_ns = DEFAULT_SHUTDOWN_NS,
	};
}

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "no memory");
}

/* --- options -------------------------------------------------------------- */

static void show(const struct option_key *k)
{
	if (k->letter == 'V') {
		printf("weir-server %s\n", PACKAGE_VERSION);
		return;
	}
	fputs(usage, stdout);
	option_help();
	printf("%s%s", usage_keys, engine_config_help);
	option_help_words();
}

/* What getopt_long() takes, made from the table. */
struct syntax {
	struct option longs[LONG_OPTIONS];
	char shorts[128];
};

static void add_long(struct syntax *s, unsigned *n, const char *name,
	const struct option_key *k, unsigned row)
{
	s->longs[(*n)++] = (struct option){
		.name = name,
		.has_arg = k->arg ? required_argument : no_argument,
		.val = LONG_FIRST + (int)row,
	};
}

static void make_syntax(struct syntax *s)
{
	const struct option_key *k;
	unsigned n = 0;
	char *p = s->shorts;

	*s = (struct syntax){0};
	for (unsigned i = 0; (k = option_key(i)); i++) {
		add_long(s, &n, k->name, k, i);
		for (unsigned j = 0; j < 2 && k->also[j]; j++)
			add_long(s, &n, k->also[j], k, i);
		if (k->letter)
			*p++ = k->letter;
		if (k->letter && k->arg)
			*p++ = ':';
	}
}

static const struct option_key *key_of(int c)
{
	const struct option_key *k;

	if (c >= LONG_FIRST)
		return option_key((unsigned)c - LONG_FIRST);
	for (unsigned i = 0; (k = option_key(i)); i++) {
		if (k->letter == c)
			return k;
	}
	return NULL;
}

/* One option; 1 when it asks for nothing but an answer. */
static int take_option(
	struct options *o, int c, const char *name, struct error *error)
{
	const struct option_key *k = key_of(c);
	char text[128];
	const char *why;

	if (k->kind == OPTION_SHOW) {
		show(k);
		return 1;
	}
	why = option_set(o, k, optarg, text, sizeof(text));
	if (!why)
		return 0;
	if (c < LONG_FIRST)
		return error_set(error, -EINVAL, "-%c %s: %s", c, optarg, why);
	return error_set(error, -EINVAL, "--%s %s: %s", name, optarg, why);
}

static int take_options(
	struct options *o, int argc, char **argv, struct error *error)
{
	struct syntax syntax;
	int c, r, at = 0;

	make_syntax(&syntax);
	optind = 0; /* the words are moved behind the options */
	opterr = 0;
	while ((c = getopt_long(
			argc, argv, syntax.shorts, syntax.longs, &at)) != -1) {
		/* Here argv[optind - 1] is the word at fault. */
		if (c == '?' || c == ':')
			return error_set(error, -EINVAL,
				"%s: unknown option, or its argument is "
				"missing; try --help",
				argv[optind - 1]);
		r = take_option(o, c, syntax.longs[at].name, error);
		if (r)
			return r;
	}
	return 0;
}

/* --- words ---------------------------------------------------------------- */

/* The length of the key if the word is KEY=VALUE, else 0: a path. */
static size_t key_length(const char *word)
{
	size_t n = 0;

	while (isalnum((unsigned char)word[n]) || word[n] == '-' ||
		word[n] == '_')
		n++;
	return word[n] == '=' ? n : 0;
}

static int take_store(
	struct engine_config *config, const char *spec, struct error *error)
{
	if (config->store)
		return error_set(error, -EINVAL,
			"%s: one store only, and %s is given already", spec,
			config->store);
	return engine_config_set(config, "store", spec, error);
}

static int take_key(struct engine_config *config, const char *word,
	size_t length, struct error *error)
{
	char key[64];

	if (length >= sizeof(key))
		return error_set(error, -EINVAL, "%s: unknown key", word);
	memcpy(key, word, length);
	key[length] = '\0';
	if (!strcmp(key, "store"))
		return take_store(config, word + length + 1, error);
	return engine_config_set(config, key, word + length + 1, error);
}

/* The option that may be such a word; NULL: it is none. */
static const struct option_key *word_key(const char *word, size_t length)
{
	const struct option_key *k;

	for (unsigned i = 0; (k = option_key(i)); i++) {
		if (k->word && strlen(k->name) == length &&
			!strncmp(k->name, word, length))
			return k;
	}
	return NULL;
}

static int take_word_key(struct options *o, const struct option_key *k,
	const char *word, size_t length, struct error *error)
{
	char text[128];
	const char *why =
		option_set(o, k, word + length + 1, text, sizeof(text));

	return why ? error_set(error, -EINVAL, "%s: %s", word, why) : 0;
}

/* With a file, `config` is NULL: stores are the file's. */
static int take_word(struct options *o, struct engine_config *config,
	const char *word, struct error *error)
{
	size_t length = key_length(word);
	const struct option_key *k;

	if (length) {
		k = word_key(word, length);
		if (k)
			return take_word_key(o, k, word, length, error);
	}
	if (!config)
		return error_set(error, -EINVAL,
			"%s: the stores are those of --config", word);
	return length ? take_key(config, word, length, error)
		      : take_store(config, word, error);
}

static int take_words(struct options *o, struct engine_config *config, int argc,
	char **argv, struct error *error)
{
	int r = 0;

	for (int i = optind; i < argc && !r; i++)
		r = take_word(o, config, argv[i], error);
	return r;
}

/* --- all together --------------------------------------------------------- */

static int settle_tls(const struct tls_options *tls, struct error *error)
{
	bool keys = tls->certificates || tls->psk;

	if (tls->mode == TLS_OFF && (keys || tls->verify_peer || tls->nallow))
		return error_set(error, -EINVAL,
			"TLS is off: with certificates or keys, give "
			"--tls=on or --tls=require");
	if (tls->mode != TLS_OFF && !keys)
		return error_set(error, -EINVAL,
			"--tls needs --tls-certificates DIR or --tls-psk FILE");
	if (tls->verify_peer && !tls->certificates)
		return error_set(error, -EINVAL,
			"--tls-verify-peer needs --tls-certificates DIR");
	if (tls->nallow && !tls->verify_peer)
		return error_set(
			error, -EINVAL, "--tls-allow needs --tls-verify-peer");
	return 0;
}

/* What follows when nothing is said. */
static int fill_in(char **at, const char *text)
{
	if (!*at)
		*at = strdup(text);
	return *at ? 0 : -ENOMEM;
}

/* What cannot be together, and what follows when nothing is said. */
static int settle(struct options *o, struct error *error)
{
	if (o->unix_path && (o->port || o->ipaddr))
		return error_set(
			error, -EINVAL, "-U and -p or -i exclude each other");
	if (o->unix_path && o->control && !strcmp(o->unix_path, o->control))
		return error_set(error, -EINVAL,
			"-U and --control: %s cannot be both", o->control);
	if (settle_tls(&o->tls, error))
		return -EINVAL;
	if (fill_in(&o->port, DEFAULT_PORT) ||
		fill_in(&o->ipaddr, DEFAULT_ADDR))
		return no_memory(error);
	return 0;
}

/* What goes to clients as text, which the protocol says is UTF-8. */
int options_check_text(const char *what, const char *text, struct error *error)
{
	json_t *as_json;

	if (!text)
		return 0;
	if (strlen(text) > EXPORT_NAME_MAX)
		return error_set(error, -EINVAL, "%s has at most %u bytes",
			what, EXPORT_NAME_MAX);
	as_json = json_string(text);
	if (!as_json)
		return error_set(error, -EINVAL, "%s is UTF-8 text", what);
	json_decref(as_json);
	return 0;
}

/* The command line's store and export. */
static int settle_store(struct options *o, struct error *error)
{
	struct store_options *s = o->stores[0];
	struct export_options *x;
	int r;

	r = options_check_text("-e: an export name", o->exportname, error);
	if (!r)
		r = options_check_text(
			"-D: a description", o->description, error);
	if (r)
		return r;
	if (!s->config.store)
		return error_set(error, -EINVAL,
			"nothing to serve: give a PATH, store=SPEC or "
			"--config FILE; try --help");
	s->config.readonly |= o->readonly;
	r = engine_config_check(&s->config, error);
	if (r)
		return r;
	s->name = strdup(s->config.store);
	x = options_add_export(o);
	if (!s->name || !x)
		return no_memory(error);
	x->name = strdup(o->exportname ? o->exportname : "");
	x->description = o->description;
	o->description = NULL;
	x->store = s;
	x->readonly = s->config.readonly;
	x->cache = s->config.cache;
	return x->name ? 0 : no_memory(error);
}

/* The file, and over it the command line again. */
static int parse_file(struct options *o, int argc, char **argv,
	struct errors *errors, struct error *error)
{
	struct options early = *o;
	int r;

	if (o->exportname || o->description || o->readonly)
		return error_set(error, -EINVAL,
			"-e, -r and --description: the exports are those of "
			"--config");
	options_init(o);
	o->argc = argc;
	o->argv = argv;
	o->config = early.config;
	early.config = NULL;
	options_free(&early);
	config_file_read(o, errors);
	r = take_options(o, argc, argv, error);
	return r ? r : take_words(o, NULL, argc, argv, error);
}

static int parse(struct options *o, int argc, char **argv,
	struct errors *errors, struct error *error)
{
	struct store_options *s;
	int r = take_options(o, argc, argv, error);

	if (r)
		return r;
	if (o->config) {
		r = parse_file(o, argc, argv, errors, error);
		/* What is missing may be what was wrong. */
		return r || errors->n ? r : settle(o, error);
	}
	s = options_add_store(o);
	if (!s)
		return no_memory(error);
	r = take_words(o, &s->config, argc, argv, error);
	if (!r)
		r = settle(o, error);
	return r ? r : settle_store(o, error);
}

static void say_ok(const struct options *o)
{
	printf("OK: stores: %u, exports: %u; whether they can be opened is not "
	       "checked\n",
		o->nstores, o->nexports);
}

int options_parse(
	struct options *o, int argc, char **argv, struct errors *errors)
{
	struct error error;
	int r;

	options_init(o);
	o->argc = argc;
	o->argv = argv;
	r = parse(o, argc, argv, errors, &error);
	if (r < 0)
		errors_add(errors, r, "%s", error.text);
	if (errors->n)
		return r < 0 ? r : -EINVAL;
	for (unsigned i = 0; i < o->nstores; i++)
		o->stores[i]->config.populate = o->swap;
	if (!r && o->check_config) {
		say_ok(o);
		return 1;
	}
	return r;
}

void options_free(struct options *o)
{
	const struct option_key *k;

	for (unsigned i = 0; i < o->nstores; i++) {
		engine_config_free(&o->stores[i]->config);
		free(o->stores[i]->name);
		free(o->stores[i]);
	}
	for (unsigned i = 0; i < o->nexports; i++) {
		free(o->exports[i]->name);
		free(o->exports[i]->description);
		free(o->exports[i]->store_name);
		engine_config_free(&o->exports[i]->keys);
		free(o->exports[i]);
	}
	for (unsigned i = 0; i < o->tls.nallow; i++)
		free(o->tls.allow[i]);
	free(o->stores);
	free(o->exports);
	for (unsigned i = 0; (k = option_key(i)); i++) {
		if (k->kind == OPTION_TEXT || k->kind == OPTION_PORT)
			free(*(char **)((char *)o + k->at));
	}
}
