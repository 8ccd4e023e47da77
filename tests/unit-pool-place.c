/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool-place.c: where a pool puts blocks: streams written in turns stay
 * in large extents, neighbours lie side by side.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "pooled.h"

#define STREAMS 10U
#define STREAM (2560 * KIB)
#define PIECE (64 * KIB)

/* Ten streams, `apart` from each other, written in turns; how many extents
 * hold them. `promised`: after a reservation, as the cache does it. */
static uint64_t write_streams(struct pooled *b, uint64_t apart)
{
	for (uint64_t at = 0; at < STREAM; at += PIECE) {
		for (uint64_t i = 0; i < STREAMS; i++) {
			uint64_t offset = i * apart + at;

			assert_int_equal(
				placement_reserve(b->pool, offset, PIECE), 0);
			pooled_write(b, 1 + (unsigned)i, offset, PIECE);
		}
	}
	for (uint64_t i = 0; i < STREAMS; i++)
		assert_true(pooled_sees(b, 1 + (unsigned)i, i * apart, STREAM));
	return pooled_counts(b).extents;
}

static uint64_t streams_in(uint64_t size, uint64_t logical, uint64_t apart,
	bool immediate, bool reopen)
{
	struct pooled *b = pooled_blank(size);
	uint64_t extents;

	b->immediate = immediate;
	pooled_format(b, logical);
	pooled_open(b);
	extents = write_streams(b, apart);
	if (reopen) {
		pooled_close(b);
		pooled_open(b);
		assert_int_equal(pooled_counts(b).extents, extents);
		assert_true(pooled_sees(b, 10, 9 * apart, STREAM));
	}
	pooled_free(b);
	return extents;
}

static uint64_t streams(
	uint64_t logical, uint64_t apart, bool immediate, bool reopen)
{
	return streams_in(64 * MIB, logical, apart, immediate, reopen);
}

/* At the least a quarter of each stream in one piece. */
static void streams_written_in_turns_stay_in_large_extents(void **state)
{
	(void)state;
	/* The pool is as large as its device, and much smaller. */
	assert_true(streams(48 * MIB, 4 * MIB, false, true) <= STREAMS);
	assert_true(streams(48 * MIB, STREAM, false, false) <= 4 * STREAMS);
	assert_true(streams(GIB, 100 * MIB, false, true) <= STREAMS);
	assert_true(streams(GIB, STREAM, false, false) <= 4 * STREAMS);
}

/* One that finds no more room does not take that of another. */
static void streams_that_fill_a_pool_do_not_cut_each_other_up(void **state)
{
	(void)state;
	assert_true(streams_in(30 * MIB, GIB, 100 * MIB, false, false) <=
		3 * STREAMS);
	assert_true(streams_in(27 * MIB, GIB, 100 * MIB, false, false) <=
		4 * STREAMS);
}

static void placed_as_they_arrive_they_are_cut_up(void **state)
{
	(void)state;
	assert_true(streams(GIB, 100 * MIB, true, true) >=
		STREAMS * STREAM / PIECE);
}

static void blocks_written_in_any_order_end_up_in_theirs(void **state)
{
	struct pooled *b = pooled_new(16 * MIB, 256 * MIB);
	unsigned order[256];
	uint64_t seed = 1;

	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		unsigned j = (unsigned)random_below(&seed, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned i = 0; i < 256; i++)
		pooled_write(b, 1, 32 * MIB + order[i] * UNIT, UNIT);
	assert_true(pooled_sees(b, 1, 32 * MIB, 256 * UNIT));
	assert_int_equal(pooled_counts(b).extents, 1);
	pooled_free(b);
}

static void a_trimmed_gap_is_filled_in_place(void **state)
{
	struct pooled *b = pooled_new(16 * MIB, 256 * MIB);

	(void)state;
	pooled_write(b, 1, MIB, MIB);
	pooled_trim(b, MIB + 256 * KIB, 256 * KIB);
	pooled_flush(b);
	while (reactor_sim_step(b->loop))
		;
	assert_int_equal(pooled_counts(b).extents, 2);
	pooled_write(b, 2, MIB + 256 * KIB, 256 * KIB);
	assert_int_equal(pooled_counts(b).extents, 1);
	pooled_free(b);
}

