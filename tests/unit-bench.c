/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-bench.c: what weir bench counts with: percentiles, orders, patterns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../client/bench.h"

/* --- hist ---------------------------------------------------------------- */

static void assert_near(uint64_t got, uint64_t want)
{
	/* never below, and less than a sub-bucket above */
	assert_in_range(got, want, want + want / 64);
}

static void percentiles_are_within_a_bucket(void **state)
{
	struct hist *h = calloc(1, sizeof(*h));

	(void)state;
	for (uint64_t i = 1; i <= 100000; i++)
		hist_add(h, i * 10);
	assert_int_equal(h->count, 100000);
	assert_near(hist_quantile(h, 0.5), 500000);
	assert_near(hist_quantile(h, 0.99), 990000);
	assert_near(hist_quantile(h, 0.999), 999000);
	assert_int_equal(hist_quantile(h, 1), 1000000);
	assert_int_equal(h->min, 10);
	assert_true(hist_mean(h) > 500000 && hist_mean(h) < 500010);
	free(h);
}

static void small_and_huge_values_have_a_bucket(void **state)
{
	static const uint64_t values[] = {0, 1, 63, 64, 65, 127, 128,
		1ULL << 40, UINT64_MAX - 1, UINT64_MAX};
	struct hist *h = calloc(1, sizeof(*h));

	(void)state;
	assert_int_equal(hist_quantile(h, 0.5), 0);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		memset(h, 0, sizeof(*h));
		hist_add(h, values[i]);
		assert_int_equal(hist_quantile(h, 0.5), values[i]);
		assert_int_equal(h->max, values[i]);
	}
	free(h);
}

static void merging_is_adding_all(void **state)
{
	struct hist *h = calloc(3, sizeof(*h));

	(void)state;
	for (uint64_t i = 0; i < 1000; i++) {
		hist_add(&h[i % 2], i * i);
		hist_add(&h[2], i * i);
	}
	hist_merge(&h[0], &h[1]);
	assert_memory_equal(&h[0], &h[2], sizeof(h[0]));
	free(h);
}

/* --- offset -------------------------------------------------------------- */

static void assert_permutation(uint64_t blocks, uint64_t seed)
{
	unsigned char *seen = calloc(blocks, 1);
	struct bench_offset o;

	bench_offset_init(&o, true, blocks, seed);
	for (unsigned pass = 1; pass <= 3; pass++) {
		for (uint64_t i = 0; i < blocks; i++) {
			uint64_t block = bench_offset_next(&o);

			assert_true(block < blocks);
			assert_int_equal(seen[block], pass - 1);
			seen[block]++;
		}
		assert_true(bench_offset_at_end(&o));
	}
	free(seen);
}

static void random_order_comes_to_each_block_once(void **state)
{
	static const uint64_t blocks[] = {
		1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4096, 100003};

	(void)state;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		for (uint64_t seed = 0; seed < 3; seed++)
			assert_permutation(blocks[i], seed);
}

static void random_order_is_not_in_order(void **state)
{
	unsigned neighbours = 0;
	uint64_t last, next;
	struct bench_offset o;

	(void)state;
	bench_offset_init(&o, true, 10000, 1);
	last = bench_offset_next(&o);
	for (unsigned i = 1; i < 10000; i++) {
		next = bench_offset_next(&o);
		neighbours += next == last + 1;
		last = next;
	}
	assert_in_range(neighbours, 0, 20);
}

static void the_seed_decides_the_order(void **state)
{
	struct bench_offset a, b, c;
	unsigned same = 0;

	(void)state;
	bench_offset_init(&a, true, 1000, 1);
	bench_offset_init(&b, true, 1000, 1);
	bench_offset_init(&c, true, 1000, 2);
	for (unsigned i = 0; i < 2500; i++) {
		uint64_t block = bench_offset_next(&a);

		assert_int_equal(block, bench_offset_next(&b));
		same += block == bench_offset_next(&c);
	}
	assert_in_range(same, 0, 30);
}

static void sequential_order_starts_over(void **state)
{
	struct bench_offset o;

	(void)state;
	bench_offset_init(&o, false, 3, 1);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(bench_offset_next(&o), i % 3);
}

/* --- pattern ------------------------------------------------------------- */

static void a_block_is_what_it_says(void **state)
{
	const struct bench_pattern p = {
		.offset = 8192, .seed = 3, .version = 2};
	struct bench_pattern other = p;
	unsigned char block[4096];
	char text[160];

	(void)state;
	bench_pattern_fill(block, sizeof(block), &p);
	assert_null(bench_pattern_check(block, sizeof(block), &p, text));
	other.version = 0;
	assert_null(bench_pattern_check(block, sizeof(block), &other, text));
	other.version = 3;
	assert_non_null(
		bench_pattern_check(block, sizeof(block), &other, text));
	other = p;
	other.offset = 0;
	assert_non_null(
		bench_pattern_check(block, sizeof(block), &other, text));
	other = p;
	other.seed = 4;
	assert_non_null(
		bench_pattern_check(block, sizeof(block), &other, text));
}

static void every_changed_bit_is_found(void **state)
{
	const struct bench_pattern p = {.offset = 512, .seed = 1, .version = 1};
	unsigned char block[512];
	char text[160];

	(void)state;
	bench_pattern_fill(block, sizeof(block), &p);
	for (size_t bit = 0; bit < sizeof(block) * 8; bit++) {
		block[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_non_null(
			bench_pattern_check(block, sizeof(block), &p, text));
		block[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	assert_null(bench_pattern_check(block, sizeof(block), &p, text));
}

static void a_stamped_block_is_ours_but_unverified(void **state)
{
	const struct bench_pattern p = {.offset = 0, .seed = 1, .version = 1};
	unsigned char block[512] = {0};
	char text[160];

	(void)state;
	assert_false(bench_pattern_is_ours(block, sizeof(block)));
	bench_pattern_stamp(block, sizeof(block), &p);
	assert_true(bench_pattern_is_ours(block, sizeof(block)));
	assert_non_null(bench_pattern_check(block, sizeof(block), &p, text));
	/* too short for a header: left alone */
	memset(block, 7, sizeof(block));
	bench_pattern_stamp(block, 16, &p);
	assert_int_equal(block[0], 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_within_a_bucket),
		cmocka_unit_test(small_and_huge_values_have_a_bucket),
		cmocka_unit_test(merging_is_adding_all),
		cmocka_unit_test(random_order_comes_to_each_block_once),
		cmocka_unit_test(random_order_is_not_in_order),
		cmocka_unit_test(the_seed_decides_the_order),
		cmocka_unit_test(sequential_order_starts_over),
		cmocka_unit_test(a_block_is_what_it_says),
		cmocka_unit_test(every_changed_bit_is_found),
		cmocka_unit_test(a_stamped_block_is_ours_but_unverified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
