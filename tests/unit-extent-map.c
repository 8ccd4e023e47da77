/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-extent-map.c: which piece of the pool holds which piece of the device,
 * against an array with an entry a block.
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
#include "placement/extent-map.h"
#include "no-memory.h"

#define U EXTENT_UNIT

static int setup(void **state)
{
	struct extent_map *m = malloc(sizeof(*m));

	assert_non_null(m);
	assert_int_equal(extent_map_init(m), 0);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	extent_map_destroy(*state);
	free(*state);
	return 0;
}

/* The pieces that were freed. */
struct freed {
	struct extent piece[16];
	unsigned count;
};

static void note_freed(void *arg, const struct extent *piece)
{
	struct freed *f = arg;

	assert_true(f->count < 16);
	f->piece[f->count++] = *piece;
}

/* All in units, to be read at a glance: logical, physical, length. */
static struct extent extent(
	uint64_t logical, uint64_t physical, uint64_t length, bool unwritten)
{
	return (struct extent){
		logical * U, physical * U, length * U, unwritten};
}

static struct freed set(struct extent_map *m, uint64_t logical,
	uint64_t physical, uint64_t length, bool unwritten)
{
	struct extent e = extent(logical, physical, length, unwritten);
	struct freed f = {0};

	assert_int_equal(extent_map_set(m, &e, note_freed, &f), 0);
	return f;
}

static struct freed clear(
	struct extent_map *m, uint64_t logical, uint64_t length)
{
	struct freed f = {0};

	assert_int_equal(
		extent_map_clear(m, logical * U, length * U, note_freed, &f),
		0);
	return f;
}

static void assert_extent(const struct extent *e, uint64_t logical,
	uint64_t physical, uint64_t length, bool unwritten)
{
	assert_int_equal(e->logical, logical * U);
	assert_int_equal(e->physical, physical * U);
	assert_int_equal(e->length, length * U);
	assert_int_equal(e->unwritten, unwritten);
}

/* The map is exactly these. */
static void assert_map(
	const struct extent_map *m, const struct extent *want, unsigned n)
{
	uint64_t pos = 0, bytes = 0;
	struct extent e;

	for (unsigned i = 0; i < n; i++) {
		assert_true(extent_map_next(m, &pos, &e));
		assert_int_equal(e.logical, want[i].logical);
		assert_int_equal(e.physical, want[i].physical);
		assert_int_equal(e.length, want[i].length);
		assert_int_equal(e.unwritten, want[i].unwritten);
		bytes += e.length;
	}
	assert_false(extent_map_next(m, &pos, &e));
	assert_int_equal(extent_map_count(m), n);
	assert_int_equal(extent_map_mapped_bytes(m), bytes);
	assert_true(btree_valid(&m->tree));
}

#define ASSERT_MAP(m, ...)                                                     \
	do {                                                                   \
		const struct extent want_[] = {__VA_ARGS__};                   \
		assert_map(m, want_, sizeof(want_) / sizeof(*want_));          \
	} while (0)

static void find_gives_the_cover_or_the_next(void **state)
{
	struct extent_map *m = *state;
	struct extent e;

	assert_false(extent_map_find(m, 0, &e));
	set(m, 10, 100, 5, false);
	assert_true(extent_map_find(m, 0, &e));
	assert_extent(&e, 10, 100, 5, false);
	assert_true(extent_map_find(m, 10 * U, &e));
	assert_true(extent_map_find(m, 15 * U - 1, &e));
	assert_extent(&e, 10, 100, 5, false);
	assert_false(extent_map_find(m, 15 * U, &e));
	assert_false(extent_map_find(m, UINT64_MAX, &e));
}

static void neighbours_merge_only_when_they_go_on(void **state)
{
	struct extent_map *m = *state;

	set(m, 10, 100, 5, false);
	set(m, 15, 105, 5, false); /* goes on: right */
	ASSERT_MAP(m, extent(10, 100, 10, false));
	set(m, 5, 95, 5, false); /* left */
	ASSERT_MAP(m, extent(5, 95, 15, false));
	set(m, 20, 111, 1, false); /* not physically */
	set(m, 22, 112, 1, false); /* not logically */
	set(m, 4, 94, 1, true);    /* not the same flag */
	ASSERT_MAP(m, extent(4, 94, 1, true), extent(5, 95, 15, false),
		extent(20, 111, 1, false), extent(22, 112, 1, false));
}

