/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-bitmap.c: every range of a small map, against bits done one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bitmap.h"
#include "base/random.h"

#define BITS 200U
#define WORDS BITMAP_WORDS(BITS)

struct maps {
	uint64_t map[WORDS];
	bool bit[BITS]; /* what map should hold */
};

static void maps_random(struct maps *m, uint64_t seed)
{
	memset(m, 0, sizeof *m);
	for (unsigned i = 0; i < BITS; i++) {
		m->bit[i] = random_below(&seed, 3) == 0;
		if (m->bit[i])
			m->map[i / 64] |= UINT64_C(1) << i % 64;
	}
}

static void assert_same(const struct maps *m)
{
	for (unsigned i = 0; i < BITS; i++)
		assert_int_equal(bitmap_test(m->map, i), m->bit[i]);
	for (unsigned i = BITS; i < WORDS * 64; i++)
		assert_false(bitmap_test(m->map, i));
}

static void setting_a_range_sets_it_and_nothing_else(void **state)
{
	(void)state;
	for (unsigned first = 0; first < BITS; first++) {
		for (unsigned n = 0; n <= BITS - first; n += 1 + first % 3) {
			struct maps m;

			maps_random(&m, first);
			bitmap_set(m.map, first, n);
			memset(m.bit + first, true, n);
			assert_same(&m);
		}
	}
}

static void clearing_a_range_clears_it_and_nothing_else(void **state)
{
	(void)state;
	for (unsigned first = 0; first < BITS; first++) {
		for (unsigned n = 0; n <= BITS - first; n += 1 + first % 3) {
			struct maps m;

			maps_random(&m, first);
			bitmap_clear(m.map, first, n);
			memset(m.bit + first, false, n);
			assert_same(&m);
		}
	}
}

static void questions_about_a_range_are_answered_bit_by_bit(void **state)
{
	struct maps m;

	(void)state;
	maps_random(&m, 7);
	bitmap_set(m.map, 60, 80); /* a long run, for bitmap_all() */
	memset(m.bit + 60, true, 80);
	for (unsigned first = 0; first < BITS; first++) {
		unsigned count = 0;

		for (unsigned n = 0; n <= BITS - first; n++) {
			assert_int_equal(bitmap_count(m.map, first, n), count);
			assert_int_equal(
				bitmap_any(m.map, first, n), count > 0);
			assert_int_equal(
				bitmap_all(m.map, first, n), count == n);
			count += first + n < BITS && m.bit[first + n];
		}
	}
}

static unsigned find_slowly(
	const struct maps *m, unsigned from, unsigned end, bool value)
{
	while (from < end && m->bit[from] != value)
		from++;
	return from < end ? from : end;
}

static void find_stops_at_the_first_match_or_the_end(void **state)
{
	struct maps m;

	(void)state;
	maps_random(&m, 8);
	bitmap_clear(m.map, 20, 110);
	memset(m.bit + 20, false, 110);
	for (unsigned from = 0; from <= BITS; from++) {
		for (unsigned end = 0; end <= BITS; end += 7) {
			for (int value = 0; value < 2; value++) {
				unsigned want = from >= end
					? end
					: find_slowly(&m, from, end, value);

				assert_int_equal(
					bitmap_find(m.map, from, end, value),
					want);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(setting_a_range_sets_it_and_nothing_else),
		cmocka_unit_test(clearing_a_range_clears_it_and_nothing_else),
		cmocka_unit_test(
			questions_about_a_range_are_answered_bit_by_bit),
		cmocka_unit_test(find_stops_at_the_first_match_or_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
