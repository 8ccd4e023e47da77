/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-stats.c: the counters of one store, as they are printed.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine-impl.h"
#include "served.h"
#include "stat.h"

#define BLOCK 4096U

static int setup(void **state)
{
	*state = served_new("fault:record=on,mem:16M", "16M", ENGINE_WRITEBACK);
	return 0;
}

static int teardown(void **state)
{
	served_free(*state);
	return 0;
}

/* A number of latency.OP. */
static uint64_t latency(struct served *s, const char *op, const char *what)
{
	char *json = engine_stats_json(s->engine, "x"), key[32];
	const char *at = strstr(json, "\"latency\":");
	uint64_t value;

	assert_non_null(at);
	snprintf(key, sizeof(key), "\"%s\":", op);
	at = strstr(at, key);
	assert_non_null(at);
	snprintf(key, sizeof(key), "\"%s\":", what);
	at = strstr(at, key);
	assert_non_null(at);
	value = strtoull(at + strlen(key), NULL, 10);
	free(json);
	return value;
}

static void every_counter_is_there(void **state)
{
	static const char *const name[] = {"dirty_bytes", "dirty_limit_bytes",
		"dirty_peak_bytes", "writeback_bytes", "cached_bytes", "hits",
		"misses", "partial_hits", "fill_reads", "store_reads",
		"store_read_bytes", "store_writes", "store_write_bytes",
		"store_flushes", "pauses", "pause_us_total", "pause_us_max",
		"unstable_bytes", "store_queue_depth", "store_await_us",
		"flusher_passes", "throttle_checks", "rss_bytes",
		"write_bandwidth", "store_busy_us", "extents", "mapped_bytes",
		"reserved_bytes", "free_bytes", "journal_commits",
		"journal_bytes", "checkpoints", "checkpoint_waits"};
	struct served *s = *state;

	for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		stat_value(s->engine, name[i]); /* ends us if it is not */
	assert_true(stat_value(s->engine, "rss_bytes") > MIB);
}

static void counters_follow_what_happens(void **state)
{
	struct served *s = *state;
	unsigned char buf[2 * BLOCK];

	memset(buf, 'x', sizeof(buf));
	assert_int_equal(request(s, ENGINE_WRITE, 0, 0, 2 * BLOCK, buf), 0);
	assert_int_equal(stat_value(s->engine, "dirty_bytes"), 2 * BLOCK);
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	assert_int_equal(stat_value(s->engine, "dirty_bytes"), 0);
	assert_int_equal(stat_value(s->engine, "dirty_peak_bytes"), 2 * BLOCK);
	assert_int_equal(stat_value(s->engine, "store_writes"), 1);
	assert_int_equal(stat_value(s->engine, "store_write_bytes"), 2 * BLOCK);
	assert_int_equal(stat_value(s->engine, "store_flushes"), 1);
	assert_int_equal(stat_value(s->engine, "flusher_passes"), 1);
	assert_int_equal(request(s, ENGINE_READ, 0, 0, BLOCK, buf), 0);
	assert_int_equal(stat_value(s->engine, "hits"), 1);
	assert_int_equal(request(s, ENGINE_READ, 0, BLOCK, BLOCK * 2, buf), 0);
	assert_int_equal(stat_value(s->engine, "misses"), 1);
	assert_int_equal(stat_value(s->engine, "partial_hits"), 1);
	assert_int_equal(stat_value(s->engine, "store_reads"), 1);
	assert_int_equal(stat_value(s->engine, "requests_inside"), 0);
}

static void busy_is_while_the_store_has_something_to_do(void **state)
{
	struct served *s =
		served_new("sim:latency=10ms,mem:1M", "16M", ENGINE_NONE);
	struct asking a[2] = {0};
	unsigned char buf[BLOCK];

	(void)state;
	assert_int_equal(request(s, ENGINE_READ, 0, 0, BLOCK, buf), 0);
	assert_int_equal(stat_value(s->engine, "store_busy_us"), 10000);
	reactor_sim_run_until(s->loop, reactor_now(s->loop) + NSEC_PER_SEC);
	assert_int_equal(stat_value(s->engine, "store_busy_us"), 10000);
	/* Two at once are busy as long as one. */
	for (unsigned i = 0; i < 2; i++) {
		engine_request_init(&a[i].req);
		a[i].req.op = ENGINE_READ;
		a[i].req.length = BLOCK;
		a[i].req.export = s->export;
		a[i].req.reactor = s->loop;
		a[i].req.done = asking_done;
		a[i].req.buf = buf;
		assert_false(engine_submit(&a[i].req));
	}
	reactor_sim_run_until(
		s->loop, reactor_now(s->loop) + 4 * NSEC_PER_MSEC);
	assert_int_equal(stat_value(s->engine, "store_queue_depth"), 2);
	assert_int_equal(stat_value(s->engine, "store_busy_us"), 14000);
	reactor_sim_run_until(s->loop, reactor_now(s->loop) + NSEC_PER_SEC);
	assert_true(a[0].answered && a[1].answered);
	assert_int_equal(stat_value(s->engine, "store_busy_us"), 20000);
	assert_int_equal(stat_value(s->engine, "store_queue_depth"), 0);
	served_free(s);
}

