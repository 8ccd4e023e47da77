/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-engine-flush.c: what a flush once left out, or a failed one once lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

#define BLOCK 4096U

static int setup(void **state)
{
	struct rig *r = rig_new(4 * MIB);

	r->config.cache_size = 2 * MIB;
	rig_open(r);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	rig_free(*state);
	return 0;
}

static void flush_comes_back_for_a_block_it_passed_over(void **state)
{
	struct rig *r = rig_new(MIB);
	struct ask *flush;

	(void)state;
	r->config.dirty_background = 1;
	rig_open(r);
	rig_hang(r, STORE_WRITE);
	assert_int_equal(rig_write(r, 2, 0, BLOCK), 0);
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(store_fault_hanging(r->store), 1);
	/* under way and dirty again; and another, later in the same region */
	assert_int_equal(rig_write(r, 3, 0, BLOCK), 0);
	assert_int_equal(rig_write(r, 4, 8 * BLOCK, BLOCK), 0);
	flush = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_run(r, NSEC_PER_SEC);
	rig_mend(r);
	assert_int_equal(ask_end(r, flush), 0);
	assert_true(rig_durable(r, 3, 0, BLOCK));
	assert_true(rig_durable(r, 4, 8 * BLOCK, BLOCK));
	rig_free(r);
}

static void fua_of_a_block_under_way_is_durable(void **state)
{
	struct rig *r = *state;
	struct ask *flush, *fua;

	assert_int_equal(rig_write(r, 2, 0, 2 * BLOCK), 0);
	rig_hang(r, STORE_WRITE);
	flush = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_run(r, NSEC_PER_SEC);
	fua = ask(r, ENGINE_WRITE, 3, ENGINE_FUA, 0, BLOCK);
	rig_run(r, NSEC_PER_SEC);
	assert_false(fua->answered);
	rig_mend(r);
	assert_int_equal(ask_end(r, fua), 0);
	assert_true(rig_durable(r, 3, 0, BLOCK));
	assert_int_equal(ask_end(r, flush), 0);
}

static void zero_done_again_spares_what_was_written_since(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, 0, 256 * KIB), 0);
	rig_break(r, STORE_FLUSH, 1);
	assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_write(r, 2, 64 * KIB, 64 * KIB), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 0, 0, 64 * KIB));
	assert_true(rig_durable(r, 2, 64 * KIB, 64 * KIB));
	assert_true(rig_durable(r, 0, 128 * KIB, 128 * KIB));
}

/* Make flushes take a second and fail. */
static void break_flushes_slowly(struct rig *r)
{
	struct store_fault_rule rules[] = {
		{.action = STORE_FAULT_DELAY,
			.ops = STORE_FAULT_OP(STORE_FLUSH),
			.delay_ns = NSEC_PER_SEC},
		{.action = STORE_FAULT_ERROR,
			.ops = STORE_FAULT_OP(STORE_FLUSH)},
	};

	store_fault_set(r->store, rules, 2);
}

static void zero_beside_a_failing_flush_is_not_lost(void **state)
{
	struct rig *r = *state;
	struct ask *flush;

	assert_int_equal(rig_write(r, 2, MIB, BLOCK), 0);
	break_flushes_slowly(r);
	flush = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_run(r, NSEC_PER_SEC / 2);
	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, 0, 256 * KIB), 0);
	assert_int_equal(ask_end(r, flush), -EIO);
	rig_mend(r);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 0, 0, 256 * KIB));
	assert_true(rig_durable(r, 2, MIB, BLOCK));
}

static void write_beside_a_failing_flush_is_not_lost(void **state)
{
	struct rig *r = *state;
	struct engine_export *x =
		engine_export_new(r->engine, false, ENGINE_WRITETHROUGH);
	struct ask *flush;

	assert_int_equal(rig_write(r, 2, MIB, BLOCK), 0);
	break_flushes_slowly(r);
	flush = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_run(r, NSEC_PER_SEC / 2);
	assert_int_equal(
		ask_end(r, ask_of(r, x, ENGINE_WRITE, 3, 0, 0, 256 * KIB)), 0);
	assert_int_equal(ask_end(r, flush), -EIO);
	rig_mend(r);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 3, 0, 256 * KIB));
}

/* Flushes say that what was not flushed is forgotten, as a remote store does
 * that was connected again: the next `count`. */
static void forget(struct rig *r, uint64_t count)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_FLUSH),
		.count = count,
		.error = -ESTALE,
	};

	store_fault_set(r->store, &rule, 1);
}

static void what_the_store_forgot_is_written_again(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, 256 * KIB), 0);
	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, MIB, 64 * KIB), 0);
	forget(r, 2);
	rig_record(r);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, 256 * KIB));
	assert_true(rig_durable(r, 0, MIB, 64 * KIB));
	assert_int_equal(rig_bytes(r, STORE_WRITE), 3 * 256 * KIB);
	assert_int_equal(rig_count(r, STORE_FLUSH), 3);
	assert_int_equal(stat_value(r->engine, "unstable_bytes"), 0);
}

static void fua_writes_again_what_the_store_forgot(void **state)
{
	struct rig *r = *state;

	/* unstable: on the store, and not flushed */
	assert_int_equal(ask_end(r,
				 ask_of(r,
					 engine_export_new(r->engine, false,
						 ENGINE_WRITETHROUGH),
					 ENGINE_WRITE, 2, 0, 0, BLOCK)),
		0);
	forget(r, 1);
	assert_int_equal(
		ask_end(r, ask(r, ENGINE_WRITE, 3, ENGINE_FUA, 0, BLOCK / 2)),
		0);
	assert_true(rig_durable(r, 3, 0, BLOCK / 2));
	assert_true(rig_durable(r, 2, BLOCK / 2, BLOCK / 2));
	assert_int_equal(rig_flush(r), 0);
}

