/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-plan.c: what a seed stands for.
 *
 * Everything is small, so that limits are met and ranges overlap all the
 * time, and so that a seed that fails is short.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model.h"
#include "placement/placement.h"

#define POOL_UNIT 4096U
#define POOL_JOURNAL (256U << 10) /* bytes; the smallest: it wraps soon */

static uint64_t between(uint64_t *random, uint64_t low, uint64_t high)
{
	return low + random_below(random, high - low + 1);
}

static bool percent(uint64_t *random, unsigned n)
{
	return random_below(random, 100) < n;
}

static void plan_sizes(struct plan *p, uint64_t *random)
{
	unsigned page = (unsigned)between(random, 12, 20);
	unsigned block = (unsigned)between(random, 9, page);
	uint64_t pages;

	if (percent(random, 50)) /* the usual ones, more often */
		page = (unsigned)between(random, 12, 16);
	if (block > page || percent(random, 30))
		block = 12;
	p->page_size = 1U << page;
	p->block_size = 1U << block;
	pages = between(random, 1, page > 16 ? 4 : 16);
	p->size = pages * p->page_size;
	if (percent(random, 70)) /* not a multiple of anything above 512 */
		p->size -= SECTOR * random_below(random, p->page_size / SECTOR);
	if (!p->size)
		p->size = SECTOR;
	p->cache_size = UINT64_C(65536) << random_below(random, 7);
	if (p->cache_size < p->page_size)
		p->cache_size = p->page_size;
}

static void plan_limits(struct plan *p, uint64_t *random)
{
	uint64_t least = p->block_size > 8192 ? p->block_size : 8192;

	p->dirty_limit = between(random, least, p->cache_size);
	if (percent(random, 30))
		p->dirty_limit = least;
	else if (percent(random, 30))
		p->dirty_limit = p->cache_size;
	p->dirty_background = random_below(random, p->dirty_limit);
	p->dirty_expire_ns = between(random, 1, 30000) * NSEC_PER_MSEC;
	p->error_timeout_ns = 600 * NSEC_PER_SEC;
}

static void plan_exports(struct plan *p, uint64_t *random)
{
	unsigned others;

	p->exports = (unsigned)between(random, 1, MODEL_EXPORTS);
	p->clients = (unsigned)between(random, 1, MODEL_CLIENTS);
	p->depth = (unsigned)between(random, 1, 24);
	/* One mode, as most have it, or any mix over the same ranges. */
	others = percent(random, 50) ? 10 : 60;
	for (unsigned i = 0; i < p->exports; i++) {
		p->mode[i] = ENGINE_WRITEBACK;
		if (percent(random, others))
			p->mode[i] = percent(random, 50) ? ENGINE_WRITETHROUGH
							 : ENGINE_NONE;
		p->readonly[i] = i > 0 && percent(random, 15);
	}
	if (percent(random, 50))
		p->detect = percent(random, 50) ? ENGINE_DETECT_ON
						: ENGINE_DETECT_UNMAP;
}

static void plan_faults(struct plan *p, uint64_t *random)
{
	static const unsigned faults[] = {FAULT_READ, FAULT_WRITE, FAULT_FLUSH,
		FAULT_SHORT, FAULT_DELAY, FAULT_HANG};

	if (percent(random, 70))
		p->faults |= FAULT_DELAY;
	if (percent(random, 50))
		return;
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		if (percent(random, 40))
			p->faults |= faults[i];
	}
	if (percent(random, 30))
		p->error_timeout_ns = between(random, 1, 5000) * NSEC_PER_MSEC;
}

static void plan_weights(struct plan *p, uint64_t *random)
{
	p->weight[ENGINE_READ] = (unsigned)between(random, 10, 60);
	p->weight[ENGINE_WRITE] = (unsigned)between(random, 10, 80);
	p->weight[ENGINE_FLUSH] = (unsigned)between(random, 0, 8);
	p->weight[ENGINE_TRIM] = (unsigned)between(random, 0, 8);
	p->weight[ENGINE_ZERO] = (unsigned)between(random, 0, 8);
	p->weight[ENGINE_CACHE] = (unsigned)between(random, 0, 4);
	p->weight[ENGINE_STATUS] = (unsigned)between(random, 0, 4);
}

