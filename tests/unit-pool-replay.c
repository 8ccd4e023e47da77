/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool-replay.c: opening a pool: what is ordinary after a crash, what is
 * damage, and what is refused. The bytes are those of weir-pool(5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "pooled.h"

#define JOURNAL (128 * KIB) /* where it begins */
#define SECOND (64 * KIB)   /* superblock */

static uint64_t le(const unsigned char *at, unsigned bytes)
{
	uint64_t n = 0;

	while (bytes--)
		n = n << 8 | at[bytes];
	return n;
}

static void put_le(unsigned char *at, unsigned bytes, uint64_t n)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (unsigned char)(n >> 8 * i);
}

/* Make the checksum at byte 8 good again. */
static void seal(unsigned char *at, uint32_t length)
{
	put_le(at + 8, 4, 0);
	put_le(at + 8, 4, crc32c(0, at, length));
}

/* Three commits of a block each, and then the power is cut. */
static struct pooled *three_commits(void)
{
	struct pooled *b = pooled_new(8 * MIB, 8 * MIB);

	for (unsigned i = 0; i < 3; i++) {
		pooled_write(b, 1 + i, 16 * i * UNIT, UNIT);
		pooled_flush(b);
	}
	pooled_power_cut(b, 1);
	return b;
}

static void assert_refused(struct pooled *b, const char *why)
{
	struct error error = {""};

	assert_int_equal(pooled_try(b, &error), -EINVAL);
	b->pool = NULL;
	if (!strstr(error.text, why))
		fail_msg("\"%s\" does not say \"%s\"", error.text, why);
	if (!strstr(error.text, "store pool:["))
		fail_msg("\"%s\" does not say which store", error.text);
}

/* --- the bytes ----------------------------------------------------------- */

static void the_superblock_is_as_documented(void **state)
{
	struct pooled *b = pooled_new(8 * MIB, 64 * MIB);
	unsigned char *s = b->map;

	(void)state;
	assert_memory_equal(s, "weirpool", 8);
	assert_int_equal(le(s + 12, 4), 1);        /* version */
	assert_int_equal(le(s + 56, 8), 2);        /* generation */
	assert_int_equal(le(s + 64, 8), 64 * MIB); /* of the device */
	assert_int_equal(le(s + 72, 8), 8 * MIB);  /* of the pool */
	assert_int_equal(le(s + 80, 8), JOURNAL);
	assert_int_equal(le(s + 88, 8), 256 * KIB); /* the journal */
	assert_int_equal(le(s + 96, 8), 1);         /* first entry */
	assert_int_equal(le(s + 116, 4), UNIT);
	assert_int_equal(le(s + 120, 8), 0); /* no checkpoint */
	for (unsigned i = 0; i < 4096; i++)
		assert_int_equal(b->map[SECOND + i], 0);
	pooled_free(b);
}

static void a_journal_entry_is_as_documented(void **state)
{
	struct pooled *b = three_commits();
	unsigned char *e = b->map + JOURNAL + 4096;
	uint64_t data = le(e + 64 + 8, 8);

	(void)state;
	assert_memory_equal(e, "weirjrnl", 8);
	assert_int_equal(le(e + 12, 4), 4096);
	assert_int_equal(le(e + 16, 8), le(b->map + 40, 8));  /* the pool */
	assert_int_equal(le(e + 24, 8), 2);                   /* its number */
	assert_int_equal(le(e + 32, 8), 1);                   /* durable */
	assert_int_equal(le(e + 40, 4), le(e - 4096 + 8, 4)); /* chain */
	assert_int_equal(le(e + 44, 4), 1);                   /* records */
	assert_int_equal(le(e + 64, 8), 16 * UNIT);           /* logical */
	assert_true(tag_is(b->map + data, 2, 16 * UNIT, UNIT));
	assert_int_equal(le(e + 80, 4), 1); /* units */
	assert_int_equal(e[86], 1);         /* map */
	assert_int_equal(e[87], 0);         /* written */
	pooled_free(b);
}

/* --- crashes ------------------------------------------------------------- */

