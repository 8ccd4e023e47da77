/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.c: counters, latency histograms, and the JSON of one store.
 *
 * A histogram has LATENCY_SUB steps in each doubling of the time, so a
 * percentile is off by an eighth at most.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "engine-impl.h"

/* --- histograms ---------------------------------------------------------- */

static unsigned bucket_of(uint64_t ns)
{
	unsigned log, sub;

	if (ns < LATENCY_SUB)
		return (unsigned)ns;
	log = 63 - (unsigned)__builtin_clzll(ns);
	sub = (unsigned)(ns >> (log - 3)) & (LATENCY_SUB - 1);
	log = (log - 2) * LATENCY_SUB + sub;
	return log < LATENCY_BUCKETS ? log : LATENCY_BUCKETS - 1;
}

/* The upper end of a bucket, ns. */
static uint64_t bucket_top(unsigned bucket)
{
	unsigned log = bucket / LATENCY_SUB + 2, sub = bucket % LATENCY_SUB;

	if (bucket < LATENCY_SUB)
		return bucket;
	return (UINT64_C(1) << log) + ((uint64_t)(sub + 1) << (log - 3)) - 1;
}

void stats_latency(
	struct stripe *s, enum engine_op op, uint64_t ns, uint64_t weight)
{
	struct histogram *h;
	uint64_t max;

	if (op == ENGINE_READ)
		h = &s->latency[LATENCY_READ];
	else if (op == ENGINE_WRITE)
		h = &s->latency[LATENCY_WRITE];
	else if (op == ENGINE_FLUSH)
		h = &s->latency[LATENCY_FLUSH];
	else
		return;
	atomic_fetch_add_explicit(
		&h->bucket[bucket_of(ns)], weight, memory_order_relaxed);
	max = atomic_load_explicit(&h->max_ns, memory_order_relaxed);
	while (ns > max && !atomic_compare_exchange_weak(&h->max_ns, &max, ns))
		;
}

static uint64_t percentile(const uint64_t *bucket, uint64_t total, double share)
{
	uint64_t want = (uint64_t)((double)total * share), seen = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		seen += bucket[i];
		if (bucket[i] && seen > want)
			return bucket_top(i);
	}
	return 0;
}

static void latency_json(struct engine *e, struct json *j, const char *key,
	enum stats_latency which)
{
	uint64_t bucket[LATENCY_BUCKETS] = {0}, total = 0, max = 0;

	for (unsigned s = 0; s < STRIPES; s++) {
		struct histogram *h = &e->stripe[s].latency[which];
		uint64_t top = atomic_load(&h->max_ns);

		max = top > max ? top : max;
		for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
			uint64_t n = atomic_load_explicit(
				&h->bucket[i], memory_order_relaxed);

			bucket[i] += n;
			total += n;
		}
	}
	json_object(j, key);
	json_uint(j, "count", total);
	json_uint(j, "p50_us", percentile(bucket, total, .5) / 1000);
	json_uint(j, "p99_us", percentile(bucket, total, .99) / 1000);
	json_uint(j, "max_us", max / 1000);
	json_end_object(j);
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

