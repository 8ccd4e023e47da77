/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool.c: what is written to a pool's device is what is read, and space
 * is taken and given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pooled.h"

#define SIZE (8 * MIB)

static int setup(void **state)
{
	*state = pooled_new(SIZE, 64 * MIB);
	return 0;
}

static int teardown(void **state)
{
	pooled_free(*state);
	return 0;
}

/* --- reads and writes ---------------------------------------------------- */

static void what_was_never_written_reads_as_zeroes(void **state)
{
	struct pooled *b = *state;

	assert_int_equal(b->pool->info.size, 64 * MIB);
	assert_int_equal(b->pool->info.align, UNIT);
	assert_true(pooled_sees(b, 0, 0, MIB));
	assert_int_equal(pooled_asked(b, STORE_READ, NULL), 0);
}

static void a_write_is_read_with_zeroes_around_it(void **state)
{
	struct pooled *b = *state;

	pooled_write(b, 1, 3 * UNIT, 5 * UNIT);
	assert_true(pooled_sees(b, 1, 3 * UNIT, 5 * UNIT));
	assert_true(pooled_sees(b, 0, 0, 3 * UNIT));
	assert_true(pooled_sees(b, 0, 8 * UNIT, 3 * UNIT));
	assert_int_equal(pooled_counts(b).mapped_bytes, 5 * UNIT);
	assert_int_equal(pooled_counts(b).extents, 1);
}

static void what_is_mapped_is_overwritten_in_place(void **state)
{
	struct pooled *b = *state;
	uint64_t before;

	pooled_write(b, 1, 0, 16 * UNIT);
	before = pooled_counts(b).free_bytes;
	pooled_write(b, 2, 4 * UNIT, 4 * UNIT);
	pooled_write(b, 3, 12 * UNIT, 8 * UNIT);
	assert_int_equal(pooled_counts(b).free_bytes, before - 4 * UNIT);
	assert_true(pooled_sees(b, 1, 0, 4 * UNIT));
	assert_true(pooled_sees(b, 2, 4 * UNIT, 4 * UNIT));
	assert_true(pooled_sees(b, 1, 8 * UNIT, 4 * UNIT));
	assert_true(pooled_sees(b, 3, 12 * UNIT, 8 * UNIT));
	assert_int_equal(pooled_counts(b).extents, 1);
}

static void a_failed_write_maps_nothing(void **state)
{
	struct pooled *b = *state;
	uint64_t before = pooled_counts(b).free_bytes;

	pooled_break(b, STORE_WRITE, 0, 1);
	assert_int_equal(pooled_do(b, STORE_WRITE, 1, 0, 8 * UNIT, 0), -EIO);
	assert_int_equal(pooled_counts(b).mapped_bytes, 0);
	assert_int_equal(pooled_counts(b).free_bytes, before);
	assert_int_equal(pooled_counts(b).reserved_bytes, 8 * UNIT);
	assert_true(pooled_sees(b, 0, 0, 8 * UNIT));
	pooled_write(b, 1, 0, 8 * UNIT);
	assert_true(pooled_sees(b, 1, 0, 8 * UNIT));
	assert_int_equal(pooled_counts(b).reserved_bytes, 0);
}

static void scattered_memory_is_cut_at_the_pieces(void **state)
{
	struct pooled *b = *state;
	unsigned char *buf = aligned_alloc(4096, 8 * UNIT);
	struct iovec iov[3] = {{buf, 3 * UNIT}, {buf + 3 * UNIT, 512},
		{buf + 3 * UNIT + 512, 5 * UNIT - 512}};
	struct pooled_io x = {.io = {.op = STORE_WRITE,
				      .offset = 0,
				      .length = 8 * UNIT,
				      .iov = iov,
				      .niov = 3,
				      .reactor = b->loop,
				      .done = pooled_io_done}};

	pooled_write(b, 1, 2 * UNIT, 2 * UNIT); /* far from what comes next */
	pooled_write(b, 1, 5 * UNIT, UNIT);
	tag_put(buf, 2, 0, 8 * UNIT);
	placement_submit(b->pool, &x.io);
	while (!x.done)
		assert_true(reactor_sim_step(b->loop));
	assert_int_equal(x.io.error, 0);
	assert_true(pooled_sees(b, 2, 0, 8 * UNIT));
	free(buf);
}

