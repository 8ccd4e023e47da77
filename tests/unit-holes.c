/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-holes.c: what is a hole of the store is not read from it and takes no
 * place in the cache; what the cache has newer is never taken for one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "served.h"
#include "stat.h"

#define BLOCK UINT64_C(4096)
#define PAGE (64 * KIB)

static int setup(void **state)
{
	*state = served_new("fault:record=on,mem:64M", "32M", ENGINE_WRITEBACK);
	return 0;
}

static int teardown(void **state)
{
	served_free(*state);
	return 0;
}

/* [offset, offset + length) of the store is data. */
static void fill_store(struct served *s, uint64_t offset, uint64_t length)
{
	unsigned char *data = malloc(length);

	assert_non_null(data);
	memset(data, 'd', length);
	assert_int_equal(
		io_do(s->store, s->loop, STORE_WRITE, offset, length, data, 0),
		0);
	free(data);
}

/* Ask for a read into cache memory; to be released. */
static struct asking *read_pieces(
	struct served *s, unsigned flags, uint64_t offset, uint64_t length)
{
	struct asking *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	engine_request_init(&a->req);
	a->req.op = ENGINE_READ;
	a->req.flags = flags;
	a->req.offset = offset;
	a->req.length = length;
	a->req.export = s->export;
	a->req.reactor = s->loop;
	a->req.done = asking_done;
	if (!engine_submit(&a->req)) {
		while (!a->answered)
			assert_true(reactor_sim_step(s->loop));
	}
	return a;
}

static void drop(struct asking *a)
{
	if (!a->req.error)
		engine_release(&a->req);
	free(a);
}

/* "64K of d, 1M hole": the pieces, one after the other, of one byte each. */
static void expect_pieces(const struct asking *a, const char *want)
{
	char text[512] = "";
	unsigned i = 0;

	assert_int_equal(a->req.error, 0);
	while (i < a->req.niov) {
		const unsigned char *base = a->req.iov[i].iov_base;
		int byte = base ? base[0] : 0;
		size_t length = 0, at = strlen(text);

		for (; i < a->req.niov && !a->req.iov[i].iov_base == !base &&
			(!base ||
				((unsigned char *)a->req.iov[i].iov_base)[0] ==
					byte);
			i++)
			length += a->req.iov[i].iov_len;
		snprintf(text + at, sizeof(text) - at, "%s%zu%c", at ? " " : "",
			length, base ? byte ? byte : '0' : '-');
	}
	assert_string_equal(text, want);
}

static void hole_is_neither_read_nor_cached(void **state)
{
	struct served *s = *state;
	struct asking *a = read_pieces(s, ENGINE_HOLES, MIB - 1, 2 * MIB + 2);
	uint64_t bytes;

	expect_pieces(a, "2097154-");
	assert_true(a->req.holes);
	assert_int_equal(a->req.niov, 1);
	drop(a);
	assert_int_equal(logged(s, STORE_READ, &bytes), 0);
	assert_int_equal(stat_value(s->engine, "cached_bytes"), 0);
	assert_int_equal(stat_value(s->engine, "misses"), 1);
}

static void data_and_holes_come_in_their_order(void **state)
{
	struct served *s = *state;
	struct asking *a;
	uint64_t bytes;

	fill_store(s, MIB, PAGE);
	fill_store(s, 3 * MIB, PAGE);
	store_fault_record(s->store, true);
	a = read_pieces(s, ENGINE_HOLES, MIB - BLOCK - 1, 3 * MIB);
	expect_pieces(a, "4097- 65536d 2031616- 65536d 978943-");
	drop(a);
	logged(s, STORE_READ, &bytes);
	assert_int_equal(bytes, 2 * PAGE);
}

/* More pieces than a request has room for at first, and than a store tells of
 * at once. */
static void many_holes_take_more_room(void **state)
{
	struct served *s = *state;
	struct asking *a;
	uint64_t at = 0;

	for (unsigned i = 1; i < 64; i += 2)
		fill_store(s, i * PAGE, PAGE);
	a = read_pieces(s, ENGINE_HOLES, 0, 64 * PAGE);
	assert_int_equal(a->req.error, 0);
	assert_int_equal(a->req.niov, 64);
	for (unsigned i = 0; i < a->req.niov; i++) {
		const unsigned char *base = a->req.iov[i].iov_base;

		assert_int_equal(a->req.iov[i].iov_len, PAGE);
		assert_int_equal(!!base, i % 2);
		assert_true(!base || (base[0] == 'd' && base[PAGE - 1] == 'd'));
		at += a->req.iov[i].iov_len;
	}
	assert_int_equal(at, 64 * PAGE);
	drop(a);
}

