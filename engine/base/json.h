/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.h: write JSON as text, and read the few members of a flat object.
 *
 * The writer puts the commas. A failed allocation is remembered, and
 * json_take() then says NULL, so that the calls need no checks.
 */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char *text; /* owned */
	size_t length, room;
	bool failed;
	bool comma; /* due before the next value */
};

#define JSON_INIT                                                              \
	{                                                                      \
		0                                                              \
	}

/* `key` is NULL for an element of an array, and for the outermost value. */
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_end_array(struct json *j);
void json_string(struct json *j, const char *key, const char *value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_bool(struct json *j, const char *key, bool value);

/* A value that is JSON already; NULL counts as a failed allocation. */
void json_raw(struct json *j, const char *key, const char *value);

/* The text, to free(); NULL: no memory. `j` is as new. */
char *json_take(struct json *j);

/*
 * The member `key` of a flat JSON object, as text: a string unescaped
 * (\uXXXX beyond ASCII is not), a number, true, false or null as written.
 * Returns its length, -ENOENT if it is not there, -EINVAL if `text` is no flat
 * object, -ENOSPC if it does not fit in `size` bytes with the final NUL.
 */
int json_member(const char *text, const char *key, char *value, size_t size);

#endif
