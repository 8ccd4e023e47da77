/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-engine-zeroes.c: detect-zeroes, and what remembering zeroes costs.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig.h"
#include "served.h"

#define BLOCK 4096U

static int open_rig(void **state, enum engine_detect how)
{
	struct rig *r = rig_new(4 * MIB);

	r->config.cache_size = 2 * MIB;
	r->config.detect_zeroes = how;
	rig_open(r);
	rig_record(r);
	*state = r;
	return 0;
}

static int setup_off(void **state)
{
	return open_rig(state, ENGINE_DETECT_OFF);
}

static int setup_on(void **state)
{
	return open_rig(state, ENGINE_DETECT_ON);
}

static int setup_unmap(void **state)
{
	return open_rig(state, ENGINE_DETECT_UNMAP);
}

static int teardown(void **state)
{
	rig_free(*state);
	return 0;
}

/* What 2 writes, then zeroes, then what 2 writes; all plain. */
static int put_around(struct rig *r, struct engine_export *x, uint64_t offset,
	uint64_t head, uint64_t zeroes, uint64_t tail)
{
	uint64_t length = head + zeroes + tail;
	unsigned char *buf = calloc(1, length);

	assert_non_null(buf);
	data_fill(buf, 2, offset, head);
	data_fill(buf + head + zeroes, 2, offset + head + zeroes, tail);
	return ask_end(r, ask_with(r, x, ENGINE_WRITE, 0, offset, length, buf));
}

static void check_around(struct rig *r, uint64_t offset, uint64_t head,
	uint64_t zeroes, uint64_t tail)
{
	assert_true(rig_sees(r, 2, offset, head));
	assert_true(rig_sees(r, 0, offset + head, zeroes));
	assert_true(rig_sees(r, 2, offset + head + zeroes, tail));
	assert_true(rig_sees(r, 1, offset + head + zeroes + tail, BLOCK));
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, offset, head));
	assert_true(rig_durable(r, 0, offset + head, zeroes));
	assert_true(rig_durable(r, 2, offset + head + zeroes, tail));
	assert_true(rig_durable(r, 1, offset + head + zeroes + tail, BLOCK));
}

/* --- detect-zeroes ------------------------------------------------------- */

static void zeroes_are_data_when_it_is_off(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 0, 0, 256 * KIB), 0);
	assert_int_equal(stat_value(r->engine, "dirty_bytes"), 256 * KIB);
	assert_int_equal(rig_count(r, STORE_ZERO), 0);
}

static void check_zeroed(struct rig *r, unsigned flags)
{
	assert_int_equal(rig_write(r, 0, 0, 256 * KIB), 0);
	assert_int_equal(rig_write(r, 0, MIB, BLOCK), 0);
	assert_int_equal(stat_value(r->engine, "dirty_bytes"), 0);
	assert_int_equal(rig_count(r, STORE_ZERO), 2);
	assert_int_equal(rig_bytes(r, STORE_ZERO), 256 * KIB + BLOCK);
	assert_int_equal(r->log[0].flags, flags);
	assert_true(rig_sees(r, 0, 0, 256 * KIB));
	assert_true(rig_sees(r, 1, 256 * KIB, BLOCK));
	assert_int_equal(rig_flush(r), 0);
	assert_int_equal(rig_count(r, STORE_WRITE), 0);
	assert_true(rig_durable(r, 0, 0, 256 * KIB));
	assert_true(rig_durable(r, 0, MIB, BLOCK));
}

static void on_zeroes_and_keeps_the_space(void **state)
{
	check_zeroed(*state, STORE_NO_HOLE);
}

static void unmap_zeroes_and_may_free_the_space(void **state)
{
	check_zeroed(*state, 0);
}

static void long_run_amid_data_is_zeroed(void **state)
{
	struct rig *r = *state;

	assert_int_equal(
		put_around(r, r->export, 1000, 5000, 128 * KIB, 3000), 0);
	assert_int_equal(rig_count(r, STORE_ZERO), 1);
	assert_true(rig_bytes(r, STORE_ZERO) >= 120 * KIB);
	check_around(r, 1000, 5000, 128 * KIB, 3000);
	assert_true(rig_bytes(r, STORE_WRITE) <= 5 * BLOCK);
}