static void piece_between_two_makes_all_three_one(void **state)
{
	struct extent_map *m = *state;

	set(m, 0, 50, 2, false);
	set(m, 4, 54, 2, false);
	set(m, 2, 52, 2, false);
	ASSERT_MAP(m, extent(0, 50, 6, false));
}

static void replaced_middle_leaves_head_and_tail(void **state)
{
	struct extent_map *m = *state;
	struct freed f;

	set(m, 0, 100, 10, false);
	f = set(m, 3, 500, 4, false);
	assert_int_equal(f.count, 1);
	assert_extent(&f.piece[0], 3, 103, 4, false);
	ASSERT_MAP(m, extent(0, 100, 3, false), extent(3, 500, 4, false),
		extent(7, 107, 3, false));
}

static void replaced_head_tail_and_whole(void **state)
{
	struct extent_map *m = *state;
	struct freed f;

	set(m, 10, 100, 10, false);
	f = set(m, 8, 500, 4, false);
	assert_int_equal(f.count, 1);
	assert_extent(&f.piece[0], 10, 100, 2, false);
	f = set(m, 18, 600, 4, false);
	assert_int_equal(f.count, 1);
	assert_extent(&f.piece[0], 18, 108, 2, false);
	ASSERT_MAP(m, extent(8, 500, 4, false), extent(12, 102, 6, false),
		extent(18, 600, 4, false));
	f = set(m, 0, 0, 30, true);
	assert_int_equal(f.count, 3);
	ASSERT_MAP(m, extent(0, 0, 30, true));
}

static void what_stays_in_its_place_is_not_freed(void **state)
{
	struct extent_map *m = *state;
	struct freed f;

	set(m, 0, 100, 10, true);
	f = set(m, 2, 102, 3, false); /* only written now */
	assert_int_equal(f.count, 0);
	ASSERT_MAP(m, extent(0, 100, 2, true), extent(2, 102, 3, false),
		extent(5, 105, 5, true));
	set(m, 0, 100, 2, false);
	f = set(m, 5, 105, 5, false);
	assert_int_equal(f.count, 0);
	ASSERT_MAP(m, extent(0, 100, 10, false));
	f = set(m, 5, 105, 7, false);
	assert_int_equal(f.count, 0);
	ASSERT_MAP(m, extent(0, 100, 12, false));
}

static void clear_frees_each_piece_and_may_split(void **state)
{
	struct extent_map *m = *state;
	struct freed f;

	set(m, 0, 100, 10, false);
	set(m, 12, 300, 4, true);
	f = clear(m, 3, 2);
	assert_int_equal(f.count, 1);
	assert_extent(&f.piece[0], 3, 103, 2, false);
	f = clear(m, 8, 6);
	assert_int_equal(f.count, 2);
	assert_extent(&f.piece[0], 8, 108, 2, false);
	assert_extent(&f.piece[1], 12, 300, 2, true);
	ASSERT_MAP(m, extent(0, 100, 3, false), extent(5, 105, 3, false),
		extent(14, 302, 2, true));
	assert_int_equal(clear(m, 3, 2).count, 0);
	clear(m, 0, 100);
	assert_map(m, NULL, 0);
}

static void longest_extents_are_kept_as_several(void **state)
{
	struct extent_map *m = *state;
	const uint64_t max = EXTENT_LENGTH_MAX / U;
	struct extent e;

	set(m, 7, 9, 2 * max + 5, false);
	ASSERT_MAP(m, extent(7, 9, max, false),
		extent(7 + max, 9 + max, max, false),
		extent(7 + 2 * max, 9 + 2 * max, 5, false));
	assert_true(extent_map_find(m, (7 + max) * U - 1, &e));
	assert_extent(&e, 7, 9, max, false);
}

static void ends_of_the_numbers_hold(void **state)
{
	struct extent_map *m = *state;
	const uint64_t logical = EXTENT_LOGICAL_END / U - 1;
	const uint64_t physical = EXTENT_PHYSICAL_END / U - 1;

	set(m, logical, physical, 1, true);
	ASSERT_MAP(m, extent(logical, physical, 1, true));
	set(m, logical, 0, 1, false);
	ASSERT_MAP(m, extent(logical, 0, 1, false));
}

