/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c: key=value, the same keys and defaults for every front end.
 *
 * One table (KEYS) makes the parser, the help text and the suggestions, so
 * they cannot disagree.
 *
 *  1. engine_config_set() judges one value by itself; what depends on other
 *     keys (a share of cache-size, block against page) waits for
 *     engine_config_check(), so the order of the keys never matters.
 *  2. Every refusal is one line that starts with KEY=VALUE.
 *  3. Nothing is opened here. A key given twice takes the later value.
 *
 * Any thread may call; one at a time for one config.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine.h"
#include "base/size.h"

#define CACHE_SIZE_MOST (UINT64_C(1) << 30) /* bytes; of the default */
#define PAGE_SIZE_DEFAULT (64U << 10)
#define PAGE_SIZE_MIN (4U << 10)
#define PAGE_SIZE_MAX (1U << 20)
#define BLOCK_SIZE_DEFAULT (4U << 10)
#define BLOCK_SIZE_MIN 512U
#define DIRTY_LIMIT_MIN (UINT64_C(8) << 10) /* bytes */
#define DIRTY_LIMIT_PERCENT 50U             /* of cache-size */
#define DIRTY_EXPIRE_DEFAULT (30 * NSEC_PER_SEC)
#define ERROR_TIMEOUT_DEFAULT (600 * NSEC_PER_SEC)
#define INFLIGHT_DEFAULT ((uint64_t)ENGINE_MAX_REQUEST)

/* What a value may be, and the type of the member it fills. */
enum kind {
	KIND_TEXT,  /* char *, owned */
	KIND_CACHE, /* enum engine_cache_mode */
	KIND_BOOL,  /* bool */
	KIND_SIZE,  /* uint64_t, not 0 */
	KIND_POWER, /* uint32_t, a power of two in [min, PAGE_SIZE_MAX] */
	KIND_SHARE, /* uint64_t, or `percent`: a share of cache-size */
	KIND_TIME,  /* uint64_t of nanoseconds */
};

#define IND "\n        "

/* X(key, argument, kind, member, percent or member, min, help) */
#define KEYS(X)                                                                \
	X(store, "store", "SPEC", KIND_TEXT, store, 0,                         \
		"where the blocks end up: raw:PATH or just PATH, "             \
		"mem:SIZE," IND                                                \
		"null:SIZE, sim:OPTIONS,INNER, fault:OPTIONS,INNER")           \
	X(cache, "cache", "MODE", KIND_CACHE, cache, 0,                        \
		"writeback (default), writethrough or none")                   \
	X(cache_size, "cache-size", "SIZE", KIND_SIZE, cache_size, 0,          \
		"memory for cached data (default 1G, or a quarter of" IND      \
		"memory if that is less)")                                     \
	X(page_size, "page-size", "SIZE", KIND_POWER, page_size,               \
		PAGE_SIZE_MIN, "unit of lookup, 4K to 1M (default 64K)")       \
	X(block_size, "block-size", "SIZE", KIND_POWER, block_size,            \
		BLOCK_SIZE_MIN,                                                \
		"unit of state, 512 to page-size (default 4K)")                \
	X(dirty_limit, "dirty-limit", "SIZE|N%", KIND_SHARE,                   \
		dirty_limit_percent, 0,                                        \
		"most data not yet durable, N% is of cache-size" IND           \
		"(default 50%)")                                               \
	X(dirty_background, "dirty-background", "SIZE|N%", KIND_SHARE,         \
		dirty_background_percent, 0,                                   \
		"write back above this, N% is of cache-size" IND               \
		"(default half of dirty-limit)")                               \
	X(dirty_expire_ns, "dirty-expire", "TIME", KIND_TIME, dirty_expire_ns, \
		0, "write back what is dirty for longer (default 30s)")        \
	X(readonly, "readonly", "BOOL", KIND_BOOL, readonly, 0,                \
		"refuse to change the store (default no)")                     \
	X(error_timeout_ns, "error-timeout", "TIME", KIND_TIME,                \
		error_timeout_ns, 0,                                           \
		"when the store has refused a range for longer, writes to "    \
		"it" IND "answer EIO at once (default 10m)")                   \
	X(inflight_bytes, "inflight-bytes", "SIZE", KIND_SIZE, inflight_bytes, \
		0, "payload in flight of one connection (default 32M)")

