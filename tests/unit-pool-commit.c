/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool-commit.c: what a flush of a pool costs, who shares it, and what
 * happens when it fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pooled.h"

static int setup(void **state)
{
	*state = pooled_new(16 * MIB, 16 * MIB);
	return 0;
}

static int teardown(void **state)
{
	pooled_free(*state);
	return 0;
}

/* --- what it costs ------------------------------------------------------- */

static void a_flush_is_two_of_the_store_and_a_block(void **state)
{
	struct pooled *b = *state;
	uint64_t bytes;

	for (unsigned i = 0; i < 100; i++)
		pooled_write(b, 1, 2 * i * UNIT, UNIT);
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 0);
	pooled_record(b);
	pooled_flush(b);
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 2);
	assert_int_equal(pooled_asked(b, STORE_WRITE, &bytes), 1);
	assert_int_equal(bytes, 4096);
	assert_int_equal(pooled_counts(b).journal_commits, 1);
	assert_int_equal(pooled_counts(b).journal_bytes, 4096);
}

static void a_flush_of_what_is_mapped_is_one_of_the_store(void **state)
{
	struct pooled *b = *state;

	pooled_write(b, 1, 0, 8 * UNIT);
	pooled_flush(b);
	pooled_write(b, 2, 0, 8 * UNIT);
	pooled_record(b);
	pooled_flush(b);
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 1);
	assert_int_equal(pooled_asked(b, STORE_WRITE, NULL), 0);
}

static void flushes_that_come_meanwhile_share_the_next(void **state)
{
	struct pooled *b = *state;
	struct pooled_io *x[10];

	pooled_hang(b, STORE_FLUSH);
	for (unsigned i = 0; i < 10; i++) {
		pooled_write(b, 1, i * UNIT, UNIT);
		x[i] = pooled_start(b, STORE_FLUSH, 0, 0, 0, 0);
		while (reactor_sim_step(b->loop))
			;
	}
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 1);
	pooled_mend(b);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(pooled_end(b, x[i]), 0);
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 4);
	assert_int_equal(pooled_counts(b).journal_commits, 2);
}

static void fua_goes_to_the_store_where_the_map_is_durable(void **state)
{
	struct pooled *b = *state;

	assert_int_equal(pooled_do(b, STORE_WRITE, 1, 0, UNIT, STORE_FUA), 0);
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 2);
	pooled_record(b);
	assert_int_equal(pooled_do(b, STORE_WRITE, 2, 0, UNIT, STORE_FUA), 0);
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 0);
	assert_int_equal(pooled_asked(b, STORE_WRITE, NULL), 1);
	assert_int_equal(b->log[0].flags, STORE_FUA);
	/* Mapped, but the record is not durable: a commit. */
	pooled_write(b, 1, UNIT, UNIT);
	assert_int_equal(
		pooled_do(b, STORE_WRITE, 3, UNIT, UNIT, STORE_FUA), 0);
	assert_int_equal(pooled_asked(b, STORE_FLUSH, NULL), 2);
	pooled_power_cut(b, 3);
	pooled_open(b);
	assert_true(pooled_sees(b, 2, 0, UNIT));
	assert_true(pooled_sees(b, 3, UNIT, UNIT));
}

static void many_records_are_committed_unasked(void **state)
{
	struct pooled *b = *state;

	/* Every other block, so that none can be merged. */
	for (unsigned i = 0; i < 1500; i++)
		pooled_write(b, 1, 2 * i * UNIT, UNIT);
	while (reactor_sim_step(b->loop))
		;
	assert_int_equal(pooled_counts(b).journal_commits, 1);
	pooled_power_cut(b, 1);
	pooled_open(b);
	/* An eighth of the journal. */
	assert_true(pooled_counts(b).mapped_bytes >= 1300 * UNIT);
	assert_true(pooled_counts(b).mapped_bytes < 1500 * UNIT);
	assert_true(pooled_sees(b, 1, 2000 * UNIT, UNIT));
}

/* --- failing ------------------------------------------------------------- */

