/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-scan.c: what is used again and again stays cached while ten times the
 * cache goes by once, whichever way it goes by.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "served.h"
#include "stat.h"

#define CACHE (32 * MIB)
#define HOT (CACHE * 47 / 100) /* with its state about half of the cache */
#define SCAN (10 * CACHE)
#define SCAN_AT GIB
#define BLOCK (4 * KIB)
#define STEP (64 * KIB)
#define HOT_PER_STEP 4 /* uses of the hot set, for each step of the scan */

struct scan {
	struct served *s;
	uint64_t random;
	unsigned uses, hits; /* of the hot set */
	unsigned char data[STEP];
};

static int begin(void **state, const char *dirty_limit)
{
	const char *const keys[] = {"store",
		"sim:bandwidth=200M,latency=1ms,null:4G", "cache-size", "32M",
		"dirty-limit", dirty_limit, NULL};
	struct scan *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	t->s = served_with(ENGINE_WRITEBACK, keys);
	t->random = 1;
	*state = t;
	return 0;
}

static int setup(void **state)
{
	return begin(state, "50%");
}

/* Small writes take more memory than is dirty: their pages have state. */
static int setup_small_writes(void **state)
{
	return begin(state, "40%");
}

static int teardown(void **state)
{
	struct scan *t = *state;

	served_free(t->s);
	free(t);
	return 0;
}

static void ask(struct scan *t, enum engine_op op, uint64_t at, uint64_t n)
{
	assert_int_equal(request(t->s, op, 0, at, n, t->data), 0);
}

/* A hit is answered within the call. */
static void use_hot(struct scan *t)
{
	struct asking a = {0};

	engine_request_init(&a.req);
	a.req.op = ENGINE_READ;
	a.req.offset = random_below(&t->random, HOT / BLOCK) * BLOCK;
	a.req.length = BLOCK;
	a.req.export = t->s->export;
	a.req.reactor = t->s->loop;
	a.req.done = asking_done;
	a.req.buf = t->data;
	t->uses++;
	if (engine_submit(&a.req)) {
		t->hits++;
		return;
	}
	while (!a.answered)
		assert_true(reactor_sim_step(t->s->loop));
}

/* Read it once, and often enough that it is known to be hot. */
static void warm(struct scan *t)
{
	for (uint64_t at = 0; at < HOT; at += BLOCK)
		ask(t, ENGINE_READ, at, BLOCK);
	for (unsigned i = 0; i < 4 * HOT / STEP; i++)
		use_hot(t);
	t->uses = t->hits = 0;
}

static void step(struct scan *t, enum engine_op op, uint64_t at, uint64_t n)
{
	for (uint64_t end = at + STEP; at < end; at += n)
		ask(t, op, SCAN_AT + at, n);
	for (unsigned i = 0; i < HOT_PER_STEP; i++)
		use_hot(t);
}

static void hot_set_stayed(struct scan *t)
{
	assert_true(t->hits * 10 >= t->uses * 9);
}

static void sequential_reads(void **state)
{
	struct scan *t = *state;

	warm(t);
	for (uint64_t at = 0; at < SCAN; at += STEP)
		step(t, ENGINE_READ, at, 16 * KIB);
	hot_set_stayed(t);
	/* it went by in a stream, of which little was brought in twice */
	assert_true(stat_value(t->s->engine, "readahead_read_bytes") >=
		SCAN * 9 / 10);
	assert_true(stat_value(t->s->engine, "store_read_bytes") <=
		HOT + SCAN * 11 / 10);
}

static void random_reads(void **state)
{
	struct scan *t = *state;

	warm(t);
	for (uint64_t at = 0; at < SCAN; at += STEP) {
		ask(t, ENGINE_READ,
			SCAN_AT +
				random_below(&t->random, SCAN / BLOCK) * BLOCK,
			BLOCK);
		for (unsigned i = 0; i < HOT_PER_STEP; i++)
			use_hot(t);
	}
	hot_set_stayed(t);
}

static void sequential_writes(void **state)
{
	struct scan *t = *state;

	warm(t);
	for (uint64_t at = 0; at < SCAN; at += STEP)
		step(t, ENGINE_WRITE, at, 16 * KIB);
	hot_set_stayed(t);
}

static void random_writes(void **state)
{
	struct scan *t = *state;

	warm(t);
	for (uint64_t at = 0; at < SCAN; at += BLOCK) {
		ask(t, ENGINE_WRITE,
			SCAN_AT +
				random_below(&t->random, 3 * GIB / BLOCK) *
					BLOCK,
			BLOCK);
		if (at % STEP == 0)
			for (unsigned i = 0; i < HOT_PER_STEP; i++)
				use_hot(t);
	}
	hot_set_stayed(t);
}

/* Read once after it was prefetched is used once. */
static void prefetch_and_read(void **state)
{
	struct scan *t = *state;

	warm(t);
	for (uint64_t at = 0; at < SCAN; at += STEP) {
		ask(t, ENGINE_CACHE, SCAN_AT + at, STEP);
		step(t, ENGINE_READ, at, 32 * KIB);
	}
	hot_set_stayed(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(sequential_reads),
		TEST(random_reads),
		TEST(sequential_writes),
		cmocka_unit_test_setup_teardown(
			random_writes, setup_small_writes, teardown),
		TEST(prefetch_and_read),
#undef TEST
	};

	return cmocka_run_group_tests_name("scan", tests, NULL, NULL);
}
