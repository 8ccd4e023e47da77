/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-arena.c: frames: in one piece, counted, and given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/arena.h"

#define MIB (UINT64_C(1) << 20)

static int setup(void **state)
{
	struct arena *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	assert_int_equal(arena_init(a, 32 * MIB), 0);
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	arena_destroy(*state);
	free(*state);
	return 0;
}

static void long_buffer_is_in_one_piece_from_a_chunk_on(void **state)
{
	struct arena *a = *state;
	unsigned got = 0;
	frame_t f = arena_alloc(a, 4 * CHUNK_FRAMES, &got);

	assert_int_not_equal(f, 0);
	assert_int_equal(got, 4 * CHUNK_FRAMES);
	assert_int_equal(f % CHUNK_FRAMES, 0);
	assert_int_equal((uintptr_t)a->base % (2 * MIB), 0);
	memset(arena_data(a, f), 1, (size_t)got * FRAME_SIZE);
	assert_int_equal(arena_frame(a, arena_data(a, f + 5) + 17), f + 5);
	arena_put(a, f, got);
}

static void freed_run_is_one_piece_again(void **state)
{
	struct arena *a = *state;
	unsigned got, again;
	frame_t f = arena_alloc(a, 8 * CHUNK_FRAMES, &got);
	frame_t g;

	arena_put(a, f, got);
	g = arena_alloc(a, 8 * CHUNK_FRAMES, &again);
	assert_int_equal(again, 8 * CHUNK_FRAMES);
	assert_int_equal(g, f);
	arena_put(a, g, again);
}

static void short_buffers_share_a_broken_chunk(void **state)
{
	struct arena *a = *state;
	unsigned got;
	frame_t one = arena_alloc(a, 1, &got), two, whole;

	two = arena_alloc(a, 3, &got);
	assert_int_equal(got, 3);
	assert_int_equal(one / CHUNK_FRAMES, two / CHUNK_FRAMES);
	assert_int_not_equal(one, two);
	/* and no long one gets the rest of it */
	whole = arena_alloc(a, CHUNK_FRAMES, &got);
	assert_int_equal(got, CHUNK_FRAMES);
	assert_int_not_equal(whole / CHUNK_FRAMES, one / CHUNK_FRAMES);
	arena_put(a, whole, CHUNK_FRAMES);
	arena_put(a, two, 3);
	arena_put(a, one, 1);
}

static void frame_stays_until_its_last_reference_goes(void **state)
{
	struct arena *a = *state;
	unsigned got;
	frame_t f = arena_alloc(a, 1, &got), other;

	assert_false(arena_shared(a, f));
	arena_get(a, f, 1);
	assert_true(arena_shared(a, f));
	arena_put(a, f, 1);
	assert_false(arena_shared(a, f));
	other = arena_alloc(a, 1, &got);
	assert_int_not_equal(other, f);
	arena_put(a, f, 1);
	assert_int_equal(arena_alloc(a, 1, &got), f); /* free by now */
	arena_put(a, f, 1);
	arena_put(a, other, 1);
}

static void held_frame_in_the_middle_of_a_run_is_kept(void **state)
{
	struct arena *a = *state;
	unsigned got;
	frame_t f = arena_alloc(a, CHUNK_FRAMES, &got), g;

	arena_get(a, f + 7, 1);
	arena_put(a, f, CHUNK_FRAMES);
	for (unsigned left = CHUNK_FRAMES - 1; left; left -= got) {
		g = arena_alloc(a, left, &got);
		assert_int_equal(g / CHUNK_FRAMES, f / CHUNK_FRAMES);
		assert_true(g + got <= f + 7 || g > f + 7);
	}
	arena_put(a, f, CHUNK_FRAMES);
}

static void full_arena_says_so_and_works_again(void **state)
{
	struct arena *a = *state;
	frame_t *frame = calloc(a->chunks * CHUNK_FRAMES, sizeof(*frame));
	unsigned got;
	size_t n = 0;

	while ((frame[n] = arena_alloc(a, 1, &got)))
		n++;
	/* all that was asked for, and frame 0 not among them */
	assert_true(n >= 32 * MIB / FRAME_SIZE);
	assert_int_equal(arena_alloc(a, 64, &got), 0);
	for (size_t i = 0; i < n; i++) {
		assert_true(frame[i] >= CHUNK_FRAMES);
		arena_put(a, frame[i], 1);
	}
	frame[0] = arena_alloc(a, 64, &got);
	assert_true(got >= CHUNK_FRAMES);
	arena_put(a, frame[0], got);
	free(frame);
}

static size_t resident(const struct arena *a)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = a->chunks * CHUNK_SIZE, n = 0;
	unsigned char *in = malloc(bytes / page);

	assert_int_equal(mincore(a->base, bytes, in), 0);
	for (size_t i = 0; i < bytes / page; i++)
		n += in[i] & 1;
	free(in);
	return n * page;
}

