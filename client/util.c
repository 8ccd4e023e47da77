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

const char *client_one_argument(int argc, char **argv, const char *what)
{
	if (optind >= argc) {
		client_error(EXIT_USAGE, argv[0], "%s is missing", what);
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