static void nonsense_is_refused_and_changes_nothing(void **state)
{
	struct extent_map *m = *state;
	const struct extent bad[] = {
		{0, 0, 0, false},
		{1, 0, U, false},
		{0, 512, U, false},
		{0, 0, U + 1, false},
		{EXTENT_LOGICAL_END, 0, U, false},
		{0, EXTENT_PHYSICAL_END - U, 2 * U, false},
		{U, 0, UINT64_MAX / U * U, false},
	};

	set(m, 0, 1, 2, false);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(
			extent_map_set(m, &bad[i], NULL, NULL), -EINVAL);
	assert_int_equal(extent_map_clear(m, 0, 0, NULL, NULL), -EINVAL);
	assert_int_equal(extent_map_clear(m, 5, U, NULL, NULL), -EINVAL);
	assert_int_equal(extent_map_clear(m, U, EXTENT_LOGICAL_END, NULL, NULL),
		-EINVAL);
	ASSERT_MAP(m, extent(0, 1, 2, false));
}

static void walk_survives_changes_behind_and_ahead(void **state)
{
	struct extent_map *m = *state;
	uint64_t pos = 0;
	struct extent e;

	set(m, 0, 100, 4, false);
	set(m, 10, 200, 4, false);
	assert_true(extent_map_next(m, &pos, &e));
	assert_int_equal(pos, 4 * U);
	clear(m, 0, 4);            /* behind */
	set(m, 2, 300, 4, false);  /* over the position */
	set(m, 20, 400, 1, false); /* ahead */
	assert_true(extent_map_next(m, &pos, &e));
	assert_extent(&e, 4, 302, 2, false);
	assert_true(extent_map_next(m, &pos, &e));
	assert_extent(&e, 10, 200, 4, false);
	assert_true(extent_map_next(m, &pos, &e));
	assert_extent(&e, 20, 400, 1, false);
	assert_false(extent_map_next(m, &pos, &e));
}

/* --- against an array: [i] is the physical unit + 1, by flag; 0: none --- */

#define BLOCKS 600

struct naive {
	uint64_t at[BLOCKS];
	uint64_t
		freed[BLOCKS]; /* what the last change freed, by logical unit */
};

static uint64_t naive_value(uint64_t physical, bool unwritten)
{
	return (physical / U + 1) << 1 | unwritten;
}

static void naive_freed(void *arg, const struct extent *piece)
{
	struct naive *n = arg;

	for (uint64_t i = 0; i < piece->length / U; i++)
		n->freed[piece->logical / U + i] =
			naive_value(piece->physical + i * U, piece->unwritten);
}

/* The map and the array say the same, and the map in as few extents. */
static void assert_same(const struct extent_map *m, const struct naive *n)
{
	uint64_t pos = 0, extents = 0;
	struct extent e;

	for (uint64_t i = 0; i < BLOCKS; i++)
		extents += n->at[i] &&
			(!i || n->at[i] != n->at[i - 1] + 2 || !n->at[i - 1]);
	assert_int_equal(extent_map_count(m), extents);
	while (extent_map_next(m, &pos, &e))
		for (uint64_t i = 0; i < e.length / U; i++)
			assert_int_equal(n->at[e.logical / U + i],
				naive_value(e.physical + i * U, e.unwritten));
	pos = 0;
	for (uint64_t i = 0; i < BLOCKS; i++)
		pos += n->at[i] ? U : 0;
	assert_int_equal(extent_map_mapped_bytes(m), pos);
}

static void naive_step(struct extent_map *m, struct naive *n, uint64_t *seed)
{
	uint64_t first = random_below(seed, BLOCKS);
	uint64_t count = 1 + random_below(seed, 40);
	bool unset = random_below(seed, 4) == 0;
	struct extent e = {.logical = first * U};
	uint64_t was[BLOCKS];

	if (count > BLOCKS - first)
		count = BLOCKS - first;
	e.length = count * U;
	/* Few physical places, so that pieces often go on or stay. */
	e.physical = (first + 700 * random_below(seed, 3)) * U;
	e.unwritten = random_below(seed, 3) == 0;
	memcpy(was, n->at, sizeof(was));
	memset(n->freed, 0, sizeof(n->freed));
	for (uint64_t i = 0; i < count; i++)
		n->at[first + i] = unset
			? 0
			: naive_value(e.physical + i * U, e.unwritten);
	if (unset)
		assert_int_equal(extent_map_clear(m, e.logical, e.length,
					 naive_freed, n),
			0);
	else
		assert_int_equal(extent_map_set(m, &e, naive_freed, n), 0);
	for (uint64_t i = 0; i < BLOCKS; i++) {
		bool moved = was[i] && was[i] >> 1 != n->at[i] >> 1;

		assert_int_equal(n->freed[i], moved ? was[i] : 0);
	}
}

