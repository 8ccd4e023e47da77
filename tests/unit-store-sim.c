/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-store-sim.c: the device model keeps exactly the times it is given.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage.h"

#define MS NSEC_PER_MSEC

/* How long it takes until all of `n` such ios, started at once, are done. */
static uint64_t time_of(
	const char *spec, enum store_op op, uint64_t length, unsigned n)
{
	struct reactor *r = reactor_sim_new(n);
	struct store *s = store_must_open(spec);
	struct waited_io w[64];
	uint64_t took, start = reactor_now(r);
	char *buf = calloc(1, length ? length : 1);

	for (unsigned i = 0; i < n; i++)
		io_start(s, r, &w[i], op, i * length, length, buf, 0);
	while (reactor_sim_step(r))
		;
	for (unsigned i = 0; i < n; i++) {
		assert_true(w[i].done);
		assert_int_equal(w[i].io.error, 0);
	}
	took = reactor_now(r) - start;
	free(buf);
	store_close(s);
	reactor_free(r);
	return took;
}

static void one_command_takes_latency_and_transfer(void **state)
{
	const char *spec = "sim:bandwidth=1M,latency=5ms,mem:64M";

	(void)state;
	/* 64K at 1M/s: 62.5 ms */
	assert_int_equal(
		time_of(spec, STORE_WRITE, 64 * KIB, 1), 5 * MS + 62500000);
	assert_int_equal(
		time_of(spec, STORE_READ, 64 * KIB, 1), 5 * MS + 62500000);
	assert_int_equal(time_of(spec, STORE_FLUSH, 0, 1), 5 * MS);
	assert_int_equal(time_of(spec, STORE_TRIM, 16 * MIB, 1), 5 * MS);
}

static void transfers_share_the_bandwidth(void **state)
{
	const char *spec = "sim:bandwidth=1M,latency=5ms,depth=64,mem:64M";

	(void)state;
	assert_int_equal(
		time_of(spec, STORE_WRITE, MIB, 4), 4 * NSEC_PER_SEC + 5 * MS);
}

static void latency_overlaps_up_to_the_depth(void **state)
{
	(void)state;
	assert_int_equal(
		time_of("sim:latency=5ms,depth=4,mem:64M", STORE_READ, 4096, 4),
		5 * MS);
	assert_int_equal(time_of("sim:latency=5ms,depth=4,mem:64M", STORE_READ,
				 4096, 12),
		15 * MS);
	assert_int_equal(time_of("sim:latency=5ms,depth=4,mem:64M", STORE_READ,
				 4096, 13),
		20 * MS);
	assert_int_equal(
		time_of("sim:latency=5ms,depth=1,mem:64M", STORE_READ, 4096, 3),
		15 * MS);
}

static void without_options_it_takes_no_time(void **state)
{
	(void)state;
	assert_int_equal(time_of("sim:mem:64M", STORE_WRITE, MIB, 40), 0);
}

static void a_bus_that_was_idle_is_not_owed_anything(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct store *s = store_must_open("sim:bandwidth=1M,mem:8M");
	char *buf = calloc(1, MIB);
	uint64_t start;

	(void)state;
	io_do(s, r, STORE_WRITE, 0, MIB, buf, 0);
	reactor_sim_run_until(r, 100 * NSEC_PER_SEC);
	start = reactor_now(r);
	io_do(s, r, STORE_WRITE, 0, MIB, buf, 0);
	assert_int_equal(reactor_now(r) - start, NSEC_PER_SEC);
	free(buf);
	store_close(s);
	reactor_free(r);
}

static void status_asks_the_model_not_the_device(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct store *s = store_must_open("sim:latency=1h,mem:8M");
	struct store_extent extent;
	struct waited_io w = {.io = {
				      .op = STORE_STATUS,
				      .length = 8 * MIB,
				      .extents = &extent,
				      .nextents = 1,
				      .reactor = r,
				      .done = waited_io_done,
			      }};
	uint64_t start = reactor_now(r);

	(void)state;
	store_submit(s, &w.io);
	while (!w.done)
		assert_true(reactor_sim_step(r));
	assert_int_equal(reactor_now(r), start);
	assert_int_equal(w.io.nextents, 1);
	assert_int_equal(extent.length, 8 * MIB);
	assert_int_equal(extent.flags, STORE_HOLE | STORE_ZEROES);
	store_close(s);
	reactor_free(r);
}

static void data_in_the_device_is_not_there_yet(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct store *s = store_must_open("sim:latency=5ms,mem:8M");
	char out[512], in[512] = "";
	struct waited_io read, write;

	(void)state;
	memset(out, 'x', sizeof out);
	io_start(s, r, &read, STORE_READ, 0, 512, in, 0);
	reactor_sim_run_until(r, reactor_now(r) + 1 * MS);
	io_start(s, r, &write, STORE_WRITE, 0, 512, out, 0);
	while (!read.done)
		assert_true(reactor_sim_step(r));
	assert_false(write.done);
	assert_int_equal(in[0], 0);
	while (!write.done)
		assert_true(reactor_sim_step(r));
	assert_int_equal(io_do(s, r, STORE_READ, 0, 512, in, 0), 0);
	assert_int_equal(in[0], 'x');
	store_close(s);
	reactor_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_command_takes_latency_and_transfer),
		cmocka_unit_test(transfers_share_the_bandwidth),
		cmocka_unit_test(latency_overlaps_up_to_the_depth),
		cmocka_unit_test(without_options_it_takes_no_time),
		cmocka_unit_test(a_bus_that_was_idle_is_not_owed_anything),
		cmocka_unit_test(status_asks_the_model_not_the_device),
		cmocka_unit_test(data_in_the_device_is_not_there_yet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