/* The data flush, the journal's write (nothing is lost), the second flush. */
static void a_failed_commit_is_told_and_made_good(void **state)
{
	static const struct {
		enum store_op op;
		uint64_t skip;
		int error;
	} fail[] = {{STORE_FLUSH, 0, -EIO}, {STORE_WRITE, 0, -EAGAIN},
		{STORE_FLUSH, 1, -EIO}};
	struct pooled *b = *state;

	for (unsigned i = 0; i < 3; i++) {
		unsigned tag = i + 1;

		pooled_write(b, tag, 0, 8 * UNIT);
		pooled_write(b, tag, (8 + i) * 16 * UNIT, 8 * UNIT);
		pooled_break(b, fail[i].op, fail[i].skip, 1);
		assert_int_equal(
			pooled_do(b, STORE_FLUSH, 0, 0, 0, 0), fail[i].error);
		pooled_mend(b);
		assert_true(pooled_sees(b, tag, 0, 8 * UNIT));
		/* What may be lost is written again, by who wrote it. */
		pooled_write(b, tag, 0, 8 * UNIT);
		pooled_write(b, tag, (8 + i) * 16 * UNIT, 8 * UNIT);
		pooled_flush(b);
		pooled_power_cut(b, i);
		pooled_open(b);
		assert_true(pooled_sees(b, tag, 0, 8 * UNIT));
		assert_true(pooled_sees(b, tag, (8 + i) * 16 * UNIT, 8 * UNIT));
	}
}

/* The store may have lost the data though later flushes succeed; then there
 * are zeroes, and not what lay there before. */
static void what_a_failed_flush_lost_reads_as_zeroes(void **state)
{
	struct pooled *b = *state;

	pooled_write(b, 1, 0, 64 * UNIT);
	pooled_break(b, STORE_FLUSH, 0, 1);
	assert_int_equal(pooled_do(b, STORE_FLUSH, 0, 0, 0, 0), -EIO);
	pooled_mend(b);
	pooled_write(b, 2, 8 * UNIT, 8 * UNIT);
	pooled_flush(b);
	assert_true(pooled_sees(b, 1, 0, 8 * UNIT)); /* until then */
	pooled_power_cut(b, 1);
	pooled_open(b);
	assert_true(pooled_sees(b, 0, 0, 8 * UNIT));
	assert_true(pooled_sees(b, 2, 8 * UNIT, 8 * UNIT));
	assert_true(pooled_sees(b, 0, 16 * UNIT, 48 * UNIT));
}

/* A flush that FUA asked for failed; the next FLUSH covers other writes. */
static void a_flush_is_told_of_anothers_failure(void **state)
{
	struct pooled *b = *state;

	pooled_write(b, 1, 0, 8 * UNIT);
	pooled_break(b, STORE_FLUSH, 0, 1);
	assert_int_equal(
		pooled_do(b, STORE_WRITE, 1, 64 * UNIT, UNIT, STORE_FUA), -EIO);
	pooled_mend(b);
	assert_int_equal(pooled_do(b, STORE_FLUSH, 0, 0, 0, 0), -EIO);
	pooled_flush(b);
}

static void space_is_not_free_after_a_failed_commit(void **state)
{
	struct pooled *b = *state;
	uint64_t before;

	pooled_write(b, 1, 0, 64 * UNIT);
	pooled_flush(b);
	before = pooled_counts(b).free_bytes;
	pooled_trim(b, 0, 64 * UNIT);
	pooled_break(b, STORE_FLUSH, 1, 1);
	assert_int_equal(pooled_do(b, STORE_FLUSH, 0, 0, 0, 0), -EIO);
	pooled_mend(b);
	reactor_sim_run_until(b->loop, reactor_now(b->loop) + NSEC_PER_SEC);
	assert_int_equal(pooled_counts(b).free_bytes, before);
	pooled_flush(b);
	while (reactor_sim_step(b->loop))
		;
	assert_int_equal(pooled_counts(b).free_bytes, before + 64 * UNIT);
}

