/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-cache-fill.c: bringing blocks in, by the rules of cache.h: 3 to 5.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cache/cache-impl.h"
#include "base/random.h"
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

static void rule3_read_of_what_is_there_asks_nothing(void **state)
{
	struct cached *c = *state;

	write_flat(c, 2, 4 * BLOCK, 2 * BLOCK); /* the rest is missing */
	assert_true(sees(c, 2, 4 * BLOCK, 2 * BLOCK));
	assert_true(sees(c, 2, 4 * BLOCK + 100, BLOCK));
	assert_int_equal(asked(c, STORE_READ, NULL), 0);
	assert_int_equal(counts_of(c).hits, 2);
	clean(c);
}

static void miss_brings_in_the_page_in_one_read(void **state)
{
	struct cached *c = *state;
	uint64_t bytes;

	assert_true(sees(c, 1, PAGE + 5000, 3000));
	assert_int_equal(asked(c, STORE_READ, &bytes), 1);
	assert_int_equal(bytes, PAGE);
	assert_true(sees(c, 1, PAGE, PAGE));
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
}

static void long_read_is_few_reads_of_the_store(void **state)
{
	struct cached *c = *state;

	assert_true(sees(c, 1, 512 * KIB, MIB)); /* of two shards */
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	/* not over what is there at a shard's end, nor over the longest */
	write_flat(c, 2, 2 * MIB, BLOCK);
	forget_asked(c);
	assert_true(sees(c, 1, 2 * MIB - PAGE, PAGE));
	assert_true(sees(c, 1, 3 * MIB - PAGE, MIB));
	assert_int_equal(asked(c, STORE_READ, NULL), 2);
	clean(c);
}

static void rule4_write_of_whole_blocks_reads_nothing(void **state)
{
	struct cached *c = *state;

	write_flat(c, 2, BLOCK, 3 * BLOCK);
	write_payload(c, 2, PAGE - BLOCK, PAGE + 2 * BLOCK);
	assert_int_equal(asked(c, STORE_READ, NULL), 0);
	clean(c);
}

static void rule4_write_of_part_of_a_block_fills_just_that(void **state)
{
	struct cached *c = *state;

	write_flat(c, 2, 3 * BLOCK + 100, 50);
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	assert_int_equal(c->log[0].offset, 3 * BLOCK);
	assert_int_equal(c->log[0].length, BLOCK);
	assert_true(sees(c, 1, 3 * BLOCK, 100));
	assert_true(sees(c, 2, 3 * BLOCK + 100, 50));
	assert_true(sees(c, 1, 3 * BLOCK + 150, BLOCK - 150));
	clean(c);
}

static void rule4_both_ends_in_part(void **state)
{
	struct cached *c = *state;
	uint64_t bytes;

	write_payload(c, 2, BLOCK + 100, 2 * PAGE);
	assert_int_equal(asked(c, STORE_READ, &bytes), 2);
	assert_int_equal(bytes, 2 * BLOCK);
	assert_true(sees(c, 1, BLOCK, 100));
	assert_true(sees(c, 2, BLOCK + 100, 2 * PAGE));
	assert_true(sees(c, 1, BLOCK + 100 + 2 * PAGE, BLOCK));
	clean(c);
}

static void rule5_fill_leaves_what_was_written_meanwhile(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = io_new(c, 0, PAGE);

	assert_int_equal(cache_read(c->cache, &x->io), -EINPROGRESS);
	write_flat(c, 2, 2 * BLOCK, BLOCK);
	assert_int_equal(io_resume(c, x, cache_read), 0);
	assert_true(data_same(x->buf, 1, 0, 2 * BLOCK));
	assert_true(data_same(x->buf + 2 * BLOCK, 2, 2 * BLOCK, BLOCK));
	assert_true(
		data_same(x->buf + 3 * BLOCK, 1, 3 * BLOCK, PAGE - 3 * BLOCK));
	io_free(x);
	clean(c);
}

static void rule5_small_blocks_of_a_frame_being_filled(void **state)
{
	struct cached *c = cached_new(MIB, MIB, PAGE, 512);
	struct cached_io *x = io_new(c, 0, PAGE);

	(void)state;
	write_flat(c, 2, 1024, 512);
	assert_int_equal(cache_read(c->cache, &x->io), -EINPROGRESS);
	write_flat(c, 3, 2048, 512); /* in the same frame, meanwhile */
	assert_int_equal(io_resume(c, x, cache_read), 0);
	io_free(x);
	assert_true(sees(c, 1, 0, 1024));
	assert_true(sees(c, 2, 1024, 512));
	assert_true(sees(c, 1, 1536, 512));
	assert_true(sees(c, 3, 2048, 512));
	assert_true(sees(c, 1, 2560, PAGE - 2560));
	clean(c);
	cached_free(c);
}

