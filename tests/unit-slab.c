/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-slab.c: very many objects of one size: where they lie, and what is
 * given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/slab.h"
#include "no-memory.h"

#define SIZE 1024U
#define MANY 5000U /* three chunks */

static void fill(struct slab *s, void **object)
{
	for (unsigned i = 0; i < MANY; i++) {
		object[i] = slab_alloc(s);
		assert_non_null(object[i]);
		assert_int_equal((uintptr_t)object[i] % SIZE, 0);
		memset(object[i], (int)i, SIZE);
	}
}

static void objects_do_not_touch_each_other(void **state)
{
	void **object = calloc(MANY, sizeof(*object));
	uint64_t seed = 1;
	struct slab s;

	(void)state;
	slab_init(&s, SIZE);
	fill(&s, object);
	for (unsigned round = 0; round < 20000; round++) {
		unsigned i = (unsigned)random_below(&seed, MANY);
		unsigned char *at = object[i];

		assert_int_equal(at[0], (unsigned char)i);
		assert_int_equal(at[SIZE - 1], (unsigned char)i);
		slab_free(&s, at);
		if (round % 2) /* another took its place in between */
			slab_free(&s, slab_alloc(&s));
		object[i] = slab_alloc(&s);
		memset(object[i], (int)i, SIZE);
	}
	assert_int_equal(s.used, MANY);
	slab_destroy(&s);
	assert_int_equal(slab_memory(&s), 0);
	free(object);
}

static void empty_chunks_go_back_but_for_one(void **state)
{
	void **object = calloc(MANY, sizeof(*object));
	struct slab s;

	(void)state;
	slab_init(&s, SIZE);
	fill(&s, object);
	assert_int_equal(s.chunks, 3);
	assert_true(slab_memory(&s) >= MANY * SIZE);
	for (unsigned i = 0; i < MANY; i++)
		slab_free(&s, object[i]);
	assert_int_equal(s.used, 0);
	assert_int_equal(s.chunks, 1);
	slab_destroy(&s);
	free(object);
}

static void few_objects_take_little(void **state)
{
	struct slab s;

	(void)state;
	slab_init(&s, SIZE);
	assert_int_equal(slab_memory(&s), 0);
	assert_non_null(slab_alloc(&s));
	assert_non_null(slab_alloc(&s));
	assert_int_equal(slab_memory(&s), 2 * SIZE);
	slab_destroy(&s);
}

static void what_was_reserved_is_there_without_memory(void **state)
{
	struct slab s;

	(void)state;
	slab_init(&s, SIZE);
	assert_int_equal(slab_reserve(&s, MANY), 0);
	no_memory = true;
	for (unsigned i = 0; i < MANY; i++)
		assert_non_null(slab_alloc(&s));
	while (slab_alloc(&s))
		assert_true(s.used < 2 * MANY);
	assert_int_equal(slab_reserve(&s, 1), -ENOMEM);
	no_memory = false;
	assert_non_null(slab_alloc(&s));
	slab_destroy(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_do_not_touch_each_other),
		cmocka_unit_test(empty_chunks_go_back_but_for_one),
		cmocka_unit_test(few_objects_take_little),
		cmocka_unit_test(what_was_reserved_is_there_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
