/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * util.c: messages, arguments and output, the same for every subcommand.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

int client_error(int code, const char *command, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: %s\n", command, line);
	return code;
}

int client_getopt(int argc, char **argv, const char *short_options,
	const struct option *options)
{
	const char *word;
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, short_options, options, NULL);
	word = argv[optind - 1];
	if (c == '?' && !strncmp(word, "--", 2) &&
		(!optopt || strchr(word, '=')))
		client_error(EXIT_USAGE, argv[0],
			"%s: unknown option, or one that takes no argument; "
			"try '%s --help'",
			word, argv[0]);
	else if (c == '?')
		client_error(EXIT_USAGE, argv[0],
			"-%c: unknown option; try '%s --help'", optopt,
			argv[0]);
	else if (c == ':')
		client_error(EXIT_USAGE, argv[0],
			"%s: its argument is missing; try '%s --help'", word,
			argv[0]);
	return c == ':' ? '?' : c;
}

bool client_plain_options(
	int argc, char **argv, void (*help)(void), bool *json, int *code)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"json", no_argument, NULL, 'j'},
		{NULL, 0, NULL, 0},
	};
	static const struct option only_help[] = {
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = client_getopt(
			argc, argv, ":h", json ? options : only_help)) != -1) {
		if (c == 'j') {
			*json = true;
			continue;
		}
		if (c == 'h')
			help();
		*code = c == 'h' ? EXIT_OK : EXIT_USAGE;
		return false;
	}
	return true;
}

const char *client_one_argument(int argc, char **argv, const char *what)
{
	if (optind >= argc) {
		client_error(EXIT_USAGE, argv[0],
			"%s is missing; try '%s --help'", what, argv[0]);
		return NULL;
	}
	if (optind + 1 < argc) {
		client_error(EXIT_USAGE, argv[0], "%s: one %s is enough",
			argv[optind + 1], what);
		return NULL;
	}
	return argv[optind];
}

int client_print_json(const char *command, json_t *value)
{
	int r = json_dumpf(
		value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));

	json_decref(value);
	putchar('\n');
	if (r || fflush(stdout) || ferror(stdout))
		return client_error(
			EXIT_IO, command, "cannot write: %s", strerror(errno));
	return EXIT_OK;
}

char *client_format(const char *fmt, ...)
{
	va_list ap;
	char *text;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0) {
		fputs("weir: no memory\n", stderr);
		exit(EXIT_IO);
	}
	return text;
}