static void run_is_found_wherever_it_begins(void **state)
{
	struct rig *r = *state;

	for (uint64_t head = 1; head < 40; head += 3) {
		for (uint64_t run = 14; run < 60; run += head % 2 ? 2 : 7) {
			rig_record(r);
			assert_int_equal(
				put_around(r, r->export, 512, head * BLOCK,
					run * BLOCK + BLOCK - 512, 99),
				0);
			/* from 512 bytes on, run blocks and no more are whole */
			assert_int_equal(rig_bytes(r, STORE_ZERO),
				run >= 16 ? run * BLOCK : 0);
			assert_true(rig_sees(r, 2, 512, head * BLOCK));
			assert_true(rig_sees(r, 0, 512 + head * BLOCK,
				run * BLOCK + BLOCK - 512));
			assert_true(
				rig_sees(r, 2, (head + run + 1) * BLOCK, 99));
		}
	}
}

static void short_run_amid_data_is_data(void **state)
{
	struct rig *r = *state;

	assert_int_equal(
		put_around(r, r->export, 0, BLOCK, 32 * KIB, BLOCK), 0);
	assert_int_equal(rig_count(r, STORE_ZERO), 0);
	check_around(r, 0, BLOCK, 32 * KIB, BLOCK);
}

static void part_of_a_block_is_data(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 0, 512, 1024), 0);
	assert_int_equal(rig_count(r, STORE_ZERO), 0);
	assert_true(rig_sees(r, 1, 0, 512));
	assert_true(rig_sees(r, 0, 512, 1024));
	assert_true(rig_sees(r, 1, 1536, BLOCK));
}

static void direct_zeroes_are_all_or_nothing(void **state)
{
	struct rig *r = *state;
	struct engine_export *x =
		engine_export_new(r->engine, false, ENGINE_NONE);

	assert_int_equal(put_around(r, x, 0, 0, 128 * KIB, 0), 0);
	assert_int_equal(rig_count(r, STORE_ZERO), 1);
	assert_int_equal(rig_count(r, STORE_WRITE), 0);
	assert_int_equal(put_around(r, x, MIB, BLOCK, 128 * KIB, BLOCK), 0);
	assert_int_equal(rig_count(r, STORE_ZERO), 1);
	assert_int_equal(rig_count(r, STORE_WRITE), 1);
	check_around(r, MIB, BLOCK, 128 * KIB, BLOCK);
}

/* A plain write does not fail because the store does. */
static void zeroes_that_cannot_be_zeroed_are_written(void **state)
{
	struct rig *r = *state;
	struct engine_export *x =
		engine_export_new(r->engine, false, ENGINE_NONE);

	rig_break(r, STORE_ZERO, 0);
	assert_int_equal(put_around(r, r->export, 0, 100, 256 * KIB, 100), 0);
	assert_int_equal(put_around(r, x, MIB, 0, 64 * KIB, 0), 0);
	assert_int_equal(rig_count(r, STORE_ZERO), 2);
	check_around(r, 0, 100, 256 * KIB, 100);
	check_around(r, MIB, 0, 64 * KIB, 0);
}

static void fua_zeroes_are_durable_when_answered(void **state)
{
	struct rig *r = *state;
	struct ask *a = ask(r, ENGINE_WRITE, 0, ENGINE_FUA, 0, 64 * KIB);

	assert_int_equal(ask_end(r, a), 0);
	assert_int_equal(rig_count(r, STORE_WRITE), 0);
	assert_true(rig_durable(r, 0, 0, 64 * KIB));
}

static void zeroes_before_a_failed_flush_are_not_lost(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 0, 0, 256 * KIB), 0);
	rig_break(r, STORE_FLUSH, 1);
	assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_write(r, 3, 64 * KIB, BLOCK), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 0, 0, 64 * KIB));
	assert_true(rig_durable(r, 3, 64 * KIB, BLOCK));
	assert_true(rig_durable(r, 0, 68 * KIB, 188 * KIB));
}

/* --- what it costs ------------------------------------------------------- */

