/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-sim-model.c: the arithmetic of the device models.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device.h"
#include "store/sim-model.h"

static const struct sim_model disk = {
	.read_bandwidth = 100000000,
	.write_bandwidth = 50000000,
	.depth = 32,
	.seek_ns = 8 * MS,
	.settle_ns = 1 * MS,
	.rotation_ns = 6 * MS,
	.elevator = true,
	.size = 1000 * MIB,
};

/* A copied byte takes 10 ns to read and 20 ns to write. */
static const struct sim_model stick = {
	.read_bandwidth = 100000000,
	.write_bandwidth = 50000000,
	.depth = 1,
	.erase_block = MIB,
	.open_blocks = 2,
	.size = 1000 * MIB,
};

#define COPY_NS 30

/* --- seeks ----------------------------------------------------------------- */

static void the_mean_seek_is_the_one_given(void **state)
{
	const unsigned n = 1000;
	double sum = 0;

	(void)state;
	/* Over all pairs of n places: n - d of them are d apart, both ways. */
	for (unsigned d = 1; d < n; d++)
		sum += 2.0 * (n - d) *
			(double)sim_model_seek(&disk, d * (disk.size / n));
	assert_near("mean seek, ms", sum / n / n / 1e6, 8, 0.5);
}

static void a_seek_grows_with_its_distance(void **state)
{
	uint64_t last = disk.settle_ns;

	(void)state;
	for (uint64_t d = 4096; d <= disk.size; d *= 2) {
		uint64_t ns = sim_model_seek(&disk, d);

		assert_true(ns > last);
		last = ns;
	}
	/* settle + (8 - 1) ms * 15/8 * sqrt(distance / size) */
	assert_in_range(
		sim_model_seek(&disk, disk.size), 14.125 * MS - 2, 14.125 * MS);
	assert_in_range(sim_model_seek(&disk, disk.size / 4), 7.5625 * MS - 2,
		7.5625 * MS);
}

static void going_on_is_free_and_a_short_gap_passes_by(void **state)
{
	struct sim_head h = {.position = 100 * MIB};

	(void)state;
	assert_int_equal(
		sim_model_access(&disk, &h, false, 100 * MIB, 100000), 1 * MS);
	/* 100000 bytes pass in 1 ms, sooner than settle and half a turn. */
	assert_int_equal(
		sim_model_access(&disk, &h, false, h.position + 100000, 100000),
		2 * MS);
	/* Back by as much it has to seek. */
	assert_in_range(
		sim_model_access(&disk, &h, false, h.position - 200000, 100000),
		5 * MS, 6 * MS);
	/* So it has to go far ahead. */
	assert_in_range(sim_model_access(
				&disk, &h, false, h.position + 2 * MIB, 100000),
		5 * MS, 6 * MS);
	assert_int_equal(
		sim_model_access(&disk, &h, true, h.position, 100000), 2 * MS);
}

/* --- erase blocks ------------------------------------------------------------ */

/* Write; returns how many bytes were copied. */
static uint64_t copied(struct sim_head *h, uint64_t offset, uint64_t length)
{
	uint64_t ns = sim_model_access(&stick, h, true, offset, length);

	ns -= length * 20;
	assert_int_equal(ns % COPY_NS, 0);
	return ns / COPY_NS;
}

static void writing_on_in_an_erase_block_copies_nothing(void **state)
{
	struct sim_head h = {0};

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(copied(&h, i * 100 * KIB, 100 * KIB), 0);
	assert_int_equal(copied(&h, 4000 * KIB, 5 * MIB), 0);
}

static void as_many_streams_as_open_blocks_copy_nothing(void **state)
{
	struct sim_head h = {0};

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		assert_int_equal(copied(&h, i * 64 * KIB, 64 * KIB), 0);
		assert_int_equal(
			copied(&h, 500 * MIB + i * 64 * KIB, 64 * KIB), 0);
	}
}

