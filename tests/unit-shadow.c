/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-shadow.c: the model's judge itself: what it accepts, and what not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model-shadow.h"

#define BLOCK 4096U
#define SIZE (4 * BLOCK - 3 * SECTOR)

static int setup(void **state)
{
	*state = shadow_new(SIZE, BLOCK, 1);
	return 0;
}

static int teardown(void **state)
{
	shadow_free(*state);
	return 0;
}

static void begin(struct shadow *s, struct change *c, uint32_t id,
	uint64_t offset, uint64_t length)
{
	*c = (struct change){.id = id, .offset = offset, .length = length};
	shadow_begin(s, c);
}

static void write_done(
	struct shadow *s, uint32_t id, uint64_t offset, uint64_t length)
{
	struct change c;

	begin(s, &c, id, offset, length);
	shadow_end(s, &c, CHANGE_DONE);
}

static bool may_read(struct shadow *s, uint64_t begun, uint64_t offset,
	uint64_t length, const unsigned char *buf)
{
	char why[400];

	return shadow_read(s, begun, offset, length, buf, why, sizeof(why));
}

/* Would a read of [offset, +length) since `begun` that saw `id` be right? */
static bool saw(struct shadow *s, uint64_t begun, uint32_t id, uint64_t offset,
	uint64_t length)
{
	unsigned char *buf = malloc(length);
	bool good;

	data_fill(buf, id, offset, length);
	good = may_read(s, begun, offset, length, buf);
	free(buf);
	return good;
}

static bool sees(
	struct shadow *s, uint32_t id, uint64_t offset, uint64_t length)
{
	return saw(s, shadow_tick(s), id, offset, length);
}

static bool durable(struct shadow *s, const unsigned char *image)
{
	char why[400];

	return shadow_durable(s, image, why, sizeof(why));
}

static bool exact(struct shadow *s, const unsigned char *image)
{
	char why[400];

	return shadow_exact(s, image, why, sizeof(why));
}

static void data_tells_its_writer_and_place(void **state)
{
	unsigned char buf[64];
	uint64_t offset;
	uint32_t id;

	(void)state;
	data_fill(buf, 77, 1003, sizeof(buf));
	assert_true(data_is(buf, 77, 1003, sizeof(buf)));
	assert_false(data_is(buf, 77, 1004, sizeof(buf)));
	assert_false(data_is(buf, 78, 1003, sizeof(buf)));
	assert_true(data_decode(buf + 5, &id, &offset));
	assert_int_equal(id, 77);
	assert_int_equal(offset, 1008);
	buf[7] ^= 1;
	assert_false(data_is(buf, 77, 1003, sizeof(buf)));
	data_fill(buf, 0, 1003, sizeof(buf));
	assert_true(data_is(buf, 0, 0, sizeof(buf)));
}

static void answered_write_is_seen_by_later_reads(void **state)
{
	struct shadow *s = *state;
	uint64_t before = shadow_tick(s);

	write_done(s, 2, 100, 9000);
	assert_true(sees(s, 2, 100, 9000));
	assert_true(sees(s, 1, 0, 100));
	assert_true(sees(s, 1, 9100, SIZE - 9100));
	assert_false(sees(s, 1, 0, 101));
	assert_false(sees(s, 2, 99, 2));
	assert_true(saw(s, before, 1, 0, SIZE)); /* it began before */
}

static void write_in_flight_may_be_seen_or_not_per_block(void **state)
{
	struct shadow *s = *state;
	unsigned char buf[2 * BLOCK];
	struct change c;
	uint64_t now;

	begin(s, &c, 2, 0, 2 * BLOCK);
	now = shadow_tick(s);
	data_fill(buf, 2, 0, BLOCK);
	data_fill(buf + BLOCK, 1, BLOCK, BLOCK);
	assert_true(may_read(s, now, 0, sizeof(buf), buf));
	/* seen once, it cannot go away again */
	assert_false(sees(s, 1, 0, BLOCK));
	assert_true(sees(s, 2, BLOCK, BLOCK));
	shadow_end(s, &c, CHANGE_DONE);
}

