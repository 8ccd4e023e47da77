/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool-checkpoint.c: the map written out beside everything else, and the
 * journal that begins anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "pooled.h"

#define JOURNAL (256 * KIB)

static int setup(void **state)
{
	*state = pooled_new(32 * MIB, 64 * MIB);
	return 0;
}

static int teardown(void **state)
{
	pooled_free(*state);
	return 0;
}

/* Commit `n` times, a block each: 4K of the journal. */
static void commit(struct pooled *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pooled_write(b, 1, 2 * i * UNIT, UNIT);
		pooled_flush(b);
	}
}

static void let_it_end(struct pooled *b)
{
	reactor_sim_run_until(b->loop, reactor_now(b->loop) + NSEC_PER_SEC);
}

static void a_checkpoint_comes_with_half_a_journal(void **state)
{
	struct pooled *b = *state;

	commit(b, 32);
	let_it_end(b);
	assert_int_equal(pooled_counts(b).checkpoints, 0);
	for (unsigned i = 0; i < 4; i++) {
		pooled_write(b, 1, (100 + 2 * i) * UNIT, UNIT);
		pooled_flush(b);
	}
	let_it_end(b);
	assert_int_equal(pooled_counts(b).checkpoints, 1);
	assert_int_equal(pooled_counts(b).checkpoint_waits, 0);
	pooled_power_cut(b, 1);
	pooled_open(b);
	for (unsigned i = 0; i < 32; i++)
		assert_true(pooled_sees(b, 1, 2 * i * UNIT, UNIT));
	assert_true(pooled_sees(b, 1, 106 * UNIT, UNIT));
}

/* Many times round the journal, everything torn at the end. */
static void the_journal_goes_round(void **state)
{
	struct pooled *b = *state;
	struct store_fault_rule slow = {
		.action = STORE_FAULT_DELAY,
		.ops = STORE_FAULT_OP(STORE_WRITE) |
			STORE_FAULT_OP(STORE_FLUSH),
		.delay_ns = 100 * NSEC_PER_USEC,
	};

	store_fault_set(b->store, &slow, 1);
	for (unsigned i = 0; i < 500; i++) {
		uint64_t at = i % 50 * 64 * UNIT;

		pooled_trim(b, at, 32 * UNIT);
		pooled_write(b, 1 + i % 40, at, 2 * UNIT);
		pooled_flush(b);
	}
	assert_true(pooled_counts(b).journal_bytes > 4 * JOURNAL);
	assert_true(pooled_counts(b).checkpoints > 4);
	assert_int_equal(pooled_counts(b).checkpoint_waits, 0);
	pooled_power_cut(b, 5);
	pooled_open(b);
	for (unsigned i = 450; i < 500; i++)
		assert_true(pooled_sees(
			b, 1 + i % 40, i % 50 * 64 * UNIT, 2 * UNIT));
	assert_int_equal(pooled_counts(b).mapped_bytes, 100 * UNIT);
}

/* Changes of all kinds while it walks: a power cut after it. */
static void the_map_may_change_under_it(void **state)
{
	struct pooled *b = *state;
	uint64_t seed = 7, before;
	unsigned char tag[1000] = {0};
	unsigned writes = 0;

	for (unsigned i = 0; i < 1000; i++)
		pooled_write(b, tag[i] = 1, 3 * i * UNIT, UNIT);
	pooled_flush(b);
	before = pooled_counts(b).checkpoints;
	while (pooled_counts(b).checkpoints < before + 3) {
		unsigned i = (unsigned)random_below(&seed, 1000);

		tag[i] = (unsigned char)(random_below(&seed, 3)
				? 1 + random_below(&seed, 200)
				: 0);
		if (tag[i])
			pooled_write(b, tag[i], 3 * i * UNIT, UNIT);
		else
			pooled_trim(b, 3 * i * UNIT, UNIT);
		if (++writes % 4 == 0)
			pooled_flush(b);
	}
	pooled_flush(b);
	pooled_power_cut(b, 9);
	pooled_open(b);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(pooled_sees(b, tag[i], 3 * i * UNIT, UNIT));
}

static void closing_leaves_nothing_to_replay(void **state)
{
	struct pooled *b = *state;
	struct pool_summary sum;
	struct pool_visitor nobody = {0};
	struct error error = {""};
	struct store *s;

	commit(b, 10);
	pooled_close(b);
	s = store_must_open(b->inner);
	assert_int_equal(pool_check(s, &nobody, &sum, &error), 0);
	store_close(s);
	assert_int_equal(sum.journal_entries, 0);
	assert_int_equal(sum.checkpoint_extents, 10);
	assert_int_equal(sum.findings, 0);
	pooled_open(b);
	assert_true(pooled_sees(b, 1, 18 * UNIT, UNIT));
	/* Nothing changed: nothing is written. */
	pooled_record(b);
	b->quiet = false;
	placement_quiesce(b->pool, pooled_quiet, b);
	while (!b->quiet)
		assert_true(reactor_sim_step(b->loop));
	assert_int_equal(pooled_asked(b, STORE_WRITE, NULL), 0);
}

static void a_full_journal_makes_commits_wait(void **state)
{
	struct pooled *b = *state;
	/* All but the journal: the checkpoint cannot be written. */
	struct store_fault_rule rule = {
		.action = STORE_FAULT_HANG,
		.ops = STORE_FAULT_OP(STORE_WRITE),
		.offset = 0,
		.length = 128 * KIB,
	};
	struct pooled_io *x;

	store_fault_set(b->store, &rule, 1);
	commit(b, JOURNAL / 4096);
	assert_int_equal(pooled_counts(b).checkpoint_waits, 0);
	pooled_write(b, 1, MIB, UNIT);
	x = pooled_start(b, STORE_FLUSH, 0, 0, 0, 0);
	let_it_end(b);
	assert_false(x->done);
	assert_int_equal(pooled_counts(b).checkpoint_waits, 1);
	/* Reads and writes go on. */
	pooled_write(b, 2, 2 * MIB, UNIT);
	assert_true(pooled_sees(b, 1, MIB, UNIT));
	pooled_mend(b);
	assert_int_equal(pooled_end(b, x), 0);
	pooled_power_cut(b, 2);
	pooled_open(b);
	assert_true(pooled_sees(b, 1, MIB, UNIT));
}

static void a_checkpoint_that_fails_is_tried_again(void **state)
{
	struct pooled *b = *state;
	struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_WRITE),
		.offset = 0, /* the superblocks */
		.length = 128 * KIB,
	};

	store_fault_set(b->store, &rule, 1);
	commit(b, 40);
	let_it_end(b);
	assert_int_equal(pooled_counts(b).checkpoints, 0);
	pooled_mend(b);
	let_it_end(b);
	assert_int_equal(pooled_counts(b).checkpoints, 1);
	pooled_power_cut(b, 3);
	pooled_open(b);
	assert_true(pooled_sees(b, 1, 78 * UNIT, UNIT));
}

static void no_log(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(a_checkpoint_comes_with_half_a_journal),
		TEST(the_journal_goes_round),
		TEST(the_map_may_change_under_it),
		TEST(closing_leaves_nothing_to_replay),
		TEST(a_full_journal_makes_commits_wait),
		TEST(a_checkpoint_that_fails_is_tried_again),
#undef TEST
	};

	log_setup("test", LOG_LEVEL_ERROR, no_log, NULL);
	return cmocka_run_group_tests_name(
		"pool-checkpoint", tests, NULL, NULL);
}