static void huge_zero_is_a_few_calls(void **state)
{
	struct served *s =
		served_new("fault:record=on,null:16G", "16M", ENGINE_WRITEBACK);
	uint64_t big = (UINT64_C(4) << 30) - 512, bytes;

	(void)state;
	alarm(20);
	store_fault_record(s->store, true);
	assert_int_equal(request(s, ENGINE_ZERO, 0, 512, big, NULL), 0);
	assert_int_equal(request(s, ENGINE_TRIM, 0, big, 2 * big, NULL), 0);
	assert_int_equal(logged(s, STORE_ZERO, &bytes), 4);
	assert_true(bytes >= big - 2 * BLOCK && bytes <= big);
	assert_int_equal(logged(s, STORE_TRIM, &bytes), 8);
	assert_true(bytes >= 2 * big - 2 * BLOCK);
	/* the ends that are no whole block */
	assert_true(stat_value(s->engine, "dirty_bytes") <= 4 * BLOCK);
	served_free(s);
	alarm(0);
}

/* Zero every other block, from the nth on: how many are answered well? */
static unsigned zero_blocks(struct served *s, unsigned nth, unsigned count)
{
	unsigned good = 0;

	for (uint64_t i = nth; i < nth + count; i++)
		good += !request(s, ENGINE_ZERO, 0, i * 2 * BLOCK, BLOCK, NULL);
	return good;
}

static void remembered_zeroes_are_flushed_when_they_are_many(void **state)
{
	struct served *s =
		served_new("fault:record=on,null:1G", "16M", ENGINE_WRITEBACK);
	uint64_t bytes;
	unsigned flushes;

	(void)state;
	assert_int_equal(zero_blocks(s, 0, 4000), 4000);
	store_fault_record(s->store, true);
	assert_int_equal(zero_blocks(s, 4000, 500), 500);
	flushes = logged(s, STORE_FLUSH, &bytes);
	assert_true(flushes >= 1 && flushes < 100);
	served_free(s);
}

static void no_more_is_zeroed_than_can_be_remembered(void **state)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_FLUSH),
	};
	struct served *s = served_new(
		"fault:record=off,mem:256M", "16M", ENGINE_WRITEBACK);
	unsigned good;

	(void)state;
	store_fault_set(s->store, &rule, 1);
	good = zero_blocks(s, 0, 10000);
	assert_true(good >= 4000 && good < 5000);
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), -EIO);
	store_fault_set(s->store, NULL, 0);
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	assert_int_equal(zero_blocks(s, 0, 4000), 4000);
	served_free(s);
}

/* Each direct write in a zeroed range leaves two ends of it. */
static void direct_writes_amid_zeroes_stay_cheap(void **state)
{
	struct served *s =
		served_new("fault:record=off,mem:256M", "16M", ENGINE_NONE);
	unsigned char buf[BLOCK];

	(void)state;
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(request(s, ENGINE_ZERO, 0, 0, 256 * MIB, NULL), 0);
	for (uint64_t i = 0; i < 12000; i++)
		assert_int_equal(
			request(s, ENGINE_WRITE, 0, i * 2 * BLOCK, BLOCK, buf),
			0);
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	served_free(s);
}

#define T(test, setup) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(zeroes_are_data_when_it_is_off, setup_off),
		T(on_zeroes_and_keeps_the_space, setup_on),
		T(unmap_zeroes_and_may_free_the_space, setup_unmap),
		T(long_run_amid_data_is_zeroed, setup_on),
		T(run_is_found_wherever_it_begins, setup_unmap),
		T(short_run_amid_data_is_data, setup_on),
		T(part_of_a_block_is_data, setup_on),
		T(direct_zeroes_are_all_or_nothing, setup_on),
		T(zeroes_that_cannot_be_zeroed_are_written, setup_unmap),
		T(fua_zeroes_are_durable_when_answered, setup_unmap),
		T(zeroes_before_a_failed_flush_are_not_lost, setup_on),
		cmocka_unit_test(huge_zero_is_a_few_calls),
		cmocka_unit_test(
			remembered_zeroes_are_flushed_when_they_are_many),
		cmocka_unit_test(no_more_is_zeroed_than_can_be_remembered),
		cmocka_unit_test(direct_writes_amid_zeroes_stay_cheap),
	};

	return cmocka_run_group_tests_name("zeroes", tests, NULL, NULL);
}
