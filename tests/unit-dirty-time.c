/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-dirty-time.c: dirty-time: a flush takes no longer than the time the
 * limit was given in, on a simulated store of 20 MB/s, once its speed is
 * known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "served.h"
#include "stat.h"

#define SPEED (20 * MIB)
#define SIZE (4 * GIB)

static int setup(void **state)
{
	*state = served_new("sim:bandwidth=20M,latency=1ms,null:4G", "256M",
		ENGINE_WRITEBACK);
	return 0;
}

static int teardown(void **state)
{
	served_free(*state);
	return 0;
}

static void set(struct served *s, const char *key, const char *value)
{
	struct engine_setting one = {key, value};
	struct error error = {""};

	if (engine_set(s->engine, &one, 1, &error))
		fail_msg("%s", error.text);
}

static uint64_t stat(struct served *s, const char *name)
{
	return stat_value(s->engine, name);
}

/* Write as fast as it goes for a time, `bytes` a request, in order or not. */
static void write_for(
	struct served *s, uint64_t ns, uint64_t bytes, bool random)
{
	static unsigned char buf[MIB];
	static uint64_t at, seed;
	uint64_t end = reactor_now(s->loop) + ns;

	while (reactor_now(s->loop) < end) {
		at = random ? random_below(&seed, SIZE / bytes) * bytes
			    : (at + bytes) / bytes * bytes % SIZE;
		assert_int_equal(
			request(s, ENGINE_WRITE, 0, at, bytes, buf), 0);
	}
}

static uint64_t flush_ms(struct served *s)
{
	uint64_t start = reactor_now(s->loop);

	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	return (reactor_now(s->loop) - start) / NSEC_PER_MSEC;
}

static void without_it_a_flush_takes_as_long_as_the_limit_is_large(void **state)
{
	struct served *s = *state;

	write_for(s, 20 * NSEC_PER_SEC, MIB, false);
	assert_in_range(flush_ms(s), 4000, 7000);
}

static void speed_is_measured(void **state)
{
	struct served *s = *state;

	assert_int_equal(stat(s, "write_bandwidth"), 100 * MIB);
	write_for(s, 40 * NSEC_PER_SEC, MIB, false);
	assert_in_range(
		stat(s, "write_bandwidth"), SPEED * 9 / 10, SPEED * 11 / 10);
	/* Nothing to do: still as fast. */
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	reactor_sim_run_until(
		s->loop, reactor_now(s->loop) + 600 * NSEC_PER_SEC);
	write_for(s, NSEC_PER_SEC, MIB, false);
	assert_in_range(
		stat(s, "write_bandwidth"), SPEED * 9 / 10, SPEED * 11 / 10);
}

static void flush_takes_no_longer_after_any_load(void **state)
{
	static const struct {
		uint64_t bytes;
		bool random;
	} load[] = {{MIB, false}, {64 * KIB, true}, {256 * KIB, true}};
	struct served *s = *state;

	set(s, "dirty-time", "2s");
	assert_int_equal(stat(s, "dirty_limit_bytes"), 128 * MIB);
	write_for(s, 40 * NSEC_PER_SEC, MIB, false);
	assert_in_range(stat(s, "dirty_limit_bytes"), 2 * SPEED * 9 / 10,
		2 * SPEED * 11 / 10);
	for (unsigned i = 0; i < 3; i++) {
		write_for(s, 10 * NSEC_PER_SEC, load[i].bytes, load[i].random);
		assert_in_range(flush_ms(s), 500, 2300);
	}
	set(s, "dirty-time", "off");
	assert_int_equal(stat(s, "dirty_limit_bytes"), 128 * MIB);
}

static void limit_in_force_is_never_passed(void **state)
{
	struct served *s = *state;

	set(s, "dirty-time", "1s");
	for (unsigned i = 0; i < 400; i++) {
		uint64_t limit = stat(s, "dirty_limit_bytes");
		uint64_t charged = stat(s, "charged_bytes");

		engine_stats_reset(s->engine);
		write_for(s, 20 * NSEC_PER_MSEC, 256 * KIB, true);
		/* It may have been raised meanwhile, a step at a time. */
		if (stat(s, "dirty_limit_bytes") > limit)
			limit = stat(s, "dirty_limit_bytes");
		assert_true(stat(s, "dirty_peak_bytes") <=
			(charged > limit ? charged : limit));
	}
	assert_true(stat(s, "dirty_limit_bytes") < 40 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(without_it_a_flush_takes_as_long_as_the_limit_is_large),
		TEST(speed_is_measured),
		TEST(flush_takes_no_longer_after_any_load),
		TEST(limit_in_force_is_never_passed),
#undef TEST
	};

	return cmocka_run_group_tests_name("dirty-time", tests, NULL, NULL);
}
