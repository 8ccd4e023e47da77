/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spec.c: see spec.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spec.h"

size_t spec_kind_length(const char *spec)
{
	size_t n = strspn(spec, "abcdefghijklmnopqrstuvwxyz0123456789+-");

	return spec[n] == ':' ? n : 0;
}

/* The length of the part that starts at `text`: up to a comma at depth 0. */
static int part_length(const char *text, size_t *length, struct error *error)
{
	unsigned depth = 0;
	size_t n;

	for (n = 0; text[n] && (depth || text[n] != ','); n++) {
		if (text[n] == '[') {
			depth++;
		} else if (text[n] == ']') {
			if (!depth--)
				return error_set(error, -EINVAL,
					"\"]\" without \"[\" in \"%s\"", text);
			if (!depth && text[0] == '[' && text[n + 1] &&
				text[n + 1] != ',')
				return error_set(error, -EINVAL,
					"\"%s\" after \"]\": a comma is "
					"missing",
					&text[n + 1]);
		}
	}
	if (depth)
		return error_set(
			error, -EINVAL, "\"[\" is not closed in \"%s\"", text);
	*length = n;
	return 0;
}

static int part_add(struct spec_list *list, const char *text, size_t length,
	struct error *error)
{
	if (length && text[0] == '[') {
		text++;
		length -= 2;
	}
	if (!length)
		return error_set(error, -EINVAL, "a part is empty");
	if (list->count == SPEC_MAX_PARTS)
		return error_set(
			error, -EINVAL, "more than %d parts", SPEC_MAX_PARTS);
	list->part[list->count] = strndup(text, length);
	if (!list->part[list->count])
		return error_set(error, -ENOMEM, "out of memory");
	list->count++;
	return 0;
}

int spec_split(const char *rest, struct spec_list *out, struct error *error)
{
	size_t length = 0;
	int err;

	out->count = 0;
	for (;; rest += length + 1) {
		err = part_length(rest, &length, error);
		if (!err)
			err = part_add(out, rest, length, error);
		if (err) {
			spec_list_free(out);
			return err;
		}
		if (!rest[length])
			return 0;
	}
}

void spec_list_free(struct spec_list *list)
{
	while (list->count)
		free(list->part[--list->count]);
}

int spec_option(char *part, char **value, struct error *error)
{
	char *equals = strchr(part, '=');

	if (!equals)
		return error_set(error, -EINVAL,
			"\"%s\" is not KEY=VALUE (an inner spec comes last, "
			"in brackets if it has commas)",
			part);
	*equals = '\0';
	*value = equals + 1;
	return 0;
}
