/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-engine.c: faults other servers and caches had, on this engine.
 */
#include <errno.h>
#include <stdlib.h>

#include "rig.h"

/* A well-known cache lost most of it, silently. */
static void big_write_through_a_tiny_cache(void **state)
{
	struct rig *r = rig_new(32 * MIB);

	(void)state;
	r->config.cache_size = MIB;
	rig_open(r);
	for (uint64_t at = 0; at < 32 * MIB; at += MIB)
		assert_int_equal(rig_write(r, 2, at, MIB), 0);
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, 0, 32 * MIB));
	for (uint64_t at = 0; at < 32 * MIB; at += MIB)
		assert_true(rig_sees(r, 2, at, MIB));
	assert_true(stat_value(r->engine, "dirty_peak_bytes") <= MIB / 2);
	assert_true(stat_value(r->engine, "cached_bytes") <= MIB);
	rig_free(r);
}

static void one_request_of_the_largest_size(void **state)
{
	struct rig *r = rig_new(40 * MIB);

	(void)state;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, 4 * MIB + 77, ENGINE_MAX_REQUEST), 0);
	assert_true(rig_sees(r, 2, 4 * MIB + 77, ENGINE_MAX_REQUEST));
	assert_true(rig_sees(r, 1, 0, 4 * MIB + 77));
	assert_true(rig_sees(r, 1, 36 * MIB + 77, 4 * MIB - 77));
	rig_free(r);
}

static void pieces_of_one_block_all_arrive(void **state)
{
	struct rig *r = rig_new(MIB);
	struct ask *a[8];

	(void)state;
	rig_open(r);
	for (uint32_t i = 0; i < 8; i++)
		a[i] = ask(r, ENGINE_WRITE, 10 + i, 0, 8192 + 512 * i, 512);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(ask_end(r, a[i]), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(rig_sees(r, 10 + i, 8192 + 512 * i, 512));
	assert_int_equal(rig_flush(r), 0);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(rig_durable(r, 10 + i, 8192 + 512 * i, 512));
	rig_free(r);
}

static void unaligned_writes_are_seen_through_another_export(void **state)
{
	struct rig *r = rig_new(MIB);
	struct engine_export *other;

	(void)state;
	rig_open(r);
	other = engine_export_new(r->engine, true, ENGINE_WRITEBACK);
	assert_int_equal(rig_write(r, 2, 0, 3 * 4096), 0);
	assert_int_equal(rig_write(r, 3, 100, 3 * 4096), 0);
	assert_true(rig_sees_through(r, other, 2, 0, 100));
	assert_true(rig_sees_through(r, other, 3, 100, 3 * 4096));
	assert_true(rig_sees_through(r, other, 1, 100 + 3 * 4096, 65536));
	rig_free(r);
}

static void exports_of_every_mode_are_coherent(void **state)
{
	static const enum engine_cache_mode modes[] = {
		ENGINE_WRITEBACK, ENGINE_WRITETHROUGH, ENGINE_NONE};
	struct rig *r = rig_new(MIB);
	struct engine_export *x[3];
	uint32_t id = 2;

	(void)state;
	rig_open(r);
	for (unsigned i = 0; i < 3; i++)
		x[i] = engine_export_new(r->engine, false, modes[i]);
	for (unsigned i = 0; i < 9; i++, id++) {
		struct ask *a = ask_of(r, x[i / 3], ENGINE_WRITE, id, 0,
			4096 + 100 * i, 20000);

		assert_int_equal(ask_end(r, a), 0);
		assert_true(rig_sees_through(
			r, x[i % 3], id, 4096 + 100 * i, 20000));
	}
	rig_free(r);
}

static void trim_in_the_middle_keeps_its_neighbours(void **state)
{
	struct rig *r = rig_new(128 * MIB);
	uint64_t at = 67109888, length = 8 * MIB;

	(void)state;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, at - 8192, 16384), 0);
	assert_int_equal(rig_write(r, 3, at + length - 8192, 16384), 0);
	assert_int_equal(rig_do(r, ENGINE_TRIM, 0, at, length), 0);
	assert_true(rig_sees(r, 2, at - 8192, 8192));
	assert_true(rig_sees(r, 0, at, length));
	assert_true(rig_sees(r, 3, at + length, 8192));
	assert_true(rig_sees(r, 1, at - 65536, 65536 - 8192));
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, at - 8192, 8192));
	assert_true(rig_durable(r, 3, at + length, 8192));
	rig_free(r);
}

