/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-readahead.c: what sequential readers gain from reading ahead, and what
 * others lose by it. Simulated time, so that the figures are exact.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "served.h"
#include "stat.h"

#define STORE "sim:bandwidth=200M,latency=1ms,null:4G"
#define BANDWIDTH (200 * MIB)
#define LATENCY NSEC_PER_MSEC
#define PAGE (64 * KIB)

static struct served *serve(const char *cache_size, const char *readahead)
{
	const char *const keys[] = {"store", STORE, "cache-size", cache_size,
		"readahead", readahead, NULL};

	return served_with(ENGINE_WRITEBACK, keys);
}

static uint64_t stat_of(struct served *s, const char *name)
{
	return stat_value(s->engine, name);
}

/* --- readers, one request at a time each --------------------------------- */

struct reader {
	struct asking ask;
	struct served *s;
	uint64_t pos, length, left; /* bytes; left: to read */
	int64_t stride;             /* bytes, from request to request */
	uint64_t random;            /* seed of random positions; 0: none */
	bool waits;
	unsigned char *buf;
};

static bool reader_ask(struct reader *r)
{
	if (r->random)
		r->pos = random_below(&r->random, GIB / PAGE) * PAGE;
	engine_request_init(&r->ask.req);
	r->ask.answered = false;
	r->ask.req.op = ENGINE_READ;
	r->ask.req.offset = r->pos;
	r->ask.req.length = r->length < r->left ? r->length : r->left;
	r->ask.req.export = r->s->export;
	r->ask.req.reactor = r->s->loop;
	r->ask.req.done = asking_done;
	r->ask.req.buf = r->buf;
	r->pos += (uint64_t)r->stride;
	r->left -= r->ask.req.length;
	return engine_submit(&r->ask.req);
}

/* Ask for more if it may; false when it has read all. */
static bool reader_go(struct reader *r)
{
	if (r->waits && !r->ask.answered)
		return true;
	if (r->waits)
		assert_int_equal(r->ask.req.error, 0);
	r->waits = false;
	if (!r->left)
		return false;
	r->waits = !reader_ask(r);
	return true;
}

/* Let them read, in turn while they need not wait, until the first is done;
 * the ns that took. */
static uint64_t read_all(struct served *s, struct reader *r, unsigned n)
{
	uint64_t start = reactor_now(s->loop);
	bool more = true;

	for (unsigned i = 0; i < n; i++) {
		r[i].s = s;
		r[i].buf = malloc(r[i].length);
		if (!r[i].stride)
			r[i].stride = (int64_t)r[i].length;
	}
	while (more) {
		bool all_wait = true;

		for (unsigned i = 0; i < n; i++) {
			more = reader_go(&r[i]) && (i || more);
			all_wait &= r[i].waits && !r[i].ask.answered;
			if (!i && !more)
				break;
		}
		if (more && all_wait)
			assert_true(reactor_sim_step(s->loop));
	}
	start = reactor_now(s->loop) - start;
	for (unsigned i = 0; i < n; i++) {
		while (r[i].waits && !r[i].ask.answered)
			assert_true(reactor_sim_step(s->loop));
		free(r[i].buf);
	}
	return start;
}

/* The time the store itself takes, plus what one command takes on top. */
static uint64_t bound_ns(uint64_t bytes)
{
	return bytes * NSEC_PER_SEC / BANDWIDTH + LATENCY;
}

/* --- what is gained ------------------------------------------------------ */

static uint64_t sequential_ns(const char *readahead, uint64_t request)
{
	struct served *s = serve("128M", readahead);
	struct reader r = {.length = request, .left = 64 * MIB};
	uint64_t ns = read_all(s, &r, 1);

	served_free(s);
	return ns;
}

static void one_reader_gets_what_the_store_can_do(void **state)
{
	static const uint64_t request[] = {
		4 * KIB, 20 * KIB, 128 * KIB, MIB, 4 * MIB};

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		assert_true(sequential_ns("2M", request[i]) <=
			bound_ns(64 * MIB) * 10 / 9);
	/* without, each request waits for the store's latency */
	assert_true(sequential_ns("0", 128 * KIB) >= 2 * bound_ns(64 * MIB));
}

static void one_reader_makes_long_store_reads(void **state)
{
	struct served *s = serve("128M", "2M");
	struct reader r = {.length = 128 * KIB, .left = 64 * MIB};

	(void)state;
	read_all(s, &r, 1);
	assert_in_range(stat_of(s, "fill_reads"), 64, 80);
	served_free(s);
}

