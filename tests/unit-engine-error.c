/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-engine-error.c: the store fails; nothing that was answered is lost,
 * and no flush says it is durable before it is.
 */
#include <errno.h>
#include <stdlib.h>

#include "rig.h"

#define BLOCK 4096U

static int setup(void **state)
{
	struct rig *r = rig_new(4 * MIB);

	r->config.cache_size = 2 * MIB;
	r->config.error_timeout_ns = 60 * NSEC_PER_SEC;
	rig_open(r);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static void every_flush_fails_until_the_data_is_durable(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, 3 * BLOCK), 0);
	rig_break(r, STORE_WRITE, 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_flush(r), -EIO);
	assert_true(rig_durable(r, 1, 0, 3 * BLOCK));
	assert_true(rig_sees(r, 2, 0, 3 * BLOCK)); /* kept in memory */
	rig_mend(r);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, 3 * BLOCK));
	assert_int_equal(rig_flush(r), 0);
}

static void failed_write_is_tried_again_without_being_asked(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, BLOCK), 0);
	rig_break(r, STORE_WRITE, 3);
	assert_int_equal(rig_flush(r), -EIO);
	rig_record(r);
	rig_run(r, 50 * NSEC_PER_SEC);
	assert_true(rig_count(r, STORE_WRITE) >= 1);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, BLOCK));
}

static void retries_back_off(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, BLOCK), 0);
	rig_break(r, STORE_WRITE, 0);
	assert_int_equal(rig_flush(r), -EIO);
	rig_record(r);
	rig_run(r, 40 * NSEC_PER_SEC);
	assert_in_range(rig_count(r, STORE_WRITE), 1, 60);
}

/* Many systems lose the data here. */
static void writes_are_done_again_after_a_failed_flush(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, 8 * BLOCK), 0);
	rig_break(r, STORE_FLUSH, 1);
	rig_record(r);
	assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_bytes(r, STORE_WRITE), 8 * BLOCK);
	rig_record(r);
	assert_int_equal(rig_flush(r), 0);
	assert_int_equal(rig_bytes(r, STORE_WRITE), 8 * BLOCK);
	assert_true(rig_durable(r, 2, 0, 8 * BLOCK));
}

static void failed_range_leaves_the_rest_alone(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, MIB), 0);
	rig_break_range(r, STORE_WRITE, 64 * KIB, 4 * KIB);
	assert_int_equal(rig_flush(r), -EIO);
	rig_run(r, 20 * NSEC_PER_SEC);
	assert_true(rig_durable(r, 2, 512 * KIB, 512 * KIB));
	assert_true(rig_durable(r, 1, 64 * KIB, 4 * KIB));
	rig_mend(r);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, MIB));
}

static void newer_data_replaces_what_failed(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, 4 * BLOCK), 0);
	rig_break(r, STORE_WRITE, 0);
	assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_write(r, 3, BLOCK, BLOCK), 0);
	assert_int_equal(rig_flush(r), -EIO);
	rig_mend(r);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, BLOCK));
	assert_true(rig_durable(r, 3, BLOCK, BLOCK));
	assert_true(rig_durable(r, 2, 2 * BLOCK, 2 * BLOCK));
}

static void writes_to_a_range_long_refused_answer_eio(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, 64 * KIB), 0);
	rig_break_range(r, STORE_WRITE, 0, 64 * KIB);
	assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_write(r, 3, 0, BLOCK), 0); /* not yet */
	rig_run(r, 70 * NSEC_PER_SEC);
	assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_write(r, 4, 0, BLOCK), -EIO);
	assert_int_equal(rig_write(r, 5, 2 * MIB, BLOCK), 0); /* elsewhere */
	rig_mend(r);
	assert_int_equal(rig_flush(r), 0);
	assert_int_equal(rig_write(r, 6, BLOCK, BLOCK), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 3, 0, BLOCK));
	assert_true(rig_durable(r, 6, BLOCK, BLOCK));
	assert_true(rig_durable(r, 5, 2 * MIB, BLOCK));
}

