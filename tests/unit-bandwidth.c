/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-bandwidth.c: the properties that the estimate of the store's speed
 * must have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/reactor.h"
#include "throttle/bandwidth.h"

#define MIB (UINT64_C(1) << 20)
#define STEP_NS (200 * NSEC_PER_MSEC)

struct run {
	struct bandwidth b;
	uint64_t now, written;
};

static int setup(void **state)
{
	static struct run r;

	r = (struct run){.now = NSEC_PER_SEC, .written = 1000};
	bandwidth_init(&r.b, r.now, r.written);
	*state = &r;
	return 0;
}

/* Write at a speed, pages per second, for a time, seen at each step. */
static void write_at(struct run *r, uint64_t speed, uint64_t ns, uint64_t step)
{
	for (uint64_t end = r->now + ns; r->now < end;) {
		r->now += step;
		r->written += speed * step / NSEC_PER_SEC;
		bandwidth_update(&r->b, r->now, r->written);
	}
}

static void starts_at_100_MB(void **state)
{
	struct run *r = *state;

	assert_int_equal(r->b.average << BANDWIDTH_PAGE_SHIFT, 100 * MIB);
}

static void constant_speed_is_reached_and_kept(void **state)
{
	static const uint64_t speed[] = {25, 5000, 25600, 1000000};
	struct run *r = *state;

	for (unsigned i = 0; i < 4; i++) {
		setup(state);
		write_at(r, speed[i], 60 * NSEC_PER_SEC, STEP_NS);
		assert_in_range(r->b.average, speed[i] - speed[i] / 50 - 20,
			speed[i] + speed[i] / 50 + 20);
	}
}

static void weighs_the_last_four_seconds(void **state)
{
	struct run *r = *state;

	write_at(r, 5000, 60 * NSEC_PER_SEC, STEP_NS);
	write_at(r, 50000, 4 * NSEC_PER_SEC, STEP_NS);
	/* (1 - 1/e) of the way, and the average behind it */
	assert_in_range(r->b.rate, 5000 + 45000 * 6 / 10, 5000 + 45000 * 2 / 3);
	assert_true(r->b.average < r->b.rate);
	assert_true(r->b.average > 5000 + 45000 * 3 / 10);
}

static void too_soon_changes_nothing(void **state)
{
	struct run *r = *state;
	struct bandwidth before = r->b;

	assert_false(bandwidth_update(
		&r->b, r->now + STEP_NS - 1, r->written + 1000000));
	assert_memory_equal(&r->b, &before, sizeof(before));
	assert_true(bandwidth_update(&r->b, r->now + STEP_NS, r->written));
}

static void rest_is_no_slowness(void **state)
{
	struct run *r = *state;
	uint64_t before;

	write_at(r, 50000, 30 * NSEC_PER_SEC, STEP_NS);
	before = r->b.average;
	/* The clock stands still: it is asked as often as you like. */
	for (unsigned i = 0; i < 100; i++)
		bandwidth_update(&r->b, r->now, r->written);
	assert_int_equal(r->b.average, before);
	write_at(r, 50000, NSEC_PER_SEC, STEP_NS);
	assert_in_range(r->b.average, before - 100, before + 100);
}

static void longer_than_the_period_counts_alone(void **state)
{
	struct run *r = *state;

	r->now += 5 * NSEC_PER_SEC;
	assert_true(bandwidth_update(&r->b, r->now, r->written + 5000));
	assert_int_equal(r->b.rate, 1000);
	assert_int_equal(r->b.average, 1000);
}

static void ripple_is_smoothed(void **state)
{
	struct run *r = *state;
	uint64_t rate[2] = {UINT64_MAX, 0}, average[2] = {UINT64_MAX, 0};

	write_at(r, 20000, 60 * NSEC_PER_SEC, STEP_NS);
	for (unsigned i = 0; i < 50; i++) {
		write_at(r, i % 2 ? 35000 : 5000, STEP_NS, STEP_NS);
		rate[0] = r->b.rate < rate[0] ? r->b.rate : rate[0];
		rate[1] = r->b.rate > rate[1] ? r->b.rate : rate[1];
		average[0] =
			r->b.average < average[0] ? r->b.average : average[0];
		average[1] =
			r->b.average > average[1] ? r->b.average : average[1];
	}
	assert_true(rate[1] - rate[0] > 500);
	assert_true(average[1] - average[0] < (rate[1] - rate[0]) / 4);
	assert_in_range(r->b.average, 19000, 21000);
}

static void counter_that_goes_back_is_nothing_written(void **state)
{
	struct run *r = *state;

	assert_true(bandwidth_update(&r->b, r->now + STEP_NS, 0));
	assert_in_range(r->b.rate, BANDWIDTH_START * 94 / 100, BANDWIDTH_START);
	assert_int_equal(r->b.written, 0);
}

static void stall_never_makes_it_zero(void **state)
{
	struct run *r = *state;

	write_at(r, 0, 600 * NSEC_PER_SEC, STEP_NS);
	assert_in_range(r->b.average, 1, 20);
	r->now += 1000 * NSEC_PER_SEC;
	bandwidth_update(&r->b, r->now, r->written);
	assert_int_equal(r->b.average, 1);
}

static void limit_is_what_the_time_allows(void **state)
{
	struct run *r = *state;
	const struct bandwidth *b = &r->b;

	assert_int_equal(bandwidth_limit(b, 500 * MIB, 0), 500 * MIB);
	assert_int_equal(
		bandwidth_limit(b, 500 * MIB, 2 * NSEC_PER_SEC), 200 * MIB);
	assert_int_equal(
		bandwidth_limit(b, 50 * MIB, 2 * NSEC_PER_SEC), 50 * MIB);
	assert_int_equal(bandwidth_limit(b, 50 * MIB, NSEC_PER_USEC), MIB);
	assert_int_equal(bandwidth_limit(b, 8192, NSEC_PER_USEC), 8192);
	r->b.average = UINT64_MAX >> BANDWIDTH_PAGE_SHIFT;
	assert_int_equal(
		bandwidth_limit(b, 500 * MIB, NSEC_PER_SEC), 500 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup(fn, setup)
		TEST(starts_at_100_MB),
		TEST(constant_speed_is_reached_and_kept),
		TEST(weighs_the_last_four_seconds),
		TEST(too_soon_changes_nothing),
		TEST(rest_is_no_slowness),
		TEST(longer_than_the_period_counts_alone),
		TEST(ripple_is_smoothed),
		TEST(counter_that_goes_back_is_nothing_written),
		TEST(stall_never_makes_it_zero),
		TEST(limit_is_what_the_time_allows),
#undef TEST
	};

	return cmocka_run_group_tests_name("bandwidth", tests, NULL, NULL);
}
