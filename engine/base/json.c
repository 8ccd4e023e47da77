/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.c: write JSON as text, and read the few members of a flat object.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* --- write ---------------------------------------------------------------- */

static void append(struct json *j, const char *s, size_t n)
{
	size_t room = j->room ? j->room : 512;
	char *text;

	if (j->failed)
		return;
	while (room < j->length + n + 1)
		room *= 2;
	if (room != j->room) {
		text = realloc(j->text, room);
		if (!text) {
			j->failed = true;
			return;
		}
		j->text = text;
		j->room = room;
	}
	memcpy(j->text + j->length, s, n);
	j->length += n;
	j->text[j->length] = '\0';
}

static void append_quoted(struct json *j, const char *s)
{
	char escape[8];

	append(j, "\"", 1);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			snprintf(escape, sizeof(escape), "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			snprintf(escape, sizeof(escape), "\\u%04x", c);
		else
			snprintf(escape, sizeof(escape), "%c", c);
		append(j, escape, strlen(escape));
	}
	append(j, "\"", 1);
}

/* What comes before a value. */
static void begin(struct json *j, const char *key)
{
	if (j->comma)
		append(j, ",", 1);
	if (key) {
		append_quoted(j, key);
		append(j, ":", 1);
	}
	j->comma = true;
}

void json_object(struct json *j, const char *key)
{
	begin(j, key);
	append(j, "{", 1);
	j->comma = false;
}

void json_array(struct json *j, const char *key)
{
	begin(j, key);
	append(j, "[", 1);
	j->comma = false;
}

void json_end_object(struct json *j)
{
	append(j, "}", 1);
	j->comma = true;
}

void json_end_array(struct json *j)
{
	append(j, "]", 1);
	j->comma = true;
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	append_quoted(j, value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	json_raw(j, key, text);
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_raw(j, key, value ? "true" : "false");
}

void json_raw(struct json *j, const char *key, const char *value)
{
	begin(j, key);
	if (value)
		append(j, value, strlen(value));
	else
		j->failed = true;
}

char *json_take(struct json *j)
{
	char *text = j->text;

	if (j->failed) {
		free(text);
		text = NULL;
	}
	*j = (struct json)JSON_INIT;
	return text;
}

/* --- read ----------------------------------------------------------------- */

/* Where reading stands, and where a value goes: `out` may be NULL. */
struct json_reader {
	const char *p;
	char *out;
	size_t size, length;
};

static void skip_space(struct json_reader *r)
{
	while (*r->p && strchr(" \t\r\n", *r->p))
		r->p++;
}

static bool take_char(struct json_reader *r, char c)
{
	skip_space(r);
	if (*r->p != c)
		return false;
	r->p++;
	return true;
}

static void emit(struct json_reader *r, char c)
{
	if (r->out && r->length + 1 < r->size)
		r->out[r->length] = c;
	r->length++;
}

static int read_escape(struct json_reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	unsigned code;
	char digits[5] = "";

	if (*r->p == 'u') {
		for (int i = 0; i < 4; i++) {
			if (!isxdigit((unsigned char)r->p[1 + i]))
				return -EINVAL;
			digits[i] = r->p[1 + i];
		}
		code = (unsigned)strtoul(digits, NULL, 16);
		if (!code || code > 0x7f)
			return -EINVAL;
		emit(r, (char)code);
		r->p += 5;
		return 0;
	}
	at = *r->p ? strchr(from, *r->p) : NULL;
	if (!at)
		return -EINVAL;
	emit(r, to[at - from]);
	r->p++;
	return 0;
}

static int read_string(struct json_reader *r)
{
	if (!take_char(r, '"'))
		return -EINVAL;
	while (*r->p != '"') {
		if ((unsigned char)*r->p < 0x20)
			return -EINVAL;
		if (*r->p != '\\') {
			emit(r, *r->p++);
			continue;
		}
		r->p++;
		if (read_escape(r))
			return -EINVAL;
	}
	r->p++;
	return 0;
}

/* A string, or a word: number, true, false, null. */
static int read_value(struct json_reader *r)
{
	size_t before;

	skip_space(r);
	if (*r->p == '"')
		return read_string(r);
	before = r->length;
	while (isalnum((unsigned char)*r->p) || (*r->p && strchr("+-.", *r->p)))
		emit(r, *r->p++);
	return r->length > before ? 0 : -EINVAL;
}

/* The members one by one; the last of that name counts. */
static int read_members(struct json_reader *r, const char *key, char *value,
	size_t size, int *found)
{
	do {
		char name[64] = "";
		bool match;

		*r = (struct json_reader){r->p, name, sizeof(name), 0};
		if (read_string(r))
			return -EINVAL;
		name[r->length < sizeof(name) ? r->length : 0] = '\0';
		match = !strcmp(name, key);
		if (!take_char(r, ':'))
			return -EINVAL;
		*r = (struct json_reader){r->p, match ? value : NULL, size, 0};
		if (read_value(r))
			return -EINVAL;
		if (!match)
			continue;
		*found = r->length < size ? (int)r->length : -ENOSPC;
		if (*found >= 0)
			value[*found] = '\0';
	} while (take_char(r, ','));
	return 0;
}

int json_member(const char *text, const char *key, char *value, size_t size)
{
	struct json_reader r = {.p = text};
	int found = -ENOENT;

	if (!take_char(&r, '{'))
		return -EINVAL;
	if (!take_char(&r, '}')) {
		if (read_members(&r, key, value, size, &found))
			return -EINVAL;
		if (!take_char(&r, '}'))
			return -EINVAL;
	}
	skip_space(&r);
	return *r.p ? -EINVAL : found;
}