static void trimmed_space_does_not_wait_for_a_flush_for_ever(void **state)
{
	struct pooled *b = *state;
	uint64_t before = pooled_counts(b).free_bytes;

	pooled_write(b, 1, 0, 64 * UNIT);
	pooled_trim(b, 0, 64 * UNIT);
	reactor_sim_run_until(b->loop, reactor_now(b->loop) + 4 * NSEC_PER_SEC);
	assert_int_equal(pooled_counts(b).free_bytes, before - 64 * UNIT);
	reactor_sim_run_until(b->loop, reactor_now(b->loop) + 2 * NSEC_PER_SEC);
	assert_int_equal(pooled_counts(b).free_bytes, before);
}

/* --- appending ----------------------------------------------------------- */

#define DEPTH 32U
#define APPENDS 640U

/* On a device whose writes take 100 us and whose flushes 500: so long it
 * takes to append that many durable blocks, ns. */
static uint64_t append(uint64_t block, bool serial)
{
	struct pooled *b = pooled_blank(64 * MIB);
	struct pooled_io *x[DEPTH] = {0};
	uint64_t start, took;
	struct store_fault_rule slow[2] = {
		{.action = STORE_FAULT_DELAY,
			.ops = STORE_FAULT_OP(STORE_WRITE),
			.delay_ns = 100 * NSEC_PER_USEC},
		{.action = STORE_FAULT_DELAY,
			.ops = STORE_FAULT_OP(STORE_FLUSH),
			.delay_ns = 500 * NSEC_PER_USEC},
	};

	b->serial = serial;
	pooled_format(b, 64 * MIB);
	pooled_open(b);
	store_fault_set(b->store, slow, 2);
	start = reactor_now(b->loop);
	for (unsigned n = 0; n < APPENDS;) {
		for (unsigned i = 0; i < DEPTH && n < APPENDS; i++) {
			if (x[i] && !x[i]->done)
				continue;
			if (x[i])
				assert_int_equal(pooled_end(b, x[i]), 0);
			x[i] = pooled_start(b, STORE_WRITE, 1, n++ * block,
				block, STORE_FUA);
		}
		assert_true(reactor_sim_step(b->loop));
	}
	for (unsigned i = 0; i < DEPTH; i++)
		assert_int_equal(pooled_end(b, x[i]), 0);
	took = reactor_now(b->loop) - start;
	/* All of it is durable, and in few pieces. */
	assert_true(pooled_counts(b).extents <= 8);
	pooled_power_cut(b, 1);
	pooled_open(b);
	assert_true(pooled_sees(b, 1, 0, APPENDS * block));
	pooled_free(b);
	return took;
}

static void appends_share_commits(void **state)
{
	(void)state;
	for (uint64_t block = 4 * KIB; block <= 16 * KIB; block *= 2) {
		uint64_t one = append(block, true);
		uint64_t many = append(block, false);

		print_message("%" PRIu64 "K: %" PRIu64 " us, one at a time "
			      "%" PRIu64 " us: %.1f times\n",
			block / KIB, many / 1000, one / 1000,
			(double)one / (double)many);
		/* Data, data flush, journal, journal flush. */
		assert_true(one >= APPENDS * 1200 * NSEC_PER_USEC);
		assert_true(one >= 10 * many);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(a_flush_is_two_of_the_store_and_a_block),
		TEST(a_flush_of_what_is_mapped_is_one_of_the_store),
		TEST(flushes_that_come_meanwhile_share_the_next),
		TEST(fua_goes_to_the_store_where_the_map_is_durable),
		TEST(many_records_are_committed_unasked),
		TEST(a_failed_commit_is_told_and_made_good),
		TEST(what_a_failed_flush_lost_reads_as_zeroes),
		TEST(a_flush_is_told_of_anothers_failure),
		TEST(space_is_not_free_after_a_failed_commit),
		TEST(trimmed_space_does_not_wait_for_a_flush_for_ever),
#undef TEST
		cmocka_unit_test(appends_share_commits),
	};

	return cmocka_run_group_tests_name("pool-commit", tests, NULL, NULL);
}
