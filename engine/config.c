/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.c: the defaults of the keys, and what fits together.
 *
 * What depends on several keys (a share of cache-size, block against page)
 * waits for engine_config_check(), so the order of the keys never matters.
 * Nothing is opened here. Any thread may call; one at a time for one config.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config-keys.h"

#define CACHE_SIZE_MOST (UINT64_C(1) << 30) /* bytes; of the default */
#define PAGE_SIZE_DEFAULT (64U << 10)
#define BLOCK_SIZE_DEFAULT (4U << 10)
#define DIRTY_LIMIT_MIN (UINT64_C(8) << 10) /* bytes */
#define DIRTY_LIMIT_PERCENT 50U             /* of cache-size */
#define DIRTY_EXPIRE_DEFAULT (30 * NSEC_PER_SEC)
#define ERROR_TIMEOUT_DEFAULT (600 * NSEC_PER_SEC)
#define READAHEAD_DEFAULT (UINT64_C(2) << 20)
/* Four of the longest writes: keeps 4 GB/s busy at 1 ms of latency, and a read
 * that misses at 100 MB/s waits for 40 ms of it. */
#define WRITEBACK_INFLIGHT_DEFAULT (UINT64_C(4) << 20)
#define INFLIGHT_DEFAULT ((uint64_t)ENGINE_MAX_REQUEST)

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
		.subpage = true,
		.multipage = true,
		.dirty_expire_ns = DIRTY_EXPIRE_DEFAULT,
		.error_timeout_ns = ERROR_TIMEOUT_DEFAULT,
		.readahead = READAHEAD_DEFAULT,
		.writeback_inflight = WRITEBACK_INFLIGHT_DEFAULT,
		.inflight_bytes = INFLIGHT_DEFAULT,
	};
}

void engine_config_free(struct engine_config *c)
{
	free(c->store);
	c->store = NULL;
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

/* The other key was not given: name the one that was. */
static int refuse_small_cache(
	const struct engine_config *c, struct error *error)
{
	char ta[24], tb[24];

	return error_set(error, -EINVAL,
		"cache-size=%s: less than a page, page-size=%s",
		exact(c->cache_size, ta), exact(c->page_size, tb));
}

static uint64_t share(uint64_t whole, unsigned percent)
{
	return whole / 100 * percent + whole % 100 * percent / 100;
}

static int check_limit(struct engine_config *c, struct error *error)
{
	char t[24];

	if (!c->dirty_limit && !c->dirty_limit_percent &&
		!engine_config_was_set(c, "dirty-limit"))
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

	if (engine_config_was_set(c, "dirty-background"))
		c->background_follows = false;
	else if (!c->dirty_background)
		c->background_follows = true;
	if (c->background_follows)
		c->dirty_background = c->dirty_limit / 2;
	if (c->dirty_background_percent)
		c->dirty_background =
			share(c->cache_size, c->dirty_background_percent);
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
	if (c->page_size > c->cache_size &&
		!engine_config_was_set(c, "page-size"))
		return refuse_small_cache(c, error);
	err = refuse_larger(
		"page-size", c->page_size, "cache-size", c->cache_size, error);
	if (err)
		return err;
	err = refuse_larger("block-size", c->block_size, "writeback-inflight",
		c->writeback_inflight, error);
	if (err)
		return err;
	err = check_limit(c, error);
	if (err)
		return err;
	return check_background(c, error);
}