static void two_streams_in_turn_get_what_the_store_can_do(void **state)
{
	struct served *s = serve("128M", "2M");
	struct reader r[2] = {
		{.length = 128 * KIB, .left = 32 * MIB},
		{.length = 128 * KIB, .left = 32 * MIB, .pos = GIB + 4096},
	};

	(void)state;
	assert_true(read_all(s, r, 2) <= bound_ns(64 * MIB) * 10 / 9);
	served_free(s);
}

static void forty_streams_share_a_small_cache(void **state)
{
	struct served *s = serve("16M", "2M");
	struct reader r[40];
	uint64_t read = 0, ns;

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		r[i] = (struct reader){.pos = i * 100 * MIB,
			.length = 64 * KIB,
			.left = 4 * MIB};
	ns = read_all(s, r, 40);
	for (unsigned i = 0; i < 40; i++)
		read += 4 * MIB - r[i].left;
	assert_true(ns <= bound_ns(read) * 10 / 9);
	assert_true(stat_of(s, "store_read_bytes") <= read * 11 / 10);
	served_free(s);
}

static void stream_beside_random_reads_keeps_the_store_busy(void **state)
{
	struct served *s = serve("64M", "2M");
	struct reader r[3] = {
		{.length = 128 * KIB, .left = 32 * MIB, .pos = 2 * GIB},
		{.length = 4 * KIB, .left = GIB, .random = 1},
		{.length = 4 * KIB, .left = GIB, .random = 2},
	};
	uint64_t ns = read_all(s, r, 3);

	(void)state;
	assert_true(ns <= bound_ns(stat_of(s, "store_read_bytes")) * 10 / 9);
	/* and most of that for the stream */
	assert_true(stat_of(s, "store_read_bytes") <= 64 * MIB);
	served_free(s);
}

/* --- what is not lost ---------------------------------------------------- */

static uint64_t random_bytes(const char *readahead)
{
	struct served *s = serve("16M", readahead);
	struct reader r = {.length = 4 * KIB, .left = 32 * MIB, .random = 3};
	uint64_t bytes;

	read_all(s, &r, 1);
	bytes = stat_of(s, "store_read_bytes");
	served_free(s);
	return bytes;
}

static void random_reads_cost_next_to_nothing_more(void **state)
{
	uint64_t plain = random_bytes("0");

	(void)state;
	assert_in_range(random_bytes("2M"), plain, plain + plain / 50);
}

static uint64_t ahead_of(struct reader *r, enum engine_cache_mode mode)
{
	struct served *s = serve("16M", "2M");
	uint64_t bytes;

	s->export = engine_export_new(s->engine, false, mode);
	read_all(s, r, 1);
	bytes = stat_of(s, "readahead_read_bytes");
	served_free(s);
	return bytes;
}

static void only_a_forward_stream_is_read_ahead(void **state)
{
	struct reader back = {.length = 64 * KIB,
		.left = 8 * MIB,
		.pos = GIB,
		.stride = -(int64_t)(64 * KIB)};
	struct reader strided = {
		.length = 4 * KIB, .left = MIB, .stride = (int64_t)(256 * KIB)};
	struct reader forward = {.length = 64 * KIB, .left = 8 * MIB};
	struct reader direct = forward;

	(void)state;
	assert_int_equal(ahead_of(&back, ENGINE_WRITEBACK), 0);
	assert_int_equal(ahead_of(&strided, ENGINE_WRITEBACK), 0);
	assert_int_equal(ahead_of(&direct, ENGINE_NONE), 0);
	assert_true(ahead_of(&forward, ENGINE_WRITETHROUGH) >= 7 * MIB);
}

static void prefetch_is_not_read_ahead(void **state)
{
	struct served *s = serve("64M", "2M");

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(request(s, ENGINE_CACHE, 0, i * 128 * KIB,
					 128 * KIB, NULL),
			0);
	assert_int_equal(stat_of(s, "store_read_bytes"), 8 * MIB);
	served_free(s);
}

static void no_more_than_the_window_is_ahead_of_a_reader(void **state)
{
	struct served *s = serve("64M", "1M");
	struct reader r = {.length = 64 * KIB, .left = 16 * MIB};

	(void)state;
	read_all(s, &r, 1);
	assert_in_range(stat_of(s, "store_read_bytes"), 16 * MIB, 17 * MIB);
	served_free(s);
}

