/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-engine-io.c: which store I/O a request costs, and which it does not.
 */
#include <errno.h>
#include <stdlib.h>

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

/* A hit: inside the call, and the store is not asked. */
static bool hits(struct rig *r, enum engine_op op, uint64_t at, uint64_t n)
{
	unsigned before = rig_count(r, STORE_READ);
	struct ask *a = ask(r, op, 7, 0, at, n);
	bool inline_hit = a->inline_hit;

	assert_int_equal(ask_end(r, a), 0);
	return inline_hit && rig_count(r, STORE_READ) == before;
}

static void cached_read_completes_in_the_call(void **state)
{
	struct rig *r = *state;

	assert_false(hits(r, ENGINE_READ, 0, 2 * BLOCK));
	assert_true(hits(r, ENGINE_READ, 0, 2 * BLOCK));
	assert_true(hits(r, ENGINE_READ, 100, BLOCK));
	assert_int_equal(rig_write(r, 2, 9 * BLOCK, BLOCK), 0);
	assert_true(hits(r, ENGINE_READ, 9 * BLOCK, BLOCK));
}

static void whole_block_write_completes_in_the_call(void **state)
{
	struct rig *r = *state;

	rig_record(r);
	assert_true(hits(r, ENGINE_WRITE, 0, 5 * BLOCK));
	assert_true(hits(r, ENGINE_WRITE, 128 * KIB, 128 * KIB));
	assert_true(hits(r, ENGINE_WRITE, BLOCK + 100, 1000)); /* uptodate */
	assert_int_equal(rig_count(r, STORE_READ), 0);
	assert_int_equal(rig_count(r, STORE_WRITE), 0);
}

static void partial_block_write_reads_only_that_block(void **state)
{
	struct rig *r = *state;

	rig_record(r);
	assert_int_equal(rig_write(r, 2, 10 * BLOCK + 100, 1000), 0);
	assert_int_equal(rig_count(r, STORE_READ), 1);
	assert_true(rig_within(r, STORE_READ, 10 * BLOCK, BLOCK));
	assert_true(rig_sees(r, 1, 10 * BLOCK, 100));
	assert_true(rig_sees(r, 2, 10 * BLOCK + 100, 1000));
	assert_true(rig_sees(r, 1, 10 * BLOCK + 1100, BLOCK - 1100));
	assert_int_equal(rig_count(r, STORE_READ), 1);
}

static void unaligned_write_reads_only_its_edges(void **state)
{
	struct rig *r = *state;

	rig_record(r);
	assert_int_equal(rig_write(r, 2, BLOCK + 512, 8 * BLOCK), 0);
	assert_int_equal(rig_bytes(r, STORE_READ), 2 * BLOCK);
	assert_true(rig_sees(r, 1, BLOCK, 512));
	assert_true(rig_sees(r, 2, BLOCK + 512, 8 * BLOCK));
	assert_true(rig_sees(r, 1, 9 * BLOCK + 512, BLOCK - 512));
}

static void write_to_the_end_of_the_device_reads_nothing(void **state)
{
	struct rig *r = rig_new(MIB - 512);

	(void)state;
	rig_open(r);
	rig_record(r);
	assert_int_equal(rig_write(r, 2, MIB - BLOCK, BLOCK - 512), 0);
	assert_int_equal(rig_count(r, STORE_READ), 0);
	rig_free(r);
}

static void partly_uptodate_page_serves_what_it_has(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 3 * BLOCK, 2 * BLOCK), 0);
	assert_true(hits(r, ENGINE_READ, 3 * BLOCK, 2 * BLOCK));
	rig_record(r);
	assert_true(rig_sees(r, 1, 2 * BLOCK, BLOCK));
	assert_true(rig_count(r, STORE_READ) >= 1);
	assert_true(rig_sees(r, 2, 3 * BLOCK, 2 * BLOCK));
}

static void reads_of_one_block_share_a_fill(void **state)
{
	struct rig *r = *state;
	struct ask *a[6];

	rig_hang(r, STORE_READ);
	rig_record(r);
	for (unsigned i = 0; i < 6; i++)
		a[i] = ask(r, ENGINE_READ, 0, 0, 512 * i, 512);
	rig_run(r, NSEC_PER_SEC);
	rig_mend(r);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(ask_end(r, a[i]), 0);
	assert_int_equal(rig_count(r, STORE_READ), 1);
}

