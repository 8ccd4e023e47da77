/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.c: the command line, read and judged before anything is opened.
 *
 * Options have nbdkit's names where they mean the same. What is left are the
 * engine's KEY=VALUE, the same as for the plugin, or the path of a raw image.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "options.h"

#define DEFAULT_ADDR "127.0.0.1"
#define DEFAULT_PORT "10809"
#define DEFAULT_MAX_CONNECTIONS 1024U
#define DEFAULT_POLL_NS (100 * NSEC_PER_USEC)
#define DEFAULT_SHUTDOWN_NS (90 * NSEC_PER_SEC)
#define MAX_THREADS 256U

enum {
	OPT_THREADS = 256,
	OPT_POLL,
	OPT_CONTROL,
	OPT_MAX_CONNECTIONS,
	OPT_SWAP,
	OPT_TLS,
	OPT_TLS_CERTIFICATES,
	OPT_TLS_PSK,
	OPT_TLS_VERIFY_PEER,
	OPT_TLS_ALLOW,
};

static const char short_options[] = "+U:p:i:e:rfP:vVh";

static const struct option long_options[] = {
	{"unix", required_argument, NULL, 'U'},
	{"port", required_argument, NULL, 'p'},
	{"ipaddr", required_argument, NULL, 'i'},
	{"ip-addr", required_argument, NULL, 'i'},
	{"exportname", required_argument, NULL, 'e'},
	{"export-name", required_argument, NULL, 'e'},
	{"export", required_argument, NULL, 'e'},
	{"readonly", no_argument, NULL, 'r'},
	{"read-only", no_argument, NULL, 'r'},
	{"foreground", no_argument, NULL, 'f'},
	{"no-fork", no_argument, NULL, 'f'},
	{"pidfile", required_argument, NULL, 'P'},
	{"pid-file", required_argument, NULL, 'P'},
	{"threads", required_argument, NULL, OPT_THREADS},
	{"poll", required_argument, NULL, OPT_POLL},
	{"control", required_argument, NULL, OPT_CONTROL},
	{"max-connections", required_argument, NULL, OPT_MAX_CONNECTIONS},
	{"swap", no_argument, NULL, OPT_SWAP},
	{"tls", required_argument, NULL, OPT_TLS},
	{"tls-certificates", required_argument, NULL, OPT_TLS_CERTIFICATES},
	{"tls-psk", required_argument, NULL, OPT_TLS_PSK},
	{"tls-verify-peer", no_argument, NULL, OPT_TLS_VERIFY_PEER},
	{"tls-allow", required_argument, NULL, OPT_TLS_ALLOW},
	{"verbose", no_argument, NULL, 'v'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char usage[] =
	"Usage: weir-server [options] KEY=VALUE...\n"
	"       weir-server [options] PATH\n"
	"Serve a disk over NBD through a write-back cache.\n"
	"\n"
	"  -U, --unix PATH       listen on a unix socket instead of TCP\n"
	"  -p, --port PORT       TCP port (default " DEFAULT_PORT
	"; 0: any free one)\n"
	"  -i, --ipaddr ADDR     address to listen on (default " DEFAULT_ADDR
	")\n"
	"  -e, --exportname NAME\n"
	"                        name of the export (default: the empty name)\n"
	"  -r, --readonly        refuse writes\n"
	"  -f, --foreground      stay in the foreground\n"
	"  -P, --pidfile PATH    write the process id there when ready\n"
	"  --threads N           event loops (default: one for each CPU)\n"
	"  --poll TIME           look for requests that long before sleeping,\n"
	"                        while they come that soon (default 100us,\n"
	"                        0: never)\n"
	"  --control PATH        unix socket for weir stats, set, reset and "
	"drop\n"
	"  --max-connections N   most clients at once, 0 for no limit\n"
	"                        (default 1024); more wait for their turn\n"
	"  --swap                lock memory, for a client on this machine\n"
	"  --tls off|on|require  offer TLS, or serve nothing without it "
	"(default "
	"off)\n"
	"  --tls-certificates DIR\n"
	"                        where ca-cert.pem, server-cert.pem and\n"
	"                        server-key.pem are\n"
	"  --tls-psk FILE        pre-shared keys, lines of NAME:HEXKEY\n"
	"  --tls-verify-peer     clients must have a certificate of "
	"ca-cert.pem\n"
	"  --tls-allow NAME      and one of that name; repeatable\n"
	"  -v, --verbose         log more\n"
	"  -V, --version         print the version and exit\n"
	"  -h, --help            print this and exit\n"
	"\n"
	"PATH, or any other SPEC, is short for store=PATH. The keys:\n"
	"\n";

static const char shutdown_help[] =
	"  shutdown-timeout=TIME\n"
	"        how long the end may take to write what is dirty, 0 for ever\n"
	"        (default 90s)\n";

/* A decimal number in [min, max]. */
static int parse_number(const char *option, const char *text, unsigned min,
	unsigned max, unsigned *out, struct error *error)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || v < min ||
		v > max)
		return error_set(error, -EINVAL,
			"%s %s: expected a number from %u to %u", option, text,
			min, max);
	*out = (unsigned)v;
	return 0;
}

