/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-btree.c: the ordered set of pairs: against a sorted array, filled and
 * emptied in every order, within its bounds of memory.
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
#include "placement/btree.h"
#include "no-memory.h"

/* What the tree ought to hold. */
struct sorted {
	struct btree_item item[4096];
	unsigned count;
};

static bool before(struct btree_item x, struct btree_item y)
{
	return x.a != y.a ? x.a < y.a : x.b < y.b;
}

/* The first that does not come before `key`. */
static unsigned sorted_find(const struct sorted *s, struct btree_item key)
{
	unsigned i = 0;

	while (i < s->count && before(s->item[i], key))
		i++;
	return i;
}

static void assert_item(struct btree_item x, struct btree_item y)
{
	assert_int_equal(x.a, y.a);
	assert_int_equal(x.b, y.b);
}

static void assert_found_as_in(
	const struct btree *t, const struct sorted *s, struct btree_item key)
{
	unsigned i = sorted_find(s, key);
	struct btree_item out;

	assert_int_equal(btree_after(t, key, &out), i < s->count);
	if (i < s->count)
		assert_item(out, s->item[i]);
	if (i < s->count && !before(key, s->item[i]))
		i++;
	assert_int_equal(btree_before(t, key, &out), i > 0);
	if (i)
		assert_item(out, s->item[i - 1]);
}

static void insert(struct btree *t, uint64_t a, uint64_t b)
{
	assert_int_equal(btree_reserve(t, 1), 0);
	btree_insert(t, (struct btree_item){a, b});
}

/* Put in what is not there, take out what is. */
static void toggle(struct btree *t, struct sorted *s, struct btree_item key)
{
	unsigned i = sorted_find(s, key);
	bool there = i < s->count && !before(key, s->item[i]);

	if (there) {
		btree_remove(t, key);
		s->count--;
		memmove(s->item + i, s->item + i + 1,
			(s->count - i) * sizeof(key));
	} else {
		insert(t, key.a, key.b);
		memmove(s->item + i + 1, s->item + i,
			(s->count - i) * sizeof(key));
		s->count++;
		s->item[i] = key;
	}
}

static void random_changes_match_a_sorted_array(void **state)
{
	struct sorted *s = calloc(1, sizeof(*s));
	uint64_t seed = 11;
	struct btree t;

	(void)state;
	assert_non_null(s);
	btree_init(&t);
	for (unsigned step = 0; step < 20000; step++) {
		/* A range that grows and shrinks fills and empties it. */
		uint64_t range = step % 8000 < 4000 ? 2500 : 40;
		struct btree_item key = {
			random_below(&seed, range), random_below(&seed, 2)};

		if (range == 40 && s->count > 60)
			key = s->item[random_below(&seed, s->count)];
		toggle(&t, s, key);
		key.a += random_below(&seed, 3);
		assert_found_as_in(&t, s, key);
		if (step % 16 == 0)
			assert_true(btree_valid(&t));
		assert_int_equal(t.count, s->count);
	}
	btree_destroy(&t);
	free(s);
}

enum order {
	UPWARDS,
	DOWNWARDS,
	OUTSIDE_IN,
	SHUFFLED
};

/* The i-th of n in that order. */
static uint64_t ordered(enum order order, uint64_t i, uint64_t n)
{
	switch (order) {
	case UPWARDS:
		return i;
	case DOWNWARDS:
		return n - 1 - i;
	case OUTSIDE_IN:
		return i % 2 ? n - 1 - i / 2 : i / 2;
	case SHUFFLED:
		break;
	}
	return i * 7919 % n; /* a prime that does not divide n */
}

static void filled_and_emptied_in_every_order(void **state)
{
	const uint64_t n = 6000;

	(void)state;
	for (enum order in = UPWARDS; in <= SHUFFLED; in++) {
		for (enum order out = UPWARDS; out <= SHUFFLED; out++) {
			struct btree t;

			btree_init(&t);
			for (uint64_t i = 0; i < n; i++)
				insert(&t, ordered(in, i, n), 5);
			assert_true(btree_valid(&t));
			for (uint64_t i = 0; i < n; i++) {
				btree_remove(&t,
					(struct btree_item){
						ordered(out, i, n), 5});
				if (i % 500 == 0)
					assert_true(btree_valid(&t));
			}
			assert_true(btree_valid(&t));
			assert_int_equal(t.count, 0);
			btree_destroy(&t);
		}
	}
}