struct key {
	const char *name;
	enum kind kind;
	size_t at, percent_at; /* in struct engine_config */
	uint32_t min;          /* KIND_POWER: bytes */
};

#define KEY_ROW(member, key, arg, k, percent, lo, help)                        \
	{key, k, offsetof(struct engine_config, member),                       \
		offsetof(struct engine_config, percent), lo},

#define KEY_HELP(member, key, arg, k, percent, lo, help)                       \
	"  " key "=" arg IND help "\n"

static const struct key keys[] = {KEYS(KEY_ROW)};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))

const char engine_config_help[] = KEYS(KEY_HELP);

/* --- defaults ------------------------------------------------------------ */

/* 1G, or a quarter of memory if that is less, in whole MiB. */
static uint64_t default_cache_size(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t quarter;

	if (pages <= 0 || size <= 0)
		return CACHE_SIZE_MOST;
	quarter = (uint64_t)pages * (uint64_t)size / 4;
	quarter &= ~((UINT64_C(1) << 20) - 1);
	return quarter < CACHE_SIZE_MOST ? quarter : CACHE_SIZE_MOST;
}

void engine_config_init(struct engine_config *c)
{
	*c = (struct engine_config){
		.cache = ENGINE_WRITEBACK,
		.cache_size = default_cache_size(),
		.page_size = PAGE_SIZE_DEFAULT,
		.block_size = BLOCK_SIZE_DEFAULT,
		.dirty_expire_ns = DIRTY_EXPIRE_DEFAULT,
		.error_timeout_ns = ERROR_TIMEOUT_DEFAULT,
		.inflight_bytes = INFLIGHT_DEFAULT,
	};
}

void engine_config_free(struct engine_config *c)
{
	free(c->store);
	c->store = NULL;
}

/* --- which key ----------------------------------------------------------- */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edit distance (Levenshtein), '_' as '-'; words of 31 letters at most. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[32];
	size_t n = strlen(b);

	if (n >= 32 || strlen(a) >= 32)
		return 32;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		char ch = a[i - 1] == '_' ? '-' : a[i - 1];
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned cost = diagonal + (ch != b[j - 1]);

			diagonal = row[j];
			row[j] = min3(cost, row[j] + 1, row[j - 1] + 1);
		}
	}
	return row[n];
}

static int unknown_key(const char *key, const char *value, struct error *error)
{
	const char *nearest = NULL;
	unsigned best = 4; /* further than three letters off is another word */

	for (size_t i = 0; i < NKEYS; i++) {
		unsigned d = edit_distance(key, keys[i].name);

		if (d < best && 2 * d < strlen(keys[i].name)) {
			best = d;
			nearest = keys[i].name;
		}
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

static bool was_set(const struct engine_config *c, const char *name)
{
	unsigned bit = 0;

	find_key(name, &bit);
	return c->set & bit;
}

/* --- one value ----------------------------------------------------------- */

/* Why a value is bad, for after "KEY=VALUE: "; NULL if it was taken. */
typedef const char *(*set_fn)(
	const struct key *k, const char *value, void *at, unsigned *percent);

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

static const char *set_cache(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	static const char *const names[] = {
		[ENGINE_WRITEBACK] = "writeback",
		[ENGINE_WRITETHROUGH] = "writethrough",
		[ENGINE_NONE] = "none",
	};

	(void)k, (void)percent;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) == 0) {
			*(enum engine_cache_mode *)at =
				(enum engine_cache_mode)i;
			return NULL;
		}
	}
	return "must be writeback, writethrough or none";
}

static const char *set_bool(
	const struct key *k, const char *value, void *at, unsigned *percent)
{
	static const char *const names[] = {
		"no", "yes", "false", "true", "off", "on", "0", "1"};

	(void)k, (void)percent;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(value, names[i]) == 0) {
			*(bool *)at = i % 2;
			return NULL;
		}
	}
	return "must be yes or no";
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

	(void)k, (void)percent;
	if (why)
		return why;
	if (!bytes)
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

