/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-engine-modes.c: exports of one store with different cache modes: what
 * each costs, and that each sees the others' blocks whole.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "rig.h"

#define BLOCK 4096U

struct modes {
	struct rig *r;
	struct engine_export *back, *through, *none;
};

static int setup(void **state)
{
	struct modes *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	m->r = rig_new(4 * MIB);
	m->r->config.cache_size = 2 * MIB;
	m->r->config.cache = ENGINE_NONE; /* its memory is set aside */
	rig_open(m->r);
	m->back = m->r->export;
	m->through =
		engine_export_new(m->r->engine, false, ENGINE_WRITETHROUGH);
	m->none = engine_export_new(m->r->engine, false, ENGINE_NONE);
	rig_record(m->r);
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct modes *m = *state;

	rig_free(m->r);
	free(m);
	return 0;
}

static int put(struct modes *m, struct engine_export *x, uint32_t id,
	uint64_t offset, uint64_t length)
{
	return ask_end(
		m->r, ask_of(m->r, x, ENGINE_WRITE, id, 0, offset, length));
}

static struct ask *get(struct modes *m, uint64_t offset, uint64_t length)
{
	return ask_of(m->r, m->none, ENGINE_READ, 0, 0, offset, length);
}

/* End a read: did it see what `id` wrote? */
static bool got(struct modes *m, struct ask *a, uint32_t id)
{
	uint64_t offset = a->req.offset, length = a->req.length;
	unsigned char *buf = a->buf;
	bool same;

	a->buf = NULL;
	assert_int_equal(ask_end(m->r, a), 0);
	same = data_is(buf, id, offset, length);
	free(buf);
	return same;
}

/* --- direct -------------------------------------------------------------- */

static void direct_requests_keep_no_page(void **state)
{
	struct modes *m = *state;
	uint64_t before = stat_value(m->r->engine, "cached_bytes");

	assert_int_equal(put(m, m->none, 2, 0, MIB), 0);
	assert_true(rig_sees_through(m->r, m->none, 2, 0, MIB));
	assert_int_equal(rig_bytes(m->r, STORE_WRITE), MIB);
	assert_int_equal(rig_bytes(m->r, STORE_READ), MIB);
	assert_int_equal(stat_value(m->r->engine, "cached_bytes"), before);
}

static void direct_requests_may_begin_and_end_anywhere(void **state)
{
	struct modes *m = *state;
	unsigned char *flat = malloc(MIB);
	uint64_t seed = 7;

	assert_non_null(flat);
	data_fill(flat, 1, 0, MIB);
	for (uint32_t id = 2; id < 60; id++) {
		uint64_t n = 1 + random_below(&seed, id % 2 ? 3 * BLOCK : 700);
		uint64_t at = random_below(&seed, MIB - n);

		assert_int_equal(put(m, m->none, id, at, n), 0);
		data_fill(flat + at, id, at, n);
	}
	for (unsigned i = 0; i < 60; i++) {
		uint64_t n = 1 + random_below(&seed, i % 2 ? 3 * BLOCK : 700);
		uint64_t at = random_below(&seed, MIB - n);
		struct ask *a = get(m, at, n);

		rig_run(m->r, NSEC_PER_MSEC);
		assert_true(a->answered);
		assert_memory_equal(a->buf, flat + at, n);
		assert_int_equal(ask_end(m->r, a), 0);
	}
	free(flat);
}

static void direct_writers_of_one_block_lose_nothing(void **state)
{
	struct modes *m = *state;
	struct ask *w[8];

	for (unsigned i = 0; i < 8; i++)
		w[i] = ask_of(m->r, i % 2 ? m->none : m->through, ENGINE_WRITE,
			i + 2, 0, i * 512, 512);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(ask_end(m->r, w[i]), 0);
	for (unsigned i = 0; i < 8; i++) {
		assert_true(got(m, get(m, i * 512, 512), i + 2));
		assert_true(rig_sees(m->r, i + 2, i * 512, 512));
	}
}

