/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-control.c: the numbered properties of throttle/control.h, one test
 * each.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/reactor.h"
#include "throttle/control.h"

#define MS NSEC_PER_MSEC
#define MB_PAGES 256U /* pages of a MiB */

static struct control_limits limits(uint64_t thresh, uint64_t bg)
{
	struct control_limits l;

	control_limits(thresh, bg, 0, 0, &l);
	return l;
}

static bool near(double a, double b, double share)
{
	return fabs(a - b) <= share * fabs(b) + 1e-9;
}

/* 1 */
static void limits_lie_where_they_should(void **state)
{
	struct control_limits l = limits(1000, 500);

	(void)state;
	assert_int_equal(l.freerun, 750);
	assert_int_equal(l.setpoint, 875);
	assert_int_equal(l.limit, 1000);
	/* no room between the two: half is taken */
	l = limits(1000, 1000);
	assert_int_equal(l.freerun, 750);
	/* no limit is below two pages */
	l = limits(0, 0);
	assert_int_equal(l.thresh, 2);
	assert_int_equal(l.freerun, 1);
}

/* 2 */
static void position_falls_from_2_over_1_to_0(void **state)
{
	struct control_limits l = limits(100000, 50000);
	double last = 2;

	(void)state;
	assert_true(near(control_position(&l, l.freerun), 2, 1e-6));
	assert_true(near(control_position(&l, l.setpoint), 1, 1e-6));
	assert_true(control_position(&l, l.limit) == 0);
	assert_true(control_position(&l, l.limit + 1000) == 0);
	for (uint64_t d = l.freerun; d <= l.limit; d += 10) {
		double p = control_position(&l, d);

		assert_true(p <= last && p >= 0);
		last = p;
	}
	/* flat in the middle, steep at the ends */
	assert_true(near(control_position(&l, l.setpoint + 1250), 1, 0.002));
	assert_true(control_position(&l, l.limit - 1250) < 0.3);
}

/* 2: the narrowest band there can be */
static void position_survives_a_band_of_nothing(void **state)
{
	(void)state;
	for (uint64_t thresh = 2; thresh < 40; thresh++) {
		struct control_limits l = limits(thresh, thresh - 1);

		for (uint64_t d = 0; d < 50; d++) {
			double p = control_position(&l, d);

			assert_true(p >= 0 && p <= 16);
			assert_true(d < l.limit || p == 0);
		}
	}
}

/* 3 */
static void device_that_runs_dry_gets_more(void **state)
{
	struct control_limits l = limits(1000, 500);

	(void)state;
	assert_true(near(control_position(&l, 500), 2, 1e-6));
	assert_true(near(control_position(&l, 250), 4, 1e-6));
	assert_true(near(control_position(&l, 1), 16, 1e-6));
	assert_true(near(control_position(&l, 0), 16, 1e-6));
}

/* 4 */
static void lowered_limit_comes_down_slowly(void **state)
{
	uint64_t smoothed = control_smooth(0, 1000, 0), last, steps = 0;
	struct control_limits l;

	(void)state;
	assert_int_equal(smoothed, 1000);
	assert_int_equal(control_smooth(smoothed, 2000, 0), 2000);
	/* dirty is above the new limit: it stays until that falls */
	assert_int_equal(control_smooth(1000, 500, 1000), 1000);
	assert_int_equal(control_smooth(1000, 500, 2000), 1000);
	assert_int_equal(control_smooth(1000, 500, 360), 984);
	control_limits(500, 250, 1000, 0, &l);
	assert_true(control_position(&l, 900) > 0);
	for (last = smoothed; smoothed > 500; steps++) {
		smoothed = control_smooth(smoothed, 500, 0);
		assert_true(smoothed < last);
		last = smoothed;
	}
	assert_true(steps > 32 && steps < 300);
}

/* A loop closed by hand: `writers` at R * P each, a device, 200 ms a step.
 * What waits at the limit counts as dirty: 64K of each. */
struct loop {
	struct control_limits l;
	struct control_rate rate;
	double dirty, writers, bandwidth;
};

static struct loop loop_new(double writers, double bandwidth)
{
	return (struct loop){
		.l = limits(1000 * MB_PAGES, 500 * MB_PAGES),
		.rate = CONTROL_RATE_INIT,
		.writers = writers,
		.bandwidth = bandwidth,
	};
}

