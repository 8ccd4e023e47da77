/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config-diff.c: two configurations of one store, key by key.
 */
#include <stdio.h>
#include <string.h>

#include "config-keys.h"

static size_t size_of(const struct key *k)
{
	switch (k->kind) {
	case KIND_BOOL:
		return sizeof(bool);
	case KIND_ENUM:
	case KIND_POWER:
		return sizeof(uint32_t);
	case KIND_TEXT:
		return sizeof(char *);
	default:
		return sizeof(uint64_t);
	}
}

static const void *value(const struct key *k, const struct engine_config *c)
{
	return (const char *)c + k->at;
}

static const char *text_of(const struct key *k, const struct engine_config *c)
{
	const char *text;

	memcpy(&text, value(k, c), sizeof(text));
	return text ? text : "";
}

bool config_same(const struct key *k, const struct engine_config *a,
	const struct engine_config *b)
{
	if (k->kind == KIND_TEXT)
		return !strcmp(text_of(k, a), text_of(k, b));
	return !memcmp(value(k, a), value(k, b), size_of(k));
}

void config_copy(const struct key *k, struct engine_config *to,
	const struct engine_config *from)
{
	unsigned bit = 0;

	for (unsigned i = 0; config_key(i); i++) {
		if (config_key(i) == k)
			bit = 1U << i;
	}
	memcpy((char *)to + k->at, value(k, from), size_of(k));
	if (k->kind == KIND_SHARE)
		memcpy((char *)to + k->percent_at,
			(const char *)from + k->percent_at, sizeof(unsigned));
	if (k->at == offsetof(struct engine_config, dirty_background))
		to->background_follows = from->background_follows;
	to->set = (to->set & ~bit) | (from->set & bit);
}

unsigned engine_config_diff(const struct engine_config *a,
	const struct engine_config *b, bool live, char *text, size_t size)
{
	const struct key *k;
	unsigned n = 0;
	size_t at = 0;

	*text = '\0';
	for (unsigned i = 0; (k = config_key(i)); i++) {
		if (k->of_export || k->live != live || config_same(k, a, b))
			continue;
		if (at < size)
			at += (size_t)snprintf(text + at, size - at, "%s%s",
				n ? ", " : "", k->name);
		n++;
	}
	return n;
}
