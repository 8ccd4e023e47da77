/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool-torn.c: pool_check() of pools in random use, which are clean, and
 * torn at random, which it survives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "checked.h"

/* What the pool would still do on the loop goes with the loop. */
static void cut(struct pooled *b, uint64_t seed)
{
	pooled_power_cut(b, seed);
	reactor_free(b->loop);
	b->loop = reactor_sim_new(seed);
}

static void random_use_stays_clean(void **state)
{
	struct pooled *b = pooled_new(SIZE, DEVICE);
	uint64_t seed = 4;

	(void)state;
	for (unsigned round = 0; round < 40; round++) {
		struct findings f;

		for (unsigned i = 0; i < 20; i++) {
			uint64_t at = random_below(&seed, 200) * UNIT;
			uint64_t n = (1 + random_below(&seed, 8)) * UNIT;

			if (random_below(&seed, 3))
				pooled_write(b, 5, at, n);
			else
				pooled_trim(b, at, n);
		}
		if (round % 4)
			pooled_flush(b);
		if (round % 3)
			pooled_close(b);
		else
			cut(b, seed);
		assert_clean(b, &f);
		pooled_open(b);
	}
	pooled_free(b);
}

/* Where the pool has its books, and the places where it has none. */
struct places {
	uint64_t at[5];
};

static struct places find_places(struct pooled *b)
{
	return (struct places){{0, POOL_SUPER_SPACING,
		offset_of(b, chunk_of(b)), offset_of(b, entry_of(b, 0)),
		offset_of(b, entry_of(b, 1))}};
}

static uint64_t random_place(const struct places *p, uint64_t *seed)
{
	uint64_t i = random_below(seed, 6);

	return i < 5 ? p->at[i] : random_below(seed, SIZE / UNIT) * UNIT;
}

static void seal_all(struct pooled *b)
{
	seal_super(super_at(b, 0));
	seal_super(super_at(b, POOL_SUPER_SPACING));
	for (uint64_t at = POOL_JOURNAL_OFFSET; at < SIZE; at += UNIT) {
		struct disk_entry *e = (void *)(b->map + at);
		uint32_t length = get32(e->length);
		bool entry = !memcmp(e->magic, POOL_MAGIC_ENTRY, 8);

		if ((entry || !memcmp(e->magic, POOL_MAGIC_CHUNK, 8)) &&
			length >= UNIT && length <= SIZE - at)
			format_seal(e, length,
				entry ? POOL_MAGIC_ENTRY : POOL_MAGIC_CHUNK);
	}
}

static void tear(struct pooled *b, const struct places *p, uint64_t *seed)
{
	uint64_t at = random_place(p, seed), from = random_place(p, seed);
	uint64_t n = 1 + random_below(seed, 200);

	switch (random_below(seed, 5)) {
	case 0:
		memset(b->map + at, 0, 512 * (1 + random_below(seed, 8)));
		break;
	case 1:
		memcpy(b->map + at, b->map + from, UNIT);
		break;
	case 2: /* among the numbers, where most of them are */
		for (; n; n /= 2)
			b->map[at + random_below(seed, 160)] =
				(unsigned char)random_next(seed);
		break;
	case 3:
		b->map[at + random_below(seed, 160)] ^= 1U
			<< random_below(seed, 8);
		break;
	default:
		assert_int_equal(
			ftruncate(b->fd, (off_t)random_below(seed, SIZE)), 0);
		assert_int_equal(ftruncate(b->fd, SIZE), 0);
	}
}

/*
 * Whatever a pool looks like, looking at it ends; and one that is called clean
 * can be opened, and holds what was said.
 */
static void torn_pools_never_crash_it_and_clean_ones_open(void **state)
{
	struct pooled *b = *state;
	const struct places places = find_places(b);
	unsigned char *good = malloc(SIZE);
	unsigned clean = 0, bad = 0;

	assert_non_null(good);
	memcpy(good, b->map, SIZE);
	b->flags = STORE_OPEN_READONLY;
	for (uint64_t seed = 1; seed <= 1200; seed++) {
		uint64_t random = seed;
		struct findings f;
		struct error error = {""};

		memcpy(b->map, good, SIZE);
		for (uint64_t n = 1 + random_below(&random, 3); n; n--)
			tear(b, &places, &random);
		if (random_below(&random, 2))
			seal_all(b);
		if (check(b, &f) || f.count) {
			bad++;
			continue;
		}
		clean++;
		if (pooled_try(b, &error))
			fail_msg("seed %" PRIu64 " is clean, and: %s", seed,
				error.text);
		assert_int_equal(
			pooled_counts(b).mapped_bytes, f.summary.mapped_bytes);
		assert_int_equal(pooled_counts(b).extents, f.summary.extents);
		pooled_drop(b);
	}
	assert_true(clean > 60 && bad > 300);
	b->flags = 0;
	memcpy(b->map, good, SIZE);
	free(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_use_stays_clean),
		cmocka_unit_test_setup_teardown(
			torn_pools_never_crash_it_and_clean_ones_open, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