static void writer_never_waits_for_writeback(void **state)
{
	struct rig *r = *state;
	struct ask *flush;

	assert_int_equal(rig_write(r, 2, 0, 64 * KIB), 0);
	rig_hang(r, STORE_WRITE);
	rig_record(r);
	flush = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(store_fault_hanging(r->store), 1);
	/* the same blocks, whole and in part, while the store has them */
	assert_true(hits(r, ENGINE_WRITE, 0, 16 * KIB));
	assert_true(hits(r, ENGINE_WRITE, 20 * KIB + 100, 700));
	assert_true(rig_sees(r, 7, 0, 16 * KIB));
	assert_true(rig_sees(r, 7, 20 * KIB + 100, 700));
	rig_mend(r);
	assert_int_equal(ask_end(r, flush), 0);
	rig_count(r, STORE_WRITE);
	for (size_t i = 0; i < r->nlog; i++)
		assert_false(r->log[i].changed); /* what it had did not move */
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 7, 0, 16 * KIB));
	assert_true(rig_durable(r, 2, 16 * KIB, 4 * KIB + 100));
	assert_true(rig_durable(r, 7, 20 * KIB + 100, 700));
}

static void data_of_an_answered_read_does_not_change(void **state)
{
	struct rig *r = *state;
	struct engine_request req;

	assert_int_equal(rig_write(r, 2, 0, 2 * BLOCK), 0);
	engine_request_init(&req);
	req.op = ENGINE_READ;
	req.length = 2 * BLOCK;
	req.export = r->export;
	req.reactor = r->loop;
	assert_true(engine_submit(&req));
	assert_int_equal(req.error, 0);
	assert_int_equal(rig_write(r, 3, 100, BLOCK), 0);
	for (unsigned i = 0, at = 0; i < req.niov; i++) {
		assert_true(data_is(
			req.iov[i].iov_base, 2, at, req.iov[i].iov_len));
		at += (unsigned)req.iov[i].iov_len;
	}
	engine_release(&req);
	assert_true(rig_sees(r, 3, 100, BLOCK));
}

static void fua_writes_its_range_and_no_more(void **state)
{
	struct rig *r = *state;
	struct ask *a;

	assert_int_equal(rig_write(r, 2, 0, 512 * KIB), 0);
	rig_record(r);
	a = ask(r, ENGINE_WRITE, 3, ENGINE_FUA, 300 * KIB, 8 * KIB);
	assert_int_equal(ask_end(r, a), 0);
	assert_true(rig_durable(r, 3, 300 * KIB, 8 * KIB));
	assert_true(rig_count(r, STORE_WRITE) >= 1);
	assert_true(rig_within(r, STORE_WRITE, 300 * KIB, 8 * KIB));
	assert_true(rig_durable(r, 1, 0, 64 * KIB)); /* still the old */
	assert_true(stat_value(r->engine, "dirty_bytes") > 0);
}

static void flushes_that_wait_share_a_pass(void **state)
{
	struct rig *r = *state;
	struct ask *a[20];

	assert_int_equal(rig_write(r, 2, 0, 256 * KIB), 0);
	rig_record(r);
	for (unsigned i = 0; i < 20; i++)
		a[i] = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(ask_end(r, a[i]), 0);
	assert_true(rig_durable(r, 2, 0, 256 * KIB));
	assert_in_range(rig_count(r, STORE_FLUSH), 1, 6);
	assert_int_equal(rig_bytes(r, STORE_WRITE), 256 * KIB);
}

static void flush_covers_what_was_answered_before_it_only(void **state)
{
	struct rig *r = *state;
	struct ask *first, *second;

	assert_int_equal(rig_write(r, 2, 0, BLOCK), 0);
	rig_hang(r, STORE_WRITE);
	first = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_run(r, NSEC_PER_SEC);
	/* the pass has begun: this one is the next pass's */
	assert_int_equal(rig_write(r, 3, 0, BLOCK), 0);
	second = ask(r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_mend(r);
	assert_int_equal(ask_end(r, first), 0);
	assert_int_equal(ask_end(r, second), 0);
	assert_true(rig_durable(r, 3, 0, BLOCK));
}

static void clean_flush_writes_nothing(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, BLOCK), 0);
	assert_int_equal(rig_flush(r), 0);
	rig_record(r);
	assert_int_equal(rig_flush(r), 0);
	assert_int_equal(rig_count(r, STORE_WRITE), 0);
}

