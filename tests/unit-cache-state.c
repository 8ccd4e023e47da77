/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-cache-state.c: what a block is in, by the rules of cache.h: 1 and 2,
 * the charge, and what a store flush and a failure make of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cached.h"

static int setup(void **state)
{
	*state = cached_new(4 * MIB, MIB, PAGE, BLOCK);
	return 0;
}

static int teardown(void **state)
{
	cached_free(*state);
	return 0;
}

static void rule1_block_under_writeback_is_written_again(void **state)
{
	struct cached *c = *state;
	struct taken t, again;

	write_flat(c, 2, 0, BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	assert_int_equal(counts_of(c).dirty, 0);
	assert_int_equal(counts_of(c).writeback, BLOCK);
	write_flat(c, 3, 0, BLOCK);
	check_rules(c);
	assert_int_equal(cache_charged(c->cache), 2 * BLOCK); /* twice */
	assert_int_equal(take(c, &again, 0), -EBUSY);
	put(c, &t, false);
	assert_int_equal(counts_of(c).dirty, BLOCK);
	assert_int_equal(counts_of(c).unstable, 0);
	assert_int_equal(cache_charged(c->cache), BLOCK);
	assert_true(stored(c, 2, 0, BLOCK));
	clean(c);
	assert_true(stored(c, 3, 0, BLOCK));
}

static void rule1_unstable_block_that_is_written_is_only_dirty(void **state)
{
	struct cached *c = *state;
	struct taken t;

	write_flat(c, 2, 0, 2 * BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	put(c, &t, false);
	assert_int_equal(counts_of(c).unstable, 2 * BLOCK);
	write_flat(c, 3, 0, BLOCK);
	check_rules(c);
	assert_int_equal(counts_of(c).unstable, BLOCK);
	assert_int_equal(counts_of(c).dirty, BLOCK);
	assert_int_equal(cache_charged(c->cache), 2 * BLOCK);
	clean(c);
}

static void rule2_page_in_need_of_the_store_is_kept(void **state)
{
	struct cached *c = *state;
	struct taken t;

	write_flat(c, 2, 0, BLOCK); /* stays dirty */
	write_flat(c, 2, PAGE, BLOCK);
	assert_int_equal(take(c, &t, PAGE), 0); /* under writeback */
	cache_drop_clean(c->cache);
	assert_int_equal(counts_of(c).pages, 2);
	put(c, &t, false); /* unstable */
	cache_drop_clean(c->cache);
	assert_int_equal(counts_of(c).pages, 2);
	cache_flush_end(c->cache, cache_flush_begin(c->cache), 0);
	cache_drop_clean(c->cache);
	assert_int_equal(counts_of(c).pages, 1);
	assert_true(sees(c, 2, 0, BLOCK));
	assert_true(sees(c, 2, PAGE, BLOCK)); /* from the store */
	clean(c);
}

static void write_is_unstable_until_a_flush_that_began_after_it(void **state)
{
	struct cached *c = *state;
	uint64_t early;
	struct taken t;

	write_flat(c, 2, 0, BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	early = cache_flush_begin(c->cache);
	put(c, &t, false);
	cache_flush_end(c->cache, early, 0);
	assert_int_equal(counts_of(c).unstable, BLOCK);
	cache_flush_end(c->cache, cache_flush_begin(c->cache), 0);
	assert_int_equal(counts_of(c).unstable, 0);
	assert_int_equal(cache_charged(c->cache), 0);
}

static void durable_write_leaves_nothing_unstable(void **state)
{
	struct cached *c = *state;
	struct taken t;

	write_flat(c, 2, 0, BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	put(c, &t, true);
	assert_int_equal(counts_of(c).unstable, 0);
	assert_int_equal(cache_charged(c->cache), 0);
}

static void failed_flush_makes_all_unstable_dirty_again(void **state)
{
	struct cached *c = *state;
	struct taken t;

	write_flat(c, 2, 8 * BLOCK, 3 * BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	put(c, &t, false);
	cache_flush_end(c->cache, cache_flush_begin(c->cache), -EIO);
	assert_int_equal(counts_of(c).unstable, 0);
	assert_int_equal(counts_of(c).dirty, 3 * BLOCK);
	assert_int_equal(cache_charged(c->cache), 3 * BLOCK);
	check_rules(c);
	/* of a later epoch: the flush that met it has failed */
	assert_int_equal(take(c, &t, 0), 0);
	assert_int_equal(t.run.offset, 8 * BLOCK);
	put(c, &t, false);
	clean(c);
}

/* What the blocks from `at` on are, and up to where. */
static void expect_state(
	struct cached *c, uint64_t at, unsigned state, uint64_t to)
{
	uint64_t stop = 0;

	assert_int_equal(
		cache_block_state(c->cache, at, c->size, &stop), state);
	assert_int_equal(stop, to);
}

static void state_of_blocks_is_told_run_by_run(void **state)
{
	struct cached *c = *state;
	struct taken t;

	expect_state(c, 100, 0, MIB); /* sixteen pages that are not there */
	assert_true(sees(c, 1, PAGE, 2 * BLOCK));
	write_flat(c, 2, PAGE + BLOCK, 4 * BLOCK);
	expect_state(c, 0, 0, PAGE);
	expect_state(c, PAGE + 1, CACHE_IS_UPTODATE, PAGE + BLOCK);
	expect_state(c, PAGE + BLOCK, CACHE_IS_UPTODATE | CACHE_IS_DIRTY,
		PAGE + 5 * BLOCK);
	assert_int_equal(take(c, &t, PAGE), 0);
	write_flat(c, 3, PAGE + 2 * BLOCK, BLOCK);
	expect_state(c, PAGE + BLOCK, CACHE_IS_UPTODATE | CACHE_IS_WRITEBACK,
		PAGE + 2 * BLOCK);
	expect_state(c, PAGE + 2 * BLOCK,
		CACHE_IS_UPTODATE | CACHE_IS_DIRTY | CACHE_IS_WRITEBACK,
		PAGE + 3 * BLOCK);
	put(c, &t, false);
	expect_state(c, PAGE + BLOCK, CACHE_IS_UPTODATE | CACHE_IS_UNSTABLE,
		PAGE + 2 * BLOCK);
	expect_state(c, PAGE + 2 * BLOCK, CACHE_IS_UPTODATE | CACHE_IS_DIRTY,
		PAGE + 3 * BLOCK);
	clean(c);
	expect_state(c, PAGE + BLOCK, CACHE_IS_UPTODATE, 2 * PAGE);
	cache_drop_clean(c->cache);
	expect_state(c, PAGE + BLOCK, 0, MIB);
}

static void failed_write_leaves_its_blocks_dirty(void **state)
{
	struct cached *c = *state;
	struct taken t;

	write_flat(c, 2, 0, 2 * BLOCK);
	store_breaks(c, STORE_WRITE, 1);
	assert_int_equal(take(c, &t, 0), 0);
	put(c, &t, false);
	assert_int_equal(counts_of(c).dirty, 2 * BLOCK);
	assert_int_equal(counts_of(c).writeback, 0);
	assert_int_equal(cache_charged(c->cache), 2 * BLOCK);
	assert_true(sees(c, 2, 0, 2 * BLOCK));
	clean(c);
	assert_true(stored(c, 2, 0, 2 * BLOCK));
}

static void charge_never_exceeds_its_limit(void **state)
{
	struct cached *c = *state;

	assert_true(cache_charge(c->cache, 3 * BLOCK, 4 * BLOCK));
	assert_false(cache_charge(c->cache, 2 * BLOCK, 4 * BLOCK));
	assert_true(cache_charge(c->cache, BLOCK, 4 * BLOCK));
	assert_false(cache_charge(c->cache, 1, 4 * BLOCK));
	cache_uncharge(c->cache, 4 * BLOCK);
	assert_int_equal(counts_of(c).dirty_peak, 4 * BLOCK);
	cache_reset_peaks(c->cache);
	assert_int_equal(counts_of(c).dirty_peak, 0);
}

static void wake(void *arg)
{
	++*(unsigned *)arg;
}

static void fall_of_the_charge_wakes_once_who_asked(void **state)
{
	struct cached *c = *state;
	unsigned woken = 0;

	cache_set_wake(c->cache, wake, &woken);
	assert_true(cache_charge(c->cache, 3 * BLOCK, UINT64_MAX));
	cache_uncharge(c->cache, BLOCK);
	assert_int_equal(woken, 0);
	cache_want_wake(c->cache);
	cache_uncharge(c->cache, BLOCK);
	cache_uncharge(c->cache, BLOCK);
	assert_int_equal(woken, 1);
}

static void later_epoch_is_not_taken(void **state)
{
	struct cached *c = *state;
	struct taken t = {.run = {.iov = t.iov, .max_iov = 64}};
	uint64_t span = cache_span(c->cache), epoch;

	write_flat(c, 2, 0, BLOCK);
	epoch = cache_new_epoch(c->cache);
	write_flat(c, 3, PAGE, BLOCK);
	assert_int_equal(cache_range_state(c->cache, 0, span, epoch),
		CACHE_HAS_DIRTY | CACHE_HAS_DIRTY_LATER);
	assert_int_equal(cache_take_dirty(c->cache, 0, span, UINT64_MAX, MIB,
				 epoch, &t.run),
		0);
	assert_int_equal(t.run.offset, 0);
	put(c, &t, false);
	assert_int_equal(cache_take_dirty(c->cache, 0, span, UINT64_MAX, MIB,
				 epoch, &t.run),
		-ENOENT);
	clean(c);
}

static void block_that_is_passed_over_is_told_of(void **state)
{
	struct cached *c = *state;
	struct taken t, next;

	write_flat(c, 2, 0, BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	write_flat(c, 3, 0, BLOCK); /* dirty, and under writeback */
	write_flat(c, 3, 5 * BLOCK, BLOCK);
	assert_int_equal(take(c, &next, 0), 0);
	assert_int_equal(next.run.offset, 5 * BLOCK);
	assert_true(next.run.skipped);
	put(c, &t, false);
	put(c, &next, false);
	clean(c);
}

static void run_goes_on_over_pages_and_ends_at_a_gap(void **state)
{
	struct cached *c = *state;
	struct taken t;

	write_payload(c, 2, PAGE - 2 * BLOCK, PAGE);
	write_payload(c, 2, 2 * PAGE, BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	assert_int_equal(t.run.offset, PAGE - 2 * BLOCK);
	assert_int_equal(t.run.end, 2 * PAGE - 2 * BLOCK);
	put(c, &t, false);
	clean(c);
	assert_true(stored(c, 2, PAGE - 2 * BLOCK, PAGE));
}

static void dirty_regions_are_those_old_enough(void **state)
{
	struct cached *c = *state;
	uint64_t *region, span = cache_span(c->cache), then;
	size_t n;

	write_flat(c, 2, 2 * span, BLOCK);
	then = reactor_now(c->loop);
	reactor_sim_run_until(c->loop, then + NSEC_PER_SEC);
	write_flat(c, 2, 0, BLOCK);
	assert_int_equal(cache_dirty_regions(c->cache, then, &region, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(region[0], 2 * span);
	free(region);
	assert_int_equal(
		cache_dirty_regions(c->cache, UINT64_MAX, &region, &n), 0);
	assert_int_equal(n, 2);
	free(region);
	clean(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(rule1_block_under_writeback_is_written_again),
		TEST(rule1_unstable_block_that_is_written_is_only_dirty),
		TEST(rule2_page_in_need_of_the_store_is_kept),
		TEST(write_is_unstable_until_a_flush_that_began_after_it),
		TEST(durable_write_leaves_nothing_unstable),
		TEST(failed_flush_makes_all_unstable_dirty_again),
		TEST(state_of_blocks_is_told_run_by_run),
		TEST(failed_write_leaves_its_blocks_dirty),
		TEST(charge_never_exceeds_its_limit),
		TEST(fall_of_the_charge_wakes_once_who_asked),
		TEST(later_epoch_is_not_taken),
		TEST(block_that_is_passed_over_is_told_of),
		TEST(run_goes_on_over_pages_and_ends_at_a_gap),
		TEST(dirty_regions_are_those_old_enough),
#undef TEST
	};

	return cmocka_run_group_tests_name("cache state", tests, NULL, NULL);
}