static void range_past_the_end_is_refused_and_life_goes_on(void **state)
{
	struct rig *r = rig_new(MIB);

	(void)state;
	rig_open(r);
	assert_int_equal(
		rig_do(r, ENGINE_READ, 0, UINT64_MAX - 511, 4096), -EINVAL);
	assert_int_equal(rig_do(r, ENGINE_READ, 0, MIB - 512, 1024), -EINVAL);
	assert_int_equal(rig_do(r, ENGINE_READ, 0, MIB, 1), -EINVAL);
	assert_int_equal(
		rig_do(r, ENGINE_TRIM, 0, UINT64_MAX - 511, 512), -EINVAL);
	assert_int_equal(rig_do(r, ENGINE_ZERO, 0, 0, MIB + 1), -ENOSPC);
	assert_int_equal(rig_do(r, ENGINE_CACHE, 0, MIB, 512), -EINVAL);
	assert_int_equal(rig_do(r, ENGINE_STATUS, 0, MIB, 512), -EINVAL);
	assert_int_equal(rig_write(r, 2, MIB - 512, 1024), -ENOSPC);
	assert_true(rig_sees(r, 1, 0, MIB));
	rig_free(r);
}

static void last_sector_of_an_odd_size(void **state)
{
	uint64_t size = 512 * 2049;
	struct rig *r = rig_new(size);
	struct engine_info info;

	(void)state;
	rig_open(r);
	engine_export_info(r->export, &info);
	assert_int_equal(info.size, size);
	assert_true(rig_sees(r, 1, size - 512, 512));
	assert_int_equal(rig_write(r, 2, size - 512, 512), 0);
	assert_int_equal(rig_write(r, 3, size - 1, 1), 0);
	assert_true(rig_sees(r, 2, size - 512, 511));
	assert_true(rig_sees(r, 3, size - 1, 1));
	assert_true(rig_sees(r, 1, size - 4096, 4096 - 512));
	assert_int_equal(rig_flush(r), 0);
	assert_true(rig_durable(r, 2, size - 512, 511));
	assert_true(rig_durable(r, 3, size - 1, 1));
	rig_free(r);
}

static void request_over_the_limit_on_a_full_cache_goes_through(void **state)
{
	struct rig *r = rig_new(8 * MIB);
	struct ask *big;

	(void)state;
	r->config.dirty_limit = MIB;
	r->config.cache_size = 2 * MIB;
	rig_open(r);
	rig_hang(r, STORE_WRITE);
	assert_int_equal(rig_write(r, 2, 0, MIB / 2), 0);
	big = ask(r, ENGINE_WRITE, 3, 0, MIB, 5 * MIB);
	rig_run(r, 10 * NSEC_PER_SEC);
	assert_false(big->answered);
	assert_true(stat_value(r->engine, "dirty_peak_bytes") <= MIB);
	rig_mend(r);
	assert_int_equal(ask_end(r, big), 0);
	assert_true(rig_sees(r, 2, 0, MIB / 2));
	assert_true(rig_sees(r, 3, MIB, 5 * MIB));
	assert_true(stat_value(r->engine, "dirty_peak_bytes") <= MIB);
	rig_free(r);
}

/* The id that all of [offset, offset + length) has, of the two; else 0. */
static uint32_t whose(
	struct rig *r, uint32_t a, uint32_t b, uint64_t offset, uint64_t length)
{
	if (rig_sees(r, a, offset, length))
		return a;
	return rig_sees(r, b, offset, length) ? b : 0;
}

static void overlapping_writes_end_as_one_of_them_per_block(void **state)
{
	struct rig *r = rig_new(2 * MIB);

	(void)state;
	rig_open(r);
	for (uint32_t i = 0; i < 20; i++) {
		uint64_t at = 512 * (uint64_t)i;
		struct ask *a = ask(r, ENGINE_WRITE, 10 + i, 0, at, 300 * KIB);
		struct ask *b =
			ask(r, ENGINE_WRITE, 50 + i, 0, 64 * KIB, 300 * KIB);

		assert_int_equal(ask_end(r, a), 0);
		assert_int_equal(ask_end(r, b), 0);
		for (uint64_t k = 68 * KIB; k < 296 * KIB; k += 4096)
			assert_int_not_equal(
				whose(r, 10 + i, 50 + i, k, 4096), 0);
	}
	rig_free(r);
}

