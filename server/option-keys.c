/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option-keys.c: the server's own options: what there are, and how a value is
 * read. Names are nbdkit's where they mean the same.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "option-keys.h"

#define MAX_THREADS 256U

#define AT(member) .at = offsetof(struct options, member)
#define EXPORT .scope = OPTION_EXPORT
#define SHELL .scope = OPTION_SHELL
#define FLAG .kind = OPTION_FLAG
#define TEXT(what) .kind = OPTION_TEXT, .arg = (what)
#define TIME .kind = OPTION_TIME, .arg = "TIME"
#define NUMBER(lo, hi)                                                         \
	.kind = OPTION_NUMBER, .arg = "N", .min = (lo), .max = (hi)
#define ENUM(what, ...)                                                        \
	.kind = OPTION_ENUM, .arg = (what), .words = (const char *const[])     \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}

static const struct option_key keys[] = {
	{"config", {0}, 0, TEXT("FILE"), SHELL, AT(config),
		.help = "read options, stores and exports from there,\n"
			"again at SIGHUP"},
	{"check-config", {0}, 0, FLAG, SHELL, AT(check_config),
		.help = "say OK, or what is wrong, and exit"},
	{"unix", {0}, 'U', TEXT("PATH"), AT(unix_path),
		.help = "listen on a unix socket instead of TCP"},
	{"port", {0}, 'p', .kind = OPTION_PORT, .arg = "PORT", AT(port),
		.max = 65535,
		.help = "TCP port (default 10809; 0: any free one)"},
	{"ipaddr", {"ip-addr"}, 'i', TEXT("ADDR"), AT(ipaddr),
		.help = "address to listen on (default 127.0.0.1)"},
	{"exportname", {"export-name", "export"}, 'e', TEXT("NAME"), EXPORT,
		AT(exportname),
		.help = "name of the export (default: the empty name)"},
	{"description", {0}, 'D', TEXT("TEXT"), EXPORT, AT(description),
		.help = "what the export is, for people"},
	{"readonly", {"read-only"}, 'r', FLAG, EXPORT, AT(readonly),
		.help = "refuse writes"},
	{"foreground", {"no-fork"}, 'f', FLAG, AT(foreground),
		.help = "stay in the foreground"},
	{"pidfile", {"pid-file"}, 'P', TEXT("PATH"), AT(pidfile),
		.help = "write the process id there when ready"},
	{"threads", {0}, 0, NUMBER(1, MAX_THREADS), AT(threads),
		.help = "event loops (default: one for each CPU)"},
	{"poll", {0}, 0, TIME, AT(poll_ns),
		.help = "look for requests that long before sleeping,\n"
			"while they come that soon (default 100us,\n"
			"0: never)"},
	{"control", {0}, 0, TEXT("PATH"), AT(control),
		.help = "unix socket for weir stats, set, reset and drop"},
	{"metrics", {0}, 0, TEXT("ADDR:PORT"), AT(metrics),
		.help = "serve /metrics for Prometheus, and /healthz,\n"
			"over HTTP there"},
	{"max-connections", {0}, 0, NUMBER(0, INT_MAX), AT(max_connections),
		.live = true,
		.help = "most clients at once, 0 for no limit\n"
			"(default 1024); more wait for their turn"},
	{"swap", {0}, 0, FLAG, AT(swap),
		.help = "lock memory, for a client on this machine"},
	{"tls", {0}, 0, ENUM("off|on|require", "off", "on", "require"),
		AT(tls.mode),
		.help = "offer TLS, or serve nothing without it\n"
			"(default off)"},
	{"tls-certificates", {0}, 0, TEXT("DIR"), AT(tls.certificates),
		.help = "where ca-cert.pem, server-cert.pem and\n"
			"server-key.pem are"},
	{"tls-psk", {0}, 0, TEXT("FILE"), AT(tls.psk),
		.help = "pre-shared keys, lines of NAME:HEXKEY"},
	{"tls-verify-peer", {0}, 0, FLAG, AT(tls.verify_peer),
		.help = "clients must have a certificate of ca-cert.pem"},
	{"tls-allow", {0}, 0, .kind = OPTION_ALLOW, .arg = "NAME",
		.help = "and one of that name; repeatable"},
	{"shutdown-timeout", {0}, 0, TIME, AT(shutdown_timeout_ns),
		.live = true, .word = true,
		.help = "how long the end may take to write what is\n"
			"dirty, 0 for ever (default 90s)"},
	{"verbose", {0}, 'v', FLAG, AT(verbose), .help = "log more"},
	{"version", {0}, 'V', .kind = OPTION_SHOW, SHELL,
		.help = "print the version and exit"},
	{"help", {0}, 'h', .kind = OPTION_SHOW, SHELL,
		.help = "print this and exit"},
};

const struct option_key *option_key(unsigned n)
{
	return n < sizeof(keys) / sizeof(keys[0]) ? &keys[n] : NULL;
}

static bool has_name(const struct option_key *k, const char *name)
{
	if (!strcmp(k->name, name))
		return true;
	for (unsigned i = 0; i < 2 && k->also[i]; i++) {
		if (!strcmp(k->also[i], name))
			return true;
	}
	return false;
}

const struct option_key *option_find(const char *name)
{
	const struct option_key *k;

	for (unsigned i = 0; (k = option_key(i)); i++) {
		if (has_name(k, name))
			return k;
	}
	return NULL;
}

/* --- one value ------------------------------------------------------------ */

static const char no_memory[] = "no memory";

static const char *set_flag(const char *value, bool *at)
{
	return bool_parse(value, at) ? "must be yes or no" : NULL;
}