static void a_read_only_pool_is_not_written(void **state)
{
	struct pooled *b = *state;

	pooled_write(b, 1, 0, 4 * UNIT);
	pooled_flush(b);
	pooled_drop(b);
	b->flags = STORE_OPEN_READONLY;
	pooled_open(b);
	assert_true(b->pool->info.readonly);
	assert_true(pooled_sees(b, 1, 0, 4 * UNIT));
	assert_int_equal(pooled_do(b, STORE_WRITE, 2, 0, UNIT, 0), -EROFS);
	assert_int_equal(pooled_do(b, STORE_TRIM, 0, 0, UNIT, 0), -EROFS);
	pooled_flush(b);
	b->quiet = false;
	placement_quiesce(b->pool, pooled_quiet, b);
	while (!b->quiet)
		assert_true(reactor_sim_step(b->loop));
	assert_int_equal(pooled_asked(b, STORE_WRITE, NULL), 0);
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 0);
}

/* --- trims and zeroes ---------------------------------------------------- */

static void trimmed_space_is_free_after_the_flush(void **state)
{
	struct pooled *b = *state;
	uint64_t before = pooled_counts(b).free_bytes;

	pooled_write(b, 1, 0, 64 * UNIT);
	pooled_trim(b, 16 * UNIT, 32 * UNIT);
	assert_true(pooled_sees(b, 1, 0, 16 * UNIT));
	assert_true(pooled_sees(b, 0, 16 * UNIT, 32 * UNIT));
	assert_true(pooled_sees(b, 1, 48 * UNIT, 16 * UNIT));
	assert_int_equal(pooled_counts(b).free_bytes, before - 64 * UNIT);
	pooled_flush(b);
	while (reactor_sim_step(b->loop))
		;
	assert_int_equal(pooled_counts(b).free_bytes, before - 32 * UNIT);
	assert_int_equal(pooled_asked(b, STORE_TRIM, NULL), 1);
}

static void a_read_under_way_keeps_its_space(void **state)
{
	struct pooled *b = *state;
	uint64_t before = pooled_counts(b).free_bytes;
	struct pooled_io *x;

	pooled_write(b, 1, 0, 8 * UNIT);
	pooled_flush(b);
	pooled_hang(b, STORE_READ);
	x = pooled_start(b, STORE_READ, 0, 0, 8 * UNIT, 0);
	pooled_trim(b, 0, 8 * UNIT);
	pooled_flush(b);
	while (reactor_sim_step(b->loop))
		;
	assert_int_equal(pooled_counts(b).free_bytes, before - 8 * UNIT);
	pooled_mend(b);
	assert_int_equal(pooled_end(b, x), 0);
	while (reactor_sim_step(b->loop))
		;
	assert_int_equal(pooled_counts(b).free_bytes, before);
}

static void zeroing_all_of_it_is_one_record(void **state)
{
	struct pooled *b = *state;
	uint64_t bytes;

	for (unsigned i = 0; i < 100; i++)
		pooled_write(b, 1, 3 * i * UNIT, UNIT);
	pooled_flush(b);
	pooled_record(b);
	assert_int_equal(pooled_do(b, STORE_ZERO, 0, 0, 64 * MIB, 0), 0);
	assert_int_equal(pooled_asked(b, STORE_WRITE, NULL), 0);
	pooled_flush(b);
	assert_int_equal(pooled_asked(b, STORE_WRITE, &bytes), 1);
	assert_int_equal(bytes, 4096);
	assert_true(pooled_sees(b, 0, 0, MIB));
	assert_int_equal(pooled_counts(b).mapped_bytes, 0);
	pooled_record(b);
	assert_int_equal(pooled_do(b, STORE_ZERO, 0, 0, 64 * MIB, 0), 0);
	pooled_flush(b); /* nothing was there: nothing to say */
	assert_int_equal(pooled_asked(b, STORE_WRITE, NULL), 0);
}

