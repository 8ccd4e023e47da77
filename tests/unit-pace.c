/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pace.c: what the throttle promises to writers, on simulated devices.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../client/experiment-rig.h"
#include "store/store.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define MB 1000000.0
#define HDD "sim:hdd,null:64G"
#define MS NSEC_PER_MSEC

struct test {
	struct reactor *loop;
	struct bed bed;
	uint64_t at[128]; /* written by each writer, at mark() */
};

static void start(struct test *t, struct bed_config c, uint64_t seed)
{
	struct error error = {0};

	if (!c.store)
		c.store = HDD;
	if (!c.throttle)
		c.throttle = "ioless";
	if (!c.bs)
		c.bs = 64 * KIB;
	t->loop = reactor_sim_new(seed);
	if (bed_open(&t->bed, &c, t->loop, &error))
		fail_msg("%s", error.text);
}

/* The limit held at every moment. */
static void stop(struct test *t)
{
	bed_look(&t->bed);
	assert_true(bed_counter(&t->bed, "dirty_peak_bytes") > 0);
	assert_true(bed_counter(&t->bed, "dirty_peak_bytes") <=
		(double)t->bed.config.limit);
	bed_close(&t->bed);
	reactor_free(t->loop);
}

static void run(struct test *t, double seconds)
{
	reactor_sim_run_until(
		t->loop, reactor_now(t->loop) + (uint64_t)(seconds * 1e9));
}

static void mark(struct test *t)
{
	for (unsigned i = 0; i < t->bed.config.writers; i++)
		t->at[i] = t->bed.writer[i].written;
}

/* Bytes of writer i since mark(). */
static double since(const struct test *t, unsigned i)
{
	return (double)(t->bed.writer[i].written - t->at[i]);
}

/* Jain's index of fairness of what they wrote since mark(). */
static double fairness(const struct test *t)
{
	double sum = 0, squares = 0;
	unsigned n = t->bed.config.writers;

	for (unsigned i = 0; i < n; i++) {
		sum += since(t, i);
		squares += since(t, i) * since(t, i);
	}
	return sum * sum / (n * squares);
}

/* MB/s that reached the device in so many seconds from now on. */
static double measure(struct test *t, double seconds)
{
	double before;

	bed_look(&t->bed);
	before = bed_counter(&t->bed, "store_write_bytes");
	run(t, seconds);
	bed_look(&t->bed);
	return (bed_counter(&t->bed, "store_write_bytes") - before) / MB /
		seconds;
}

static uint64_t longest(const struct test *t)
{
	uint64_t ns = 0;

	for (unsigned i = 0; i < t->bed.config.writers; i++)
		if (t->bed.writer[i].longest_ns > ns)
			ns = t->bed.writer[i].longest_ns;
	return ns;
}

static void forget_waits(struct test *t)
{
	for (unsigned i = 0; i < t->bed.config.writers; i++)
		t->bed.writer[i].longest_ns = 0;
}

static void equal_clients_get_equal_rates(void **state)
{
	static const unsigned writers[] = {2, 10, 100};
	static const uint64_t limit[] = {10 * MIB, 200 * MIB, 1000 * MIB};
	struct test t;

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		start(&t,
			(struct bed_config){.writers = writers[i / 3],
				.limit = limit[i % 3]},
			i);
		run(&t, 15);
		mark(&t);
		run(&t, 10);
		assert_true(fairness(&t) >= 0.99);
		stop(&t);
	}
}

static void late_starter_has_its_share_in_three_seconds(void **state)
{
	struct test t;
	double others = 0;

	(void)state;
	start(&t,
		(struct bed_config){.writers = 5,
			.limit = 200 * MIB,
			.late_ns = 30 * NSEC_PER_SEC},
		1);
	run(&t, 30.1);
	mark(&t);
	run(&t, 3);
	for (unsigned i = 0; i < 4; i++)
		others += since(&t, i) / 4;
	assert_true(since(&t, 4) >= 0.9 * others);
	assert_true(since(&t, 4) <= 1.5 * others);
	stop(&t);
}

static void writer_slower_than_its_share_is_not_slowed(void **state)
{
	static const uint64_t rate[] = {0, 1000000, 2000000, 4000000, 8000000};
	struct test t;

	(void)state;
	start(&t,
		(struct bed_config){
			.writers = 5, .limit = 200 * MIB, .rate = rate},
		1);
	run(&t, 20);
	mark(&t);
	run(&t, 20);
	for (unsigned i = 1; i < 5; i++)
		assert_true(since(&t, i) >= 0.97 * 20 * (double)rate[i]);
	/* and the rest of the device is the first one's */
	assert_true(since(&t, 0) >= 0.9 * 20 * (60 * MB - 15 * MB));
	stop(&t);
}