static const char *set_text(const char *value, char **at)
{
	char *copy = strdup(value);

	if (!copy)
		return no_memory;
	free(*at);
	*at = copy;
	return NULL;
}

/* A decimal number in [min, max]. */
static const char *set_number(const struct option_key *k, const char *value,
	unsigned *at, char *text, size_t size)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end || errno || v < k->min ||
		v > k->max) {
		snprintf(text, size, "expected a number from %u to %u", k->min,
			k->max);
		return text;
	}
	*at = (unsigned)v;
	return NULL;
}

static const char *set_port(const struct option_key *k, const char *value,
	char **at, char *text, size_t size)
{
	unsigned port;
	const char *why = set_number(k, value, &port, text, size);

	return why ? why : set_text(value, at);
}

static const char *set_time(const char *value, uint64_t *at)
{
	return time_parse(value, at) ? "expected a time, as 50us, 90s or 5m"
				     : NULL;
}

static const char *set_enum(const struct option_key *k, const char *value,
	unsigned *at, char *text, size_t size)
{
	size_t n;

	for (unsigned i = 0; k->words[i]; i++) {
		if (!strcmp(value, k->words[i])) {
			*at = i;
			return NULL;
		}
	}
	n = (size_t)snprintf(text, size, "expected %s", k->words[0]);
	for (unsigned i = 1; k->words[i] && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s",
			k->words[i + 1] ? ", " : " or ", k->words[i]);
	return text;
}

static const char *add_allow(
	struct tls_options *tls, const char *value, char *text, size_t size)
{
	const char *why;

	if (tls->nallow == TLS_MAX_ALLOW) {
		snprintf(text, size, "%u names at most", TLS_MAX_ALLOW);
		return text;
	}
	why = set_text(value, &tls->allow[tls->nallow]);
	if (!why)
		tls->nallow++;
	return why;
}

const char *option_set(struct options *o, const struct option_key *k,
	const char *value, char *text, size_t size)
{
	void *at = (char *)o + k->at;

	switch (k->kind) {
	case OPTION_FLAG:
		return set_flag(value ? value : "yes", at);
	case OPTION_TEXT:
		return set_text(value, at);
	case OPTION_NUMBER:
		return set_number(k, value, at, text, size);
	case OPTION_PORT:
		return set_port(k, value, at, text, size);
	case OPTION_TIME:
		return set_time(value, at);
	case OPTION_ENUM:
		return set_enum(k, value, at, text, size);
	case OPTION_ALLOW:
		return add_allow(&o->tls, value, text, size);
	case OPTION_SHOW:
		break;
	}
	return "is no setting";
}

/* --- two of them ---------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static bool same_allow(const struct tls_options *a, const struct tls_options *b)
{
	if (a->nallow != b->nallow)
		return false;
	for (unsigned i = 0; i < a->nallow; i++) {
		if (strcmp(a->allow[i], b->allow[i]))
			return false;
	}
	return true;
}

static size_t size_of(const struct option_key *k)
{
	switch (k->kind) {
	case OPTION_FLAG:
		return sizeof(bool);
	case OPTION_TIME:
		return sizeof(uint64_t);
	default:
		return sizeof(unsigned);
	}
}

static bool same(const struct option_key *k, const struct options *a,
	const struct options *b)
{
	const char *at = (const char *)a + k->at, *to = (const char *)b + k->at;

	switch (k->kind) {
	case OPTION_SHOW:
		return true;
	case OPTION_ALLOW:
		return same_allow(&a->tls, &b->tls);
	case OPTION_TEXT:
	case OPTION_PORT:
		return same_text(*(char *const *)(const void *)at,
			*(char *const *)(const void *)to);
	default:
		return !memcmp(at, to, size_of(k));
	}
}

unsigned options_change(
	struct options *o, const struct options *to, char *names, size_t size)
{
	const struct option_key *k;
	unsigned n = 0;
	size_t at = 0;

	for (unsigned i = 0; (k = option_key(i)); i++) {
		if (k->scope != OPTION_SERVER || same(k, o, to))
			continue;
		if (k->live) {
			memcpy((char *)o + k->at, (const char *)to + k->at,
				size_of(k));
			continue;
		}
		if (at < size)
			at += (size_t)snprintf(names + at, size - at, "%s%s",
				n ? ", " : "", k->name);
		n++;
	}
	return n;
}

/* --- help ----------------------------------------------------------------- */

#define HELP_COLUMN 24
#define HELP_WORD_COLUMN 8

/* The lines of a text, the first at `column` and all indented to `indent`. */
static void help_lines(const char *line, int column, int indent)
{
	while (line) {
		int length = (int)strcspn(line, "\n");

		printf("%*s%.*s\n", indent - column, "", length, line);
		line = line[length] ? line + length + 1 : NULL;
		column = 0;
	}
}

/* "  -U, --unix PATH       listen on …" */
static void help_of(const struct option_key *k)
{
	int n = k->letter ? printf("  -%c, --%s", k->letter, k->name)
			  : printf("  --%s", k->name);

	if (k->arg)
		n += printf(" %s", k->arg);
	if (n >= HELP_COLUMN) {
		putchar('\n');
		n = 0;
	}
	help_lines(k->help, n, HELP_COLUMN);
}

void option_help(void)
{
	const struct option_key *k;

	for (unsigned i = 0; (k = option_key(i)); i++) {
		if (!k->word)
			help_of(k);
	}
}

void option_help_words(void)
{
	const struct option_key *k;

	for (unsigned i = 0; (k = option_key(i)); i++) {
		if (!k->word)
			continue;
		printf("  %s=%s\n", k->name, k->arg);
		help_lines(k->help, 0, HELP_WORD_COLUMN);
	}
}