static void one_stream_more_copies_the_rest_of_blocks(void **state)
{
	struct sim_head h = {0};

	(void)state;
	copied(&h, 0, 64 * KIB);
	copied(&h, 10 * MIB, 64 * KIB);
	/* The first block is closed: its rest is copied. */
	assert_int_equal(copied(&h, 20 * MIB, 64 * KIB), MIB - 64 * KIB);
	/* It is opened again: its beginning, and the rest of the second. */
	assert_int_equal(copied(&h, 64 * KIB, 64 * KIB), MIB);
}

static void gaps_and_steps_back_copy_what_they_must(void **state)
{
	struct sim_head h = {0};

	(void)state;
	assert_int_equal(copied(&h, 100 * KIB, 4 * KIB), 100 * KIB);
	assert_int_equal(copied(&h, 200 * KIB, 4 * KIB), 96 * KIB);
	/* Back: the block is closed, and opened up to there. */
	assert_int_equal(
		copied(&h, 200 * KIB, 4 * KIB), MIB - 204 * KIB + 200 * KIB);
	assert_int_equal(h.nopen, 1);
}

static void reads_copy_nothing(void **state)
{
	struct sim_head h = {0};

	(void)state;
	assert_int_equal(
		sim_model_access(&stick, &h, false, 100 * KIB, 4096), 40960);
	assert_int_equal(h.nopen, 0);
}

/* --- patterns ---------------------------------------------------------------- */

/* The pattern's time, and the sum of its accesses. */
static void assert_pattern(const struct sim_model *m, bool write, uint64_t runs,
	uint64_t length, uint64_t distance)
{
	struct store_pattern p = {
		.write = write,
		.runs = runs,
		.length = length,
		.distance = distance,
	};
	struct sim_head h = {0};
	uint64_t sum = 0;

	for (uint64_t i = 0; i < runs; i++)
		sum += sim_model_access(
			m, &h, write, i * (length + distance), length);
	assert_near(write ? "writes, ns" : "reads, ns",
		(double)sim_model_time(m, &p), (double)sum, 1);
}

static void a_pattern_takes_what_its_accesses_take(void **state)
{
	(void)state;
	assert_pattern(&disk, false, 800, MIB, 0);
	assert_pattern(&disk, true, 800, 64 * KIB, 0);
	assert_pattern(&disk, true, 500, 64 * KIB, 32 * KIB);
	assert_pattern(&disk, false, 500, 64 * KIB, MIB);
	assert_pattern(&stick, true, 500, 128 * KIB, 0);
	assert_pattern(&stick, true, 300, MIB, MIB);
	assert_pattern(&stick, true, 300, 4 * KIB, 3 * MIB - 4 * KIB);
	assert_pattern(
		&stick, true, 300, 2 * MIB + 64 * KIB, 2 * MIB - 64 * KIB);
}

static void latency_limits_what_the_depth_does_not_hide(void **state)
{
	struct sim_model m = {
		.read_bandwidth = 1000000000,
		.read_latency_ns = 96 * NSEC_PER_USEC,
		.depth = 32,
	};
	struct store_pattern p = {
		.runs = 1000, .length = 4000, .depth = 1, .distance = 1};

	(void)state;
	assert_int_equal(sim_model_time(&m, &p), 100 * MS);
	p.depth = 4;
	assert_int_equal(sim_model_time(&m, &p), 25 * MS);
	p.depth = 0; /* 32: the medium is the limit */
	assert_int_equal(sim_model_time(&m, &p), 4 * MS);
	p.depth = 1;
	p.command = 1000; /* four commands a run */
	assert_int_equal(sim_model_time(&m, &p), 388 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_mean_seek_is_the_one_given),
		cmocka_unit_test(a_seek_grows_with_its_distance),
		cmocka_unit_test(going_on_is_free_and_a_short_gap_passes_by),
		cmocka_unit_test(writing_on_in_an_erase_block_copies_nothing),
		cmocka_unit_test(as_many_streams_as_open_blocks_copy_nothing),
		cmocka_unit_test(one_stream_more_copies_the_rest_of_blocks),
		cmocka_unit_test(gaps_and_steps_back_copy_what_they_must),
		cmocka_unit_test(reads_copy_nothing),
		cmocka_unit_test(a_pattern_takes_what_its_accesses_take),
		cmocka_unit_test(latency_limits_what_the_depth_does_not_hide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