static void direct_reads_run_side_by_side(void **state)
{
	struct modes *m = *state;
	struct ask *a, *b;

	rig_hang(m->r, STORE_READ);
	a = get(m, 0, 2 * BLOCK);
	b = get(m, BLOCK, 2 * BLOCK);
	rig_run(m->r, NSEC_PER_MSEC);
	assert_int_equal(rig_count(m->r, STORE_READ), 2);
	rig_mend(m->r);
	assert_true(got(m, a, 1));
	assert_true(got(m, b, 1));
}

static void direct_writes_of_one_page_run_side_by_side(void **state)
{
	struct modes *m = *state;
	struct ask *w[4];

	rig_hang(m->r, STORE_WRITE);
	for (unsigned i = 0; i < 4; i++)
		w[i] = ask_of(
			m->r, m->none, ENGINE_WRITE, 2, 0, i * BLOCK, BLOCK);
	rig_run(m->r, NSEC_PER_MSEC);
	assert_int_equal(rig_count(m->r, STORE_WRITE), 4);
	rig_mend(m->r);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ask_end(m->r, w[i]), 0);
}

/* --- writethrough -------------------------------------------------------- */

static void writethrough_fua_is_no_more_than_a_flag(void **state)
{
	struct modes *m = *state;
	struct ask *a = ask_of(
		m->r, m->through, ENGINE_WRITE, 2, ENGINE_FUA, 0, 2 * BLOCK);

	assert_int_equal(ask_end(m->r, a), 0);
	assert_int_equal(rig_count(m->r, STORE_WRITE), 1);
	assert_int_equal(m->r->log[0].flags, STORE_FUA);
	assert_int_equal(rig_count(m->r, STORE_FLUSH), 0);
	assert_true(rig_durable(m->r, 2, 0, 2 * BLOCK));
	assert_int_equal(put(m, m->through, 3, 0, BLOCK), 0);
	assert_int_equal(rig_count(m->r, STORE_WRITE), 2);
	assert_int_equal(m->r->log[1].flags, 0);
	assert_int_equal(rig_count(m->r, STORE_FLUSH), 0);
}

static void failed_writethrough_is_told_and_kept(void **state)
{
	struct modes *m = *state;

	rig_break(m->r, STORE_WRITE, 1);
	assert_int_equal(put(m, m->through, 2, 0, 2 * BLOCK), -EIO);
	assert_true(rig_sees(m->r, 2, 0, 2 * BLOCK));
	assert_int_equal(rig_flush(m->r), 0);
	assert_true(rig_durable(m->r, 2, 0, 2 * BLOCK));
}

static void writethrough_zero_waits_for_its_ends(void **state)
{
	struct modes *m = *state;
	struct ask *a =
		ask_of(m->r, m->through, ENGINE_ZERO, 0, 0, 100, 2 * BLOCK);

	assert_int_equal(ask_end(m->r, a), 0);
	assert_int_equal(rig_count(m->r, STORE_ZERO), 1);
	assert_int_equal(rig_bytes(m->r, STORE_WRITE), 2 * BLOCK);
	assert_int_equal(stat_value(m->r->engine, "dirty_bytes"), 0);
}

/* --- one beside the other ------------------------------------------------ */

static void direct_read_sees_what_was_answered_elsewhere(void **state)
{
	struct modes *m = *state;

	assert_int_equal(put(m, m->back, 2, 0, 2 * BLOCK), 0);
	assert_true(got(m, get(m, 512, BLOCK), 2));
	assert_int_equal(put(m, m->none, 3, 0, 2 * BLOCK), 0);
	assert_true(rig_sees(m->r, 3, 0, 2 * BLOCK));
	assert_int_equal(put(m, m->through, 4, 0, 2 * BLOCK), 0);
	assert_true(got(m, get(m, 0, 2 * BLOCK), 4));
}

