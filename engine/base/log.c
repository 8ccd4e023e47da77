/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c: format one line, hand it to the sink; and error text.
 *
 * 1. A line is written with one call, so lines of several threads do not mix.
 * 2. `log_to` is written only by log_setup(), before any thread starts.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"

struct log_to {
	const char *program;
	enum log_level max;
	log_sink_fn sink;
	void *arg;
};

static struct log_to log_to = {.program = "weir", .max = LOG_LEVEL_INFO};

void log_setup(
	const char *program, enum log_level max, log_sink_fn sink, void *arg)
{
	log_to = (struct log_to){program, max, sink, arg};
}

/* One event, one line. */
static void clean(char *line)
{
	for (char *p = line; *p; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	}
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list args;

	if (level > log_to.max)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	clean(line);
	if (log_to.sink)
		log_to.sink(log_to.arg, level, line);
	else
		fprintf(stderr, "%s: %s\n", log_to.program, line);
}

int error_set(struct error *error, int err, const char *fmt, ...)
{
	va_list args;

	if (!error)
		return err;
	va_start(args, fmt);
	vsnprintf(error->text, sizeof error->text, fmt, args);
	va_end(args);
	return err;
}

int error_prefix(struct error *error, int err, const char *what)
{
	char text[sizeof error->text];

	if (!error)
		return err;
	memcpy(text, error->text, sizeof text);
	text[sizeof text - 1] = '\0';
	return error_set(error, err, "%s: %s", what, text);
}