/* Wait: the bytes at the fair rate, and 200 ms. */
static void no_write_waits_for_long(void **state)
{
	static const unsigned writers[] = {1, 10, 100};
	static const uint64_t limit[] = {MIB, 100 * MIB, 1000 * MIB};
	struct test t;

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		double rate;

		start(&t,
			(struct bed_config){.writers = writers[i / 3],
				.limit = limit[i % 3]},
			i);
		run(&t, 20);
		forget_waits(&t);
		rate = measure(&t, 10) * MB / writers[i / 3];
		assert_true((double)longest(&t) <=
			64.0 * 1024 / rate * 1e9 + 200e6);
		stop(&t);
	}
}

/* With room for runs of so many bytes, and a seek before each. */
static double bound(struct test *t, double run_bytes, double part)
{
	struct store_pattern p = {.write = true,
		.runs = 100,
		.length = (uint64_t)run_bytes,
		.distance = (uint64_t)part};
	double ns = (double)store_model_time(engine_store(t->bed.engine), &p);

	return 100 * run_bytes / ns * 1e9 / MB;
}

static void small_limit_runs_at_the_devices_bound(void **state)
{
	struct test t;
	double most;

	(void)state;
	start(&t, (struct bed_config){.writers = 1, .limit = MIB}, 1);
	assert_true(measure(&t, 10) >= 0.95 * 60);
	stop(&t);
	/* of ten that are written evenly each has twice its part when the
	 * flusher comes to it */
	start(&t, (struct bed_config){.writers = 10, .limit = 10 * MIB}, 1);
	most = bound(&t, 2 * MIB, 6.4 * 1024 * MIB);
	assert_true(most > 40 && most < 55);
	assert_true(measure(&t, 20) >= 0.95 * most);
	stop(&t);
}

/* So small that even shares are no runs: each has the limit for a turn. */
static void many_writers_on_a_small_limit_take_long_turns(void **state)
{
	static const uint64_t bs[] = {4 * KIB, 64 * KIB};
	struct test t;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		double even, rate;

		start(&t,
			(struct bed_config){
				.writers = 10, .limit = MIB, .bs = bs[i]},
			1);
		even = bound(&t, 2 * MIB / 10, 6.4 * 1024 * MIB);
		run(&t, 30);
		forget_waits(&t);
		mark(&t);
		rate = measure(&t, 10);
		assert_true(rate > 1.4 * even);
		assert_true(fairness(&t) >= 0.99);
		assert_true((double)longest(&t) <=
			(double)bs[i] / (rate * MB / 10) * 1e9 + 200e6);
		stop(&t);
	}
}

/* Up and down under load, also far below what is there: it only ever falls
 * until it fits, nobody is forgotten, and all goes on. */
static void limit_may_change_at_any_time(void **state)
{
	uint64_t charged, limit = 100 * MIB;
	struct test t;

	(void)state;
	start(&t, (struct bed_config){.writers = 20, .limit = limit}, 3);
	for (unsigned i = 0; i < 200; i++) {
		char value[24];
		struct engine_setting s = {"dirty-limit", value};
		struct error error;

		bed_look(&t.bed);
		charged = (uint64_t)bed_counter(&t.bed, "charged_bytes");
		limit = (1 + reactor_sim_random(t.loop, 100)) * MIB;
		snprintf(value, sizeof(value), "%" PRIu64, limit);
		assert_int_equal(engine_set(t.bed.engine, &s, 1, &error), 0);
		for (unsigned k = 0; k < 10; k++) {
			uint64_t most = charged > limit ? charged : limit;

			run(&t, 0.01);
			bed_look(&t.bed);
			charged =
				(uint64_t)bed_counter(&t.bed, "charged_bytes");
			assert_true(charged <= most);
		}
	}
	mark(&t);
	run(&t, 10);
	for (unsigned w = 0; w < 20; w++)
		assert_true(since(&t, w) > 0);
	stop(&t);
}

/* A round of the streams takes longer than their dirt may grow old: that does
 * not make the flusher begin anew. */
static void runs_stay_long_when_a_round_is_longer_than_expiry(void **state)
{
	struct test t;

	(void)state;
	start(&t, (struct bed_config){.writers = 100, .limit = 1000 * MIB}, 1);
	run(&t, 100);
	assert_true(measure(&t, 60) >= 0.95 * 58.9);
	stop(&t);
}

static void narrow_band_keeps_the_device_busy(void **state)
{
	static const uint64_t background[] = {990 * MIB, 999 * MIB};
	struct test t;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		start(&t,
			(struct bed_config){.writers = 10,
				.limit = 1000 * MIB,
				.background = background[i]},
			1);
		run(&t, 10);
		assert_true(measure(&t, 20) >= 0.95 * 60);
		stop(&t);
	}
}

static void rate_limit_comes_to_the_share_of_a_writer(void **state)
{
	struct test t;

	(void)state;
	start(&t, (struct bed_config){.writers = 10, .limit = 1000 * MIB}, 1);
	run(&t, 60);
	bed_look(&t.bed);
	assert_true(bed_counter(&t.bed, "dirty_ratelimit") > 0.8 * 6 * MB);
	assert_true(bed_counter(&t.bed, "dirty_ratelimit") < 1.3 * 6 * MB);
	assert_true(bed_counter(&t.bed, "pauses") > 100);
	stop(&t);
}