static void rule5_two_readers_share_one_fill(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = io_new(c, 0, BLOCK);
	struct cached_io *y = io_new(c, 2 * BLOCK, BLOCK);

	assert_int_equal(cache_read(c->cache, &x->io), -EINPROGRESS);
	assert_int_equal(cache_read(c->cache, &y->io), -EINPROGRESS);
	assert_int_equal(io_resume(c, x, cache_read), 0);
	assert_int_equal(io_resume(c, y, cache_read), 0);
	assert_true(data_same(y->buf, 1, 2 * BLOCK, BLOCK));
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	io_free(x);
	io_free(y);
}

static void failed_fill_is_the_readers_error_and_no_data(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = io_new(c, 0, BLOCK);

	store_breaks(c, STORE_READ, 0);
	assert_int_equal(io_finish(c, x, cache_read), -EIO);
	io_free(x);
	store_mends(c);
	assert_true(sees(c, 1, 0, PAGE));
}

static void failure_beyond_the_request_is_not_its_error(void **state)
{
	struct cached *c = *state;
	struct store_fault_rule rule = {.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_READ),
		.offset = 9 * BLOCK,
		.length = BLOCK};

	store_fault_set(c->store, &rule, 1);
	assert_true(sees(c, 1, 0, 2 * BLOCK));
	store_mends(c);
}

static void last_block_of_an_odd_device_is_short(void **state)
{
	uint64_t size = MIB + 3 * BLOCK + 512 * 3;
	struct cached *c = cached_new(size, MIB, PAGE, BLOCK);
	struct taken t;

	(void)state;
	assert_true(sees(c, 1, size - 512, 512));
	write_flat(c, 2, size - 1024, 1024);
	cache_drop_clean(c->cache);
	assert_true(sees(c, 1, size - 1536, 512));
	assert_true(sees(c, 2, size - 1024, 1024));
	assert_int_equal(take(c, &t, MIB), 0);
	assert_int_equal(t.run.end, size);
	put(c, &t, false);
	clean(c);
	assert_true(stored(c, 2, size - 1024, 1024));
	assert_true(stored(c, 1, size - 1536, 512));
	cached_free(c);
}

/* A reader looks for range locks before it asks for what is
 * missing; a trim on another loop could lock the range in between. */
static void no_fill_starts_in_a_locked_range(void **state)
{
	struct cached *c = *state;
	struct cache_range_lock l = {.offset = PAGE, .end = 2 * PAGE};

	assert_int_equal(cache_range_lock(c->cache, &l), 0);
	assert_int_equal(cache_range_idle(c->cache, &l), 0);
	assert_int_equal(
		fill_start(c->cache, PAGE, 2 * PAGE, false, c->loop), 0);
	assert_int_equal(asked(c, STORE_READ, NULL), 0);
	assert_int_equal(cache_range_idle(c->cache, &l), 0);
	/* up to it, but no further */
	assert_int_equal(fill_start(c->cache, 0, 2 * PAGE, false, c->loop), 0);
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	assert_int_equal(c->log[0].length, PAGE);
	cache_range_unlock(c->cache, &l);
}

/* The cache was once freed under a fill that no request waited
 * for. */
static void fill_beyond_the_request_is_told_of(void **state)
{
	struct cached *c = *state;
	struct store_fault_rule rule = {.action = STORE_FAULT_DELAY,
		.offset = 0,
		.length = BLOCK,
		.delay_ns = NSEC_PER_SEC};

	/* parts the page's fill in two */
	write_flat(c, 2, 4 * BLOCK, 5 * BLOCK);
	store_fault_set(c->store, &rule, 1);
	assert_true(sees(c, 1, 10 * BLOCK, BLOCK));
	assert_true(cache_filling(c->cache));
	store_mends(c);
	while (cache_filling(c->cache))
		assert_true(reactor_sim_step(c->loop));
	clean(c);
}

/* A sector that nobody needs any more may be unreadable. */
static void failure_under_what_is_there_is_nobodys_error(void **state)
{
	struct cached *c = *state;
	struct store_fault_rule rule = {.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_READ),
		.offset = 2 * BLOCK,
		.length = BLOCK};

	write_flat(c, 2, 2 * BLOCK, BLOCK);
	store_fault_set(c->store, &rule, 1);
	assert_true(sees(c, 1, 0, 2 * BLOCK));
	assert_true(sees(c, 2, 2 * BLOCK, BLOCK));
	assert_true(sees(c, 1, 3 * BLOCK, 2 * BLOCK));
	store_mends(c);
	clean(c);
}

