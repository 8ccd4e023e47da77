/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.c: counters, and the JSON of one store.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config-keys.h"
#include "engine-impl.h"

static void set(json_t *j, const char *key, uint64_t n)
{
	json_object_set_new(j, key, json_integer((json_int_t)n));
}

/* --- counters ------------------------------------------------------------ */

uint64_t stats_requests_inside(struct engine *e)
{
	uint64_t entered = 0, left = 0;

	/* What left is read first: one that leaves in between counts. */
	for (unsigned i = 0; i < STRIPES; i++)
		left += atomic_load(&e->stripe[i].left);
	for (unsigned i = 0; i < STRIPES; i++)
		entered += atomic_load(&e->stripe[i].entered);
	return entered - left;
}

static void ops_json(struct engine *e, json_t *j)
{
	static const char *const name[7] = {
		"read", "write", "flush", "trim", "zero", "cache", "status"};
	json_t *all = json_object();

	for (unsigned op = 0; op < 7; op++) {
		uint64_t ops = 0, bytes = 0;
		json_t *one = json_object();

		for (unsigned i = 0; i < STRIPES; i++) {
			ops += atomic_load(&e->stripe[i].op[op].ops);
			bytes += atomic_load(&e->stripe[i].op[op].bytes);
		}
		set(one, "ops", ops);
		set(one, "bytes", bytes);
		json_object_set_new(all, name[op], one);
	}
	json_object_set_new(j, "requests", all);
}