static void write_beside_a_forgetful_flush_is_not_lost(void **state)
{
	struct rig *r = *state;
	struct ask *flush, *fua;

	assert_int_equal(rig_write(r, 2, 0, BLOCK), 0);
	rig_hang(r, STORE_FLUSH);
	flush = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(store_fault_hanging(r->store), 1);
	fua = ask(r, ENGINE_WRITE, 3, ENGINE_FUA, MIB, BLOCK);
	forget(r, 2);
	store_fault_release(r->store);
	assert_int_equal(ask_end(r, flush), 0);
	assert_int_equal(ask_end(r, fua), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, BLOCK));
	assert_true(rig_durable(r, 3, MIB, BLOCK));
}

static void forgotten_direct_write_fails_every_flush(void **state)
{
	struct rig *r = rig_new(MIB);
	struct engine_export *x;

	(void)state;
	rig_open(r);
	x = engine_export_new(r->engine, false, ENGINE_NONE);
	assert_int_equal(
		ask_end(r, ask_of(r, x, ENGINE_WRITE, 2, 0, 0, BLOCK)), 0);
	forget(r, 1);
	assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_shutdown(r, 0), -EIO);
	rig_close(r);
}

/* No page has the data of a direct write: it cannot be written again. */
static void lost_direct_write_fails_every_flush(void **state)
{
	struct rig *r = rig_new(MIB);
	struct engine_export *x;

	(void)state;
	rig_open(r);
	x = engine_export_new(r->engine, false, ENGINE_NONE);
	assert_int_equal(
		ask_end(r, ask_of(r, x, ENGINE_WRITE, 2, 0, 0, 64 * KIB)), 0);
	assert_int_equal(rig_write(r, 3, 128 * KIB, 64 * KIB), 0);
	rig_break(r, STORE_FLUSH, 1);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_flush(r), -EIO);
	assert_int_equal(rig_shutdown(r, 0), -EIO); /* and it ends */
	assert_true(rig_durable(r, 3, 128 * KIB, 64 * KIB));
	rig_close(r);
}

/* A page with a block that cannot be written yet and one that fails: the pass
 * took the second again and again, in no time. */
static void flush_of_a_failing_block_ends_beside_one_that_is_locked(
	void **state)
{
	struct rig *r = rig_new(MIB);
	struct engine_export *x;
	struct ask *reader;

	(void)state;
	rig_open(r);
	x = engine_export_new(r->engine, false, ENGINE_NONE);
	rig_hang(r, STORE_READ);
	reader = ask_of(r, x, ENGINE_READ, 0, 0, 2 * BLOCK, BLOCK);
	rig_run(r, NSEC_PER_MSEC);
	assert_int_equal(rig_write(r, 2, 2 * BLOCK, BLOCK), 0);
	assert_int_equal(rig_write(r, 2, 0, BLOCK), 0);
	rig_break(r, STORE_WRITE, 0);
	alarm(60); /* it would be for ever */
	assert_int_equal(rig_flush(r), -EIO);
	alarm(0);
	rig_mend(r);
	assert_int_equal(ask_end(r, reader), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, BLOCK));
	assert_true(rig_durable(r, 2, 2 * BLOCK, BLOCK));
	rig_free(r);
}

static void shutdown_names_what_is_dirty_at_an_odd_end(void **state)
{
	struct rig *r = rig_new(MIB - 512);

	(void)state;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, MIB - 1024, 512), 0);
	rig_break(r, STORE_WRITE, 0);
	assert_int_equal(rig_shutdown(r, NSEC_PER_SEC), -ETIMEDOUT);
	rig_run(r, NSEC_PER_MSEC); /* what was under way then ends */
	rig_close(r);
}

static void blocks_that_pin_pages_do_not_hold_more_than_the_cache(void **state)
{
	struct rig *r = rig_new(16 * MIB);

	(void)state;
	r->config.cache_size = MIB;
	r->config.dirty_limit = MIB;
	r->config.dirty_background = MIB / 2;
	rig_open(r);
	rig_hang(r, STORE_WRITE);
	/* one dirty block in each of 64 pages: 4 MiB if all were filled */
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(rig_write(r, 2, i * 64 * KIB, BLOCK), 0);
	for (uint64_t i = 0; i < 64; i++)
		assert_true(
			rig_sees(r, 1, i * 64 * KIB + BLOCK, 64 * KIB - BLOCK));
	assert_true(stat_value(r->engine, "cached_bytes") <= MIB + 64 * KIB);
	rig_free(r);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void no_log(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flush_comes_back_for_a_block_it_passed_over),
		T(fua_of_a_block_under_way_is_durable),
		T(zero_done_again_spares_what_was_written_since),
		T(zero_beside_a_failing_flush_is_not_lost),
		T(write_beside_a_failing_flush_is_not_lost),
		cmocka_unit_test_setup_teardown(
			what_the_store_forgot_is_written_again, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			fua_writes_again_what_the_store_forgot, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			write_beside_a_forgetful_flush_is_not_lost, setup,
			teardown),
		cmocka_unit_test(forgotten_direct_write_fails_every_flush),
		cmocka_unit_test(lost_direct_write_fails_every_flush),
		cmocka_unit_test(
			flush_of_a_failing_block_ends_beside_one_that_is_locked),
		cmocka_unit_test(shutdown_names_what_is_dirty_at_an_odd_end),
		cmocka_unit_test(
			blocks_that_pin_pages_do_not_hold_more_than_the_cache),
	};

	log_setup("unit-engine-flush", LOG_LEVEL_ERROR, no_log, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