/* A write of part of a block once failed when a reader's fill of more than
 * that block did. */
static void failure_of_a_readers_fill_is_not_the_writers(void **state)
{
	struct cached *c = *state;
	struct cached_io *r = io_new(c, 0, BLOCK);
	struct cached_io *w = write_new(c, 2, BLOCK / 2, BLOCK / 4);
	struct store_fault_rule rule = {.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_READ),
		.offset = 9 * BLOCK,
		.length = BLOCK};

	store_fault_set(c->store, &rule, 1);
	assert_int_equal(cache_read(c->cache, &r->io), -EINPROGRESS);
	assert_int_equal(cache_write(c->cache, &w->io), -EINPROGRESS);
	assert_int_equal(io_resume(c, w, cache_write), 0);
	assert_int_equal(io_resume(c, r, cache_read), 0);
	assert_true(sees(c, 2, BLOCK / 2, BLOCK / 4));
	store_mends(c);
	write_end(c, w);
	io_free(r);
	clean(c);
}

/* --- one read for several holes ------------------------------------------- */

static void fill_goes_on_over_a_little_that_is_there(void **state)
{
	struct cached *c = *state;

	write_flat(c, 2, 3 * BLOCK, BLOCK);
	write_flat(c, 2, 6 * BLOCK, 4 * BLOCK);
	assert_true(sees(c, 1, 0, 3 * BLOCK));
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	assert_true(sees(c, 2, 3 * BLOCK, BLOCK));
	assert_true(sees(c, 1, 4 * BLOCK, 2 * BLOCK));
	assert_true(sees(c, 2, 6 * BLOCK, 4 * BLOCK));
	assert_true(sees(c, 1, 10 * BLOCK, PAGE - 10 * BLOCK));
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	clean(c);
}

static void fill_goes_not_on_over_much(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = io_new(c, 0, BLOCK);
	uint64_t bytes;

	write_flat(c, 2, 3 * BLOCK, 5 * BLOCK);
	/* and the two are on their way at once */
	assert_int_equal(cache_read(c->cache, &x->io), -EINPROGRESS);
	assert_int_equal(asked(c, STORE_READ, &bytes), 2);
	assert_int_equal(bytes, PAGE - 5 * BLOCK);
	assert_int_equal(io_resume(c, x, cache_read), 0);
	io_free(x);
	clean(c);
}

static void fill_goes_on_over_the_ends_of_small_pages(void **state)
{
	struct cached *c = cached_new(MIB, MIB, BLOCK, 1024);
	struct cached_io *x = io_new(c, 0, 16 * BLOCK);

	(void)state;
	for (uint64_t at = 0; at < 16 * BLOCK; at += BLOCK)
		write_flat(c, 2, at + 3 * 1024, 1024);
	assert_int_equal(io_finish(c, x, cache_read), 0);
	for (uint64_t at = 0; at < 16 * BLOCK; at += BLOCK) {
		assert_true(data_same(x->buf + at, 1, at, 3 * 1024));
		assert_true(data_same(
			x->buf + at + 3 * 1024, 2, at + 3 * 1024, 1024));
	}
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	io_free(x);
	clean(c);
	cached_free(c);
}

static void what_is_read_for_nothing_changes_nothing(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = io_new(c, 0, BLOCK);

	write_flat(c, 2, 2 * BLOCK, BLOCK);
	assert_int_equal(cache_read(c->cache, &x->io), -EINPROGRESS);
	write_flat(c, 3, 2 * BLOCK + 512, 512); /* and does not wait */
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	assert_int_equal(io_resume(c, x, cache_read), 0);
	assert_true(sees(c, 2, 2 * BLOCK, 512));
	assert_true(sees(c, 3, 2 * BLOCK + 512, 512));
	assert_true(sees(c, 2, 2 * BLOCK + 1024, BLOCK - 1024));
	assert_true(sees(c, 1, 3 * BLOCK, BLOCK));
	io_free(x);
	clean(c);
}

/* --- the whole-page rule -------------------------------------------------- */

static struct cached *whole_page_new(uint64_t size, uint32_t page)
{
	return cached_make(size,
		(struct cache_config){.cache_size = 64 * MIB,
			.page_size = page,
			.block_size = 1024});
}