static void nothing_is_written_under_a_direct_read(void **state)
{
	struct modes *m = *state;
	struct ask *a, *flush, *other;

	rig_hang(m->r, STORE_READ);
	a = get(m, BLOCK, BLOCK);
	rig_run(m->r, NSEC_PER_MSEC);
	assert_int_equal(rig_count(m->r, STORE_READ), 1);
	/* the writer does not wait, its writing back does */
	assert_int_equal(put(m, m->back, 2, 0, 3 * BLOCK), 0);
	flush = ask(m->r, ENGINE_FLUSH, 0, 0, 0, 0);
	other = ask_of(m->r, m->none, ENGINE_WRITE, 3, 0, BLOCK, BLOCK);
	rig_run(m->r, 100 * NSEC_PER_MSEC);
	assert_int_equal(rig_bytes(m->r, STORE_WRITE), 2 * BLOCK);
	assert_false(flush->answered || other->answered);
	rig_mend(m->r);
	assert_true(got(m, a, 1));
	assert_int_equal(ask_end(m->r, flush), 0);
	assert_int_equal(ask_end(m->r, other), 0);
	assert_true(got(m, get(m, BLOCK, BLOCK), 3));
}

static void direct_read_waits_for_what_is_being_written(void **state)
{
	struct modes *m = *state;
	struct ask *flush, *a;

	assert_int_equal(put(m, m->back, 2, 0, BLOCK), 0);
	rig_hang(m->r, STORE_WRITE);
	flush = ask(m->r, ENGINE_FLUSH, 0, 0, 0, 0);
	rig_run(m->r, NSEC_PER_MSEC);
	a = get(m, 0, BLOCK);
	rig_run(m->r, 100 * NSEC_PER_MSEC);
	assert_int_equal(rig_count(m->r, STORE_READ), 0);
	rig_mend(m->r);
	assert_true(got(m, a, 2));
	assert_int_equal(ask_end(m->r, flush), 0);
}

/* Readers all the time do not keep a flush from ending. */
static void flush_ends_beside_a_stream_of_direct_reads(void **state)
{
	struct modes *m = *state;
	struct ask *flush, *a[4] = {NULL};
	struct store_fault_rule slow = {.action = STORE_FAULT_DELAY,
		.ops = STORE_FAULT_OP(STORE_READ),
		.delay_ns = NSEC_PER_MSEC};

	store_fault_set(m->r->store, &slow, 1);
	for (unsigned i = 0; i < 4; i++) {
		a[i] = get(m, 0, BLOCK);
		rig_run(m->r, NSEC_PER_MSEC / 4);
	}
	assert_int_equal(put(m, m->back, 2, 0, BLOCK), 0);
	flush = ask(m->r, ENGINE_FLUSH, 0, 0, 0, 0);
	for (unsigned i = 0; !flush->answered; i = (i + 1) % 4) {
		assert_true(reactor_now(m->r->loop) < 20 * NSEC_PER_SEC);
		if (a[i]->answered) {
			ask_end(m->r, a[i]);
			a[i] = get(m, 0, BLOCK);
		}
		rig_run(m->r, NSEC_PER_MSEC / 4);
	}
	assert_int_equal(ask_end(m->r, flush), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ask_end(m->r, a[i]), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(direct_requests_keep_no_page),
		T(direct_requests_may_begin_and_end_anywhere),
		T(direct_writers_of_one_block_lose_nothing),
		T(direct_reads_run_side_by_side),
		T(direct_writes_of_one_page_run_side_by_side),
		T(writethrough_fua_is_no_more_than_a_flag),
		T(failed_writethrough_is_told_and_kept),
		T(writethrough_zero_waits_for_its_ends),
		T(direct_read_sees_what_was_answered_elsewhere),
		T(nothing_is_written_under_a_direct_read),
		T(direct_read_waits_for_what_is_being_written),
		T(flush_ends_beside_a_stream_of_direct_reads),
	};

	return cmocka_run_group_tests_name("modes", tests, NULL, NULL);
}
