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

/* Writers that go on, each with one random write under way. */
struct writer {
	struct engine_request req;
	struct served *s;
	uint64_t end_ns;
	bool busy;
};

static void writer_next(struct writer *w);

static void writer_done(struct engine_request *req)
{
	struct writer *w = container_of(req, struct writer, req);

	assert_int_equal(req->error, 0);
	w->busy = false;
	writer_next(w);
}

static void writer_next(struct writer *w)
{
	static unsigned char buf[64 * KIB];
	static uint64_t seed;

	while (!w->busy && reactor_now(w->s->loop) < w->end_ns) {
		engine_request_init(&w->req);
		w->req.op = ENGINE_WRITE;
		w->req.length = sizeof(buf);
		w->req.offset =
			random_below(&seed, SIZE / sizeof(buf)) * sizeof(buf);
		w->req.export = w->s->export;
		w->req.reactor = w->s->loop;
		w->req.done = writer_done;
		w->req.buf = buf;
		w->busy = !engine_submit(&w->req);
	}
}

static void flush_takes_no_longer_while_others_write_on(void **state)
{
	struct served *s = *state;
	struct writer w[16] = {0};
	uint64_t most = 0;

	set(s, "dirty-time", "2s");
	write_for(s, 40 * NSEC_PER_SEC, MIB, false);
	for (unsigned i = 0; i < 16; i++) {
		w[i].s = s;
		w[i].end_ns = reactor_now(s->loop) + 30 * NSEC_PER_SEC;
		writer_next(&w[i]);
	}
	while (reactor_now(s->loop) < w[0].end_ns - 5 * NSEC_PER_SEC) {
		uint64_t ms;

		reactor_sim_run_until(
			s->loop, reactor_now(s->loop) + 3 * NSEC_PER_SEC);
		ms = flush_ms(s);
		most = ms > most ? ms : most;
	}
	assert_in_range(most, 1000, 2300);
	reactor_sim_run_until(s->loop, w[0].end_ns + 10 * NSEC_PER_SEC);
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
		TEST(flush_takes_no_longer_while_others_write_on),
		TEST(limit_in_force_is_never_passed),
#undef TEST
	};

	return cmocka_run_group_tests_name("dirty-time", tests, NULL, NULL);
}