static void page_with_data_is_read_whole(void **state)
{
	struct served *s = *state;
	struct asking *a;
	uint64_t bytes;

	fill_store(s, MIB + BLOCK, BLOCK);
	store_fault_record(s->store, true);
	a = read_pieces(s, ENGINE_HOLES, MIB, PAGE);
	expect_pieces(a, "4096- 61440d");
	drop(a);
	assert_int_equal(logged(s, STORE_READ, &bytes), 1);
}

static void flat_buffer_gets_zeroes(void **state)
{
	struct served *s = *state;
	unsigned char *buf = malloc(MIB);
	uint64_t bytes;

	memset(buf, 'x', MIB);
	assert_int_equal(request(s, ENGINE_READ, 0, 100, MIB, buf), 0);
	assert_true(buf[0] == 0 && !memcmp(buf, buf + 1, MIB - 1));
	free(buf);
	assert_int_equal(logged(s, STORE_READ, &bytes), 0);
	assert_int_equal(stat_value(s->engine, "cached_bytes"), 0);
}

static void who_does_not_know_holes_gets_memory(void **state)
{
	struct served *s = *state;
	struct asking *a = read_pieces(s, 0, 0, PAGE);

	expect_pieces(a, "655360");
	assert_false(a->req.holes);
	drop(a);
}

static void what_is_dirty_is_no_hole(void **state)
{
	struct served *s = *state;
	unsigned char buf[2 * BLOCK];
	struct asking *a;

	memset(buf, 'x', sizeof(buf));
	assert_int_equal(request(s, ENGINE_WRITE, 0, MIB, sizeof(buf), buf), 0);
	a = read_pieces(s, ENGINE_HOLES, 0, 2 * MIB);
	expect_pieces(a, "1048576- 65536x 983040-");
	drop(a);
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	engine_drop(s->engine);
	a = read_pieces(s, ENGINE_HOLES, MIB, 2 * BLOCK);
	expect_pieces(a, "8192x");
	drop(a);
	assert_int_equal(request(s, ENGINE_TRIM, 0, MIB, sizeof(buf), NULL), 0);
	a = read_pieces(s, ENGINE_HOLES, MIB, 2 * BLOCK);
	expect_pieces(a, "8192-");
	drop(a);
}

static void readahead_leaves_holes_out(void **state)
{
	struct served *s = *state;
	uint64_t bytes, read = 0;
	struct asking *a;

	fill_store(s, 0, MIB);
	fill_store(s, 8 * MIB, MIB);
	store_fault_record(s->store, true);
	for (uint64_t at = 0; at < 9 * MIB; at += PAGE) {
		a = read_pieces(s, ENGINE_HOLES, at, PAGE);
		expect_pieces(
			a, at < MIB || at >= 8 * MIB ? "65536d" : "65536-");
		drop(a);
	}
	assert_true(logged(s, STORE_READ, &read) < 2 * 16);
	assert_int_equal(read, 2 * MIB);
	assert_true(stat_value(s->engine, "readahead_bytes") > 0);
	assert_int_equal(request(s, ENGINE_CACHE, 0, 0, 16 * MIB, NULL), 0);
	logged(s, STORE_READ, &bytes);
	assert_int_equal(bytes, read);
}

/* More pieces than a request has room for by itself. */
static void many_holes_are_all_told(void **state)
{
	struct served *s = *state;
	struct asking *a;
	unsigned holes = 0;

	for (uint64_t at = 0; at < 64 * PAGE; at += 2 * PAGE)
		fill_store(s, at, PAGE);
	a = read_pieces(s, ENGINE_HOLES, 0, 64 * PAGE);
	assert_int_equal(a->req.error, 0);
	for (unsigned i = 0; i < a->req.niov; i++)
		holes += !a->req.iov[i].iov_base;
	assert_int_equal(holes, 32);
	drop(a);
}

static void failed_read_says_where(void **state)
{
	struct served *s = *state;
	struct store_fault_rule bad = {.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_READ),
		.offset = 2 * MIB + 3 * BLOCK,
		.length = BLOCK};
	struct asking *a;

	fill_store(s, 2 * MIB, PAGE);
	store_fault_set(s->store, &bad, 1);
	a = read_pieces(s, ENGINE_HOLES, MIB, 2 * MIB);
	assert_int_equal(a->req.error, -EIO);
	assert_true(a->req.has_error_at);
	assert_in_range(a->req.error_at, 2 * MIB, 2 * MIB + 3 * BLOCK);
	drop(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(hole_is_neither_read_nor_cached),
		TEST(data_and_holes_come_in_their_order),
		TEST(many_holes_take_more_room),
		TEST(page_with_data_is_read_whole),
		TEST(flat_buffer_gets_zeroes),
		TEST(who_does_not_know_holes_gets_memory),
		TEST(what_is_dirty_is_no_hole),
		TEST(readahead_leaves_holes_out),
		TEST(many_holes_are_all_told),
		TEST(failed_read_says_where),
#undef TEST
	};

	return cmocka_run_group_tests_name("holes", tests, NULL, NULL);
}
