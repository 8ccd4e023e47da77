/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config-parse.c: key=value, the same keys for every front end.
 *
 *  1. engine_config_set() judges one value by itself, and changes nothing if
 *     it refuses.
 *  2. Every refusal is one line that starts with KEY=VALUE.
 *  3. A key given twice takes the later value.
 *
 * Any thread may call; one at a time for one config.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/spell.h"
#include "config-keys.h"

#define KEY_ROW(member, key, arg, type, help)                                  \
	{.name = key, .at = offsetof(struct engine_config, member), type},

#define KEY_HELP(member, key, arg, type, help) "  " key "=" arg IND help "\n"

static const struct key keys[] = {KEYS(KEY_ROW)};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))

const char engine_config_help[] = KEYS(KEY_HELP);

/* --- which key ----------------------------------------------------------- */

static int unknown_key(const char *key, const char *value, struct error *error)
{
	const char *nearest = NULL;
	unsigned best = SPELL_FAR;

	for (size_t i = 0; i < NKEYS; i++) {
		if (spell_nearer(key, keys[i].name, &best))
			nearest = keys[i].name;
	}
	if (nearest)
		return error_set(error, -EINVAL,
			"%s=%s: unknown key, did you mean %s=?", key, value,
			nearest);
	return error_set(error, -EINVAL, "%s=%s: unknown key", key, value);
}

static const struct key *find_key(const char *name, unsigned *bit)
{
	for (size_t i = 0; i < NKEYS; i++) {
		if (strcmp(keys[i].name, name) == 0) {
			*bit = 1U << i;
			return &keys[i];
		}
	}
	return NULL;
}

const struct key *config_key(unsigned n)
{
	return n < NKEYS ? &keys[n] : NULL;
}

int config_check_live(const char *key, const char *value, struct error *error)
{
	unsigned bit;
	const struct key *k = find_key(key, &bit);

	if (!k)
		return unknown_key(key, value, error);
	if (!k->live)
		return error_set(error, -EINVAL,
			"%s: cannot be changed while the store is open", key);
	return 0;
}

bool engine_config_was_set(const struct engine_config *c, const char *name)
{
	unsigned bit = 0;

	find_key(name, &bit);
	return c->set & bit;
}

/* --- one value ----------------------------------------------------------- */

/* Why a value is bad, for after "KEY=VALUE: "; NULL if it was taken. */
typedef const char *(*set_fn)(
	const struct key *k, const char *value, void *at, unsigned *percent);

/* That value: the words there are follow. */
static const char not_a_word[] = "";

static const char *set_text(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	char *copy;

	(void)k, (void)percent;
	if (!*value)
		return "empty";
	copy = strdup(value);
	if (!copy)
		return "out of memory";
	free(*(char **)at);
	*(char **)at = copy;
	return NULL;
}

static const char *set_enum(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	(void)percent;
	for (unsigned i = 0; k->words[i]; i++) {
		if (strcmp(value, k->words[i]) == 0) {
			*(unsigned *)at = i;
			return NULL;
		}
	}
	return not_a_word;
}

static const char *set_bool(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	(void)k, (void)percent;
	return bool_parse(value, at) ? "must be yes or no" : NULL;
}

static const char *parse_size(const char *value, uint64_t *bytes)
{
	switch (size_parse(value, bytes)) {
	case 0:
		return NULL;
	case -ERANGE:
		return "too large, or not a whole number of bytes";
	default:
		return "bad size, write it like 4096, 64K, 1.5G or 2T";
	}
}

static const char *set_size(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	uint64_t bytes;
	const char *why = parse_size(value, &bytes);

	(void)percent;
	if (why)
		return why;
	if (bytes < k->min)
		return "must be more than 0";
	*(uint64_t *)at = bytes;
	return NULL;
}

static const char *set_power(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	uint64_t bytes;
	const char *why = parse_size(value, &bytes);

	(void)percent;
	if (why)
		return why;
	if (bytes < k->min || bytes > PAGE_SIZE_MAX || (bytes & (bytes - 1)))
		return k->min == PAGE_SIZE_MIN
			? "must be a power of two from 4K to 1M"
			: "must be a power of two from 512 to 1M";
	*(uint32_t *)at = (uint32_t)bytes;
	return NULL;
}

static const char *set_share(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	char *end;
	unsigned long n;
	const char *why;

	(void)k;
	if (!strchr(value, '%')) {
		why = parse_size(value, at);
		if (!why)
			*percent = 0;
		return why;
	}
	n = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || strcmp(end, "%") != 0)
		return "bad share, write it like 50%";
	if (n < 1 || n > 100)
		return "must be from 1% to 100% of cache-size";
	*percent = (unsigned)n;
	*(uint64_t *)at = 0;
	return NULL;
}

static const char *set_time(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	(void)k, (void)percent;
	switch (time_parse(value, at)) {
	case 0:
		return NULL;
	case -ERANGE:
		return "too long a time";
	default:
		return "bad time, write it like 30s, 200ms, 10m or 1h";
	}
}

/* "must be A, B or C" */
static const char *must_be(const struct key *k, char *text, size_t size)
{
	size_t n = (size_t)snprintf(text, size, "must be %s", k->words[0]);

	for (unsigned i = 1; k->words[i] && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s",
			k->words[i + 1] ? ", " : " or ", k->words[i]);
	return text;
}

int engine_config_set(struct engine_config *c, const char *key,
	const char *value, struct error *error)
{
	static const set_fn set[] = {
		[KIND_TEXT] = set_text,
		[KIND_ENUM] = set_enum,
		[KIND_BOOL] = set_bool,
		[KIND_SIZE] = set_size,
		[KIND_POWER] = set_power,
		[KIND_SHARE] = set_share,
		[KIND_TIME] = set_time,
	};
	unsigned bit = 0;
	const struct key *k = find_key(key, &bit);
	const char *why;
	char text[128];

	if (!k)
		return unknown_key(key, value, error);
	if (k->off && strcmp(value, "off") == 0)
		value = "0";
	why = set[k->kind](k, value, (char *)c + k->at,
		(unsigned *)(void *)((char *)c + k->percent_at));
	if (why == not_a_word)
		why = must_be(k, text, sizeof(text));
	if (why)
		return error_set(error, -EINVAL, "%s=%s: %s", key, value, why);
	c->set |= bit;
	return 0;
}