static void small_writes_leave_in_large_runs(void **state)
{
	struct rig *r = *state;

	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(
			rig_write(r, 2, (i * 37 % 64) * BLOCK, BLOCK), 0);
	rig_record(r);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, 64 * BLOCK));
	/* a run is an eighth of the limit at most */
	assert_int_equal(rig_count(r, STORE_WRITE), 2);
}

static void dirty_data_is_written_when_it_expires(void **state)
{
	struct rig *r = rig_new(MIB);

	(void)state;
	r->config.dirty_expire_ns = 10 * NSEC_PER_SEC;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, 0, BLOCK), 0);
	rig_record(r);
	rig_run(r, 4 * NSEC_PER_SEC);
	assert_int_equal(rig_count(r, STORE_WRITE), 0);
	rig_run(r, 20 * NSEC_PER_SEC);
	assert_int_equal(rig_count(r, STORE_WRITE), 1);
	rig_free(r);
}

static void background_writeback_starts_over_its_limit(void **state)
{
	struct rig *r = rig_new(MIB);

	(void)state;
	r->config.dirty_limit = 512 * KIB;
	r->config.dirty_background = 128 * KIB;
	rig_open(r);
	rig_record(r);
	assert_int_equal(rig_write(r, 2, 0, 128 * KIB), 0);
	rig_run(r, NSEC_PER_SEC);
	assert_int_equal(rig_count(r, STORE_WRITE), 0);
	assert_int_equal(rig_write(r, 2, 128 * KIB, 64 * KIB), 0);
	rig_run(r, NSEC_PER_SEC);
	assert_true(rig_count(r, STORE_WRITE) > 0);
	rig_free(r);
}

static void trim_and_zero_dirty_nothing(void **state)
{
	struct rig *r = *state;

	rig_record(r);
	assert_int_equal(rig_do(r, ENGINE_TRIM, 0, 0, MIB), 0);
	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, MIB, MIB), 0);
	assert_int_equal(
		rig_do(r, ENGINE_ZERO, ENGINE_NO_HOLE, 2 * MIB, MIB), 0);
	assert_int_equal(rig_count(r, STORE_WRITE), 0);
	assert_int_equal(stat_value(r->engine, "dirty_bytes"), 0);
	assert_true(rig_sees(r, 0, 0, 3 * MIB));
	assert_true(rig_sees(r, 1, 3 * MIB, MIB));
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 0, MIB, 2 * MIB));
}

static void zero_takes_the_place_of_dirty_data(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_write(r, 2, 0, 256 * KIB), 0);
	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, 1000, 128 * KIB), 0);
	assert_true(rig_sees(r, 2, 0, 1000));
	assert_true(rig_sees(r, 0, 1000, 128 * KIB));
	assert_true(rig_sees(r, 2, 128 * KIB + 1000, 128 * KIB - 1000));
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, 1000));
	assert_true(rig_durable(r, 0, 1000, 128 * KIB));
	assert_true(rig_durable(r, 2, 128 * KIB + 1000, 1000));
}

static void write_after_zero_wins(void **state)
{
	struct rig *r = *state;
	struct ask *zero, *write;

	zero = ask(r, ENGINE_ZERO, 0, 0, 0, MIB);
	assert_int_equal(ask_end(r, zero), 0);
	write = ask(r, ENGINE_WRITE, 2, 0, 64 * KIB, BLOCK);
	assert_int_equal(ask_end(r, write), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 64 * KIB, BLOCK));
	assert_true(rig_durable(r, 0, 68 * KIB, BLOCK));
}

static void fua_zero_is_durable_when_answered(void **state)
{
	struct rig *r = *state;

	assert_int_equal(
		rig_do(r, ENGINE_ZERO, ENGINE_FUA, 64 * KIB, 64 * KIB), 0);
	assert_true(rig_durable(r, 0, 64 * KIB, 64 * KIB));
}