static void percentiles_are_off_by_an_eighth_at_most(void **state)
{
	struct served *s = *state;
	struct stripe *stripe = &s->engine->stripe[0];

	for (unsigned us = 1; us <= 1000; us++)
		stats_latency(stripe, ENGINE_WRITE, us * NSEC_PER_USEC, 1);
	assert_int_equal(latency(s, "write", "count"), 1000);
	assert_in_range(latency(s, "write", "p50_us"), 500, 563);
	assert_in_range(latency(s, "write", "p99_us"), 990, 1114);
	assert_int_equal(latency(s, "write", "max_us"), 1000);
	assert_int_equal(latency(s, "read", "count"), 0);
}

/* "buckets_ns":[[TOP,COUNT],...] of latency.OP; how many there are. */
static unsigned buckets(
	struct served *s, const char *op, uint64_t top[8], uint64_t count[8])
{
	char *json = engine_stats_json(s->engine, "x"), key[32];
	const char *at = strstr(json, "\"latency\":");
	unsigned n = 0;

	snprintf(key, sizeof(key), "\"%s\":", op);
	at = strstr(strstr(at, key), "\"buckets_ns\":[");
	assert_non_null(at);
	at += strlen("\"buckets_ns\":[");
	while (*at == '[' || *at == ',') {
		at += *at == ',';
		assert_true(n < 8);
		assert_int_equal(sscanf(at, "[%" SCNu64 ",%" SCNu64 "]",
					 &top[n], &count[n]),
			2);
		n++;
		at = strchr(at, ']') + 1;
	}
	free(json);
	return n;
}

static void buckets_are_those_that_hold_something(void **state)
{
	struct served *s = *state;
	uint64_t top[8], count[8];

	assert_int_equal(buckets(s, "write", top, count), 0);
	stats_latency(&s->engine->stripe[0], ENGINE_WRITE, 1000, 3);
	stats_latency(&s->engine->stripe[1], ENGINE_WRITE, 1023, 1);
	stats_latency(&s->engine->stripe[2], ENGINE_WRITE, 1024, 64);
	assert_int_equal(buckets(s, "write", top, count), 2);
	assert_int_equal(top[0], 1023);
	assert_int_equal(count[0], 4);
	assert_int_equal(top[1], 1151);
	assert_int_equal(count[1], 64);
	assert_int_equal(latency(s, "write", "count"), 68);
	assert_int_equal(latency(s, "write", "sum_us"),
		(3 * 1000 + 1023 + 64 * 1024) / 1000);
}

static void rare_slow_one_is_in_the_tail_only(void **state)
{
	struct served *s = *state;
	struct stripe *stripe = &s->engine->stripe[3];

	stats_latency(stripe, ENGINE_READ, 100 * NSEC_PER_USEC, 995);
	stats_latency(stripe, ENGINE_READ, 3 * NSEC_PER_SEC, 5);
	assert_in_range(latency(s, "read", "p99_us"), 100, 113);
	stats_latency(stripe, ENGINE_READ, 3 * NSEC_PER_SEC, 10);
	assert_in_range(latency(s, "read", "p99_us"), 3000000, 3375000);
	assert_int_equal(latency(s, "read", "max_us"), 3000000);
}

static void any_time_at_all_has_its_place(void **state)
{
	struct served *s = *state;
	struct stripe *stripe = &s->engine->stripe[0];

	stats_latency(stripe, ENGINE_FLUSH, 0, 1);
	stats_latency(stripe, ENGINE_FLUSH, UINT64_MAX, 1);
	assert_int_equal(latency(s, "flush", "count"), 2);
}

static void reset_zeroes_peaks_and_histograms_only(void **state)
{
	struct served *s = *state;
	unsigned char buf[BLOCK];

	memset(buf, 'x', sizeof(buf));
	assert_int_equal(request(s, ENGINE_WRITE, 0, 0, BLOCK, buf), 0);
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	assert_int_equal(latency(s, "flush", "count"), 1);
	engine_stats_reset(s->engine);
	assert_int_equal(latency(s, "flush", "count"), 0);
	assert_int_equal(latency(s, "flush", "max_us"), 0);
	assert_int_equal(stat_value(s->engine, "dirty_peak_bytes"), 0);
	assert_int_equal(stat_value(s->engine, "store_writes"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(every_counter_is_there),
		TEST(counters_follow_what_happens),
		cmocka_unit_test(busy_is_while_the_store_has_something_to_do),
		TEST(percentiles_are_off_by_an_eighth_at_most),
		TEST(buckets_are_those_that_hold_something),
		TEST(rare_slow_one_is_in_the_tail_only),
		TEST(any_time_at_all_has_its_place),
		TEST(reset_zeroes_peaks_and_histograms_only),
#undef TEST
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