static void overlapping_writes_never_mix_in_a_block(void **state)
{
	struct shadow *s = *state;
	unsigned char buf[BLOCK];
	struct change a, b;

	begin(s, &a, 2, 0, BLOCK);
	begin(s, &b, 3, 0, BLOCK);
	data_fill(buf, 2, 0, BLOCK);
	data_fill(buf + SECTOR, 3, SECTOR, SECTOR);
	assert_false(may_read(s, shadow_tick(s), 0, BLOCK, buf));
	shadow_end(s, &a, CHANGE_DONE);
	shadow_end(s, &b, CHANGE_DONE);
	assert_false(may_read(s, shadow_tick(s), 0, BLOCK, buf));
	assert_false(sees(s, 1, 0, BLOCK));
	assert_true(sees(s, 2, 0, 8));
	assert_true(sees(s, 2, 0, BLOCK));
	assert_false(sees(s, 3, 0, BLOCK));
}

static void unaligned_overlap_ends_in_either_order(void **state)
{
	struct shadow *s = *state;
	struct change a, b;

	begin(s, &a, 2, 0, 3 * BLOCK);
	begin(s, &b, 3, 100, 3 * BLOCK);
	shadow_end(s, &b, CHANGE_DONE);
	shadow_end(s, &a, CHANGE_DONE);
	assert_true(sees(s, 2, 0, 100));
	assert_true(sees(s, 3, 100, BLOCK - 100));
	assert_true(sees(s, 2, BLOCK, BLOCK));
	assert_true(sees(s, 3, 3 * BLOCK, 100));
	assert_false(sees(s, 2, 100, 8));
}

static void refused_and_failed_writes(void **state)
{
	struct shadow *s = *state;
	struct change c;

	begin(s, &c, 2, 0, BLOCK);
	shadow_end(s, &c, CHANGE_NOT);
	assert_true(sees(s, 1, 0, BLOCK));
	assert_false(sees(s, 2, 0, BLOCK));
	begin(s, &c, 3, 0, BLOCK);
	shadow_end(s, &c, CHANGE_MAYBE);
	assert_true(sees(s, 3, 0, BLOCK));
	assert_false(sees(s, 1, 0, BLOCK));
}

static void mixed_write_is_old_or_new_by_sector(void **state)
{
	struct shadow *s = *state;
	unsigned char buf[BLOCK];
	struct change c;

	begin(s, &c, 2, 0, BLOCK);
	shadow_end(s, &c, CHANGE_MIXED);
	data_fill(buf, 1, 0, BLOCK);
	data_fill(buf + SECTOR, 2, SECTOR, SECTOR);
	assert_true(may_read(s, shadow_tick(s), 0, BLOCK, buf));
	data_fill(buf + SECTOR, 1, SECTOR, 8);
	assert_false(may_read(s, shadow_tick(s), 0, BLOCK, buf));
}

static void flush_makes_what_was_answered_durable(void **state)
{
	struct shadow *s = *state;
	unsigned char image[SIZE];
	uint64_t flush;

	data_fill(image, 1, 0, SIZE);
	write_done(s, 2, 0, BLOCK);
	flush = shadow_tick(s);
	write_done(s, 3, BLOCK, BLOCK);
	assert_true(durable(s, image));
	shadow_flushed(s, flush, flush);
	assert_false(durable(s, image));
	data_fill(image, 2, 0, BLOCK);
	assert_true(durable(s, image));
	/* the later write may be there, by whole sectors */
	data_fill(image + BLOCK, 3, BLOCK, SECTOR);
	assert_true(durable(s, image));
	data_fill(image + BLOCK, 1, BLOCK, 8);
	assert_false(durable(s, image));
	data_fill(image + BLOCK, 9, BLOCK, SECTOR); /* foreign */
	assert_false(durable(s, image));
}

static void change_seen_before_its_answer_need_not_be_durable(void **state)
{
	struct shadow *s = *state;
	unsigned char image[SIZE];
	struct change c;
	uint64_t flush;

	data_fill(image, 1, 0, SIZE);
	begin(s, &c, 2, 0, BLOCK);
	assert_true(sees(s, 2, 0, BLOCK));
	assert_false(sees(s, 1, 0, BLOCK));
	flush = shadow_tick(s);
	shadow_flushed(s, flush, flush);
	assert_true(durable(s, image));
	shadow_end(s, &c, CHANGE_DONE);
	assert_true(durable(s, image));
	flush = shadow_tick(s);
	shadow_flushed(s, flush, flush);
	assert_false(durable(s, image));
}