static void writethrough_is_answered_by_the_store(void **state)
{
	struct rig *r = *state;
	struct engine_export *x =
		engine_export_new(r->engine, false, ENGINE_WRITETHROUGH);
	struct ask *a;

	rig_hang(r, STORE_WRITE);
	rig_record(r);
	a = ask_of(r, x, ENGINE_WRITE, 2, 0, 0, 2 * BLOCK);
	rig_run(r, NSEC_PER_SEC);
	assert_false(a->answered);
	rig_mend(r);
	assert_int_equal(ask_end(r, a), 0);
	assert_int_equal(rig_bytes(r, STORE_WRITE), 2 * BLOCK);
	assert_true(hits(r, ENGINE_READ, 0, 2 * BLOCK));
}

static void prefetched_range_is_read_without_the_store(void **state)
{
	struct rig *r = *state;

	assert_int_equal(rig_do(r, ENGINE_CACHE, 0, 0, 64 * KIB), 0);
	assert_true(hits(r, ENGINE_READ, 0, 64 * KIB));
}

static void slow_store_leaves_cached_reads_fast(void **state)
{
	struct rig *r = *state;
	struct ask *w[8];

	assert_true(rig_sees(r, 1, 3 * MIB, 64 * KIB));
	rig_hang(r, STORE_WRITE);
	for (unsigned i = 0; i < 8; i++)
		w[i] = ask(r, ENGINE_WRITE, 2, 0, i * 256 * KIB, 256 * KIB);
	rig_run(r, 10 * NSEC_PER_SEC);
	assert_false(w[7]->answered);
	assert_true(hits(r, ENGINE_READ, 3 * MIB, 64 * KIB));
	rig_mend(r);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(ask_end(r, w[i]), 0);
	assert_true(rig_sees(r, 2, 0, 2 * MIB));
}

/* How often a write of 256K at `at` is looked at by the throttle. */
static uint64_t checks(struct rig *r, uint64_t at)
{
	uint64_t before = stat_value(r->engine, "throttle_checks");

	assert_int_equal(rig_write(r, 2, at, 256 * KIB), 0);
	assert_true(rig_sees(r, 2, at, 256 * KIB));
	return stat_value(r->engine, "throttle_checks") - before;
}

static void write_is_admitted_once_or_by_blocks(void **state)
{
	struct rig *r = *state, *blocks = rig_new(4 * MIB);

	assert_int_equal(checks(r, 0), 1);
	assert_int_equal(checks(r, MIB + 100), 2); /* over a piece's end */
	blocks->config.cache_size = 2 * MIB;
	blocks->config.multipage = false;
	rig_open(blocks);
	assert_int_equal(checks(blocks, 0), 64);
	assert_int_equal(checks(blocks, MIB + 100), 65);
	rig_free(blocks);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(cached_read_completes_in_the_call),
		T(whole_block_write_completes_in_the_call),
		T(partial_block_write_reads_only_that_block),
		T(unaligned_write_reads_only_its_edges),
		cmocka_unit_test(write_to_the_end_of_the_device_reads_nothing),
		T(partly_uptodate_page_serves_what_it_has),
		T(reads_of_one_block_share_a_fill),
		T(writer_never_waits_for_writeback),
		T(data_of_an_answered_read_does_not_change),
		T(fua_writes_its_range_and_no_more),
		T(flushes_that_wait_share_a_pass),
		T(flush_covers_what_was_answered_before_it_only),
		T(clean_flush_writes_nothing),
		T(small_writes_leave_in_large_runs),
		cmocka_unit_test(dirty_data_is_written_when_it_expires),
		cmocka_unit_test(background_writeback_starts_over_its_limit),
		T(trim_and_zero_dirty_nothing),
		T(zero_takes_the_place_of_dirty_data),
		T(write_after_zero_wins),
		T(fua_zero_is_durable_when_answered),
		T(writethrough_is_answered_by_the_store),
		T(prefetched_range_is_read_without_the_store),
		T(slow_store_leaves_cached_reads_fast),
		T(write_is_admitted_once_or_by_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
