/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-prefetch.c: what ENGINE_CACHE brings in, how fast, and what it leaves
 * alone. Simulated time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "served.h"
#include "stat.h"

#define BANDWIDTH (200 * MIB)
#define LATENCY NSEC_PER_MSEC
#define CACHE (32 * MIB)
#define HOT (15 * MIB)
#define STEP (64 * KIB)

static int setup(void **state)
{
	static const char *const keys[] = {"store",
		"sim:bandwidth=200M,latency=1ms,null:4G", "cache-size", "32M",
		"dirty-limit", "100%", "dirty-background", "99%", NULL};

	*state = served_with(ENGINE_WRITEBACK, keys);
	return 0;
}

static int teardown(void **state)
{
	served_free(*state);
	return 0;
}

static uint64_t stat_of(struct served *s, const char *name)
{
	return stat_value(s->engine, name);
}

/* Several at once, each `length` bytes; the ns until all are answered. */
static uint64_t prefetch(
	struct served *s, unsigned n, uint64_t at, uint64_t length)
{
	uint64_t start = reactor_now(s->loop);
	struct asking a[16];

	for (unsigned i = 0; i < n; i++) {
		a[i] = (struct asking){0};
		engine_request_init(&a[i].req);
		a[i].req.op = ENGINE_CACHE;
		a[i].req.offset = at + i * length;
		a[i].req.length = length;
		a[i].req.export = s->export;
		a[i].req.reactor = s->loop;
		a[i].req.done = asking_done;
		a[i].answered = engine_submit(&a[i].req);
	}
	for (unsigned i = 0; i < n; i++) {
		while (!a[i].answered)
			assert_true(reactor_sim_step(s->loop));
		assert_int_equal(a[i].req.error, 0);
	}
	return reactor_now(s->loop) - start;
}

static void read_once(struct served *s, uint64_t at, uint64_t length)
{
	static unsigned char buf[STEP];

	for (uint64_t end = at + length; at < end; at += STEP)
		assert_int_equal(request(s, ENGINE_READ, 0, at, STEP, buf), 0);
}

/* Of [at, at + length), what a read finds cached, bytes. */
static uint64_t found(struct served *s, uint64_t at, uint64_t length)
{
	uint64_t hits = stat_of(s, "hits");

	assert_int_equal(
		engine_set(s->engine,
			&(struct engine_setting){"readahead", "0"}, 1, NULL),
		0);
	read_once(s, at, length);
	return (stat_of(s, "hits") - hits) * STEP;
}

static void it_is_as_fast_as_the_store(void **state)
{
	struct served *s = *state;

	assert_true(prefetch(s, 1, 0, 15 * MIB) <=
		(15 * MIB * NSEC_PER_SEC / BANDWIDTH + LATENCY) * 100 / 85);
	assert_int_equal(found(s, 0, 15 * MIB), 15 * MIB);
}

static void several_at_once_are_all_there_after(void **state)
{
	struct served *s = *state;

	assert_true(prefetch(s, 8, GIB, 2 * MIB - STEP) <=
		(16 * MIB * NSEC_PER_SEC / BANDWIDTH + LATENCY) * 10 / 9);
	assert_int_equal(
		found(s, GIB, 8 * (2 * MIB - STEP)), 8 * (2 * MIB - STEP));
}

/* Each could bring in half of the cache; the last ones would drive out what
 * the first ones had. */
static void many_bring_in_no_more_than_fits(void **state)
{
	struct served *s = *state;
	uint64_t read;

	prefetch(s, 16, GIB, 16 * MIB);
	read = stat_of(s, "store_read_bytes");
	assert_in_range(read, CACHE / 4, CACHE / 2);
	assert_true(found(s, GIB, 256 * MIB) >= read * 9 / 10);
}

static void hot_set_stays(void **state)
{
	struct served *s = *state;
	uint64_t read;

	/* twice, so that it is known to be hot */
	for (unsigned i = 0; i < 3; i++)
		read_once(s, 0, HOT);
	for (unsigned i = 0; i < 20; i++)
		prefetch(s, 4, GIB + i * 64 * MIB, 16 * MIB);
	read = stat_of(s, "store_read_bytes");
	assert_true(read >= 20 * 4 * MIB); /* it did something */
	assert_true(found(s, 0, HOT) >= HOT * 9 / 10);
}

static void full_of_dirt_it_ends_early(void **state)
{
	struct served *s = *state;
	static unsigned char data[MIB];

	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(
			request(s, ENGINE_WRITE, 0, i * MIB, MIB, data), 0);
	prefetch(s, 4, GIB, 16 * MIB);
	assert_true(stat_of(s, "store_read_bytes") <= MIB);
	assert_int_equal(stat_of(s, "dirty_bytes"), 30 * MIB);
	/* and it can again when there is room */
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	prefetch(s, 1, GIB, 16 * MIB);
	assert_true(stat_of(s, "store_read_bytes") >= 15 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(it_is_as_fast_as_the_store),
		TEST(several_at_once_are_all_there_after),
		TEST(many_bring_in_no_more_than_fits),
		TEST(hot_set_stays),
		TEST(full_of_dirt_it_ends_early),
#undef TEST
	};

	return cmocka_run_group_tests_name("prefetch", tests, NULL, NULL);
}