static void failed_fill_fails_the_read_and_nothing_else(void **state)
{
	struct rig *r = *state;

	rig_break(r, STORE_READ, 0);
	assert_int_equal(rig_do(r, ENGINE_READ, 0, 0, BLOCK), -EIO);
	rig_mend(r);
	assert_true(rig_sees(r, 1, 0, BLOCK));
	rig_break(r, STORE_READ, 0);
	assert_int_equal(rig_write(r, 2, 2 * MIB + 100, 200), -EIO);
	rig_mend(r);
	assert_true(rig_sees(r, 1, 2 * MIB, BLOCK));
	assert_int_equal(rig_write(r, 3, 2 * MIB + 100, 200), 0);
	assert_true(rig_sees(r, 3, 2 * MIB + 100, 200));
	assert_int_equal(rig_flush(r), 0);
}

/* Only part of what a miss asks for can be read. */
static void bad_sector_fails_no_read_beside_it(void **state)
{
	struct rig *r = *state;

	rig_break_range(r, STORE_READ, 8 * BLOCK, 512);
	assert_true(rig_sees(r, 1, 0, 8 * BLOCK));
	assert_int_equal(rig_do(r, ENGINE_READ, 0, 8 * BLOCK, 512), -EIO);
	assert_true(rig_sees(r, 1, 9 * BLOCK, 3 * BLOCK));
	assert_int_equal(rig_write(r, 2, 8 * BLOCK, BLOCK), 0);
	assert_true(rig_sees(r, 2, 8 * BLOCK, BLOCK));
}

static void fua_fails_with_the_store_and_keeps_the_data(void **state)
{
	struct rig *r = *state;
	struct ask *a;

	rig_break(r, STORE_WRITE, 0);
	a = ask(r, ENGINE_WRITE, 2, ENGINE_FUA, 0, BLOCK);
	assert_int_equal(ask_end(r, a), -EIO);
	assert_int_equal(rig_flush(r), -EIO);
	rig_mend(r);
	a = ask(r, ENGINE_WRITE, 3, ENGINE_FUA, 0, BLOCK);
	assert_int_equal(ask_end(r, a), 0);
	assert_true(rig_durable(r, 3, 0, BLOCK));
	assert_int_equal(rig_flush(r), 0);
}

static void failed_zero_is_an_error_and_not_lost_later(void **state)
{
	struct rig *r = *state;

	rig_break(r, STORE_ZERO, 1);
	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, 0, 256 * KIB), -EIO);
	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, 0, 256 * KIB), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 0, 0, 256 * KIB));
}

static void flush_failure_after_a_zero_is_reported(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, 0, 256 * KIB), 0);
	rig_break(r, STORE_FLUSH, 1);
	assert_int_equal(rig_flush(r), -EIO);
	/* success only with the zeroes there */
	if (rig_flush(r) == 0)
		assert_true(rig_durable(r, 0, 0, 256 * KIB));
	else
		fail_msg("the next flush fails too");
}

static void writers_wait_for_a_store_that_hangs_and_lose_nothing(void **state)
{
	struct rig *r = *state;
	struct ask *w[16];

	rig_hang(r, STORE_WRITE);
	for (unsigned i = 0; i < 16; i++)
		w[i] = ask(r, ENGINE_WRITE, 2 + i, 0, i * 128 * KIB, 128 * KIB);
	rig_run(r, 30 * NSEC_PER_SEC);
	assert_true(stat_value(r->engine, "dirty_peak_bytes") <= MIB);
	rig_mend(r);
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(ask_end(r, w[i]), 0);
	assert_int_equal(rig_flush(r), 0);
	for (uint32_t i = 0; i < 16; i++)
		assert_true(rig_durable(r, 2 + i, i * 128 * KIB, 128 * KIB));
}

static void full_store_fails_flushes_and_works_again_with_space(void **state)
{
	struct rig *r = *state;
	struct store_fault_rule full = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_WRITE),
		.error = -ENOSPC,
	};

	assert_int_equal(rig_write(r, 2, 0, 64 * KIB), 0);
	store_fault_set(r->store, &full, 1);
	assert_int_equal(rig_flush(r), -EIO);
	assert_true(rig_sees(r, 2, 0, 64 * KIB));
	rig_mend(r);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, 64 * KIB));
}

static void shutdown_gives_up_after_its_timeout(void **state)
{
	struct rig *r = rig_new(MIB);
	uint64_t start;

	(void)state;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, 0, 64 * KIB), 0);
	rig_break(r, STORE_WRITE, 0);
	start = reactor_now(r->loop);
	assert_int_equal(rig_shutdown(r, 5 * NSEC_PER_SEC), -ETIMEDOUT);
	assert_in_range(reactor_now(r->loop) - start, 4 * NSEC_PER_SEC,
		7 * NSEC_PER_SEC);
	assert_true(rig_durable(r, 1, 0, 64 * KIB));
	rig_close(r);
}