/* What a stream holds ahead of itself is not lost to others. */
static void what_is_held_ahead_is_given_up_for_a_promise(void **state)
{
	struct pooled *b = pooled_new(16 * MIB, GIB);
	uint64_t n = 0;

	(void)state;
	for (uint64_t at = 0; at < 2 * MIB; at += PIECE)
		pooled_write(b, 1, at, PIECE);
	while (!placement_reserve(b->pool, 512 * MIB + n * PIECE, PIECE))
		n++;
	assert_true(n * PIECE > 13 * MIB);
	for (uint64_t i = 0; i < n; i++)
		pooled_write(b, 2, 512 * MIB + i * PIECE, PIECE);
	assert_true(pooled_sees(b, 1, 0, 2 * MIB));
	assert_true(pooled_sees(b, 2, 512 * MIB, n * PIECE));
	pooled_flush(b);
	pooled_close(b);
	pooled_open(b);
	assert_true(pooled_sees(b, 2, 512 * MIB, n * PIECE));
	pooled_free(b);
}

/* Chosen on arrival, given up unwritten: nothing is lost. */
static void what_was_chosen_on_arrival_can_be_given_up(void **state)
{
	struct pooled *b = pooled_blank(16 * MIB);
	uint64_t before;

	(void)state;
	b->immediate = true;
	pooled_format(b, GIB);
	pooled_open(b);
	before = pooled_counts(b).free_bytes;
	assert_int_equal(placement_reserve(b->pool, 0, 8 * MIB), 0);
	assert_int_equal(placement_reserve(b->pool, 4 * MIB, 6 * MIB), 0);
	assert_int_equal(pooled_counts(b).free_bytes, before - 10 * MIB);
	placement_unreserve(b->pool, 2 * MIB, 8 * MIB);
	assert_int_equal(pooled_counts(b).free_bytes, before - 2 * MIB);
	pooled_write(b, 1, MIB, 4 * MIB);
	assert_int_equal(pooled_counts(b).free_bytes, before - 5 * MIB);
	assert_int_equal(pooled_counts(b).reserved_bytes, MIB);
	assert_true(pooled_sees(b, 1, MIB, 4 * MIB));
	pooled_free(b);
}

/* The search went on from the start of the pool and cut off what lies before
 * the place it had come from: a place beyond the end. */
static void arrivals_begin_again_at_the_start(void **state)
{
	struct pooled *b = pooled_blank(8 * MIB);
	int err = 0;

	(void)state;
	b->immediate = true;
	pooled_format(b, 64 * MIB);
	pooled_open(b);
	for (unsigned i = 0; i < 64 && !err; i++)
		err = pooled_do(b, STORE_WRITE, 1, i * MIB, MIB / 2, 0);
	assert_int_equal(err, -ENOSPC);
	pooled_trim(b, 0, 64 * MIB);
	pooled_flush(b);
	pooled_write(b, 2, 0, MIB);
	pooled_write(b, 2, 8 * MIB, MIB);
	assert_true(pooled_sees(b, 2, 0, MIB));
	pooled_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			streams_written_in_turns_stay_in_large_extents),
		cmocka_unit_test(
			streams_that_fill_a_pool_do_not_cut_each_other_up),
		cmocka_unit_test(placed_as_they_arrive_they_are_cut_up),
		cmocka_unit_test(blocks_written_in_any_order_end_up_in_theirs),
		cmocka_unit_test(a_trimmed_gap_is_filled_in_place),
		cmocka_unit_test(what_is_held_ahead_is_given_up_for_a_promise),
		cmocka_unit_test(what_was_chosen_on_arrival_can_be_given_up),
		cmocka_unit_test(arrivals_begin_again_at_the_start),
	};

	return cmocka_run_group_tests_name("pool-place", tests, NULL, NULL);
}