/* `what` is what stands before the time. */
static int parse_time(
	const char *what, const char *text, uint64_t *out, struct error *error)
{
	if (time_parse(text, out))
		return error_set(error, -EINVAL,
			"%s%s: expected a time, as 50us, 90s or 5m", what,
			text);
	return 0;
}

static int take_tls_mode(struct options *o, struct error *error)
{
	static const char *const names[] = {
		[TLS_OFF] = "off", [TLS_ON] = "on", [TLS_REQUIRE] = "require"};

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(optarg, names[i]))
			continue;
		o->tls.mode = (enum tls_mode)i;
		return 0;
	}
	return error_set(error, -EINVAL,
		"--tls %s: expected off, on or require", optarg);
}

static int take_tls_option(struct options *o, int c, struct error *error)
{
	switch (c) {
	case OPT_TLS:
		return take_tls_mode(o, error);
	case OPT_TLS_CERTIFICATES:
		o->tls.certificates = optarg;
		return 0;
	case OPT_TLS_PSK:
		o->tls.psk = optarg;
		return 0;
	case OPT_TLS_VERIFY_PEER:
		o->tls.verify_peer = true;
		return 0;
	case OPT_TLS_ALLOW:
		if (o->tls.nallow == TLS_MAX_ALLOW)
			return error_set(error, -EINVAL,
				"--tls-allow %s: %u names at most", optarg,
				TLS_MAX_ALLOW);
		o->tls.allow[o->tls.nallow++] = optarg;
		return 0;
	default:
		return -EINVAL;
	}
}

/* One option; 1 when it asks for nothing but an answer. */
static int take_option(struct options *o, int c, struct error *error)
{
	switch (c) {
	case 'U':
		o->unix_path = optarg;
		return 0;
	case 'p':
		o->port = optarg;
		return 0;
	case 'i':
		o->ipaddr = optarg;
		return 0;
	case 'e':
		o->exportname = optarg;
		return 0;
	case 'r':
		return engine_config_set(&o->config, "readonly", "on", error);
	case 'f':
		o->foreground = true;
		return 0;
	case 'P':
		o->pidfile = optarg;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case OPT_SWAP:
		o->swap = true;
		o->config.populate = true;
		return 0;
	case OPT_THREADS:
		return parse_number("--threads", optarg, 1, MAX_THREADS,
			&o->threads, error);
	case OPT_POLL:
		return parse_time("--poll ", optarg, &o->poll_ns, error);
	case OPT_CONTROL:
		o->control = optarg;
		return 0;
	case OPT_MAX_CONNECTIONS:
		return parse_number("--max-connections", optarg, 0, INT_MAX,
			&o->max_connections, error);
	case 'V':
		printf("weir-server %s\n", PACKAGE_VERSION);
		return 1;
	case 'h':
		printf("%s%s%s", usage, engine_config_help, shutdown_help);
		return 1;
	default:
		return take_tls_option(o, c, error);
	}
}

