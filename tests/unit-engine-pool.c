/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-engine-pool.c: an engine over a thin pool: who is told that it is full,
 * what a flush costs, what is there when it is opened again.
 */
#include <errno.h>

#include "placement/placement.h"
#include "rig.h"

#define STORE (8 * MIB)
#define DEVICE (64 * MIB)
#define PIECE (256 * KIB)

static struct rig *pool_rig(void)
{
	struct pool_geometry g = {.logical_size = DEVICE};
	struct rig *r = rig_new(STORE);
	struct error error = {""};
	struct store *s;
	char spec[160];

	if (store_open(r->config.store, 0, &s, &error) ||
		pool_format(s, &g, &error))
		fail_msg("%s", error.text);
	store_close(s);
	snprintf(spec, sizeof(spec), "pool:[%s]", r->config.store);
	free(r->config.store);
	r->config.store = strdup(spec);
	r->config.cache_size = 4 * MIB;
	return r;
}

/* Shut down and open the same pool with the same settings. */
static void reopen(struct rig *r)
{
	assert_int_equal(rig_shutdown(r, 0), 0);
	engine_close(r->engine);
	reactor_free(r->loop);
	rig_open(r);
}

/* Write piece after piece until one does not fit; how many did. */
static unsigned fill(struct rig *r, uint64_t from)
{
	unsigned n = 0;
	int err;

	do
		err = rig_write(r, 7, from + n++ * PIECE, PIECE);
	while (!err);
	assert_int_equal(err, -ENOSPC);
	return n - 1;
}

static void data_is_there_when_opened_again(void **state)
{
	struct rig *r = pool_rig();

	(void)state;
	rig_open(r);
	assert_int_equal(rig_write(r, 3, 10 * MIB + 512, MIB), 0);
	assert_int_equal(rig_write(r, 4, 11 * MIB, 100), 0);
	assert_true(rig_sees(r, 0, 0, MIB));
	reopen(r);
	assert_true(rig_sees(r, 0, 10 * MIB, 512));
	assert_true(rig_sees(r, 3, 10 * MIB + 512, MIB - 512));
	assert_true(rig_sees(r, 4, 11 * MIB, 100));
	assert_true(rig_sees(r, 3, 11 * MIB + 100, 412));
	assert_true(rig_sees(r, 0, 11 * MIB + 512, MIB));
	assert_int_equal(stat_value(r->engine, "extents"), 1);
	rig_free(r);
}

static void a_flush_costs_two_flushes_of_the_store(void **state)
{
	struct rig *r = pool_rig();

	(void)state;
	rig_open(r);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(rig_write(r, 2, i * MIB, 4 * KIB), 0);
	rig_record(r);
	assert_int_equal(rig_flush(r), 0);
	assert_int_equal(rig_count(r, STORE_FLUSH), 2);
	assert_int_equal(stat_value(r->engine, "journal_commits"), 1);
	rig_free(r);
}

static void a_full_pool_is_the_writers_error(void **state)
{
	struct rig *r = pool_rig();
	unsigned n;

	(void)state;
	rig_open(r);
	n = fill(r, 0);
	assert_true(n * PIECE > STORE * 9 / 10 - PIECE);
	/* What was answered is written back, whatever else is asked. */
	assert_int_equal(rig_write(r, 8, 50 * MIB, PIECE), -ENOSPC);
	assert_int_equal(rig_write(r, 9, 0, PIECE), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_int_equal(stat_value(r->engine, "store_errors"), 0);
	assert_int_equal(stat_value(r->engine, "reserved_bytes"), 0);
	assert_true(rig_sees(r, 9, 0, PIECE));
	assert_true(rig_sees(r, 7, PIECE, (n - 1) * PIECE));
	assert_true(rig_sees(r, 0, 50 * MIB, PIECE));
	reopen(r);
	assert_true(rig_sees(r, 9, 0, PIECE));
	assert_true(rig_sees(r, 7, PIECE, (n - 1) * PIECE));
	rig_free(r);
}

static void a_full_pool_is_a_direct_writers_error(void **state)
{
	struct rig *r = pool_rig();
	struct engine_export *direct;
	unsigned n;

	(void)state;
	rig_open(r);
	direct = engine_export_new(r->engine, false, ENGINE_NONE);
	n = fill(r, 0);
	assert_int_equal(ask_end(r,
				 ask_of(r, direct, ENGINE_WRITE, 5, 0,
					 n * PIECE, PIECE)),
		-ENOSPC);
	assert_int_equal(ask_end(r,
				 ask_of(r, direct, ENGINE_WRITE, 5, 0,
					 (n - 1) * PIECE, PIECE)),
		0);
	assert_true(rig_sees(r, 5, (n - 1) * PIECE, PIECE));
	rig_free(r);
}

static void trimmed_space_can_be_written(void **state)
{
	struct rig *r = pool_rig();
	unsigned n;

	(void)state;
	rig_open(r);
	n = fill(r, 0);
	/* Half of it was never written back: its promise is given up. */
	assert_int_equal(rig_do(r, ENGINE_TRIM, 0, 0, n * PIECE), 0);
	assert_int_equal(fill(r, 32 * MIB), n);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_sees(r, 0, 0, n * PIECE));
	assert_true(rig_sees(r, 7, 32 * MIB, n * PIECE));
	assert_int_equal(stat_value(r->engine, "reserved_bytes"), 0);
	rig_free(r);
}

static void zeroes_free_what_was_promised(void **state)
{
	struct rig *r = pool_rig();

	(void)state;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, 0, MIB), 0);
	assert_int_equal(stat_value(r->engine, "reserved_bytes"), MIB);
	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, 0, MIB), 0);
	assert_int_equal(stat_value(r->engine, "reserved_bytes"), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_int_equal(stat_value(r->engine, "mapped_bytes"), 0);
	rig_free(r);
}

static void blocks_smaller_than_a_unit_are_refused(void **state)
{
	struct rig *r = pool_rig();
	struct error error = {""};

	(void)state;
	r->loop = reactor_sim_new(1);
	r->config.block_size = 512;
	assert_int_equal(engine_config_check(&r->config, &error), 0);
	assert_int_equal(
		engine_open(&r->config, &r->loop, 1, &r->engine, &error),
		-EINVAL);
	assert_non_null(strstr(error.text, "block-size=512"));
	assert_non_null(strstr(error.text, "4096"));
	r->engine = NULL;
	rig_close(r);
}

/* A block of 64K of which 4K are written is promised space as a whole. */
static void large_blocks_are_promised_whole(void **state)
{
	struct rig *r = pool_rig();

	(void)state;
	r->config.block_size = 64 * KIB;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, 68 * KIB, 4 * KIB), 0);
	assert_int_equal(stat_value(r->engine, "reserved_bytes"), 64 * KIB);
	assert_int_equal(rig_flush(r), 0);
	assert_int_equal(stat_value(r->engine, "mapped_bytes"), 64 * KIB);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_is_there_when_opened_again),
		cmocka_unit_test(a_flush_costs_two_flushes_of_the_store),
		cmocka_unit_test(a_full_pool_is_the_writers_error),
		cmocka_unit_test(a_full_pool_is_a_direct_writers_error),
		cmocka_unit_test(trimmed_space_can_be_written),
		cmocka_unit_test(zeroes_free_what_was_promised),
		cmocka_unit_test(blocks_smaller_than_a_unit_are_refused),
		cmocka_unit_test(large_blocks_are_promised_whole),
	};

	return cmocka_run_group_tests_name("engine-pool", tests, NULL, NULL);
}