static void loop_run(struct loop *o, unsigned steps)
{
	while (steps--) {
		double p = control_position(&o->l, (uint64_t)o->dirty);
		double dirtied = o->writers * p * (double)o->rate.ratelimit;

		if (o->dirty <= (double)o->l.freerun) {
			o->dirty += (double)o->l.limit / 50;
			continue;
		}
		o->dirty = fmax(o->dirty + (dirtied - o->bandwidth) / 5, 0);
		o->dirty = fmin(o->dirty, (double)o->l.limit + 16 * o->writers);
		control_rate_step(&o->rate, p, (uint64_t)dirtied,
			(uint64_t)o->bandwidth,
			o->dirty < (double)o->l.setpoint);
	}
}

/* 5 */
static void rate_finds_the_share_of_a_writer(void **state)
{
	static const double writers[] = {1, 2, 10, 100, 400};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct loop o = loop_new(writers[i], 15000);

		loop_run(&o, 600);
		assert_true(near((double)o.rate.ratelimit,
			o.bandwidth / writers[i], 0.2));
		assert_true(near(
			control_position(&o.l, (uint64_t)o.dirty), 1, 0.2));
	}
}

/* 5: and finds it again when the device changes */
static void rate_follows_the_device(void **state)
{
	struct loop o = loop_new(10, 15000);

	(void)state;
	loop_run(&o, 600);
	o.bandwidth = 30000;
	loop_run(&o, 300);
	assert_true(near((double)o.rate.ratelimit, 3000, 0.15));
	o.bandwidth = 2000;
	loop_run(&o, 300);
	assert_true(near((double)o.rate.ratelimit, 200, 0.15));
}

/* 6 */
static void rate_moves_by_an_eighth_at_most_and_only_to_the_setpoint(
	void **state)
{
	struct control_rate r = CONTROL_RATE_INIT, old = r;

	(void)state;
	/* far too fast: all agree on less */
	r.balanced = 1000;
	control_rate_step(&r, 0.5, 100000, 4000, false);
	assert_true(r.ratelimit < old.ratelimit);
	assert_true(r.ratelimit >= old.ratelimit - old.ratelimit / 8 - 1);
	/* above the setpoint it is never raised */
	r = old;
	r.balanced = 100000;
	control_rate_step(&r, 1, 1000, 100000, false);
	assert_int_equal(r.ratelimit, old.ratelimit);
	/* nor lowered below it */
	r = old;
	r.balanced = 1;
	control_rate_step(&r, 0.1, 1000000, 1000, true);
	assert_int_equal(r.ratelimit, old.ratelimit);
	/* an error within the noise moves nothing */
	r = old;
	control_rate_step(&r, 0.999, 25600, 25600, false);
	assert_int_equal(r.ratelimit, old.ratelimit);
	/* it never comes to a stop */
	r = (struct control_rate){.ratelimit = 1, .balanced = 1};
	control_rate_step(&r, 0, 1000000, 1, false);
	assert_int_equal(r.ratelimit, 1);
}

/* 7 */
static void pauses_are_bounded_and_grow_with_the_writers(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (unsigned n = 1; n <= 64; n *= 2) {
		struct control_pause p;

		control_pause(1 << 20, 15000, 15000 / n, 15000 / n, &p);
		assert_true(p.target_ns > last);
		assert_true(p.target_ns <= 200 * MS);
		assert_true(p.min_ns <= p.target_ns);
		assert_int_equal(p.max_ns, 200 * MS);
		last = p.target_ns;
	}
	assert_true(last > 60 * MS);
}

/* 7 */
static void pause_follows_what_there_is_to_write(void **state)
{
	struct control_pause p;

	(void)state;
	/* 1500 pages at 15000 a second are 100 ms of writing */
	control_pause(1500, 15000, 1500, 1500, &p);
	assert_true(near((double)p.max_ns, 13.5e6, 0.001));
	assert_true(p.target_ns <= p.max_ns);
	/* a slow writer: as many pages as fit in the longest pause */
	control_pause(1 << 20, 15000, 50, 50, &p);
	assert_int_equal(p.target_ns, 200 * MS);
	assert_int_equal(p.quota, 10);
	/* one for whom the position leaves little pauses no longer */
	control_pause(1 << 20, 15000, 1500, 15, &p);
	assert_int_equal(p.target_ns, 200 * MS);
	assert_int_equal(p.quota, 3);
}

static const struct control_pause pauses = {.max_ns = 200 * MS,
	.min_ns = 10 * MS,
	.target_ns = 20 * MS,
	.quota = 20};

/* 8 */
static void time_spent_elsewhere_counts(void **state)
{
	struct control_writer w = {.dirtied = 100 << 12, .paused_ns = 0};

	(void)state;
	/* 100 pages at 1000 a second are 100 ms, of which 60 have passed */
	assert_int_equal(
		control_writer_pause(&w, &pauses, 1000, 60 * MS), 40 * MS);
	assert_int_equal(w.dirtied, 0);
	assert_int_equal(w.paused_ns, 100 * MS);
	assert_int_equal(w.quota, 20);
}

