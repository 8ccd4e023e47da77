/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-zero-set.c: remembered ranges against a byte for each unit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/zero.h"
#include "writeback/zero-set.h"

static void same(const struct zero_set *s, const char *want)
{
	char text[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < s->count; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d-%d:%u ",
			(int)s->range[i].offset, (int)s->range[i].end,
			s->range[i].flags);
	assert_string_equal(text, want);
}

static void ranges_that_touch_and_are_alike_are_one(void **state)
{
	struct zero_set s = {0};

	(void)state;
	assert_int_equal(zero_set_add(&s, 10, 20, 0), 0);
	assert_int_equal(zero_set_add(&s, 30, 40, 0), 0);
	same(&s, "10-20:0 30-40:0 ");
	assert_int_equal(zero_set_add(&s, 20, 30, 0), 0);
	same(&s, "10-40:0 ");
	assert_int_equal(zero_set_add(&s, 40, 50, 2), 0);
	assert_int_equal(zero_set_add(&s, 0, 15, 2), 0);
	same(&s, "0-15:2 15-40:0 40-50:2 ");
	assert_int_equal(zero_set_add(&s, 5, 45, 2), 0);
	same(&s, "0-50:2 ");
	zero_set_free(&s);
}

static void what_is_cut_out_leaves_its_ends(void **state)
{
	struct zero_set s = {0};

	(void)state;
	assert_int_equal(zero_set_add(&s, 10, 50, 0), 0);
	assert_true(zero_set_splits(&s, 20, 30));
	assert_false(zero_set_splits(&s, 10, 30));
	assert_false(zero_set_splits(&s, 40, 60));
	assert_int_equal(zero_set_cut(&s, 20, 30), 0);
	same(&s, "10-20:0 30-50:0 ");
	assert_int_equal(zero_set_cut(&s, 0, 12), 0);
	assert_int_equal(zero_set_cut(&s, 15, 35), 0);
	same(&s, "12-15:0 35-50:0 ");
	zero_set_drop(&s, 40, 41);
	same(&s, "12-15:0 ");
	assert_int_equal(zero_set_cut(&s, 0, 100), 0);
	same(&s, "");
	zero_set_free(&s);
}

#define UNITS 200

/* 0: not there; else the flags and one. */
static void check_all(const struct zero_set *s, const unsigned char *want)
{
	unsigned char have[UNITS] = {0};

	for (size_t i = 0; i < s->count; i++) {
		const struct zero_range *z = &s->range[i];

		assert_true(z->offset < z->end && z->end <= UNITS);
		memset(have + z->offset, (int)z->flags + 1, z->end - z->offset);
		if (!i)
			continue;
		assert_true(z[-1].end <= z->offset);
		assert_false(z[-1].end == z->offset && z[-1].flags == z->flags);
	}
	assert_memory_equal(have, want, UNITS);
}

static void any_changes_in_any_order(void **state)
{
	struct zero_set s = {0};
	unsigned char want[UNITS] = {0};
	uint64_t seed = 5;

	(void)state;
	for (unsigned n = 0; n < 20000; n++) {
		uint64_t at = random_below(&seed, UNITS);
		uint64_t end = at + 1 + random_below(&seed, UNITS - at);
		unsigned flags = (unsigned)random_below(&seed, 2);

		if (n % 3)
			end = end - at > 8 ? at + 8 : end;
		if (random_below(&seed, 2)) {
			assert_int_equal(zero_set_add(&s, at, end, flags), 0);
			memset(want + at, (int)flags + 1, end - at);
		} else {
			assert_int_equal(zero_set_cut(&s, at, end), 0);
			memset(want + at, 0, end - at);
		}
		check_all(&s, want);
	}
	zero_set_free(&s);
}

static void one_byte_anywhere_is_seen(void **state)
{
	unsigned char b[300] = {0};

	(void)state;
	for (size_t n = 0; n < sizeof(b); n += n < 40 ? 1 : 37) {
		assert_true(memory_is_zero(b, n));
		for (size_t i = 0; i < n; i++) {
			b[i] = 0x80;
			assert_false(memory_is_zero(b, n));
			b[i] = 0;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_that_touch_and_are_alike_are_one),
		cmocka_unit_test(what_is_cut_out_leaves_its_ends),
		cmocka_unit_test(any_changes_in_any_order),
		cmocka_unit_test(one_byte_anywhere_is_seen),
	};

	return cmocka_run_group_tests_name("zero set", tests, NULL, NULL);
}