static void client_that_only_read_goes_at_once(void **state)
{
	struct rig *r = rig_new(8 * MIB);
	struct engine_client *reader;
	struct ask *a;

	(void)state;
	rig_open(r);
	reader = engine_client_get(r->engine, "10.0.0.7");
	assert_int_equal(rig_write(r, 2, 0, MIB / 2), 0);
	rig_hang(r, STORE_WRITE);
	rig_record(r);
	a = ask(r, ENGINE_READ, 0, 0, 0, 4096);
	a->req.client = reader;
	assert_true(a->inline_hit);
	assert_int_equal(ask_end(r, a), 0);
	engine_client_put(reader);
	assert_int_equal(rig_count(r, STORE_FLUSH), 0);
	rig_free(r);
}

static void same_identity_is_the_same_client(void **state)
{
	struct rig *r = rig_new(MIB);
	struct engine_client *a, *b, *c;

	(void)state;
	rig_open(r);
	a = engine_client_get(r->engine, "10.0.0.7");
	b = engine_client_get(r->engine, "10.0.0.7");
	c = engine_client_get(r->engine, "10.0.0.8");
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	engine_client_put(a);
	engine_client_put(b);
	engine_client_put(c);
	rig_free(r);
}

static void readonly_export_changes_nothing(void **state)
{
	struct rig *r = rig_new(MIB);
	struct engine_export *x;
	struct engine_info info;

	(void)state;
	rig_open(r);
	x = engine_export_new(r->engine, true, ENGINE_WRITEBACK);
	engine_export_info(x, &info);
	assert_true(info.readonly);
	assert_int_equal(
		ask_end(r, ask_of(r, x, ENGINE_WRITE, 2, 0, 0, 512)), -EROFS);
	assert_int_equal(
		ask_end(r, ask_of(r, x, ENGINE_TRIM, 0, 0, 0, 512)), -EROFS);
	assert_int_equal(
		ask_end(r, ask_of(r, x, ENGINE_ZERO, 0, 0, 0, 512)), -EROFS);
	assert_true(rig_sees_through(r, x, 1, 0, MIB));
	rig_free(r);
}

static void shutdown_writes_everything_and_refuses_what_comes_later(
	void **state)
{
	struct rig *r = rig_new(MIB);

	(void)state;
	rig_open(r);
	assert_int_equal(rig_write(r, 2, 1000, 100000), 0);
	assert_int_equal(rig_shutdown(r, 0), 0);
	assert_true(rig_durable(r, 2, 1000, 100000));
	assert_int_equal(rig_do(r, ENGINE_READ, 0, 0, 512), -ESHUTDOWN);
	assert_int_equal(rig_write(r, 3, 0, 512), -ESHUTDOWN);
	rig_close(r);
}

static void engine_on_a_bad_store_says_why(void **state)
{
	struct rig *r = rig_new(MIB);
	struct error error = {""};
	struct engine *e;

	(void)state;
	rig_open(r);
	free(r->config.store);
	r->config.store = strdup("raw:/nonexistent/disk.img");
	assert_int_equal(
		engine_open(&r->config, &r->loop, 1, &e, &error), -ENOENT);
	assert_non_null(strstr(error.text, "raw:/nonexistent/disk.img"));
	assert_non_null(strstr(error.text, "No such file or directory"));
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(big_write_through_a_tiny_cache),
		cmocka_unit_test(one_request_of_the_largest_size),
		cmocka_unit_test(pieces_of_one_block_all_arrive),
		cmocka_unit_test(
			unaligned_writes_are_seen_through_another_export),
		cmocka_unit_test(exports_of_every_mode_are_coherent),
		cmocka_unit_test(trim_in_the_middle_keeps_its_neighbours),
		cmocka_unit_test(
			range_past_the_end_is_refused_and_life_goes_on),
		cmocka_unit_test(last_sector_of_an_odd_size),
		cmocka_unit_test(
			request_over_the_limit_on_a_full_cache_goes_through),
		cmocka_unit_test(
			overlapping_writes_end_as_one_of_them_per_block),
		cmocka_unit_test(client_that_only_read_goes_at_once),
		cmocka_unit_test(same_identity_is_the_same_client),
		cmocka_unit_test(readonly_export_changes_nothing),
		cmocka_unit_test(
			shutdown_writes_everything_and_refuses_what_comes_later),
		cmocka_unit_test(engine_on_a_bad_store_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
