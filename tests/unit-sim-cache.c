/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-sim-cache.c: the write cache of a device model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device.h"

#define PLAIN "sim:bandwidth=10M,latency=1ms,depth=4,"
#define CACHED PLAIN "cache=16M,"

static struct device_load writes(uint64_t count)
{
	return (struct device_load){
		.op = STORE_WRITE, .count = count, .length = MIB, .depth = 4};
}

static const struct device_load flush = {.op = STORE_FLUSH, .count = 1};

static void a_burst_is_absorbed_at_once(void **state)
{
	(void)state;
	/* 16 writes, 4 at once, 1 ms each: nothing waits for the medium. */
	assert_int_equal(device_time(CACHED "null:1G", writes(16)), 4 * MS);
	assert_near("without it, ms",
		(double)device_time(PLAIN "null:1G", writes(16)) / MS, 1601,
		0.1);
}

static void what_follows_runs_at_the_mediums_speed(void **state)
{
	struct device d = device_open(CACHED "null:1G");
	struct device_load load = writes(500);
	struct store_pattern p = {.write = true, .runs = 484, .length = MIB};

	(void)state;
	/* The last 16 are answered from the cache. */
	assert_near("500 MiB through 16 MiB, s",
		(double)device_run(&d, load) / 1e9,
		(double)store_model_time(d.s, &p) / 1e9, 0.1);
	device_close(&d);
}

static void a_flush_waits_for_the_drain(void **state)
{
	struct device d = device_open(CACHED "null:1G");

	(void)state;
	/* 12 MiB at 10 MiB/s, of which 3 ms have passed; and its latency */
	assert_int_equal(device_run(&d, writes(12)), 3 * MS);
	assert_int_equal(device_run(&d, flush), 1200 * MS - 3 * MS + 1 * MS);
	assert_int_equal(device_run(&d, flush), 1 * MS);
	device_close(&d);
}

static void it_drains_while_nobody_asks(void **state)
{
	struct device d = device_open(CACHED "null:1G");

	(void)state;
	device_run(&d, writes(12));
	reactor_sim_run_until(d.r, reactor_now(d.r) + 600 * MS);
	assert_int_equal(
		device_run(&d, flush), 1200 * MS - 3 * MS - 600 * MS + 1 * MS);
	device_run(&d, writes(12));
	reactor_sim_run_until(d.r, reactor_now(d.r) + 3000 * MS);
	assert_int_equal(device_run(&d, writes(16)), 4 * MS);
	device_close(&d); /* with the cache full */
}

static void a_flush_does_not_wait_for_later_writes(void **state)
{
	struct device d = device_open(CACHED "null:1G");
	struct waited_io w, later[4];
	uint64_t start = reactor_now(d.r);

	(void)state;
	device_run(&d, writes(8));
	io_start(d.s, d.r, &w, STORE_FLUSH, 0, 0, NULL, 0);
	for (unsigned i = 0; i < 3; i++)
		io_start(d.s, d.r, &later[i], STORE_WRITE, 0, MIB, d.buf, 0);
	while (!w.done)
		assert_true(reactor_sim_step(d.r));
	assert_int_equal(reactor_now(d.r) - start, 800 * MS + 1 * MS);
	device_close(&d);
}

static void a_later_write_that_is_drained_sooner_ends_no_flush(void **state)
{
	struct device d =
		device_open("sim:bandwidth=10M,seek=1us,cache=16M,null:1G");
	struct waited_io write[3], w;
	uint64_t start = reactor_now(d.r);

	(void)state;
	io_start(d.s, d.r, &write[0], STORE_WRITE, 500 * MIB, MIB, d.buf, 0);
	io_start(d.s, d.r, &write[1], STORE_WRITE, 600 * MIB, MIB, d.buf, 0);
	io_start(d.s, d.r, &w, STORE_FLUSH, 0, 0, NULL, 0);
	io_start(d.s, d.r, &write[2], STORE_WRITE, 550 * MIB, MIB, d.buf, 0);
	while (!w.done)
		assert_true(reactor_sim_step(d.r));
	/* It is on the way to what the flush waits for. */
	assert_in_range(reactor_now(d.r) - start, 300 * MS, 301 * MS);
	device_close(&d);
}

static void a_battery_makes_flushes_cheap(void **state)
{
	struct device d = device_open(CACHED "battery=on,null:1G");
	struct device_load fua = writes(1);

	(void)state;
	fua.flags = STORE_FUA;
	device_run(&d, writes(12));
	assert_int_equal(device_run(&d, flush), 1 * MS);
	assert_int_equal(device_run(&d, fua), 1 * MS);
	device_close(&d);
}

static void what_must_be_durable_or_is_too_large_is_written_past_it(
	void **state)
{
	struct device_load load = writes(1);

	(void)state;
	load.flags = STORE_FUA;
	assert_int_equal(device_time(CACHED "null:1G", load), 101 * MS);
	load.flags = 0;
	load.length = 20 * MIB;
	assert_int_equal(device_time(CACHED "null:1G", load), 2001 * MS);
}

static void reads_go_before_the_drain(void **state)
{
	struct device d = device_open(CACHED "null:1G");
	struct device_load read = {.op = STORE_READ, .count = 1, .length = MIB};

	(void)state;
	device_run(&d, writes(16));
	/* At 4 ms: the write that has begun, 96 ms; then the read, 100 ms. */
	assert_int_equal(device_run(&d, read), 96 * MS + 100 * MS + 1 * MS);
	device_close(&d);
}

static void reads_and_a_flush_take_turns(void **state)
{
	struct device d = device_open(CACHED "null:1G");
	struct device_load read = {
		.op = STORE_READ, .count = 8, .length = MIB, .depth = 2};
	struct waited_io w;

	(void)state;
	device_run(&d, writes(4));
	io_start(d.s, d.r, &w, STORE_FLUSH, 0, 0, NULL, 0);
	device_run(&d, read);
	assert_true(w.done); /* after 4 writes and as many reads */
	device_close(&d);
}

static void the_drain_is_in_order_of_offset(void **state)
{
	const char *spec = "sim:hdd,latency=0,cache=16M,null:8G";
	struct device_load load = {.op = STORE_WRITE,
		.count = 2000,
		.length = 64 * KIB,
		.depth = 4,
		.random = true,
		.seed = 3};
	struct store_pattern p = {.write = true,
		.runs = 2000 - 256,
		.length = 64 * KIB,
		.distance = STORE_ANYWHERE};
	struct device d = device_open(spec);
	double cached = (double)device_run(&d, load);
	double off = (double)device_time("sim:hdd,latency=0,null:8G", load);

	(void)state;
	assert_near("random writes through a cache, s", cached / 1e9,
		(double)store_model_time(d.s, &p) / 1e9, 5);
	print_message("# without it %.3g s\n", off / 1e9);
	assert_true(cached * 1.2 < off);
	device_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_is_absorbed_at_once),
		cmocka_unit_test(what_follows_runs_at_the_mediums_speed),
		cmocka_unit_test(a_flush_waits_for_the_drain),
		cmocka_unit_test(it_drains_while_nobody_asks),
		cmocka_unit_test(a_flush_does_not_wait_for_later_writes),
		cmocka_unit_test(
			a_later_write_that_is_drained_sooner_ends_no_flush),
		cmocka_unit_test(a_battery_makes_flushes_cheap),
		cmocka_unit_test(
			what_must_be_durable_or_is_too_large_is_written_past_it),
		cmocka_unit_test(reads_go_before_the_drain),
		cmocka_unit_test(reads_and_a_flush_take_turns),
		cmocka_unit_test(the_drain_is_in_order_of_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