static void fua_covers_its_own_sectors(void **state)
{
	struct shadow *s = *state;
	unsigned char image[SIZE];
	struct change c;

	data_fill(image, 1, 0, SIZE);
	write_done(s, 2, 0, BLOCK);
	begin(s, &c, 3, SECTOR, SECTOR);
	shadow_end(s, &c, CHANGE_DURABLE);
	assert_false(durable(s, image));
	data_fill(image + SECTOR, 2, SECTOR, SECTOR);
	assert_false(durable(s, image));
	data_fill(image + SECTOR, 3, SECTOR, SECTOR);
	assert_true(durable(s, image));
}

static void fua_may_be_overtaken_before_its_answer(void **state)
{
	struct shadow *s = *state;
	unsigned char image[SIZE];
	struct change fua;

	data_fill(image, 1, 0, SIZE);
	begin(s, &fua, 2, 0, BLOCK);
	write_done(s, 3, 0, BLOCK);
	shadow_end(s, &fua, CHANGE_DURABLE);
	assert_false(durable(s, image));
	data_fill(image, 3, 0, BLOCK);
	assert_true(durable(s, image));
	data_fill(image, 2, 0, BLOCK);
	assert_true(durable(s, image));
}

static void power_cut_leaves_sectors_that_then_stay(void **state)
{
	struct shadow *s = *state;
	unsigned char image[SIZE];

	data_fill(image, 1, 0, SIZE);
	write_done(s, 2, 0, 2 * BLOCK);
	data_fill(image + SECTOR, 2, SECTOR, SECTOR);
	assert_true(durable(s, image));
	assert_false(exact(s, image));
	shadow_reset(s, image);
	assert_true(exact(s, image));
	assert_true(sees(s, 1, 0, SECTOR));
	assert_true(sees(s, 2, SECTOR, SECTOR));
	assert_false(sees(s, 2, 0, BLOCK));
}

static void zeroes_are_known(void **state)
{
	struct shadow *s = *state;
	struct change c;
	uint64_t now;

	write_done(s, 0, BLOCK, BLOCK);
	now = shadow_tick(s);
	assert_true(shadow_may_be_zero(s, now, BLOCK, BLOCK));
	assert_false(shadow_may_be_zero(s, now, BLOCK - 1, BLOCK));
	begin(s, &c, 0, 0, SIZE);
	assert_true(shadow_may_be_zero(s, now, 0, SIZE));
	shadow_end(s, &c, CHANGE_NOT);
}

static void trimmed_data_may_come_back_from_the_store(void **state)
{
	struct shadow *s = *state;
	struct change c = {.offset = 0, .length = BLOCK, .trim = true};
	unsigned char image[SIZE];
	uint64_t now;

	data_fill(image, 1, 0, SIZE);
	shadow_begin(s, &c);
	shadow_end(s, &c, CHANGE_DONE);
	assert_true(sees(s, 0, 0, BLOCK));
	assert_false(sees(s, 1, 0, BLOCK));
	now = shadow_tick(s);
	shadow_flushed(s, now, now);
	assert_true(durable(s, image));
	write_done(s, 2, 0, BLOCK);
	assert_true(durable(s, image));
	now = shadow_tick(s);
	shadow_flushed(s, now, now);
	assert_false(durable(s, image));
}

static void a_block_takes_only_so_many_changes(void **state)
{
	struct shadow *s = *state;
	struct change c[SHADOW_OVERLAP];

	for (uint32_t i = 0; i < SHADOW_OVERLAP; i++) {
		assert_false(shadow_crowded(s, 0, 1));
		begin(s, &c[i], 2 + i, 0, BLOCK);
	}
	assert_true(shadow_crowded(s, 0, 1));
	assert_false(shadow_crowded(s, BLOCK, 1));
	for (uint32_t i = 0; i < SHADOW_OVERLAP; i++)
		shadow_end(s, &c[i], CHANGE_DONE);
	assert_true(sees(s, 4, 0, BLOCK));
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(data_tells_its_writer_and_place),
		T(answered_write_is_seen_by_later_reads),
		T(write_in_flight_may_be_seen_or_not_per_block),
		T(overlapping_writes_never_mix_in_a_block),
		T(unaligned_overlap_ends_in_either_order),
		T(refused_and_failed_writes),
		T(mixed_write_is_old_or_new_by_sector),
		T(flush_makes_what_was_answered_durable),
		T(change_seen_before_its_answer_need_not_be_durable),
		T(fua_covers_its_own_sectors),
		T(fua_may_be_overtaken_before_its_answer),
		T(power_cut_leaves_sectors_that_then_stay),
		T(zeroes_are_known),
		T(trimmed_data_may_come_back_from_the_store),
		T(a_block_takes_only_so_many_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