static void ops_json(struct engine *e, struct json *j)
{
	static const char *const name[7] = {
		"read", "write", "flush", "trim", "zero", "cache", "status"};

	json_object(j, "requests");
	for (unsigned op = 0; op < 7; op++) {
		uint64_t ops = 0, bytes = 0;

		for (unsigned i = 0; i < STRIPES; i++) {
			ops += atomic_load(&e->stripe[i].ops[op]);
			bytes += atomic_load(&e->stripe[i].bytes[op]);
		}
		json_object(j, name[op]);
		json_uint(j, "ops", ops);
		json_uint(j, "bytes", bytes);
		json_end_object(j);
	}
	json_end_object(j);
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

static void cache_json(struct engine *e, struct json *j)
{
	struct cache_counts c;

	cache_counts(e->cache, &c);
	json_uint(j, "dirty_bytes", c.dirty);
	json_uint(j, "writeback_bytes", c.writeback);
	json_uint(j, "unstable_bytes", c.unstable);
	json_uint(j, "charged_bytes", c.charged);
	json_uint(j, "dirty_peak_bytes", c.dirty_peak);
	json_uint(j, "cached_bytes", c.cached);
	json_uint(j, "cached_pages", c.pages);
	json_uint(j, "hits", c.hits);
	json_uint(j, "misses", c.misses);
	json_uint(j, "partial_hits", c.partial_hits);
	json_uint(j, "fill_reads", c.fill_reads);
	json_uint(j, "reclaimed_pages", c.reclaimed);
}

static void throttle_json(struct engine *e, struct json *j)
{
	struct throttle_counts t;

	throttle_counts(e->throttle, &t);
	json_uint(j, "dirty_limit_bytes", t.limit);
	json_uint(j, "throttle_checks", t.checks);
	json_uint(j, "pauses", t.pauses);
	json_uint(j, "pause_us_total", t.pause_us_total);
	json_uint(j, "pause_us_max", t.pause_us_max);
	json_uint(j, "parked_writes", t.parked);
}

static void writeback_json(struct engine *e, struct json *j)
{
	struct writeback_counts w;

	writeback_counts(e->writeback, &w);
	json_uint(j, "store_await_us",
		w.writes ? w.write_us_total / w.writes : 0);
	json_uint(j, "store_queue_depth", w.inflight);
	json_uint(j, "store_errors", w.errors);
	json_uint(j, "flusher_passes", w.passes);
}

/* What was asked of the store. */
static void store_json(struct engine *e, struct json *j)
{
	static const char *const ops[STORE_STATUS + 1] = {"store_reads",
		"store_writes", "store_flushes", "store_trims", "store_zeroes",
		"store_statuses"};
	static const char *const bytes[STORE_STATUS + 1] = {"store_read_bytes",
		"store_write_bytes", NULL, "store_trim_bytes",
		"store_zero_bytes", NULL};
	const struct placement_counts *c = &e->placement->counts;

	for (unsigned op = 0; op <= STORE_STATUS; op++) {
		json_uint(j, ops[op], atomic_load(&c->ops[op]));
		if (bytes[op])
			json_uint(j, bytes[op], atomic_load(&c->bytes[op]));
	}
}

char *engine_stats_json(struct engine *e, const char *name)
{
	struct json json = JSON_INIT, *j = &json;

	json_object(j, NULL);
	json_string(j, "name", name);
	json_string(j, "store", e->config.store);
	json_uint(j, "size_bytes", e->placement->info.size);
	json_uint(j, "cache_size_bytes", e->config.cache_size);
	json_uint(j, "page_size_bytes", e->config.page_size);
	json_uint(j, "block_size_bytes", e->config.block_size);
	json_uint(j, "dirty_background_bytes", e->config.dirty_background);
	cache_json(e, j);
	throttle_json(e, j);
	writeback_json(e, j);
	store_json(e, j);
	json_uint(j, "requests_inside", stats_requests_inside(e));
	json_uint(j, "rss_bytes", rss_bytes());
	ops_json(e, j);
	json_object(j, "latency");
	latency_json(e, j, "read", LATENCY_READ);
	latency_json(e, j, "write", LATENCY_WRITE);
	latency_json(e, j, "flush", LATENCY_FLUSH);
	json_end_object(j);
	json_end_object(j);
	return json_take(j);
}

void engine_stats_reset(struct engine *e)
{
	cache_reset_peaks(e->cache);
	throttle_reset_peaks(e->throttle);
	for (unsigned s = 0; s < STRIPES; s++) {
		for (unsigned l = 0; l < LATENCIES; l++) {
			struct histogram *h = &e->stripe[s].latency[l];

			atomic_store(&h->max_ns, 0);
			for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
				atomic_store(&h->bucket[i], 0);
		}
	}
}
