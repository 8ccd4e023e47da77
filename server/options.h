/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: what the command line of weir-server says.
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
	const char *certificates; /* a directory, or NULL */
	const char *psk;          /* a file, or NULL */
	bool verify_peer;
	const char *allow[TLS_MAX_ALLOW];
	unsigned nallow; /* 0: any name */
};

struct options {
	const char *unix_path; /* NULL: TCP */
	const char *ipaddr;
	const char *port;
	const char *exportname;
	const char *pidfile; /* or NULL */
	const char *control; /* or NULL */
	bool foreground;
	bool verbose;
	bool swap;
	unsigned threads;             /* loops; 0: as many as CPUs */
	unsigned max_connections;     /* 0: no limit */
	uint64_t poll_ns;             /* 0: never */
	uint64_t shutdown_timeout_ns; /* 0: for ever */
	struct tls_options tls;
	struct engine_config config;
};

/*
 * Fill `o` from the command line. Returns 0 to go on; 1 if --help or
 * --version has been answered; -EINVAL with `error` filled. Opens nothing.
 * The strings point into argv. End with options_free() in each case.
 */
int options_parse(
	struct options *o, int argc, char **argv, struct error *error);

void options_free(struct options *o);

#endif