static int take_options(
	struct options *o, int argc, char **argv, struct error *error)
{
	int c, r;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(
			argc, argv, short_options, long_options, NULL)) != -1) {
		/* Here argv[optind - 1] is the word at fault. */
		if (c == '?' || c == ':')
			return error_set(error, -EINVAL,
				"%s: unknown option, or its argument is "
				"missing; try --help",
				argv[optind - 1]);
		r = take_option(o, c, error);
		if (r)
			return r;
	}
	return 0;
}

/* The length of the key if the word is KEY=VALUE, else 0: a path. */
static size_t key_length(const char *word)
{
	size_t n = 0;

	while (isalnum((unsigned char)word[n]) || word[n] == '-' ||
		word[n] == '_')
		n++;
	return word[n] == '=' ? n : 0;
}

/* The one key that is the front end's own; the plugin has it too. */
static int take_shutdown_timeout(
	struct options *o, const char *value, struct error *error)
{
	return parse_time(
		"shutdown-timeout=", value, &o->shutdown_timeout_ns, error);
}

static int take_key(
	struct options *o, const char *word, size_t length, struct error *error)
{
	char key[64];

	if (length >= sizeof(key))
		return error_set(error, -EINVAL, "%s: unknown key", word);
	memcpy(key, word, length);
	key[length] = '\0';
	if (!strcmp(key, "shutdown-timeout"))
		return take_shutdown_timeout(o, word + length + 1, error);
	return engine_config_set(&o->config, key, word + length + 1, error);
}

static int take_store(struct options *o, const char *spec, struct error *error)
{
	if (o->config.store)
		return error_set(error, -EINVAL,
			"%s: one store only, and %s is given already", spec,
			o->config.store);
	return engine_config_set(&o->config, "store", spec, error);
}

static int take_words(
	struct options *o, int argc, char **argv, struct error *error)
{
	for (int i = optind; i < argc; i++) {
		size_t key = key_length(argv[i]);
		int r;

		if (key)
			r = take_key(o, argv[i], key, error);
		else
			r = take_store(o, argv[i], error);
		if (r)
			return r;
	}
	return 0;
}

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

/* What cannot be together, and what follows when nothing is said. */
static int settle(struct options *o, struct error *error)
{
	unsigned port;

	if (o->unix_path && (o->port || o->ipaddr))
		return error_set(
			error, -EINVAL, "-U and -p or -i exclude each other");
	if (o->unix_path && o->control && !strcmp(o->unix_path, o->control))
		return error_set(error, -EINVAL,
			"-U and --control: %s cannot be both", o->control);
	if (o->port && parse_number("-p", o->port, 0, 65535, &port, error))
		return -EINVAL;
	if (strlen(o->exportname) > 4096)
		return error_set(error, -EINVAL,
			"-e: an export name has at most 4096 bytes");
	if (settle_tls(&o->tls, error))
		return -EINVAL;
	if (!o->config.store)
		return error_set(error, -EINVAL,
			"nothing to serve: give a PATH or store=SPEC; "
			"try --help");
	if (!o->port)
		o->port = DEFAULT_PORT;
	if (!o->ipaddr)
		o->ipaddr = DEFAULT_ADDR;
	return engine_config_check(&o->config, error);
}

int options_parse(struct options *o, int argc, char **argv, struct error *error)
{
	int r;

	*o = (struct options){
		.exportname = "",
		.max_connections = DEFAULT_MAX_CONNECTIONS,
		.poll_ns = DEFAULT_POLL_NS,
		.shutdown_timeout_ns = DEFAULT_SHUTDOWN_NS,
	};
	engine_config_init(&o->config);
	r = take_options(o, argc, argv, error);
	if (!r)
		r = take_words(o, argc, argv, error);
	if (!r)
		r = settle(o, error);
	return r;
}

void options_free(struct options *o)
{
	engine_config_free(&o->config);
}
