/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-sim-device.c: the devices that have a name do what is said of them,
 * each time beside what the model computes beforehand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "device.h"

/* --- in sequence ------------------------------------------------------------- */

static void assert_sequential(
	const char *spec, enum store_op op, double rate, uint64_t depth)
{
	struct device_load load = {
		.op = op, .count = 1000, .length = MIB, .depth = depth};
	struct store_pattern p = {.write = op == STORE_WRITE,
		.runs = 1,
		.length = 1000 * MIB,
		.command = MIB,
		.depth = depth};
	struct device d = device_open(spec);
	uint64_t took = device_run(&d, load);

	assert_near(spec, rate_of(&load, took), rate, 1);
	assert_near("  its bound", rate_of(&load, took),
		rate_of(&load, store_model_time(d.s, &p)), 1);
	device_close(&d);
}

static void profiles_have_their_bandwidth(void **state)
{
	(void)state;
	assert_sequential("sim:hdd,null:8G", STORE_WRITE, 60, 4);
	assert_sequential("sim:hdd,null:8G", STORE_READ, 60, 4);
	assert_sequential("sim:usb,null:8G", STORE_WRITE, 6.3, 4);
	assert_sequential("sim:usb,latency=0,null:8G", STORE_READ, 20, 1);
	assert_sequential("sim:ssd,null:8G", STORE_WRITE, 500, 4);
	assert_sequential("sim:ssd,null:8G", STORE_READ, 500, 4);
	assert_sequential("sim:nvme,null:8G", STORE_WRITE, 2200, 4);
	assert_sequential("sim:nvme,null:8G", STORE_READ, 3000, 4);
	assert_sequential("sim:msa,cache=off,null:8G", STORE_WRITE, 170, 16);
	assert_sequential("sim:msa,null:8G", STORE_READ, 170, 16);
}

static void options_after_a_profile_override_it(void **state)
{
	(void)state;
	assert_sequential(
		"sim:hdd,bandwidth=80000000,null:8G", STORE_READ, 80, 4);
	assert_sequential("sim:ssd,write-bandwidth=300000000,null:8G",
		STORE_WRITE, 300, 4);
	assert_sequential("sim:ssd,write-bandwidth=300000000,null:8G",
		STORE_READ, 500, 4);
}

static void an_array_absorbs_its_cache_and_then_keeps_its_speed(void **state)
{
	struct device_load burst = {
		.op = STORE_WRITE, .count = 32, .length = MIB, .depth = 16};
	struct device_load rest = {.op = STORE_WRITE,
		.count = 2000,
		.length = MIB,
		.depth = 16,
		.start = 32 * MIB};
	struct device d = device_open("sim:msa,null:8G");

	(void)state;
	/* 2 rounds of 200 us */
	assert_int_equal(device_run(&d, burst), 400 * NSEC_PER_USEC);
	assert_near("MB/s then", rate_of(&rest, device_run(&d, rest)), 170, 1);
	device_close(&d);
}

/* --- in any place ------------------------------------------------------------- */

static struct device_load scattered(
	enum store_op op, uint64_t count, uint64_t depth)
{
	return (struct device_load){.op = op,
		.count = count,
		.length = 4096,
		.depth = depth,
		.random = true,
		.seed = 5};
}

static double computed_iops(struct device *d, const struct device_load *load)
{
	struct store_pattern p = {.write = load->op == STORE_WRITE,
		.runs = load->count,
		.length = load->length,
		.depth = load->depth,
		.distance = STORE_ANYWHERE};

	return (double)load->count * 1e9 / (double)store_model_time(d->s, &p);
}

static double assert_random(const char *spec, struct device_load load)
{
	struct device d = device_open(spec);
	uint64_t took = device_run(&d, load);
	double iops = (double)load.count * 1e9 / (double)took;
	char what[100];

	snprintf(what, sizeof what, "%s, 4K at random, %u at once, IOPS", spec,
		(unsigned)load.depth);
	assert_near(what, iops, computed_iops(&d, &load), 5);
	device_close(&d);
	return iops;
}

static void a_random_seek_takes_the_profiles_average(void **state)
{
	const char *spec = "sim:hdd,bandwidth=0,latency=0,rotation=0,null:8G";
	uint64_t took = device_time(spec, scattered(STORE_READ, 5000, 1));

	(void)state;
	assert_near("average seek, ms", (double)took / 5000 / 1e6, 8, 5);
}

static void a_longer_way_takes_longer(void **state)
{
	uint64_t last = 0;

	(void)state;
	for (uint64_t gap = MIB; gap <= GIB; gap *= 4) {
		struct device_load load = {.op = STORE_READ,
			.count = 8,
			.length = 4096,
			.gap = gap};
		uint64_t took = device_time("sim:hdd,null:16G", load);

		/* 7 seeks; the shortest two are 0.1 ms apart */
		assert_true(took > last + 7 * 90 * NSEC_PER_USEC);
		last = took;
	}
}