static void nothing_is_read_past_the_end(void **state)
{
	struct served *s = serve("16M", "2M");
	struct reader r = {
		.length = 64 * KIB, .left = 4 * MIB, .pos = 4 * GIB - 4 * MIB};

	(void)state;
	read_all(s, &r, 1);
	assert_int_equal(stat_of(s, "store_read_bytes"), 4 * MIB);
	assert_int_equal(stat_of(s, "readahead_unused_bytes"), 0);
	served_free(s);
}

/* The window is what fits beside what may not go. */
static void dirty_memory_leaves_little_room_to_read_ahead(void **state)
{
	const char *const keys[] = {"store", STORE, "cache-size", "16M",
		"dirty-limit", "100%", "dirty-background", "99%", NULL};
	struct served *s = served_with(ENGINE_WRITEBACK, keys);
	struct reader r = {.length = 64 * KIB, .left = 8 * MIB, .pos = GIB};
	static unsigned char data[MIB];

	(void)state;
	for (unsigned i = 0; i < 15; i++)
		assert_int_equal(
			request(s, ENGINE_WRITE, 0, i * MIB, MIB, data), 0);
	read_all(s, &r, 1);
	assert_int_equal(stat_of(s, "dirty_bytes"), 15 * MIB);
	assert_in_range(
		stat_of(s, "store_read_bytes"), 8 * MIB, 8 * MIB + 256 * KIB);
	assert_true(stat_of(s, "cached_bytes") <= 16 * MIB);
	served_free(s);
}

static void window_changes_while_a_stream_goes_on(void **state)
{
	struct served *s = serve("64M", "2M");
	struct reader r = {.length = 64 * KIB, .left = 8 * MIB};
	struct engine_setting off = {"readahead", "off"};
	struct engine_setting on = {"readahead", "256K"};
	struct error error;
	uint64_t ahead;

	(void)state;
	read_all(s, &r, 1);
	ahead = stat_of(s, "readahead_read_bytes");
	assert_true(ahead > 8 * MIB);
	assert_int_equal(engine_set(s->engine, &off, 1, &error), 0);
	r.left = 8 * MIB;
	read_all(s, &r, 1);
	assert_int_equal(stat_of(s, "readahead_read_bytes"), ahead);
	assert_int_equal(engine_set(s->engine, &on, 1, &error), 0);
	r.left = 8 * MIB;
	read_all(s, &r, 1);
	assert_in_range(
		stat_of(s, "store_read_bytes"), 24 * MIB, 24 * MIB + 256 * KIB);
	assert_true(stat_of(s, "readahead_read_bytes") >= ahead + 7 * MIB);
	served_free(s);
}

static void waiting_for_what_is_on_its_way_is_a_partial_hit(void **state)
{
	struct served *s = serve("128M", "2M");
	struct reader r = {.length = 64 * KIB, .left = 32 * MIB};
	uint64_t misses, partial;

	(void)state;
	read_all(s, &r, 1);
	misses = stat_of(s, "misses");
	partial = stat_of(s, "partial_hits");
	assert_int_equal(stat_of(s, "hits") + misses, 32 * MIB / (64 * KIB));
	assert_int_equal(misses - partial, 2); /* the first two */
	assert_true(partial > 0);
	served_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_reader_gets_what_the_store_can_do),
		cmocka_unit_test(one_reader_makes_long_store_reads),
		cmocka_unit_test(two_streams_in_turn_get_what_the_store_can_do),
		cmocka_unit_test(forty_streams_share_a_small_cache),
		cmocka_unit_test(
			stream_beside_random_reads_keeps_the_store_busy),
		cmocka_unit_test(random_reads_cost_next_to_nothing_more),
		cmocka_unit_test(only_a_forward_stream_is_read_ahead),
		cmocka_unit_test(prefetch_is_not_read_ahead),
		cmocka_unit_test(no_more_than_the_window_is_ahead_of_a_reader),
		cmocka_unit_test(nothing_is_read_past_the_end),
		cmocka_unit_test(dirty_memory_leaves_little_room_to_read_ahead),
		cmocka_unit_test(window_changes_while_a_stream_goes_on),
		cmocka_unit_test(
			waiting_for_what_is_on_its_way_is_a_partial_hit),
	};

	return cmocka_run_group_tests_name("readahead", tests, NULL, NULL);
}