static void zeroes_that_keep_the_space_are_written_in_place(void **state)
{
	struct pooled *b = *state;
	uint64_t before = pooled_counts(b).free_bytes;

	pooled_write(b, 1, 4 * UNIT, 4 * UNIT);
	assert_int_equal(
		pooled_do(b, STORE_ZERO, 0, 0, 16 * UNIT, STORE_NO_HOLE), 0);
	assert_int_equal(pooled_counts(b).mapped_bytes, 16 * UNIT);
	assert_int_equal(pooled_counts(b).free_bytes, before - 16 * UNIT);
	assert_true(pooled_sees(b, 0, 0, 16 * UNIT));
	pooled_write(b, 2, 6 * UNIT, 4 * UNIT);
	assert_true(pooled_sees(b, 0, 0, 6 * UNIT));
	assert_true(pooled_sees(b, 2, 6 * UNIT, 4 * UNIT));
	assert_true(pooled_sees(b, 0, 10 * UNIT, 6 * UNIT));
	pooled_flush(b);
	pooled_power_cut(b, 1);
	pooled_open(b);
	assert_true(pooled_sees(b, 0, 0, 6 * UNIT));
	assert_true(pooled_sees(b, 2, 6 * UNIT, 4 * UNIT));
	assert_true(pooled_sees(b, 0, 10 * UNIT, 6 * UNIT));
	assert_int_equal(pooled_counts(b).free_bytes, before - 16 * UNIT);
}

static void status_tells_data_from_zeroes_from_holes(void **state)
{
	struct pooled *b = *state;
	struct store_extent e[8];
	struct pooled_io x = {.io = {.op = STORE_STATUS,
				      .length = 32 * UNIT,
				      .extents = e,
				      .nextents = 8,
				      .reactor = b->loop,
				      .done = pooled_io_done}};

	pooled_write(b, 1, 4 * UNIT, 4 * UNIT);
	assert_int_equal(
		pooled_do(b, STORE_ZERO, 0, 8 * UNIT, 2 * UNIT, STORE_NO_HOLE),
		0);
	placement_submit(b->pool, &x.io);
	while (!x.done)
		assert_true(reactor_sim_step(b->loop));
	assert_int_equal(x.io.nextents, 4);
	assert_int_equal(e[0].length, 4 * UNIT);
	assert_int_equal(e[0].flags, STORE_HOLE | STORE_ZEROES);
	assert_int_equal(e[1].length, 4 * UNIT);
	assert_int_equal(e[1].flags, 0);
	assert_int_equal(e[2].length, 2 * UNIT);
	assert_int_equal(e[2].flags, STORE_ZEROES);
	assert_int_equal(e[3].length, 22 * UNIT);
	assert_int_equal(e[3].flags, STORE_HOLE | STORE_ZEROES);
}

/* --- space --------------------------------------------------------------- */

/* Promise 64K after 64K until there is no more; how many. */
static unsigned reserve_all(struct pooled *b, uint64_t from)
{
	unsigned n = 0;

	while (!placement_reserve(b->pool, from + n * 64 * KIB, 64 * KIB))
		n++;
	assert_true(n < 1000);
	return n;
}

static void what_was_promised_can_be_written(void **state)
{
	struct pooled *b = *state;
	unsigned n = reserve_all(b, 0);

	assert_true(n * 64 * KIB > SIZE * 9 / 10);
	assert_int_equal(pooled_counts(b).reserved_bytes, n * 64 * KIB);
	/* In the worst order, and with a checkpoint's worth of commits. */
	for (unsigned i = 0; i < n * 16; i += 2) {
		pooled_write(b, 1, i * UNIT, UNIT);
		if (i % 64 == 0)
			pooled_flush(b);
	}
	for (unsigned i = 1; i < n * 16; i += 2)
		pooled_write(b, 1, i * UNIT, UNIT);
	pooled_flush(b);
	assert_int_equal(pooled_counts(b).reserved_bytes, 0);
	assert_true(pooled_sees(b, 1, 0, n * 64 * KIB));
	pooled_close(b);
	pooled_open(b);
	assert_true(pooled_sees(b, 1, 0, n * 64 * KIB));
}