static void random_reads_run_as_computed(void **state)
{
	(void)state;
	assert_random("sim:hdd,null:8G", scattered(STORE_READ, 3000, 1));
	assert_random("sim:hdd,null:8G", scattered(STORE_READ, 10000, 32));
	assert_random("sim:msa,null:8G", scattered(STORE_READ, 10000, 64));
	assert_random("sim:ssd,null:8G", scattered(STORE_READ, 10000, 1));
	assert_random("sim:ssd,null:8G", scattered(STORE_READ, 10000, 32));
	assert_random("sim:nvme,null:8G", scattered(STORE_READ, 10000, 1));
	assert_random("sim:nvme,null:8G", scattered(STORE_READ, 100000, 64));
	assert_random("sim:nvme,null:8G", scattered(STORE_WRITE, 10000, 1));
}

static void the_elevator_beats_first_come_first_served(void **state)
{
	const char *fifo = "sim:hdd,elevator=off,null:8G";
	struct device_load load = scattered(STORE_READ, 5000, 32);
	double before = assert_random(fifo, load);
	double after = assert_random("sim:hdd,null:8G", load);

	(void)state;
	assert_true(after > 1.5 * before);
	/* With nothing to choose from it is of no use. */
	load.depth = 1;
	assert_int_equal(
		device_time(fifo, load), device_time("sim:hdd,null:8G", load));
}

static void a_queue_deeper_than_the_device_gains_nothing(void **state)
{
	double full = assert_random(
		"sim:ssd,depth=8,null:8G", scattered(STORE_READ, 10000, 8));
	double over = assert_random(
		"sim:ssd,depth=8,null:8G", scattered(STORE_READ, 10000, 64));

	(void)state;
	assert_near("IOPS at 64 of 8", over, full, 0.1);
}

/* --- a stick ------------------------------------------------------------------- */

static void scattered_writes_cost_a_stick_an_erase_block(void **state)
{
	struct device_load ordered = {
		.op = STORE_WRITE, .count = 2560, .length = 4096};
	double seq = (double)device_time("sim:usb,latency=0,null:8G", ordered);
	double iops = assert_random(
		"sim:usb,latency=0,null:8G", scattered(STORE_WRITE, 300, 1));
	/* 4K written against 1M written and 1M - 4K read at 20 MB/s */
	double n = (MIB / 6.3 + (MIB - 4096) / 20.0) / (4096 / 6.3);

	(void)state;
	assert_near("times slower", 1e9 / iops / (seq / 2560), n, 5);
	assert_in_range(n, 300, 400);
}

/* 64K writes of so many streams in turn, MB/s. */
static double streams(const char *spec, unsigned n)
{
	struct device d = device_open(spec);
	uint64_t ns = 0;

	for (unsigned i = 0; i < 64 * n; i++) {
		struct device_load load = {.op = STORE_WRITE,
			.count = 1,
			.length = 64 * KIB,
			.start = (i % n) * GIB + i / n * 64 * KIB};

		ns += device_run(&d, load);
	}
	device_close(&d);
	return (double)(64 * n * 64 * KIB) * 1e3 / (double)ns;
}

static void a_stick_writes_a_few_streams_at_full_speed(void **state)
{
	const char *spec = "sim:usb,latency=0,null:8G";

	(void)state;
	assert_near("4 streams, MB/s", streams(spec, 4), 6.3, 0.1);
	/* Each write closes a block and opens another, 1M copied in all, but
	 * for the one in 16 that ends its block. */
	assert_near("5 streams, MB/s", streams(spec, 5),
		0.0625 / (0.0625 / 6.3 + 15 / 16.0 * (1 / 6.3 + 1 / 20.0)), 5);
	assert_near("5 streams in 5 open blocks, MB/s",
		streams("sim:usb,latency=0,open-blocks=5,null:8G", 5), 6.3,
		0.1);
}

/* --- repetition and cost ------------------------------------------------------------------------ */

static void a_run_repeats_to_the_nanosecond(void **state)
{
	const char *spec = "sim:hdd,cache=1M,erase-block=128K,null:8G";
	struct device_load load = scattered(STORE_WRITE, 1000, 16);

	(void)state;
	assert_int_equal(device_time(spec, load), device_time(spec, load));
}

static void a_minute_is_simulated_in_no_time(void **state)
{
	struct device_load load = {.op = STORE_WRITE,
		.count = 57220, /* a minute at 60 MB/s */
		.length = 64 * KIB,
		.depth = 32};
	clock_t start = clock();
	double s = (double)device_time("sim:hdd,null:8G", load) / 1e9;
	double cpu = (double)(clock() - start) / CLOCKS_PER_SEC;

	(void)state;
	assert_near("seconds simulated", s, 62.5, 1);
	print_message("# in %.3f s\n", cpu);
	assert_true(cpu < 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_have_their_bandwidth),
		cmocka_unit_test(options_after_a_profile_override_it),
		cmocka_unit_test(
			an_array_absorbs_its_cache_and_then_keeps_its_speed),
		cmocka_unit_test(a_random_seek_takes_the_profiles_average),
		cmocka_unit_test(a_longer_way_takes_longer),
		cmocka_unit_test(random_reads_run_as_computed),
		cmocka_unit_test(the_elevator_beats_first_come_first_served),
		cmocka_unit_test(a_queue_deeper_than_the_device_gains_nothing),
		cmocka_unit_test(scattered_writes_cost_a_stick_an_erase_block),
		cmocka_unit_test(a_stick_writes_a_few_streams_at_full_speed),
		cmocka_unit_test(a_run_repeats_to_the_nanosecond),
		cmocka_unit_test(a_minute_is_simulated_in_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
