/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-request.c: requests that once asked for too much or for too little,
 * and the end of an engine with something still on its way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "served.h"
#include "stat.h"

#define BLOCK 4096U

/* All of a huge device was searched for what the two edges had made dirty. */
static void huge_trim_with_unaligned_ends_looks_at_its_ends_only(void **state)
{
	struct served *s = served_new("null:64T", "16M", ENGINE_WRITETHROUGH);

	(void)state;
	alarm(20);
	assert_int_equal(request(s, ENGINE_TRIM, 0, 100,
				 (UINT64_C(64) << 40) - 200, NULL),
		0);
	assert_int_equal(stat_value(s->engine, "dirty_bytes"), 0);
	served_free(s);
	alarm(0);
}

/* FUA of a zero wrote all that was dirty anywhere. */
static void fua_of_a_zero_leaves_other_dirt_alone(void **state)
{
	struct served *s =
		served_new("fault:record=on,mem:16M", "16M", ENGINE_WRITEBACK);
	unsigned char buf[2 * BLOCK];
	uint64_t bytes;

	(void)state;
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(
		request(s, ENGINE_WRITE, 0, 8 * MIB, sizeof(buf), buf), 0);
	store_fault_record(s->store, true);
	assert_int_equal(
		request(s, ENGINE_ZERO, ENGINE_FUA, BLOCK / 2, MIB, NULL), 0);
	assert_int_equal(logged(s, STORE_WRITE, &bytes), 2); /* the edges */
	assert_int_equal(bytes, 2 * BLOCK);
	assert_int_equal(logged(s, STORE_ZERO, &bytes), 1);
	assert_int_equal(logged(s, STORE_FLUSH, &bytes), 1);
	assert_int_equal(stat_value(s->engine, "dirty_bytes"), sizeof(buf));
	/* and the flush is not owed any more */
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	served_free(s);
}

/* One for the whole device asked the store for all of it at once. */
static void prefetch_of_everything_keeps_to_the_cache(void **state)
{
	struct served *s = served_new(
		"fault:record=on,null:256M", "16M", ENGINE_WRITEBACK);
	uint64_t bytes;

	(void)state;
	assert_int_equal(request(s, ENGINE_CACHE, 0, 0, 256 * MIB, NULL), 0);
	logged(s, STORE_READ, &bytes);
	assert_int_equal(bytes, 8 * MIB);
	assert_true(stat_value(s->engine, "cached_bytes") <= 16 * MIB);
	served_free(s);
}

/* The cache was freed under a fill that no request waited for. */
static void end_waits_for_fills_beyond_their_requests(void **state)
{
	struct store_fault_rule slow = {.action = STORE_FAULT_DELAY,
		.length = BLOCK,
		.delay_ns = NSEC_PER_SEC};
	struct served *s =
		served_new("fault:record=on,null:16M", "16M", ENGINE_WRITEBACK);
	unsigned char buf[5 * BLOCK];
	uint64_t start;

	(void)state;
	memset(buf, 'x', sizeof(buf));
	/* parts the fill of the page in two */
	assert_int_equal(
		request(s, ENGINE_WRITE, 0, 4 * BLOCK, sizeof(buf), buf), 0);
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	store_fault_set(s->store, &slow, 1);
	start = reactor_now(s->loop);
	assert_int_equal(request(s, ENGINE_READ, 0, 9 * BLOCK, BLOCK, buf), 0);
	assert_true(reactor_now(s->loop) < start + NSEC_PER_SEC);
	engine_shutdown(s->engine, 0, served_ended, s);
	while (!s->ended)
		assert_true(reactor_sim_step(s->loop));
	assert_true(reactor_now(s->loop) >= start + NSEC_PER_SEC);
	served_close(s);
}

/* A flush that ended after the deadline told of the end once more. */
static void end_is_told_once_though_the_store_comes_back(void **state)
{
	struct store_fault_rule hang = {
		.action = STORE_FAULT_HANG, .ops = STORE_FAULT_OP(STORE_FLUSH)};
	struct served *s =
		served_new("fault:record=on,mem:16M", "16M", ENGINE_WRITEBACK);
	unsigned char buf[BLOCK];

	(void)state;
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(request(s, ENGINE_WRITE, 0, 0, BLOCK, buf), 0);
	store_fault_set(s->store, &hang, 1);
	engine_shutdown(s->engine, NSEC_PER_SEC, served_ended, s);
	while (!s->ended)
		assert_true(reactor_sim_step(s->loop));
	assert_int_equal(s->end_error, -ETIMEDOUT);
	store_fault_set(s->store, NULL, 0);
	assert_int_equal(store_fault_release(s->store), 1);
	reactor_sim_run_until(
		s->loop, reactor_now(s->loop) + 60 * NSEC_PER_SEC);
	assert_int_equal(s->ended, 1);
	served_close(s);
}

static void cache_status_merges_what_is_alike_over_pages(void **state)
{
	struct served *s = served_new("mem:1G", "64M", ENGINE_WRITEBACK);
	struct engine_extent e[4];
	unsigned char *buf = calloc(1, MIB);

	(void)state;
	assert_int_equal(
		engine_cache_status(s->export, 0, 1024 * MIB, e, 4), 1);
	assert_int_equal(e[0].length, 1024 * MIB);
	assert_int_equal(e[0].flags, 0);
	assert_int_equal(
		request(s, ENGINE_WRITE, 0, 300 * MIB + BLOCK, MIB, buf), 0);
	assert_int_equal(
		engine_cache_status(s->export, 0, 1024 * MIB, e, 4), 3);
	assert_int_equal(e[0].length, 300 * MIB + BLOCK);
	assert_int_equal(e[1].length, MIB);
	assert_int_equal(e[1].flags, ENGINE_CACHED | ENGINE_DIRTY);
	assert_int_equal(e[2].length, 723 * MIB - BLOCK);
	assert_int_equal(e[2].flags, 0);
	/* It begins and ends where it was asked to, and has the room it has. */
	assert_int_equal(engine_cache_status(
				 s->export, 300 * MIB + BLOCK + 7, 100, e, 1),
		1);
	assert_int_equal(e[0].length, 100);
	assert_int_equal(
		engine_cache_status(s->export, 0, 1024 * MIB, e, 1), 1);
	assert_int_equal(e[0].length, 300 * MIB + BLOCK);
	free(buf);
	served_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			huge_trim_with_unaligned_ends_looks_at_its_ends_only),
		cmocka_unit_test(fua_of_a_zero_leaves_other_dirt_alone),
		cmocka_unit_test(prefetch_of_everything_keeps_to_the_cache),
		cmocka_unit_test(end_waits_for_fills_beyond_their_requests),
		cmocka_unit_test(cache_status_merges_what_is_alike_over_pages),
		cmocka_unit_test(end_is_told_once_though_the_store_comes_back),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