static void a_torn_end_of_the_journal_is_ordinary(void **state)
{
	(void)state;
	for (unsigned torn = 0; torn < 4096; torn += 512) {
		struct pooled *b = three_commits();

		/* A sector of the last that did not get there. */
		memset(b->map + JOURNAL + 8192 + torn, 0x5a, 512);
		pooled_open(b);
		assert_true(pooled_sees(b, 1, 0, UNIT));
		assert_true(pooled_sees(b, 2, 16 * UNIT, UNIT));
		assert_true(pooled_sees(b, 0, 32 * UNIT, UNIT));
		/* The next goes where it was. */
		pooled_write(b, 4, 64 * UNIT, UNIT);
		pooled_flush(b);
		pooled_power_cut(b, 2);
		pooled_open(b);
		assert_true(pooled_sees(b, 4, 64 * UNIT, UNIT));
		pooled_free(b);
	}
}

static void a_bad_entry_before_a_good_one_is_damage(void **state)
{
	struct pooled *b = three_commits();

	(void)state;
	b->map[JOURNAL + 4096 + 100] ^= 1;
	assert_refused(b, "the journal entry 2, at 135168, does not check");
	b->flags = STORE_OPEN_READONLY;
	assert_refused(b, "damaged");
	b->flags = 0;
	/* What the tests break on purpose goes past it. */
	b->sabotage = POOL_SABOTAGE_BAD_RECORD;
	pooled_open(b);
	assert_true(pooled_sees(b, 1, 0, UNIT));
	assert_true(pooled_sees(b, 0, 16 * UNIT, UNIT));
	assert_true(pooled_sees(b, 3, 32 * UNIT, UNIT));
	pooled_free(b);
}

/*
 * Two entries were on their way in a crash, and only the second got there. It
 * must not come to life when another has taken the place of the first.
 */
static void what_a_crash_left_behind_stays_dead(void **state)
{
	struct pooled *b = three_commits();
	unsigned char *last = b->map + JOURNAL + 8192;

	(void)state;
	put_le(last + 32, 8, 1); /* written before entry 2 was durable */
	seal(last, 4096);
	b->map[JOURNAL + 4096 + 100] ^= 1;
	pooled_open(b);
	assert_true(pooled_sees(b, 1, 0, UNIT));
	assert_true(pooled_sees(b, 0, 16 * UNIT, UNIT));
	assert_true(pooled_sees(b, 0, 32 * UNIT, UNIT));
	pooled_write(b, 4, 64 * UNIT, UNIT);
	pooled_flush(b); /* as entry 2 */
	pooled_power_cut(b, 2);
	assert_int_equal(le(last + 24, 8), 3); /* it is still there */
	pooled_open(b);
	assert_true(pooled_sees(b, 4, 64 * UNIT, UNIT));
	assert_true(pooled_sees(b, 0, 32 * UNIT, UNIT));
	pooled_free(b);
}

static void a_torn_superblock_leaves_the_other(void **state)
{
	struct pooled *b = three_commits();

	(void)state;
	pooled_open(b);
	pooled_close(b); /* a checkpoint: generation 3, the second */
	assert_int_equal(le(b->map + SECOND + 56, 8), 3);
	memset(b->map + SECOND + 512, 0x5a, 512);
	pooled_open(b);
	assert_true(pooled_sees(b, 3, 32 * UNIT, UNIT));
	pooled_free(b);
}

static void records_of_every_kind_are_replayed_in_order(void **state)
{
	struct pooled *b = pooled_new(8 * MIB, 8 * MIB);

	(void)state;
	pooled_write(b, 1, 0, 64 * UNIT);
	pooled_trim(b, 8 * UNIT, 8 * UNIT);
	pooled_flush(b);
	assert_int_equal(pooled_do(b, STORE_ZERO, 0, 12 * UNIT, 16 * UNIT,
				 STORE_NO_HOLE),
		0);
	pooled_write(b, 2, 14 * UNIT, 4 * UNIT);
	pooled_trim(b, 40 * UNIT, 4 * UNIT);
	pooled_write(b, 3, 42 * UNIT, UNIT);
	pooled_flush(b);
	pooled_power_cut(b, 1);
	pooled_open(b);
	assert_true(pooled_sees(b, 1, 0, 8 * UNIT));
	assert_true(pooled_sees(b, 0, 8 * UNIT, 6 * UNIT));
	assert_true(pooled_sees(b, 2, 14 * UNIT, 4 * UNIT));
	assert_true(pooled_sees(b, 0, 18 * UNIT, 10 * UNIT));
	assert_true(pooled_sees(b, 1, 28 * UNIT, 12 * UNIT));
	assert_true(pooled_sees(b, 0, 40 * UNIT, 2 * UNIT));
	assert_true(pooled_sees(b, 3, 42 * UNIT, UNIT));
	assert_true(pooled_sees(b, 0, 43 * UNIT, UNIT));
	assert_true(pooled_sees(b, 1, 44 * UNIT, 20 * UNIT));
	assert_int_equal(pooled_counts(b).mapped_bytes, 57 * UNIT);
	pooled_free(b);
}

