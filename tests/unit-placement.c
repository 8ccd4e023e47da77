/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-placement.c: raw: block n of the device is block n of the store.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cached.h"

static int setup(void **state)
{
	*state = cached_new(MIB + 512, MIB, PAGE, BLOCK);
	return 0;
}

static int teardown(void **state)
{
	cached_free(*state);
	return 0;
}

static int place(struct cached *c, enum store_op op, uint64_t offset,
	uint64_t length, void *data, unsigned flags)
{
	struct waited_io w = {.iov = {data, length}};

	w.io = (struct store_io){.op = op,
		.flags = flags,
		.offset = offset,
		.length = length,
		.iov = &w.iov,
		.niov = 1,
		.reactor = c->loop,
		.done = waited_io_done};
	placement_submit(c->placement, &w.io);
	assert_false(w.done);
	while (!w.done)
		assert_true(reactor_sim_step(c->loop));
	return w.io.error;
}

static void device_is_as_the_store(void **state)
{
	struct cached *c = *state;

	assert_string_equal(c->placement->ops->kind, "raw");
	assert_int_equal(c->placement->info.size, MIB + 512);
	assert_memory_equal(&c->placement->info, &c->store->info,
		sizeof(struct store_info));
}

static void data_is_where_it_is_on_the_store(void **state)
{
	struct cached *c = *state;
	unsigned char buf[1024];

	data_put(buf, 2, MIB - 512, 1024);
	assert_int_equal(
		place(c, STORE_WRITE, MIB - 512, 1024, buf, STORE_FUA), 0);
	assert_int_equal(asked(c, STORE_WRITE, NULL), 1);
	assert_int_equal(c->log[0].offset, MIB - 512);
	assert_int_equal(c->log[0].flags, STORE_FUA);
	assert_true(stored(c, 2, MIB - 512, 1024));
	memset(buf, 0, sizeof(buf));
	assert_int_equal(place(c, STORE_READ, MIB - 512, 1024, buf, 0), 0);
	assert_true(data_same(buf, 2, MIB - 512, 1024));
}

static void errors_of_the_store_come_through(void **state)
{
	struct cached *c = *state;
	unsigned char buf[512];

	store_breaks(c, STORE_READ, 1);
	assert_int_equal(place(c, STORE_READ, 0, 512, buf, 0), -EIO);
	assert_int_equal(place(c, STORE_READ, 0, 512, buf, 0), 0);
}

static void all_that_was_asked_is_counted(void **state)
{
	struct cached *c = *state;
	struct placement_counts *n = &c->placement->counts;
	unsigned char buf[512];

	assert_int_equal(place(c, STORE_READ, 0, 512, buf, 0), 0);
	assert_int_equal(place(c, STORE_READ, 0, 256, buf, 0), 0);
	assert_int_equal(place(c, STORE_ZERO, 0, 4096, NULL, 0), 0);
	assert_int_equal(place(c, STORE_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(n->ops[STORE_READ], 2);
	assert_int_equal(n->bytes[STORE_READ], 768);
	assert_int_equal(n->ops[STORE_ZERO], 1);
	assert_int_equal(n->bytes[STORE_ZERO], 4096);
	assert_int_equal(n->ops[STORE_FLUSH], 1);
	assert_int_equal(n->ops[STORE_WRITE], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(device_is_as_the_store),
		TEST(data_is_where_it_is_on_the_store),
		TEST(errors_of_the_store_come_through),
		TEST(all_that_was_asked_is_counted),
#undef TEST
	};

	return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
