/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-cache-reclaim.c: which pages make room, and how much memory is used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "cached.h"

#define CACHE (8 * MIB)
#define STEP MIB /* from hot page to hot page */
#define PAGES (CACHE / BLOCK)

static int setup(void **state)
{
	*state = cached_new(GIB, CACHE, BLOCK, BLOCK);
	return 0;
}

static int teardown(void **state)
{
	cached_free(*state);
	return 0;
}

/* Bring in, or find there; true for a hit. */
static bool touch(struct cached *c, uint64_t offset, uint64_t n)
{
	struct cached_io *x = io_new(c, offset, n);
	bool missed;

	assert_int_equal(io_finish(c, x, cache_read), 0);
	missed = x->io.missed;
	io_free(x);
	return !missed;
}

static void memory_stays_within_its_size(void **state)
{
	struct cached *c = *state;
	uint64_t most = 0;

	for (uint64_t at = 0; at < 3 * CACHE; at += PAGE) {
		touch(c, at, PAGE);
		if (counts_of(c).cached > most)
			most = counts_of(c).cached;
	}
	assert_true(most <= CACHE + CACHE / 50);
	assert_true(most >= CACHE * 9 / 10);
	assert_true(counts_of(c).reclaimed > 0);
}

static void dirty_pages_make_no_room(void **state)
{
	struct cached *c = *state;

	write_payload(c, 2, 0, MIB);
	for (uint64_t at = CACHE; at < 3 * CACHE; at += PAGE)
		touch(c, at, PAGE);
	forget_asked(c);
	assert_true(sees(c, 2, 0, MIB));
	assert_int_equal(asked(c, STORE_READ, NULL), 0);
	clean(c);
}

static void room_is_what_can_be_reclaimed(void **state)
{
	struct cached *c = *state;

	assert_true(cache_make_room(c->cache, CACHE));
	assert_false(cache_make_room(c->cache, CACHE + 1));
	for (uint64_t at = 0; at < CACHE - MIB; at += MIB)
		write_payload(c, 2, at, MIB);
	assert_false(cache_make_room(c->cache, 2 * MIB));
	clean(c);
	assert_true(cache_make_room(c->cache, CACHE / 2));
	assert_true(counts_of(c).cached <= CACHE / 2);
}

/* Use of the hot set beside a scan of ten times the cache that goes by once. */
static unsigned hits_beside_scan(struct cached *c, unsigned hot, unsigned uses)
{
	unsigned hits = 0, per_step = 10 * CACHE / (GIB / STEP);
	uint64_t seed = 1;

	for (unsigned i = 0; i < GIB / STEP; i++) {
		for (unsigned n = 0; n < uses; n++)
			hits += touch(
				c, random_below(&seed, hot) * STEP, BLOCK);
		for (uint64_t at = 0; at < per_step; at += 16 * KIB)
			touch(c, i * STEP + PAGE + at, 16 * KIB);
	}
	return hits;
}

static void scan_of_ten_caches_leaves_the_hot_half(void **state)
{
	struct cached *c = *state;
	unsigned hot = PAGES * 47 / 100, all;
	uint64_t seed = 3;

	for (unsigned i = 0; i < 6 * hot; i++)
		touch(c, random_below(&seed, hot) * STEP, BLOCK);
	all = 16 * (GIB / STEP);
	assert_true(hits_beside_scan(c, hot, 16) >= all * 9 / 10);
}

/* A first use that was not of the page's first block counted
 * as a second one, so pages that were used once drove out the hot ones. */
static void first_use_of_a_page_is_not_a_second_one(void **state)
{
	struct cached *c = cached_new(64 * MIB, 8 * MIB, PAGE, BLOCK);
	unsigned hits = 0;

	(void)state;
	for (unsigned i = 0; i < 2 * 48; i++) /* hot: 48 of 126 pages */
		touch(c, i % 48 * MIB, BLOCK);
	for (unsigned i = 0; i < 48 * 10; i++)
		touch(c, i % 48 * MIB + (i / 48 + 1) * PAGE + 5 * BLOCK, BLOCK);
	for (unsigned i = 0; i < 48; i++)
		hits += touch(c, i * MIB, BLOCK);
	assert_true(hits >= 40);
	cached_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(memory_stays_within_its_size),
		TEST(dirty_pages_make_no_room),
		TEST(room_is_what_can_be_reclaimed),
		TEST(scan_of_ten_caches_leaves_the_hot_half),
		cmocka_unit_test(first_use_of_a_page_is_not_a_second_one),
#undef TEST
	};

	return cmocka_run_group_tests_name("cache reclaim", tests, NULL, NULL);
}