static void random_changes_match_an_array_of_blocks(void **state)
{
	struct extent_map *m = *state;
	struct naive *n = calloc(1, sizeof(*n));
	uint64_t seed = 42;

	assert_non_null(n);
	for (unsigned step = 0; step < 20000; step++) {
		uint64_t at;
		struct extent e;

		naive_step(m, n, &seed);
		at = random_below(&seed, BLOCKS);
		if (n->at[at]) {
			assert_true(extent_map_find(m, at * U + 17, &e));
			assert_true(e.logical <= at * U);
		} else if (extent_map_find(m, at * U, &e)) {
			assert_true(e.logical > at * U);
		}
		if (step % 8 == 0)
			assert_same(m, n);
		if (step % 64 == 0)
			assert_true(btree_valid(&m->tree));
	}
	free(n);
}

/* --- memory --- */

static void extent_costs_at_most_40_bytes(void **state)
{
	struct extent_map *m = *state;
	uint64_t seed = 5;

	while (extent_map_count(m) < 300000)
		set(m, random_below(&seed, UINT64_C(1) << 36),
			random_below(&seed, UINT64_C(1) << 36), 1, false);
	assert_true(extent_map_memory(m) <= 40 * extent_map_count(m));
	extent_map_clear(m, 0, (UINT64_C(1) << 35) * U, NULL, NULL);
	assert_true(extent_map_count(m) < 200000);
	assert_true(btree_valid(&m->tree));
}

/* Ten streams, each of extents that do not join. */
static void interleaved_streams_fill_the_leaves(void **state)
{
	struct extent_map *m = *state;

	for (uint64_t i = 0; i < 20000; i++)
		for (uint64_t s = 0; s < 10; s++)
			set(m, (s << 30) + i, (i << 20) + s, 1, false);
	assert_int_equal(extent_map_count(m), 200000);
	assert_true(extent_map_memory(m) <= 24 * extent_map_count(m));
}

static void no_memory_changes_nothing(void **state)
{
	struct extent_map *m = *state;
	struct extent e = extent(0, 0, 1, false);
	uint64_t count, bytes, pos;
	struct freed f = {0};

	set(m, 0, 0, 1000, false);
	no_memory = true;
	for (e.logical = 2000 * U; !extent_map_set(m, &e, NULL, NULL);)
		e.logical += 2 * U;
	/* That wanted room for two extents; use up what is left for one. */
	for (pos = 1; !extent_map_clear(m, pos * U, U, NULL, NULL);)
		pos += 2;
	assert_true(pos < 900);
	count = extent_map_count(m);
	bytes = extent_map_mapped_bytes(m);
	e = extent(950, 77, 10, false);
	assert_int_equal(extent_map_set(m, &e, note_freed, &f), -ENOMEM);
	assert_int_equal(
		extent_map_clear(m, 950 * U, U, note_freed, &f), -ENOMEM);
	assert_int_equal(extent_map_reserve(m, 1), -ENOMEM);
	no_memory = false;
	assert_int_equal(f.count, 0);
	assert_int_equal(extent_map_count(m), count);
	assert_int_equal(extent_map_mapped_bytes(m), bytes);
	assert_true(extent_map_find(m, 950 * U, &e));
	assert_int_equal(e.logical + e.length, 1000 * U);
	assert_int_equal(extent_map_reserve(m, 8), 0);
	no_memory = true;
	for (uint64_t i = 0; i < 4; i++) {
		set(m, 950 + 10 * i, 70000, 1, false);
		clear(m, 955 + 10 * i, 1);
	}
	no_memory = false;
	assert_true(btree_valid(&m->tree));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(find_gives_the_cover_or_the_next),
		TEST(neighbours_merge_only_when_they_go_on),
		TEST(piece_between_two_makes_all_three_one),
		TEST(replaced_middle_leaves_head_and_tail),
		TEST(replaced_head_tail_and_whole),
		TEST(what_stays_in_its_place_is_not_freed),
		TEST(clear_frees_each_piece_and_may_split),
		TEST(longest_extents_are_kept_as_several),
		TEST(ends_of_the_numbers_hold),
		TEST(nonsense_is_refused_and_changes_nothing),
		TEST(walk_survives_changes_behind_and_ahead),
		TEST(random_changes_match_an_array_of_blocks),
		TEST(extent_costs_at_most_40_bytes),
		TEST(interleaved_streams_fill_the_leaves),
		TEST(no_memory_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