/* What a pool can have: whole units of 4K; more trims, and power cuts. */
static void plan_pool(struct plan *p, uint64_t *random)
{
	p->block_size = p->block_size < POOL_UNIT ? POOL_UNIT : p->block_size;
	p->size = (p->size + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT;
	if (p->dirty_limit < 2 * p->block_size)
		p->dirty_limit = 2 * p->block_size;
	if (p->cache_size < p->dirty_limit)
		p->cache_size = p->dirty_limit;
	p->prefilled = false;
	p->journal_size = POOL_JOURNAL;
	p->tight = percent(random, 25) || p->sabotage;
	if (p->sabotage) { /* much at once, and space that is soon used again */
		p->faults = FAULT_DELAY;
		p->depth = 24;
	}
	p->space = POOL_SPACE_MIN + p->journal_size + 3 * p->size;
	if (p->tight)
		p->space = POOL_SPACE_MIN +
			random_below(random, p->size / POOL_UNIT + 1) *
				POOL_UNIT;
	p->weight[ENGINE_TRIM] *= 3;
	p->weight[ENGINE_ZERO] *= 2;
	p->immediate = percent(random, 30);
	p->serial = percent(random, 30);
	if (percent(random, 70)) {
		p->end = END_POWER_CUT;
		p->lives = (unsigned)between(random, 2, 5);
	}
}

void plan_make(struct plan *p, uint64_t seed, unsigned ops)
{
	uint64_t random = seed;
	unsigned sabotage = p->sabotage;
	bool pool = p->pool;

	memset(p, 0, sizeof(*p));
	p->pool = pool;
	p->sabotage = sabotage;
	p->seed = seed;
	plan_sizes(p, &random);
	plan_limits(p, &random);
	plan_exports(p, &random);
	plan_faults(p, &random);
	plan_weights(p, &random);
	p->prefilled = percent(&random, 70);
	p->lives = 1;
	if (percent(&random, 40)) {
		p->end = percent(&random, 60) ? END_POWER_CUT : END_SHUTDOWN;
		p->lives = 2;
	}
	p->ops = (unsigned)between(&random, 10, 150);
	if (ops)
		p->ops = ops;
	p->subpage = percent(&random, 70);
	p->multipage = percent(&random, 70);
	if (percent(&random, 70))
		p->readahead = p->page_size << random_below(&random, 5);
	if (percent(&random, 50))
		p->follow = (unsigned)between(&random, 1, 80);
	p->throttle = (enum engine_throttle)random_below(&random, 3);
	if (pool)
		plan_pool(p, &random);
	p->changing = percent(&random, 40);
}

void plan_print(const struct plan *p, char *buf, size_t size)
{
	static const char *const ends[] = {"in order", "shutdown", "power cut"};
	static const char *const throttles[] = {"ioless", "legacy", "off"};
	static const char modes[] = "btn"; /* back, through, none */
	char exports[16 * MODEL_EXPORTS];
	size_t n = 0;

	for (unsigned i = 0; i < p->exports; i++)
		n += (size_t)snprintf(exports + n, sizeof(exports) - n, "%c%s",
			modes[p->mode[i]], p->readonly[i] ? "r" : "");
	snprintf(buf, size,
		"size=%" PRIu64 " page=%" PRIu32 " block=%" PRIu32
		"%s%s%s%s readahead=%" PRIu64 " cache=%" PRIu64
		" limit=%" PRIu64 " background=%" PRIu64
		" exports=%s detect=%u clients=%u depth=%u faults=%#x"
		" throttle=%s end=%s ops=%u%s",
		p->size, p->page_size, p->block_size,
		p->subpage ? "" : " subpage=off",
		p->multipage ? "" : " multipage=off",
		p->immediate ? " immediate" : "", p->serial ? " serial" : "",
		p->readahead, p->cache_size, p->dirty_limit,
		p->dirty_background, exports, p->detect, p->clients, p->depth,
		p->faults, throttles[p->throttle], ends[p->end], p->ops,
		p->changing ? " changing" : "");
}
