/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extents.c: the speed and size of the extent map, and of the free space.
 *
 *   extents [COUNT [LOOKUPS]]
 *
 * Maps COUNT single blocks (10 million) in a shuffled order, looks LOOKUPS of
 * them up at random (4 million), walks all, and takes every second out again.
 * The free space has as many pieces. Prints ns each and bytes an extent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/random.h"
#include "placement/extent-map.h"
#include "placement/free-space.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "extents: %s failed\n", what);
	exit(2);
}

/* Prints what passed since *from, over `n`, and begins anew. */
static void tell(const char *what, double *from, uint64_t n)
{
	printf("%-24s %8.0f ns each\n", what,
		(now() - *from) * 1e9 / (double)n);
	*from = now();
}

/* The i-th of `count` places, in a shuffled order: a prime's multiples. */
static uint64_t shuffled(uint64_t i, uint64_t count)
{
	return i * UINT64_C(2654435761) % count;
}

/* Every other block, so that no two are one extent. */
static void map_fill(struct extent_map *m, uint64_t count, bool in_order)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = in_order ? i : shuffled(i, count);
		struct extent e = {
			.logical = 2 * at * EXTENT_UNIT,
			.physical = 3 * at * EXTENT_UNIT,
			.length = EXTENT_UNIT,
		};

		check(!extent_map_set(m, &e, NULL, NULL), "set");
	}
	check(extent_map_count(m) == count, "count");
}

static void tell_memory(const struct extent_map *m)
{
	printf("%-24s %8.1f bytes an extent\n", "",
		(double)extent_map_memory(m) / (double)extent_map_count(m));
}

static void bench_map(uint64_t count, uint64_t lookups)
{
	struct extent_map m;
	struct extent e;
	uint64_t seed = 1, pos = 0;
	double start = now();

	extent_map_init(&m);
	map_fill(&m, count, true);
	tell("map: set, in order", &start, count);
	tell_memory(&m);
	extent_map_destroy(&m);
	start = now();
	map_fill(&m, count, false);
	tell("map: set, shuffled", &start, count);
	tell_memory(&m);
	for (uint64_t i = 0; i < lookups; i++) {
		uint64_t at = random_below(&seed, count);

		check(extent_map_find(&m, 2 * at * EXTENT_UNIT, &e) &&
				e.physical == 3 * at * EXTENT_UNIT,
			"find");
	}
	tell("map: find", &start, lookups);
	while (extent_map_next(&m, &pos, &e))
		;
	tell("map: next", &start, count);
	for (uint64_t i = 0; i < count; i += 2)
		extent_map_clear(&m, 2 * shuffled(i, count) * EXTENT_UNIT,
			EXTENT_UNIT, NULL, NULL);
	tell("map: clear, shuffled", &start, count / 2);
	tell_memory(&m);
	extent_map_destroy(&m);
}

static void bench_free(uint64_t count, uint64_t allocs)
{
	struct free_space f;
	uint64_t seed = 2, offset, length;
	double start = now();

	free_space_init(&f);
	for (uint64_t i = 0; i < count; i++)
		check(!free_space_add(&f, 16 * shuffled(i, count), 1 + i % 15),
			"add");
	tell("free: add, shuffled", &start, count);
	for (uint64_t i = 0; i < allocs; i++)
		check(!free_space_alloc(&f, random_below(&seed, 16 * count),
			      1 + i % 12, &offset, &length),
			"alloc");
	tell("free: alloc at a target", &start, allocs);
	printf("%-24s %8.1f bytes a free extent\n", "",
		(double)free_space_memory(&f) / (double)free_space_extents(&f));
	free_space_destroy(&f);
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	uint64_t lookups = argc > 2 ? strtoull(argv[2], NULL, 10) : 4000000;

	if (argc > 3 || count < 16 || !lookups) {
		fprintf(stderr, "usage: extents [COUNT [LOOKUPS]]\n");
		return 1;
	}
	printf("%llu extents\n", (unsigned long long)count);
	bench_map(count, lookups);
	bench_free(count, lookups / 4);
	return 0;
}