static void whole_page_rule_reads_the_rest_of_the_page_first(void **state)
{
	struct cached *c = whole_page_new(MIB, PAGE);
	uint64_t bytes;

	(void)state;
	write_flat(c, 2, 0, 60 * 1024);
	assert_int_equal(asked(c, STORE_READ, NULL), 0);
	assert_true(sees(c, 2, 1024, 1024));
	assert_int_equal(asked(c, STORE_READ, &bytes), 1);
	assert_int_equal(bytes, PAGE - 60 * 1024);
	assert_true(sees(c, 2, 0, 60 * 1024));
	assert_true(sees(c, 1, 60 * 1024, PAGE - 60 * 1024));
	assert_int_equal(asked(c, STORE_READ, NULL), 1);
	clean(c);
	cached_free(c);
}

static void whole_page_rule_ends_at_the_devices_end(void **state)
{
	struct cached *c = whole_page_new(MIB + 1536, PAGE);

	(void)state;
	write_flat(c, 2, MIB, 1536);
	assert_true(sees(c, 2, MIB + 512, 1024));
	assert_int_equal(asked(c, STORE_READ, NULL), 0);
	clean(c);
	cached_free(c);
}

static void whole_page_rule_makes_no_error(void **state)
{
	struct cached *c = whole_page_new(MIB, PAGE);

	(void)state;
	write_flat(c, 2, 1024, 1024);
	store_breaks(c, STORE_READ, 0);
	assert_true(sees(c, 2, 1024, 1024));
	store_mends(c);
	clean(c);
	cached_free(c);
}

/* 1K writes all over the device, then 1K reads: the reads of the store. A
 * sixteenth of what FIGURES has under subpage. */
static uint64_t scattered(bool subpage)
{
	const uint64_t blocks = 32 * KIB;
	struct cached *c = cached_make(blocks * 1024,
		(struct cache_config){.cache_size = 64 * MIB,
			.page_size = 4096,
			.block_size = 1024,
			.subpage = subpage});
	uint64_t seed = 1, reads;

	for (unsigned i = 0; i < 300000 / 16; i++)
		write_flat(c, 2, random_below(&seed, blocks) * 1024, 1024);
	assert_int_equal(counts_of(c).fill_reads, 0);
	for (unsigned i = 0; i < 100000 / 16; i++) {
		struct cached_io *x =
			io_new(c, random_below(&seed, blocks) * 1024, 1024);

		assert_int_equal(io_finish(c, x, cache_read), 0);
		io_free(x);
	}
	reads = counts_of(c).fill_reads;
	clean(c);
	cached_free(c);
	return reads;
}

static void subpage_takes_two_thirds_of_the_reads(void **state)
{
	uint64_t on = scattered(true), off = scattered(false);

	(void)state;
	print_message("# %llu reads of the store, %llu by whole pages\n",
		(unsigned long long)on, (unsigned long long)off);
	assert_in_range(on * 100, off * 60, off * 66);
	/* each of the pages but those read or written whole, once */
	assert_in_range(off, 4000, 4400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(rule3_read_of_what_is_there_asks_nothing),
		TEST(miss_brings_in_the_page_in_one_read),
		TEST(long_read_is_few_reads_of_the_store),
		TEST(rule4_write_of_whole_blocks_reads_nothing),
		TEST(rule4_write_of_part_of_a_block_fills_just_that),
		TEST(rule4_both_ends_in_part),
		TEST(rule5_fill_leaves_what_was_written_meanwhile),
		TEST(rule5_small_blocks_of_a_frame_being_filled),
		TEST(rule5_two_readers_share_one_fill),
		TEST(failed_fill_is_the_readers_error_and_no_data),
		TEST(failure_beyond_the_request_is_not_its_error),
		TEST(last_block_of_an_odd_device_is_short),
		TEST(no_fill_starts_in_a_locked_range),
		TEST(fill_beyond_the_request_is_told_of),
		TEST(failure_under_what_is_there_is_nobodys_error),
		TEST(failure_of_a_readers_fill_is_not_the_writers),
		TEST(fill_goes_on_over_a_little_that_is_there),
		TEST(fill_goes_not_on_over_much),
		cmocka_unit_test(fill_goes_on_over_the_ends_of_small_pages),
		TEST(what_is_read_for_nothing_changes_nothing),
		cmocka_unit_test(
			whole_page_rule_reads_the_rest_of_the_page_first),
		cmocka_unit_test(whole_page_rule_ends_at_the_devices_end),
		cmocka_unit_test(whole_page_rule_makes_no_error),
		cmocka_unit_test(subpage_takes_two_thirds_of_the_reads),
#undef TEST
	};

	return cmocka_run_group_tests_name("cache fill", tests, NULL, NULL);
}