/* 8: also what is too short for a pause */
static void short_pauses_are_saved_up(void **state)
{
	struct control_writer w = {.dirtied = 5 << 12, .paused_ns = 0};

	(void)state;
	assert_int_equal(control_writer_pause(&w, &pauses, 1000, 0), 0);
	assert_int_equal(w.paused_ns, 5 * MS);
	w.dirtied = 8 << 12;
	assert_int_equal(control_writer_pause(&w, &pauses, 1000, 0), 13 * MS);
}

/* 8: but not those of a second */
static void idle_time_is_not_saved_up(void **state)
{
	struct control_writer w = {.dirtied = 5 << 12, .paused_ns = 0};

	(void)state;
	assert_int_equal(control_writer_pause(&w, &pauses, 1000, 2000 * MS), 0);
	assert_int_equal(w.paused_ns, 2000 * MS);
}

/* 7: nor is one pause longer than it may be */
static void long_pause_goes_on_in_the_next(void **state)
{
	struct control_writer w = {.dirtied = 350 << 12, .paused_ns = 0};

	(void)state;
	assert_int_equal(control_writer_pause(&w, &pauses, 1000, 0), 200 * MS);
	assert_int_equal(w.paused_ns, 350 * MS);
	/* a stopped writer waits, and is asked again */
	w.dirtied = 1;
	assert_int_equal(
		control_writer_pause(&w, &pauses, 0, 350 * MS), 200 * MS);
}

/* 1 */
static void free_writer_asks_again_after_the_root_of_what_is_left(void **state)
{
	struct control_limits l = limits(100000, 50000);
	struct control_writer w = {.dirtied = 1 << 20};

	(void)state;
	control_writer_free(&w, &l, 100000 - 65536, 7);
	assert_int_equal(w.quota, 256);
	assert_int_equal(w.dirtied, 0);
	assert_int_equal(w.paused_ns, 7);
	control_writer_free(&w, &l, 100000, 7);
	assert_int_equal(w.quota, 1);
}

/* 9 */
static void limit_that_is_soon_written_is_not_paced(void **state)
{
	struct control_limits l;

	(void)state;
	control_limits(1000, 500, 0, 15000, &l);
	assert_false(control_paced(&l, 1000));
	control_limits(6001, 3000, 0, 15000, &l);
	assert_true(control_paced(&l, 6000));
}

/* 1: the band is no wider than 200 ms of the store */
static void band_is_as_narrow_as_pacing_allows(void **state)
{
	struct control_limits l;

	(void)state;
	control_limits(100000, 50000, 0, 15000, &l);
	assert_int_equal(l.freerun, 97000);
	assert_int_equal(l.setpoint, 98500);
	/* nor does it start below the middle of background and limit */
	control_limits(100000, 50000, 0, 150000, &l);
	assert_int_equal(l.freerun, 75000);
	assert_false(control_paced(&l, 75000));
}

static void chunk_is_half_of_the_limit(void **state)
{
	(void)state;
	assert_int_equal(control_chunk(100000), 50000);
	assert_int_equal(control_chunk(100), 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_lie_where_they_should),
		cmocka_unit_test(position_falls_from_2_over_1_to_0),
		cmocka_unit_test(position_survives_a_band_of_nothing),
		cmocka_unit_test(device_that_runs_dry_gets_more),
		cmocka_unit_test(lowered_limit_comes_down_slowly),
		cmocka_unit_test(rate_finds_the_share_of_a_writer),
		cmocka_unit_test(rate_follows_the_device),
		cmocka_unit_test(
			rate_moves_by_an_eighth_at_most_and_only_to_the_setpoint),
		cmocka_unit_test(pauses_are_bounded_and_grow_with_the_writers),
		cmocka_unit_test(pause_follows_what_there_is_to_write),
		cmocka_unit_test(time_spent_elsewhere_counts),
		cmocka_unit_test(short_pauses_are_saved_up),
		cmocka_unit_test(idle_time_is_not_saved_up),
		cmocka_unit_test(long_pause_goes_on_in_the_next),
		cmocka_unit_test(
			free_writer_asks_again_after_the_root_of_what_is_left),
		cmocka_unit_test(limit_that_is_soon_written_is_not_paced),
		cmocka_unit_test(band_is_as_narrow_as_pacing_allows),
		cmocka_unit_test(chunk_is_half_of_the_limit),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