/* Paced, they stay below the limit; all waits are pauses. */
static void limit_is_not_met_by_who_is_paced(void **state)
{
	struct test t;

	(void)state;
	start(&t, (struct bed_config){.writers = 10, .limit = 1000 * MIB}, 1);
	run(&t, 40);
	for (unsigned i = 0; i < 100; i++) {
		run(&t, 0.05);
		bed_look(&t.bed);
		assert_true(bed_counter(&t.bed, "charged_bytes") < 999.5 * MIB);
	}
	stop(&t);
}

/* --- reads and flushes while writers are paced ---------------------------- */

static void answer(struct engine_request *req)
{
	req->error = 1;
}

static void reads_and_flushes_are_not_slowed(void **state)
{
	struct test t;
	struct engine_request *req = calloc(1, sizeof(*req));
	char buf[4096];

	(void)state;
	start(&t, (struct bed_config){.writers = 10, .limit = 200 * MIB}, 1);
	run(&t, 20.01);
	engine_request_init(req);
	req->op = ENGINE_READ;
	req->length = sizeof(buf);
	req->buf = buf;
	req->offset = t.bed.writer[0].pos - 64 * KIB;
	req->export = t.bed.export;
	req->client = t.bed.writer[0].client;
	req->reactor = t.loop;
	req->done = answer;
	assert_true(engine_submit(req)); /* at once: nobody was asked */
	engine_request_init(req);
	req->op = ENGINE_FLUSH;
	req->export = t.bed.export;
	req->client = t.bed.writer[0].client;
	req->reactor = t.loop;
	req->done = answer;
	assert_false(engine_submit(req));
	run(&t, 6); /* what is dirty takes 3.5 s */
	assert_int_equal(req->error, 1);
	stop(&t);
	free(req);
}

/* --- the other modes ------------------------------------------------------ */

static void legacy_writers_write_back_themselves(void **state)
{
	struct test t;

	(void)state;
	/* the flusher has next to nothing to do: it is they who write */
	start(&t,
		(struct bed_config){.throttle = "legacy",
			.writers = 10,
			.limit = 100 * MIB,
			.background = 100 * MIB - 4096},
		1);
	run(&t, 10);
	assert_true(measure(&t, 20) >= 30);
	stop(&t);
}

static void off_waits_at_the_limit_only(void **state)
{
	struct test t;

	(void)state;
	start(&t,
		(struct bed_config){
			.throttle = "off", .writers = 4, .limit = 100 * MIB},
		1);
	run(&t, 5);
	bed_look(&t.bed);
	assert_true(bed_counter(&t.bed, "charged_bytes") > 98.0 * MIB);
	assert_true(measure(&t, 20) >= 0.95 * 59);
	stop(&t);
}

static void mode_can_change_while_writers_wait(void **state)
{
	static const char *const mode[] = {
		"legacy", "ioless", "off", "ioless", "off", "legacy", "ioless"};
	struct test t;

	(void)state;
	start(&t, (struct bed_config){.writers = 10, .limit = 100 * MIB}, 1);
	for (unsigned i = 0; i < 7; i++) {
		struct engine_setting s = {"throttle", mode[i]};
		struct error error;

		run(&t, 3.3);
		assert_int_equal(engine_set(t.bed.engine, &s, 1, &error), 0);
		mark(&t);
		run(&t, 5);
		for (unsigned w = 0; w < 10; w++)
			assert_true(since(&t, w) > 0);
	}
	stop(&t);
}

static void seed_repeats_a_run(void **state)
{
	uint64_t written[2];
	struct test t;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		start(&t, (struct bed_config){.writers = 7, .limit = 50 * MIB},
			42);
		run(&t, 10);
		written[i] = bed_written(&t.bed);
		stop(&t);
	}
	assert_int_equal(written[0], written[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_clients_get_equal_rates),
		cmocka_unit_test(late_starter_has_its_share_in_three_seconds),
		cmocka_unit_test(writer_slower_than_its_share_is_not_slowed),
		cmocka_unit_test(no_write_waits_for_long),
		cmocka_unit_test(small_limit_runs_at_the_devices_bound),
		cmocka_unit_test(many_writers_on_a_small_limit_take_long_turns),
		cmocka_unit_test(limit_may_change_at_any_time),
		cmocka_unit_test(
			runs_stay_long_when_a_round_is_longer_than_expiry),
		cmocka_unit_test(narrow_band_keeps_the_device_busy),
		cmocka_unit_test(rate_limit_comes_to_the_share_of_a_writer),
		cmocka_unit_test(limit_is_not_met_by_who_is_paced),
		cmocka_unit_test(reads_and_flushes_are_not_slowed),
		cmocka_unit_test(legacy_writers_write_back_themselves),
		cmocka_unit_test(off_waits_at_the_limit_only),
		cmocka_unit_test(mode_can_change_while_writers_wait),
		cmocka_unit_test(seed_repeats_a_run),
	};

	return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
