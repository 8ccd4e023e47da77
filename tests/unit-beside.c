/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-beside.c: how long reads take while a store of 100 MB/s is written to
 * as fast as it can be. Simulated time, so that the figures are exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "served.h"
#include "stat.h"

#define BANDWIDTH (100 * MIB)
#define LATENCY NSEC_PER_MSEC
#define LIMIT (64 * MIB)
#define BLOCK (4 * KIB)
#define PAGE (64 * KIB) /* what a miss reads */
#define CACHED (2 * GIB)
#define READS 400U

static struct served *serve(const char *inflight)
{
	const char *const keys[] = {"store",
		"sim:bandwidth=100M,latency=1ms,null:4G", "cache-size", "160M",
		"dirty-limit", "64M", "dirty-background", "63M",
		"writeback-inflight", inflight, NULL};

	return served_with(ENGINE_WRITEBACK, keys);
}

static void ask(struct served *s, struct asking *a, enum engine_op op,
	uint64_t at, uint64_t n, void *buf)
{
	*a = (struct asking){0};
	engine_request_init(&a->req);
	a->req.op = op;
	a->req.offset = at;
	a->req.length = n;
	a->req.export = s->export;
	a->req.reactor = s->loop;
	a->req.done = asking_done;
	a->req.buf = buf;
	a->answered = engine_submit(&a->req);
}

/* The ns that a read takes. */
static uint64_t read_ns(struct served *s, uint64_t at)
{
	unsigned char buf[BLOCK];
	uint64_t start = reactor_now(s->loop);
	struct asking a;

	ask(s, &a, ENGINE_READ, at, BLOCK, buf);
	while (!a.answered)
		assert_true(reactor_sim_step(s->loop));
	assert_int_equal(a.req.error, 0);
	return reactor_now(s->loop) - start;
}

/* As much is dirty as may be: long runs, or a block here and there. */
static void fill(struct served *s, uint64_t n, uint64_t stride)
{
	unsigned char *buf = calloc(1, n);

	for (uint64_t i = 0; i < 62 * MIB / n; i++)
		assert_int_equal(
			request(s, ENGINE_WRITE, 0, i * stride, n, buf), 0);
	free(buf);
}

static int up(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

struct times {
	uint64_t cached_p99, missed_p99; /* ns */
	uint64_t drained;                /* ns, all that was dirty */
};

/* Read while a flush writes all of it; each a miss, each with a cached one. */
static struct times beside_a_flush(struct served *s)
{
	uint64_t cached[READS], missed[READS], start;
	struct times t;
	struct asking flush;
	unsigned n = 0;

	read_ns(s, CACHED);
	start = reactor_now(s->loop);
	ask(s, &flush, ENGINE_FLUSH, 0, 0, NULL);
	while (!flush.answered && n < READS) {
		missed[n] = read_ns(
			s, 3 * GIB + n * UINT64_C(7919) % (GIB / PAGE) * PAGE);
		cached[n++] = read_ns(s, CACHED);
	}
	assert_true(n >= 10);
	assert_true(stat_value(s->engine, "misses") >= n);
	while (!flush.answered)
		assert_true(reactor_sim_step(s->loop));
	assert_int_equal(flush.req.error, 0);
	t.drained = reactor_now(s->loop) - start;
	qsort(cached, n, sizeof(*cached), up);
	qsort(missed, n, sizeof(*missed), up);
	t.cached_p99 = cached[n * 99 / 100];
	t.missed_p99 = missed[n * 99 / 100];
	return t;
}

static uint64_t bus_ns(uint64_t bytes)
{
	return bytes * NSEC_PER_SEC / BANDWIDTH;
}

static void missed_reads_wait_for_what_is_in_flight_only(void **state)
{
	static const struct {
		const char *inflight;
		uint64_t bytes;
	} bound[] = {{"256K", 256 * KIB}, {"1M", MIB}, {"4M", 4 * MIB}};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct served *s = serve(bound[i].inflight);
		struct times t;

		fill(s, MIB, MIB);
		t = beside_a_flush(s);
		assert_int_equal(t.cached_p99, 0);
		assert_true(t.missed_p99 <=
			LATENCY + bus_ns(bound[i].bytes) + bus_ns(PAGE));
		served_free(s);
	}
}

static void small_writes_are_no_longer_ahead_of_reads(void **state)
{
	struct served *s = serve("4M");
	struct times t;

	(void)state;
	fill(s, BLOCK, 2 * BLOCK);
	t = beside_a_flush(s);
	assert_int_equal(t.cached_p99, 0);
	assert_true(t.missed_p99 <= LATENCY + bus_ns(4 * MIB) + bus_ns(PAGE));
	served_free(s);
}

static void default_keeps_the_store_busy(void **state)
{
	struct served *s = serve("4M");
	uint64_t start;

	(void)state;
	fill(s, MIB, MIB);
	start = reactor_now(s->loop);
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	assert_true(
		(reactor_now(s->loop) - start) * 98 / 100 <= bus_ns(62 * MIB));
	served_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missed_reads_wait_for_what_is_in_flight_only),
		cmocka_unit_test(small_writes_are_no_longer_ahead_of_reads),
		cmocka_unit_test(default_keeps_the_store_busy),
	};

	return cmocka_run_group_tests_name("beside", tests, NULL, NULL);
}