/* All but 24 MiB of what is free, give or take a huge page or two. */
static void memory_is_given_back(void **state)
{
	struct arena a;
	unsigned got;
	frame_t f;

	(void)state;
	assert_int_equal(arena_init(&a, 96 * MIB), 0);
	f = arena_alloc(&a, 80 * MIB / FRAME_SIZE, &got);
	assert_int_equal(got, 80 * MIB / FRAME_SIZE);
	memset(arena_data(&a, f), 1, 80 * MIB);
	assert_true(resident(&a) >= 80 * MIB);
	arena_put(&a, f, got);
	assert_true(resident(&a) >= 20 * MIB);
	assert_true(resident(&a) <= 28 * MIB);
	arena_destroy(&a);
}

static void reserved_memory_may_all_be_locked(void **state)
{
	struct arena a;
	unsigned got;
	frame_t f, last = 0;

	(void)state;
	assert_int_equal(arena_init(&a, 200 * MIB), 0);
	/* As mlockall() would; refused or not, nothing may be filled. */
	(void)!mlock(a.base, a.chunks * CHUNK_SIZE);
	assert_int_equal(resident(&a), 0);
	munlock(a.base, a.chunks * CHUNK_SIZE);
	while ((f = arena_alloc(&a, CHUNK_FRAMES, &got)))
		*arena_data(&a, last = f) = 1;
	assert_true(last >= 199 * MIB / FRAME_SIZE);
	arena_destroy(&a);
}

static void populated_memory_is_there_at_once(void **state)
{
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, 160 * MIB), 0);
	assert_int_equal(arena_populate(&a, 70 * MIB), 0);
	assert_true(resident(&a) >= 70 * MIB);
	assert_true(resident(&a) < 80 * MIB);
	arena_destroy(&a);
}

#define POOL_FIRST CHUNK_FRAMES /* its first frame: of chunk 1 */
#define POOL_END (5 * CHUNK_FRAMES)

static bool in_pool(frame_t f)
{
	return f >= POOL_FIRST && f < POOL_END;
}

static void pool_is_in_one_piece_and_for_itself(void **state)
{
	struct arena *a = *state;
	struct iovec where;
	unsigned got;
	frame_t f[4], other;

	assert_int_equal(arena_alloc_pool(a, 1), 0); /* there is none yet */
	assert_int_equal(arena_set_pool(a, 4 * CHUNK_SIZE), 0);
	arena_pool(a, &where);
	assert_ptr_equal(where.iov_base, arena_data(a, POOL_FIRST));
	assert_int_equal(where.iov_len, 4 * CHUNK_SIZE);
	f[0] = arena_alloc_pool(a, 1);
	f[1] = arena_alloc_pool(a, CHUNK_FRAMES + 1);
	f[2] = arena_alloc_pool(a, CHUNK_FRAMES);
	assert_true(in_pool(f[0]) && in_pool(f[1]) && in_pool(f[2]));
	assert_int_equal(arena_alloc_pool(a, 1), 0); /* it is full */
	/* chunks in a row, or nothing */
	arena_put(a, f[0], 1);
	arena_put(a, f[2], CHUNK_FRAMES);
	assert_int_equal(arena_alloc_pool(a, 2 * CHUNK_FRAMES), 0);
	arena_put(a, f[1], CHUNK_FRAMES); /* not yet: a frame is left */
	assert_int_equal(arena_alloc_pool(a, 4 * CHUNK_FRAMES), 0);
	arena_put(a, f[1] + CHUNK_FRAMES, 1);
	f[3] = arena_alloc_pool(a, 4 * CHUNK_FRAMES);
	assert_int_equal(f[3], POOL_FIRST);
	arena_put(a, f[3], 4 * CHUNK_FRAMES);
	/* others never get it, however much they want */
	for (unsigned n = 1; (other = arena_alloc(a, n, &got)); n = n % 40 + 1)
		assert_false(in_pool(other) || in_pool(other + got - 1));
	assert_int_equal(arena_alloc_pool(a, 4 * CHUNK_FRAMES), POOL_FIRST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(long_buffer_is_in_one_piece_from_a_chunk_on),
		TEST(freed_run_is_one_piece_again),
		TEST(short_buffers_share_a_broken_chunk),
		TEST(frame_stays_until_its_last_reference_goes),
		TEST(held_frame_in_the_middle_of_a_run_is_kept),
		TEST(full_arena_says_so_and_works_again),
		TEST(memory_is_given_back),
		TEST(pool_is_in_one_piece_and_for_itself),
		cmocka_unit_test(reserved_memory_may_all_be_locked),
		cmocka_unit_test(populated_memory_is_there_at_once),
#undef TEST
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