static void shutdown_waits_for_a_store_that_gets_well(void **state)
{
	struct rig *r = rig_new(MIB);

	(void)state;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, 0, 64 * KIB), 0);
	rig_break(r, STORE_WRITE, 4);
	assert_int_equal(rig_shutdown(r, 100 * NSEC_PER_SEC), 0);
	assert_true(rig_durable(r, 2, 0, 64 * KIB));
	rig_close(r);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* --- a member of a stripe --------------------------------------------------- */

#define CHUNK (64 * KIB)

static int setup_stripe(void **state)
{
	struct rig *r = rig_new(4 * MIB);

	free(r->config.store);
	r->config.store =
		strdup("stripe:64K,[mem:2M],[fault:record=on,mem:2M]");
	r->config.cache_size = 2 * MIB;
	r->config.error_timeout_ns = 60 * NSEC_PER_SEC;
	rig_open(r);
	r->store = store_member(r->store, 1);
	*state = r;
	return 0;
}

static void a_failed_member_fails_writes_of_its_own_part(void **state)
{
	struct rig *r = *state;

	rig_break(r, STORE_WRITE, 0);
	assert_int_equal(rig_write(r, 2, 0, 8 * CHUNK), 0);
	assert_int_equal(rig_flush(r), -EIO);
	rig_run(r, 100 * NSEC_PER_SEC);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(
			rig_write(r, 3, i * CHUNK, CHUNK), i % 2 ? -EIO : 0);
	assert_int_equal(rig_write(r, 3, CHUNK, CHUNK / 2), -EIO);
	/* So it stays, however often it is tried. */
	rig_run(r, 100 * NSEC_PER_SEC);
	assert_int_equal(rig_write(r, 4, 2 * CHUNK, CHUNK), 0);
	assert_int_equal(rig_write(r, 4, 3 * CHUNK, CHUNK), -EIO);
	rig_mend(r);
	rig_run(r, 20 * NSEC_PER_SEC);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_sees(r, 4, 2 * CHUNK, CHUNK));
	assert_true(rig_sees(r, 2, 3 * CHUNK, CHUNK));
	assert_int_equal(rig_write(r, 5, 3 * CHUNK, CHUNK), 0);
}

static void a_failed_member_fails_reads_of_its_own_part_at_once(void **state)
{
	struct rig *r = *state;

	rig_break(r, STORE_READ, 0);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(rig_do(r, ENGINE_READ, 0, i * CHUNK, CHUNK),
			i % 2 ? -EIO : 0);
	assert_int_equal(rig_do(r, ENGINE_READ, 0, CHUNK / 2, CHUNK), -EIO);
	rig_mend(r);
	assert_int_equal(rig_do(r, ENGINE_READ, 0, 0, 4 * CHUNK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_flush_fails_until_the_data_is_durable),
		T(failed_write_is_tried_again_without_being_asked),
		T(retries_back_off),
		T(writes_are_done_again_after_a_failed_flush),
		T(failed_range_leaves_the_rest_alone),
		T(newer_data_replaces_what_failed),
		T(writes_to_a_range_long_refused_answer_eio),
		T(failed_fill_fails_the_read_and_nothing_else),
		T(bad_sector_fails_no_read_beside_it),
		T(fua_fails_with_the_store_and_keeps_the_data),
		T(failed_zero_is_an_error_and_not_lost_later),
		T(flush_failure_after_a_zero_is_reported),
		T(writers_wait_for_a_store_that_hangs_and_lose_nothing),
		T(full_store_fails_flushes_and_works_again_with_space),
		cmocka_unit_test(shutdown_gives_up_after_its_timeout),
		cmocka_unit_test(shutdown_waits_for_a_store_that_gets_well),
		cmocka_unit_test_setup_teardown(
			a_failed_member_fails_writes_of_its_own_part,
			setup_stripe, teardown),
		cmocka_unit_test_setup_teardown(
			a_failed_member_fails_reads_of_its_own_part_at_once,
			setup_stripe, teardown),
	};

	log_setup("unit-engine-error", LOG_LEVEL_ERROR, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