int engine_config_set(struct engine_config *c, const char *key,
	const char *value, struct error *error)
{
	static const set_fn set[] = {
		[KIND_TEXT] = set_text,
		[KIND_CACHE] = set_cache,
		[KIND_BOOL] = set_bool,
		[KIND_SIZE] = set_size,
		[KIND_POWER] = set_power,
		[KIND_SHARE] = set_share,
		[KIND_TIME] = set_time,
	};
	unsigned bit = 0;
	const struct key *k = find_key(key, &bit);
	const char *why;

	if (!k)
		return unknown_key(key, value, error);
	why = set[k->kind](k, value, (char *)c + k->at,
		(unsigned *)(void *)((char *)c + k->percent_at));
	if (why)
		return error_set(error, -EINVAL, "%s=%s: %s", key, value, why);
	c->set |= bit;
	return 0;
}

/* --- all together -------------------------------------------------------- */

/* A size exactly, in the largest unit it is a whole number of. */
static const char *exact(uint64_t bytes, char buf[24])
{
	static const char units[] = "\0KMGTPE";
	unsigned u = 0;

	while (bytes && u < 6 && bytes % 1024 == 0) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, 24, "%" PRIu64 "%.1s", bytes, &units[u]);
	return buf;
}

/* "KEY=A: larger than OTHER=B" if a > b. */
static int refuse_larger(const char *key, uint64_t a, const char *other,
	uint64_t b, struct error *error)
{
	char ta[24], tb[24];

	if (a <= b)
		return 0;
	return error_set(error, -EINVAL, "%s=%s: larger than %s=%s", key,
		exact(a, ta), other, exact(b, tb));
}

static uint64_t share(uint64_t whole, unsigned percent)
{
	return whole / 100 * percent + whole % 100 * percent / 100;
}

static int check_limit(struct engine_config *c, struct error *error)
{
	char t[24];

	if (!c->dirty_limit && !c->dirty_limit_percent &&
		!was_set(c, "dirty-limit"))
		c->dirty_limit_percent = DIRTY_LIMIT_PERCENT;
	if (c->dirty_limit_percent)
		c->dirty_limit = share(c->cache_size, c->dirty_limit_percent);
	if (c->dirty_limit < DIRTY_LIMIT_MIN)
		return error_set(error, -EINVAL,
			"dirty-limit=%s: must be 8K or more",
			exact(c->dirty_limit, t));
	if (c->dirty_limit < c->block_size)
		return refuse_larger("block-size", c->block_size, "dirty-limit",
			c->dirty_limit, error);
	return refuse_larger("dirty-limit", c->dirty_limit, "cache-size",
		c->cache_size, error);
}

/* The limit itself leaves no room to pace in, so half is taken instead. */
static int check_background(struct engine_config *c, struct error *error)
{
	char t[24];
	int err;

	if (c->dirty_background_percent)
		c->dirty_background =
			share(c->cache_size, c->dirty_background_percent);
	else if (!c->dirty_background && !was_set(c, "dirty-background"))
		c->dirty_background = c->dirty_limit / 2;
	if (c->dirty_background_percent && c->dirty_background > c->dirty_limit)
		return error_set(error, -EINVAL,
			"dirty-background=%u%%: larger than dirty-limit=%s",
			c->dirty_background_percent, exact(c->dirty_limit, t));
	err = refuse_larger("dirty-background", c->dirty_background,
		"dirty-limit", c->dirty_limit, error);
	if (err)
		return err;
	if (c->dirty_background == c->dirty_limit)
		c->dirty_background = c->dirty_limit / 2;
	return 0;
}

int engine_config_check(struct engine_config *c, struct error *error)
{
	int err;

	if (!c->store)
		return error_set(error, -EINVAL,
			"store=: missing, say where the blocks end up, "
			"like store=raw:/path/to/disk.img");
	err = refuse_larger(
		"block-size", c->block_size, "page-size", c->page_size, error);
	if (err)
		return err;
	err = refuse_larger(
		"page-size", c->page_size, "cache-size", c->cache_size, error);
	if (err)
		return err;
	err = check_limit(c, error);
	if (err)
		return err;
	return check_background(c, error);
}
