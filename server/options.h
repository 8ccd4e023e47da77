/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: what weir-server is told to do.
 *
 * A store is an engine to open; an export is a name under which a store is
 * served. The command line says one of each.
 */
#ifndef WEIR_SERVER_OPTIONS_H
#define WEIR_SERVER_OPTIONS_H

#include <stdbool.h>

#include "engine.h"

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

struct store_options {
	char *name; /* the spec, if it was not given one */
	struct engine_config config;
};

#define EXPORT_NAME_MAX 4096U /* bytes, of the name or the description */

struct export_options {
	char *name;                  /* "": for clients that name none */
	char *description;           /* or NULL */
	struct store_options *store; /* of the same options */
	bool readonly;
	enum engine_cache_mode cache;
};

/* The strings are owned. */
struct options {
	char *unix_path; /* NULL: TCP */
	char *ipaddr;
	char *port;
	char *exportname;  /* of the command line */
	char *description; /* of its export, or NULL */
	char *pidfile;     /* or NULL */
	char *control;     /* or NULL */
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
 * Fill `o` from the command line. Returns 0 to go on; 1 if --help or
 * --version has been answered; -EINVAL or -ENOMEM with `error` filled. Opens
 * nothing. End with options_free() in each case.
 */
int options_parse(
	struct options *o, int argc, char **argv, struct error *error);

void options_free(struct options *o);

#endif