/* --- refused ------------------------------------------------------------- */

static void what_is_no_pool_is_refused(void **state)
{
	struct pooled *b = pooled_blank(8 * MIB);

	(void)state;
	assert_refused(b, "not a pool");
	pooled_free(b);
}

static void another_version_is_refused(void **state)
{
	struct pooled *b = three_commits();

	(void)state;
	put_le(b->map + 12, 4, 2);
	seal(b->map, 4096);
	assert_refused(b, "version 2");
	pooled_free(b);
}

static void features_that_must_be_known_are(void **state)
{
	struct pooled *b = three_commits();

	(void)state;
	put_le(b->map + 32, 8, UINT64_C(1) << 40); /* compatible */
	seal(b->map, 4096);
	pooled_open(b);
	pooled_power_cut(b, 1);
	put_le(b->map + 24, 8, 4); /* compatible for readers */
	seal(b->map, 4096);
	assert_refused(b, "0x4");
	b->flags = STORE_OPEN_READONLY;
	pooled_open(b);
	pooled_close(b);
	put_le(b->map + 16, 8, 8); /* incompatible */
	seal(b->map, 4096);
	assert_refused(b, "0x8");
	pooled_free(b);
}

static void a_store_that_shrank_is_refused(void **state)
{
	struct pooled *b = three_commits();

	(void)state;
	assert_int_equal(ftruncate(b->fd, 4 * MIB), 0);
	assert_refused(b, "made for 8M");
	pooled_free(b);
}

static void a_broken_checkpoint_is_refused(void **state)
{
	struct pooled *b = three_commits();
	uint64_t chunk;

	(void)state;
	pooled_open(b);
	pooled_close(b);
	chunk = le(b->map + SECOND + 120, 8);
	assert_true(chunk != 0);
	b->map[chunk + 64] ^= 1;
	assert_refused(b, "chunk 0 of the checkpoint");
	pooled_free(b);
}

static void a_checkpoint_out_of_order_is_refused(void **state)
{
	struct pooled *b = three_commits();
	unsigned char *chunk, record[24];

	(void)state;
	pooled_open(b);
	pooled_close(b);
	chunk = b->map + le(b->map + SECOND + 120, 8);
	memcpy(record, chunk + 64, 24);
	memmove(chunk + 64, chunk + 88, 24);
	memcpy(chunk + 88, record, 24);
	seal(chunk, 4096);
	assert_refused(b, "record 1 of what lies at");
	pooled_free(b);
}

static void space_used_twice_is_refused(void **state)
{
	struct pooled *b = three_commits();
	unsigned char *last = b->map + JOURNAL + 8192;

	(void)state;
	/* The last maps where the first does. */
	memcpy(last + 64 + 8, b->map + JOURNAL + 64 + 8, 8);
	seal(last, 4096);
	assert_refused(b, "used twice");
	pooled_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_superblock_is_as_documented),
		cmocka_unit_test(a_journal_entry_is_as_documented),
		cmocka_unit_test(a_torn_end_of_the_journal_is_ordinary),
		cmocka_unit_test(a_bad_entry_before_a_good_one_is_damage),
		cmocka_unit_test(what_a_crash_left_behind_stays_dead),
		cmocka_unit_test(a_torn_superblock_leaves_the_other),
		cmocka_unit_test(records_of_every_kind_are_replayed_in_order),
		cmocka_unit_test(what_is_no_pool_is_refused),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(features_that_must_be_known_are),
		cmocka_unit_test(a_store_that_shrank_is_refused),
		cmocka_unit_test(a_broken_checkpoint_is_refused),
		cmocka_unit_test(a_checkpoint_out_of_order_is_refused),
		cmocka_unit_test(space_used_twice_is_refused),
	};

	return cmocka_run_group_tests_name("pool-replay", tests, NULL, NULL);
}
