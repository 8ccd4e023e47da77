/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config-lines.c: the lines of a configuration file, by libinih.
 *
 * The library has no line numbers, tells only of the first bad line, keeps 49
 * bytes of a section's name and 199 of a line, and takes an indented line for
 * more of the value above. So it is given the lines one by one, by next_line():
 *
 *  1. Sections and comments are read here; the library sees the rest.
 *  2. A line goes in without its indent. What is longer than the library takes
 *     follows as indented lines, whose values are put together again.
 *  3. A line that has something in it, and of which the library told nothing,
 *     was a bad one.
 */
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config-lines.h"

#define VALUE_MAX 16384U /* bytes, of a line */
#define PIECE_MAX 128U   /* bytes, of a line at once */

struct reader {
	const char *path;
	const struct config_events *events;
	struct errors *errors;
	FILE *file;
	char *line; /* getline()'s */
	size_t room;
	const char *rest; /* of the line, for the library yet; or NULL */
	unsigned number;
	bool expected; /* of the line, the library has to tell */
	char key[64];
	char value[VALUE_MAX];
	size_t length; /* of the value; the line is told when it is whole */
	bool told;
};

/* The line is over: pass on what it says. */
static void end_line(struct reader *r)
{
	if (r->told)
		r->events->key(r->events->arg, r->key, r->value, r->number);
	else if (r->expected)
		errors_add(r->errors, -EINVAL,
			"%s:%u: neither KEY = VALUE nor [SECTION]", r->path,
			r->number);
	r->told = false;
	r->expected = false;
}

static void trim_end(char *text)
{
	size_t n = strlen(text);

	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	text[n] = '\0';
}

static void take_section(struct reader *r, char *text)
{
	char *end = strrchr(text, ']');
	const char *name = NULL;

	if (!end)
		errors_add(r->errors, -EINVAL, "%s:%u: %s: no ] at the end",
			r->path, r->number, text);
	else if (end[1])
		errors_add(r->errors, -EINVAL, "%s:%u: %s: more after the ]",
			r->path, r->number, text);
	else
		name = text + 1;
	if (name) {
		*end = '\0';
		trim_end(text);
	}
	r->events->section(r->events->arg, name, r->number);
}

/* Cut a comment off: a ';' at the start, or behind a blank. */
static void cut_comment(char *text)
{
	for (char *p = text; (p = strchr(p, ';')); p++) {
		if (p == text || isspace((unsigned char)p[-1])) {
			*p = '\0';
			return;
		}
	}
}

/* Look at a line, without its indent: is it for the library? */
static bool take_line(struct reader *r, char *text, size_t length)
{
	if (strlen(text) < length) {
		errors_add(r->errors, -EINVAL, "%s:%u: a zero byte in the line",
			r->path, r->number);
		return false;
	}
	if (*text == '#')
		return false;
	cut_comment(text);
	trim_end(text);
	if (!*text)
		return false;
	if (strlen(text) >= VALUE_MAX) {
		errors_add(r->errors, -EINVAL,
			"%s:%u: more than %u bytes in a line", r->path,
			r->number, VALUE_MAX - 1);
		return false;
	}
	if (*text == '[') {
		take_section(r, text);
		return false;
	}
	r->expected = true;
	r->rest = text;
	return true;
}

/* Read lines until one is for the library; false at the end. */
static bool read_line(struct reader *r)
{
	ssize_t n;

	while ((n = getline(&r->line, &r->room, r->file)) >= 0) {
		char *text = r->line;

		if (!r->number++ && n >= 3 &&
			!memcmp(text, "\xef\xbb\xbf", 3)) {
			text += 3;
			n -= 3;
		}
		while (n && isspace((unsigned char)*text)) {
			text++;
			n--;
		}
		if (take_line(r, text, (size_t)n))
			return true;
	}
	return false;
}

/*
 * How much of the rest is one piece: cut where the library would take neither
 * end for a blank, a comment or the end of the key; 0: there is no such place.
 */
static size_t piece(const char *rest, bool first)
{
	size_t n = strlen(rest);
	size_t least = first ? strcspn(rest, "=:") + 1 : 0;

	if (n <= PIECE_MAX)
		return n;
	for (n = PIECE_MAX; n > least; n--) {
		if (!strchr(" \t", rest[n - 1]) && !strchr(" \t;#", rest[n]))
			return n;
	}
	return 0;
}

static void cannot_cut(struct reader *r)
{
	errors_add(r->errors, -EINVAL,
		"%s:%u: too long, with no = or with too many blanks in a row",
		r->path, r->number);
	r->rest = NULL;
	r->told = false;
	r->expected = false;
}

/* As fgets(). */
static char *next_line(char *str, int size, void *arg)
{
	struct reader *r = arg;
	bool more = r->rest;
	size_t n = more ? piece(r->rest, false) : 0;

	while (!n) {
		if (r->rest)
			cannot_cut(r);
		end_line(r);
		more = false;
		if (!read_line(r))
			return NULL;
		n = piece(r->rest, true);
	}
	snprintf(str, (size_t)size, "%s%.*s\n", more ? " " : "", (int)n,
		r->rest);
	r->rest = r->rest[n] ? r->rest + n : NULL;
	return str;
}

/* The library's: part of a value. */
static int tell(
	void *arg, const char *section, const char *key, const char *value)
{
	struct reader *r = arg;

	(void)section;
	if (!r->told) {
		snprintf(r->key, sizeof(r->key), "%s", key);
		r->length = 0;
	}
	r->told = true;
	r->length += (size_t)snprintf(r->value + r->length,
		sizeof(r->value) - r->length, "%s", value);
	return 1;
}

int config_read_lines(const char *path, const struct config_events *events,
	struct errors *errors)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err = 0;

	if (!r)
		return errors_add(errors, -ENOMEM, "no memory");
	r->path = path;
	r->events = events;
	r->errors = errors;
	r->file = fopen(path, "re");
	if (r->file) {
		ini_parse_stream(next_line, r, tell, r);
		err = ferror(r->file) ? -EIO : 0;
		fclose(r->file);
	} else {
		err = -errno;
	}
	if (err)
		errors_add(errors, err, "%s: cannot read: %s", path,
			strerror(-err));
	free(r->line);
	free(r);
	return err;
}
