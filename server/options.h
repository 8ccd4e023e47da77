/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: what weir-server is told to do.
 *
 * A store is an engine to open; an export is a name under which a store is
 * served. The command line says one of each, a file of --config any number.
 */
#ifndef WEIR_SERVER_OPTIONS_H
#define WEIR_SERVER_OPTIONS_H

#include <stdbool.h>

#include "engine.h"
#include "errors.h"

enum tls_mode {
	TLS_OFF,
	TLS_ON,      /* for clients that ask for it */
	TLS_REQUIRE, /* nothing without it */
};

#define TLS_MAX_ALLOW 64U

struct tls_options {
	enum tls_mode mode;
	char *certificates; /* a directory, or NULL */
	char *psk;          /* a file, or NULL */
	bool verify_peer;
	char *allow[TLS_MAX_ALLOW];
	unsigned nallow; /* 0: any name */
};

/* Of the command line, `line` is 0. */
struct store_options {
	char *name; /* the spec, if it was not given one */
	struct engine_config config;
	unsigned line;
};

#define EXPORT_NAME_MAX 4096U /* bytes, of the name or the description */

struct export_options {
	char *name;                  /* "": for clients that name none */
	char *description;           /* or NULL */
	char *store_name;            /* or NULL */
	struct store_options *store; /* of the same options */
	struct engine_config keys; /* readonly and cache, if they were given */
	bool readonly;
	enum engine_cache_mode cache;
	unsigned line;
};

/* The strings are owned. */
struct options {
	int argc; /* what it was made of */
	char **argv;
	char *config; /* a file, or NULL */
	bool check_config;
	char *unix_path; /* NULL: TCP */
	char *ipaddr;
	char *port;
	char *exportname;  /* of the command line */
	char *description; /* of its export, or NULL */
	char *pidfile;     /* or NULL */
	char *control;     /* or NULL */
	char *metrics;     /* ADDR:PORT, or NULL */
	bool readonly;     /* of the command line */
	bool foreground;
	bool verbose;
	bool swap;
	unsigned threads;             /* loops; 0: as many as CPUs */
	unsigned max_connections;     /* 0: no limit */
	uint64_t poll_ns;             /* 0: never */
	uint64_t shutdown_timeout_ns; /* 0: for ever */
	struct tls_options tls;

	/* In the order they were given; at least one of each. */
	struct store_options **stores;
	unsigned nstores;
	struct export_options **exports;
	unsigned nexports;
};

/*
 * Fill `o` from the command line, and from the file that --config names, whose
 * options those of the command line replace. Returns 0 to go on; 1 if --help,
 * --version or --check-config has been answered; -EINVAL or -ENOMEM with all
 * that is wrong in `errors`. Opens no store and no socket; blocks for the
 * file. End with options_free() in each case. One thread at a time (getopt).
 */
int options_parse(
	struct options *o, int argc, char **argv, struct errors *errors);

void options_free(struct options *o);

/*
 * Change the options of the server to what they are in `to`, as far as that is
 * possible while it runs. In `keys` are the names of the others that differ,
 * as "a, b". Their number.
 */
unsigned options_change(
	struct options *o, const struct options *to, char *keys, size_t size);

/* Can it be told to clients? NULL can. -EINVAL with `error` filled. */
int options_check_text(const char *what, const char *text, struct error *error);

/* --- options-lists.c ------------------------------------------------------ */

/* One more, of defaults; NULL: no memory. */
struct store_options *options_add_store(struct options *o);
struct export_options *options_add_export(struct options *o);

/* The one of that name, or NULL. */
struct store_options *options_find_store(
	const struct options *o, const char *name);
struct export_options *options_find_export(
	const struct options *o, const char *name);

/* --- config-file.c -------------------------------------------------------- */

/* Take over what the file o->config says. What is wrong is in `errors`. */
void config_file_read(struct options *o, struct errors *errors);

#endif