static void each_block_is_promised_once(void **state)
{
	struct pooled *b = *state;

	assert_int_equal(placement_reserve(b->pool, 0, 8 * UNIT), 0);
	assert_int_equal(placement_reserve(b->pool, 4 * UNIT, 8 * UNIT), 0);
	assert_int_equal(placement_reserve(b->pool, 100, 200), 0);
	assert_int_equal(pooled_counts(b).reserved_bytes, 12 * UNIT);
	pooled_write(b, 1, 2 * UNIT, 4 * UNIT);
	assert_int_equal(pooled_counts(b).reserved_bytes, 8 * UNIT);
	assert_int_equal(placement_reserve(b->pool, 0, 12 * UNIT), 0);
	assert_int_equal(pooled_counts(b).reserved_bytes, 8 * UNIT);
	placement_unreserve(b->pool, 0, 8 * UNIT);
	assert_int_equal(pooled_counts(b).reserved_bytes, 4 * UNIT);
}

struct hungry {
	struct placement_waiter w;
	bool done;
};

static void hungry_done(struct placement_waiter *w)
{
	container_of(w, struct hungry, w)->done = true;
}

static int reserve_wait(struct pooled *b, uint64_t offset, uint64_t length)
{
	struct hungry h = {.w = {.reactor = b->loop,
				   .done = hungry_done,
				   .offset = offset,
				   .length = length}};

	placement_reserve_wait(b->pool, &h.w);
	assert_false(h.done);
	while (!h.done)
		assert_true(reactor_sim_step(b->loop));
	return h.w.error;
}

static void a_full_pool_says_so_before_anything_is_written(void **state)
{
	struct pooled *b = *state;
	unsigned n = reserve_all(b, 0);
	uint64_t end = n * 64 * KIB;

	assert_int_equal(placement_reserve(b->pool, end, 64 * KIB), -EAGAIN);
	assert_int_equal(reserve_wait(b, end, 64 * KIB), -ENOSPC);
	/* Nor does a write take what others were promised. */
	assert_int_equal(
		pooled_do(b, STORE_WRITE, 1, end, 64 * KIB, 0), -ENOSPC);
	assert_int_equal(
		pooled_do(b, STORE_ZERO, 0, end, 64 * KIB, STORE_NO_HOLE),
		-ENOSPC);
	pooled_write(b, 1, 0, 64 * KIB);
	assert_true(pooled_sees(b, 1, 0, 64 * KIB));
}

static void who_needs_space_waits_for_what_was_trimmed(void **state)
{
	struct pooled *b = *state;
	unsigned n = reserve_all(b, 0);
	uint64_t end = n * 64 * KIB;

	for (unsigned i = 0; i < n; i++)
		pooled_write(b, 1, i * 64 * KIB, 64 * KIB);
	pooled_trim(b, 0, MIB);
	assert_int_equal(placement_reserve(b->pool, end, 512 * KIB), -EAGAIN);
	assert_int_equal(reserve_wait(b, end, 256 * KIB), 0);
	pooled_trim(b, MIB, MIB);
	/* This one has to wait by itself. */
	pooled_write(b, 2, end, MIB);
	assert_true(pooled_sees(b, 2, end, MIB));
	pooled_flush(b);
	pooled_close(b);
	pooled_open(b);
	assert_true(pooled_sees(b, 2, end, MIB));
	assert_true(pooled_sees(b, 0, 0, 2 * MIB));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(what_was_never_written_reads_as_zeroes),
		TEST(a_write_is_read_with_zeroes_around_it),
		TEST(what_is_mapped_is_overwritten_in_place),
		TEST(a_failed_write_maps_nothing),
		TEST(scattered_memory_is_cut_at_the_pieces),
		TEST(a_read_only_pool_is_not_written),
		TEST(trimmed_space_is_free_after_the_flush),
		TEST(a_read_under_way_keeps_its_space),
		TEST(zeroing_all_of_it_is_one_record),
		TEST(zeroes_that_keep_the_space_are_written_in_place),
		TEST(status_tells_data_from_zeroes_from_holes),
		TEST(what_was_promised_can_be_written),
		TEST(each_block_is_promised_once),
		TEST(a_full_pool_says_so_before_anything_is_written),
		TEST(who_needs_space_waits_for_what_was_trimmed),
#undef TEST
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
