/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool-size.c: how large a pool must be for its device, and growing it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked.h"

static char *grow_spec(const struct pooled *b, char spec[96])
{
	snprintf(spec, 96, "pool:[volatile:/proc/self/fd/%d]", b->fd);
	return spec;
}

static int grow(struct pooled *b, uint64_t logical, uint64_t physical,
	const char *words)
{
	struct pool_geometry g = {
		.logical_size = logical, .physical_size = physical};
	struct error error = {""};
	char spec[96];
	int err = pool_grow(grow_spec(b, spec), &g, &error);

	if (err && !strstr(error.text, words))
		fail_msg("%s; not: %s", error.text, words);
	return err;
}

static void the_least_space_holds_the_whole_device(void **state)
{
	const uint64_t sizes[] = {UNIT, MIB, 37 * MIB + UNIT, 300 * MIB};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct pooled *b =
			pooled_new(pool_space_for(sizes[i]), sizes[i]);

		assert_int_equal(placement_reserve(b->pool, 0, sizes[i]), 0);
		pooled_free(b);
	}
	assert_true(pool_space_for(GIB) < GIB + GIB / 50);
	assert_int_equal(pool_space_for(UINT64_MAX / 2), UINT64_MAX);
}

static void a_grown_pool_keeps_its_data_and_has_more_room(void **state)
{
	struct pooled *b = pooled_blank(4 * MIB);
	struct pool_geometry g = {
		.logical_size = 2 * MIB, .physical_size = 2 * MIB};
	struct store *s = store_must_open(b->inner);
	struct error error;
	struct findings f;
	uint64_t before;

	(void)state;
	assert_int_equal(pool_format(s, &g, &error), 0);
	store_close(s);
	pooled_open(b);
	before = pooled_counts(b).free_bytes;
	pooled_write(b, 1, MIB, 16 * UNIT);
	pooled_flush(b);
	pooled_drop(b);
	assert_int_equal(grow(b, 8 * MIB, 4 * MIB, ""), 0);
	assert_clean(b, &f);
	assert_int_equal(f.summary.logical_size, 8 * MIB);
	assert_int_equal(f.summary.physical_size, 4 * MIB);
	pooled_open(b);
	assert_int_equal(b->pool->info.size, 8 * MIB);
	assert_true(pooled_sees(b, 1, MIB, 16 * UNIT));
	assert_true(
		pooled_counts(b).free_bytes >= before + 2 * MIB - 17 * UNIT);
	pooled_write(b, 2, 8 * MIB - UNIT, UNIT);
	pooled_flush(b);
	pooled_close(b);
	assert_clean(b, &f);
	/* One size alone, and none, which changes nothing but is no error. */
	assert_int_equal(grow(b, 9 * MIB, 0, ""), 0);
	assert_int_equal(grow(b, 0, 0, ""), 0);
	assert_clean(b, &f);
	assert_int_equal(f.summary.logical_size, 9 * MIB);
	pooled_free(b);
}

static void what_cannot_be_leaves_the_pool_as_it_was(void **state)
{
	struct pooled *b = *state;
	struct findings before, f;

	assert_clean(b, &before);
	assert_int_equal(grow(b, DEVICE - UNIT, 0, "cannot shrink"), -EINVAL);
	assert_int_equal(grow(b, 0, SIZE - UNIT, "cannot shrink"), -EINVAL);
	assert_int_equal(grow(b, 0, 2 * SIZE, "is smaller"), -EINVAL);
	assert_int_equal(grow(b, DEVICE + 512, 0, "multiple"), -EINVAL);
	assert_int_equal(grow(b, UINT64_C(1) << 62, 0, "too large"), -EINVAL);
	assert_clean(b, &f);
	assert_int_equal(f.summary.generation, before.summary.generation);
}

static void no_punching_where_space_was_preallocated(void **state)
{
	for (int preallocated = 0; preallocated < 2; preallocated++) {
		struct pooled *b = pooled_blank(SIZE);
		struct pool_geometry g = {.preallocated = preallocated};
		struct store *s = store_must_open(b->inner);
		struct error error;
		uint64_t before;

		(void)state;
		assert_int_equal(pool_format(s, &g, &error), 0);
		store_close(s);
		pooled_open(b);
		before = pooled_counts(b).free_bytes;
		pooled_write(b, 1, 0, 16 * UNIT);
		pooled_flush(b);
		pooled_trim(b, 0, 16 * UNIT);
		pooled_flush(b);
		while (pooled_counts(b).free_bytes != before)
			assert_true(reactor_sim_step(b->loop));
		assert_int_equal(
			pooled_asked(b, STORE_TRIM, NULL) == 0, preallocated);
		pooled_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_space_holds_the_whole_device),
		cmocka_unit_test(a_grown_pool_keeps_its_data_and_has_more_room),
		cmocka_unit_test_setup_teardown(
			what_cannot_be_leaves_the_pool_as_it_was, setup,
			teardown),
		cmocka_unit_test(no_punching_where_space_was_preallocated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
