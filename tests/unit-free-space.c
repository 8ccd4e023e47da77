/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-free-space.c: what is free, in two orders, and which piece is taken.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "placement/free-space.h"
#include "no-memory.h"

#define NONE FREE_SPACE_NO_TARGET

static int setup(void **state)
{
	struct free_space *f = malloc(sizeof(*f));

	assert_non_null(f);
	assert_int_equal(free_space_init(f), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free_space_destroy(*state);
	free(*state);
	return 0;
}

static void add(struct free_space *f, uint64_t offset, uint64_t length)
{
	assert_int_equal(free_space_add(f, offset, length), 0);
	assert_true(free_space_valid(f));
}

static void take(struct free_space *f, uint64_t offset, uint64_t length)
{
	assert_int_equal(free_space_take(f, offset, length), 0);
	assert_true(free_space_valid(f));
}

static void assert_choice(struct free_space *f, uint64_t target, uint64_t want,
	uint64_t offset, uint64_t length)
{
	uint64_t got_offset = 0, got_length = 0;

	assert_true(
		free_space_choose(f, target, want, &got_offset, &got_length));
	assert_int_equal(got_offset, offset);
	assert_int_equal(got_length, length);
}

static void assert_free(
	struct free_space *f, uint64_t at, uint64_t start, uint64_t length)
{
	uint64_t got_start = 0, got_length = 0;

	assert_true(free_space_find(f, at, &got_start, &got_length));
	assert_int_equal(got_start, start);
	assert_int_equal(got_length, length);
}

static void freed_neighbours_become_one(void **state)
{
	struct free_space *f = *state;

	add(f, 10, 10);
	add(f, 30, 10);
	assert_int_equal(free_space_extents(f), 2);
	add(f, 20, 10);
	assert_int_equal(free_space_extents(f), 1);
	assert_free(f, 0, 10, 30);
	add(f, 5, 5);
	add(f, 40, 5);
	assert_free(f, 44, 5, 40);
	assert_int_equal(free_space_bytes(f), 40);
	assert_int_equal(free_space_largest(f), 40);
}

static void pieces_are_appended_in_order(void **state)
{
	struct free_space *f = *state;

	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(free_space_append(f, i * 100, 10 + i % 7), 0);
	assert_true(free_space_valid(f));
	assert_int_equal(free_space_extents(f), 1000);
	assert_free(f, 500, 500, 15);
	assert_int_equal(free_space_append(f, 100000, 0), -EINVAL);
	add(f, 10, 90); /* and they are like any others */
	assert_free(f, 0, 0, 111);
}

static void taking_cuts_head_tail_middle_and_whole(void **state)
{
	struct free_space *f = *state;

	add(f, 100, 100);
	take(f, 100, 10);
	assert_free(f, 0, 110, 90);
	take(f, 190, 10);
	assert_free(f, 0, 110, 80);
	take(f, 150, 10);
	assert_free(f, 0, 110, 40);
	assert_free(f, 150, 160, 30);
	take(f, 110, 40);
	take(f, 160, 30);
	assert_int_equal(free_space_bytes(f), 0);
	assert_int_equal(free_space_largest(f), 0);
	assert_int_equal(free_space_extents(f), 0);
}

static void freeing_twice_or_taking_what_is_not_free_is_refused(void **state)
{
	struct free_space *f = *state;

	add(f, 100, 100);
	assert_int_equal(free_space_add(f, 100, 1), -EEXIST);
	assert_int_equal(free_space_add(f, 199, 1), -EEXIST);
	assert_int_equal(free_space_add(f, 50, 51), -EEXIST);
	assert_int_equal(free_space_add(f, 0, 500), -EEXIST);
	assert_int_equal(free_space_take(f, 99, 2), -ENOENT);
	assert_int_equal(free_space_take(f, 150, 51), -ENOENT);
	assert_int_equal(free_space_take(f, 300, 1), -ENOENT);
	assert_int_equal(free_space_take(f, 150, 0), -EINVAL);
	assert_int_equal(free_space_add(f, 150, 0), -EINVAL);
	assert_int_equal(free_space_add(f, 1, UINT64_MAX), -EINVAL);
	assert_free(f, 0, 100, 100);
	assert_true(free_space_valid(f));
}

static void choice_is_at_the_target_if_all_is_free_there(void **state)
{
	struct free_space *f = *state;

	add(f, 100, 100);
	add(f, 500, 10);
	assert_choice(f, 150, 50, 150, 50);
	assert_choice(f, 500, 10, 500, 10);
	assert_choice(f, 100, 100, 100, 100);
}

static void choice_is_else_the_nearest_that_fits(void **state)
{
	struct free_space *f = *state;

	add(f, 100, 100);
	add(f, 240, 5);
	add(f, 300, 100);
	/* In the extent of the target, but sooner. */
	assert_choice(f, 180, 30, 170, 30);
	/* Nearer after than before, over one too small. */
	assert_choice(f, 260, 10, 300, 10);
	/* Nearer before. */
	assert_choice(f, 210, 10, 190, 10);
	/* Before the first, after the last. */
	assert_choice(f, 0, 100, 100, 100);
	assert_choice(f, 1000, 100, 300, 100);
}

static void choice_is_else_the_smallest_that_fits(void **state)
{
	struct free_space *f = *state;

	add(f, 100, 100);
	add(f, 300, 20);
	add(f, 500, 20);
	add(f, 700, 30);
	assert_choice(f, NONE, 20, 300, 20);
	assert_choice(f, NONE, 11, 300, 11);
	assert_choice(f, NONE, 25, 700, 25);
	assert_choice(f, NONE, 31, 100, 31);
}

static void far_fit_is_found_past_many_small_ones(void **state)
{
	struct free_space *f = *state;

	for (uint64_t i = 0; i < 1000; i++)
		add(f, 10 * i, 5);
	add(f, 50000, 40);
	add(f, 60000, 30);
	assert_choice(f, 100, 20, 60000, 20);
}

static void choice_is_else_the_largest(void **state)
{
	struct free_space *f = *state;
	uint64_t offset, length;

	assert_false(free_space_choose(f, NONE, 1, &offset, &length));
	assert_int_equal(
		free_space_alloc(f, NONE, 1, &offset, &length), -ENOSPC);
	add(f, 100, 50);
	add(f, 300, 70);
	add(f, 500, 60);
	assert_choice(f, NONE, 100, 300, 70);
	assert_choice(f, 100, 100, 300, 70);
	assert_false(free_space_choose(f, NONE, 0, &offset, &length));
}

static void allocating_takes_what_was_chosen(void **state)
{
	struct free_space *f = *state;
	uint64_t offset, length, sum = 0;

	add(f, 0, 100);
	assert_int_equal(free_space_alloc(f, 40, 20, &offset, &length), 0);
	assert_int_equal(offset, 40);
	assert_int_equal(length, 20);
	while (!free_space_alloc(f, 40, 7, &offset, &length)) {
		assert_true(free_space_valid(f));
		sum += length;
	}
	assert_int_equal(sum, 80);
	assert_int_equal(free_space_bytes(f), 0);
}

/* --- against an array of flags --- */

#define UNITS 700

static void random_changes_match_an_array(void **state)
{
	struct free_space *f = *state;
	bool is_free[UNITS] = {0};
	uint64_t seed = 9;

	for (unsigned step = 0; step < 20000; step++) {
		uint64_t first = random_below(&seed, UNITS);
		uint64_t count = 1 + random_below(&seed, 12);
		bool adding = random_below(&seed, 2), fits = true;
		uint64_t bytes = 0, extents = 0;

		if (count > UNITS - first)
			count = UNITS - first;
		for (uint64_t i = 0; i < count; i++)
			fits = fits && is_free[first + i] != adding;
		if (adding)
			assert_int_equal(free_space_add(f, first, count),
				fits ? 0 : -EEXIST);
		else
			assert_int_equal(free_space_take(f, first, count),
				fits ? 0 : -ENOENT);
		for (uint64_t i = 0; fits && i < count; i++)
			is_free[first + i] = adding;
		for (uint64_t i = 0; i < UNITS; i++) {
			bytes += is_free[i];
			extents += is_free[i] && !(i && is_free[i - 1]);
		}
		assert_int_equal(free_space_bytes(f), bytes);
		assert_int_equal(free_space_extents(f), extents);
		if (step % 16 == 0)
			assert_true(free_space_valid(f));
	}
}

/* Whatever is asked for: what is chosen is free, and all of it if it can be. */
static void choice_is_always_free(void **state)
{
	struct free_space *f = *state;
	uint64_t seed = 10;

	for (uint64_t i = 0; i < 300; i++)
		free_space_add(f, random_below(&seed, 100000),
			1 + random_below(&seed, 100));
	for (unsigned step = 0; step < 20000; step++) {
		uint64_t target = random_below(&seed, 110000);
		uint64_t want = 1 + random_below(&seed, 150);
		uint64_t largest = free_space_largest(f);
		uint64_t offset, length, start, room;

		assert_true(
			free_space_choose(f, target, want, &offset, &length));
		assert_int_equal(length, want < largest ? want : largest);
		assert_true(free_space_find(f, offset, &start, &room));
		assert_true(start <= offset && offset + length <= start + room);
	}
}

static void no_memory_changes_nothing(void **state)
{
	struct free_space *f = *state;
	uint64_t n = 0, offset, length;

	add(f, UINT64_C(1) << 40, 1000);
	no_memory = true;
	while (!free_space_add(f, 2 * n, 1))
		n++;
	assert_int_equal(free_space_bytes(f), 1000 + n);
	assert_int_equal(
		free_space_take(f, (UINT64_C(1) << 40) + 10, 1), -ENOMEM);
	assert_int_equal(
		free_space_alloc(f, NONE, 500, &offset, &length), -ENOMEM);
	assert_int_equal(free_space_reserve(f, 1), -ENOMEM);
	no_memory = false;
	assert_int_equal(free_space_bytes(f), 1000 + n);
	assert_true(free_space_valid(f));
	assert_int_equal(free_space_reserve(f, 3), 0);
	no_memory = true;
	take(f, (UINT64_C(1) << 40) + 10, 1);
	take(f, (UINT64_C(1) << 40) + 20, 1);
	take(f, (UINT64_C(1) << 40) + 30, 1);
	no_memory = false;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(freed_neighbours_become_one),
		TEST(pieces_are_appended_in_order),
		TEST(taking_cuts_head_tail_middle_and_whole),
		TEST(freeing_twice_or_taking_what_is_not_free_is_refused),
		TEST(choice_is_at_the_target_if_all_is_free_there),
		TEST(choice_is_else_the_nearest_that_fits),
		TEST(choice_is_else_the_smallest_that_fits),
		TEST(far_fit_is_found_past_many_small_ones),
		TEST(choice_is_else_the_largest),
		TEST(allocating_takes_what_was_chosen),
		TEST(random_changes_match_an_array),
		TEST(choice_is_always_free),
		TEST(no_memory_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