static void replaced_item_is_found_by_its_new_name(void **state)
{
	struct btree_item out;
	struct btree t;

	(void)state;
	btree_init(&t);
	for (uint64_t i = 0; i < 3000; i++)
		insert(&t, 10 * i, 1);
	for (uint64_t i = 0; i < 3000; i++)
		btree_replace(&t, (struct btree_item){10 * i, 1},
			(struct btree_item){10 * i + 5, 2});
	assert_true(btree_valid(&t));
	for (uint64_t i = 0; i < 3000; i++) {
		assert_true(
			btree_after(&t, (struct btree_item){10 * i, 0}, &out));
		assert_item(out, (struct btree_item){10 * i + 5, 2});
	}
	assert_false(btree_before(&t, (struct btree_item){4, 0}, &out));
	btree_destroy(&t);
}

static void empty_tree_has_nothing_before_or_after(void **state)
{
	struct btree_item out;
	struct btree t;

	(void)state;
	btree_init(&t);
	assert_false(btree_before(&t, (struct btree_item){9, 9}, &out));
	assert_false(btree_after(&t, (struct btree_item){0, 0}, &out));
	insert(&t, 1, 1);
	btree_remove(&t, (struct btree_item){1, 1});
	assert_false(btree_before(&t, (struct btree_item){9, 9}, &out));
	assert_true(btree_valid(&t));
	btree_destroy(&t);
}

/* Bytes an item after `n` inserts in that order. */
static double cost(enum order order, uint64_t n)
{
	struct btree t;
	double bytes;

	btree_init(&t);
	for (uint64_t i = 0; i < n; i++)
		insert(&t, ordered(order, i, n), i);
	bytes = (double)btree_memory(&t) / (double)n;
	btree_destroy(&t);
	return bytes;
}

static void item_costs_at_most_40_bytes(void **state)
{
	(void)state;
	for (enum order order = UPWARDS; order <= SHUFFLED; order++) {
		assert_true(cost(order, 5000) <= 40);
		assert_true(cost(order, 200000) <= 40);
	}
	/* In order it is full but for the inner nodes. */
	assert_true(cost(UPWARDS, 5000) < 19);
}

/* Nine in ten gone at random: what is left is as dense as before. */
static void memory_comes_back_when_items_go(void **state)
{
	const uint64_t n = 400000;
	struct btree t;
	uint64_t full;

	(void)state;
	btree_init(&t);
	for (uint64_t i = 0; i < n; i++)
		insert(&t, i, 0);
	full = btree_memory(&t);
	for (uint64_t i = 0; i < n - 10; i++)
		btree_remove(&t, (struct btree_item){i, 0});
	assert_true(btree_memory(&t) <= full / 2);
	assert_true(btree_valid(&t));
	btree_destroy(&t);
}

static void reserve_fails_without_memory_and_changes_nothing(void **state)
{
	struct btree t;
	uint64_t n = 0;

	(void)state;
	btree_init(&t);
	no_memory = true;
	assert_int_equal(btree_reserve(&t, 1), -ENOMEM);
	no_memory = false;
	insert(&t, n++, 0);
	no_memory = true;
	while (!btree_reserve(&t, 1))
		btree_insert(&t, (struct btree_item){n++, 0});
	assert_true(n > 50000); /* a chunk was used up */
	assert_int_equal(t.count, n);
	assert_true(btree_valid(&t));
	no_memory = false;
	insert(&t, n, 0);
	btree_destroy(&t);
}

static void reserved_inserts_succeed_without_memory(void **state)
{
	uint64_t seed = 3;
	struct btree t;

	(void)state;
	btree_init(&t);
	for (unsigned round = 0; round < 2000; round++) {
		assert_int_equal(btree_reserve(&t, 200), 0);
		no_memory = true;
		for (unsigned i = 0; i < 200; i++)
			btree_insert(
				&t, (struct btree_item){random_next(&seed), i});
		no_memory = false;
	}
	assert_true(btree_valid(&t));
	btree_destroy(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_tree_has_nothing_before_or_after),
		cmocka_unit_test(random_changes_match_a_sorted_array),
		cmocka_unit_test(filled_and_emptied_in_every_order),
		cmocka_unit_test(replaced_item_is_found_by_its_new_name),
		cmocka_unit_test(item_costs_at_most_40_bytes),
		cmocka_unit_test(memory_comes_back_when_items_go),
		cmocka_unit_test(
			reserve_fails_without_memory_and_changes_nothing),
		cmocka_unit_test(reserved_inserts_succeed_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