static uint64_t rss_bytes(void)
{
	unsigned long long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void cache_json(struct engine *e, json_t *j)
{
	struct cache_counts c;

	cache_counts(e->cache, &c);
	set(j, "dirty_bytes", c.dirty);
	set(j, "writeback_bytes", c.writeback);
	set(j, "unstable_bytes", c.unstable);
	set(j, "charged_bytes", c.charged);
	set(j, "dirty_peak_bytes", c.dirty_peak);
	set(j, "cached_bytes", c.cached);
	set(j, "cached_pages", c.pages);
	set(j, "hits", c.hits);
	set(j, "misses", c.misses);
	set(j, "partial_hits", c.partial_hits);
	set(j, "fill_reads", c.fill_reads);
	set(j, "readahead_read_bytes", c.ahead);
	set(j, "readahead_unused_bytes", c.ahead_unused);
	set(j, "reclaimed_pages", c.reclaimed);
}

static void throttle_json(struct engine *e, json_t *j)
{
	struct throttle_counts t;

	throttle_counts(e->throttle, &t);
	set(j, "dirty_limit_bytes", t.limit);
	set(j, "write_bandwidth", t.bandwidth);
	set(j, "freerun_bytes", t.freerun);
	set(j, "setpoint_bytes", t.setpoint);
	set(j, "dirty_ratelimit", t.ratelimit);
	json_object_set_new(j, "position_ratio", json_real(t.position));
	set(j, "throttle_checks", t.checks);
	set(j, "pauses", t.pauses);
	set(j, "pause_us_total", t.pause_us_total);
	set(j, "pause_us_max", t.pause_us_max);
	set(j, "parked_writes", t.parked);
}

static void writeback_json(struct engine *e, json_t *j)
{
	struct writeback_counts w;

	writeback_counts(e->writeback, &w);
	set(j, "store_await_us", w.writes ? w.write_us_total / w.writes : 0);
	set(j, "store_errors", w.errors);
	set(j, "failing_ranges", w.failing);
	json_object_set_new(j, "flush_failing", json_boolean(w.flush_failing));
	set(j, "flusher_passes", w.passes);
}

/* What was asked of the store. */
static void store_json(struct engine *e, json_t *j)
{
	static const char *const ops[STORE_STATUS + 1] = {"store_reads",
		"store_writes", "store_flushes", "store_trims", "store_zeroes",
		"store_statuses"};
	static const char *const bytes[STORE_STATUS + 1] = {"store_read_bytes",
		"store_write_bytes", NULL, "store_trim_bytes",
		"store_zero_bytes", NULL};
	const struct placement_counts *c = &e->placement->counts;

	for (unsigned op = 0; op <= STORE_STATUS; op++) {
		set(j, ops[op], atomic_load(&c->ops[op]));
		if (bytes[op])
			set(j, bytes[op], atomic_load(&c->bytes[op]));
	}
	set(j, "store_queue_depth", atomic_load(&c->depth));
	set(j, "store_busy_us",
		placement_busy_ns(e->placement, reactor_now(e->loops[0])) /
			NSEC_PER_USEC);
}

/* What a pool holds; all 0 without one. */
static void pool_json(struct engine *e, json_t *j)
{
	struct pool_counts p = {0};

	pool_counts(e->placement, &p);
	set(j, "extents", p.extents);
	set(j, "mapped_bytes", p.mapped_bytes);
	set(j, "reserved_bytes", p.reserved_bytes);
	set(j, "free_bytes", p.free_bytes);
	set(j, "journal_commits", p.journal_commits);
	set(j, "journal_bytes", p.journal_bytes);
	set(j, "checkpoints", p.checkpoints);
	set(j, "checkpoint_waits", p.checkpoint_waits);
}

/* --- settings ------------------------------------------------------------ */

/* "dirty-limit" as a counter would be called: dirty_limit_bytes. */
static void setting_name(const struct key *k, char *name, size_t size)
{
	static const char *const unit[] = {
		[KIND_SIZE] = "_bytes",
		[KIND_POWER] = "_bytes",
		[KIND_SHARE] = "_bytes",
		[KIND_TIME] = "_us",
	};
	size_t n = strlen(k->name), u;
	const char *end =
		k->kind < sizeof(unit) / sizeof(unit[0]) ? unit[k->kind] : NULL;

	snprintf(name, size, "%s", k->name);
	for (size_t i = 0; i < n; i++)
		name[i] = name[i] == '-' ? '_' : name[i];
	u = end ? strlen(end) : 0;
	if (u && (n < u || strcmp(name + n - u, end) != 0))
		snprintf(name + n, size - n, "%s", end);
}

static json_t *setting_value(const struct key *k, const void *at)
{
	switch (k->kind) {
	case KIND_ENUM:
		return json_string(k->words[*(const unsigned *)at]);
	case KIND_BOOL:
		return json_boolean(*(const bool *)at);
	case KIND_POWER:
		return json_integer(*(const uint32_t *)at);
	case KIND_TIME:
		return json_integer(
			(json_int_t)(*(const uint64_t *)at / NSEC_PER_USEC));
	case KIND_SIZE:
	case KIND_SHARE:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case KIND_TEXT:
		break;
	}
	return NULL; /* the store, which has its own line */
}

/* Every key as it is now. */
static void settings_json(const struct engine_config *c, json_t *j)
{
	json_t *all = json_object();
	const struct key *k;

	for (unsigned i = 0; (k = config_key(i)); i++) {
		json_t *value = setting_value(k, (const char *)c + k->at);
		char name[64];

		if (!value)
			continue;
		setting_name(k, name, sizeof(name));
		json_object_set_new(all, name, value);
	}
	json_object_set_new(j, "settings", all);
}

char *engine_stats_json(struct engine *e, const char *name)
{
	json_t *j = json_object();
	struct engine_config c;
	char *text;

	pthread_mutex_lock(&e->lock);
	c = e->current;
	pthread_mutex_unlock(&e->lock);
	json_object_set_new(j, "name", json_string(name));
	json_object_set_new(j, "store", json_string(c.store));
	set(j, "size_bytes", e->placement->info.size);
	set(j, "cache_size_bytes", c.cache_size);
	set(j, "page_size_bytes", c.page_size);
	set(j, "block_size_bytes", c.block_size);
	set(j, "dirty_background_bytes", c.dirty_background);
	cache_json(e, j);
	throttle_json(e, j);
	writeback_json(e, j);
	store_json(e, j);
	pool_json(e, j);
	set(j, "requests_inside", stats_requests_inside(e));
	set(j, "rss_bytes", rss_bytes());
	ops_json(e, j);
	json_object_set_new(j, "latency", latency_json(e));
	settings_json(&c, j);
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return text;
}

void engine_stats_reset(struct engine *e)
{
	cache_reset_peaks(e->cache);
	throttle_reset_peaks(e->throttle);
	latency_reset(e);
}
