/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-throttle.c: who is admitted, when, and that nobody is forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cached.h"
#include "throttle/throttle.h"

#define LIMIT (64 * KIB)

struct bed {
	struct cached *c;
	struct writeback *wb;
	struct throttle *t;
	struct throttle_client *client[3];
	unsigned order[16], admitted; /* writers, as they came through */
	bool quiet;
};

struct writer {
	struct throttle_waiter w;
	struct bed *b;
	unsigned name;
	bool in;
};

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	struct writeback_config config = {
		.dirty_limit = LIMIT,
		.dirty_background = LIMIT / 2,
		.dirty_expire_ns = 3600 * NSEC_PER_SEC,
		.error_timeout_ns = 600 * NSEC_PER_SEC,
		.inflight = 4 * MIB,
		.name = "test",
	};
	struct throttle_config limit = {
		.mode = THROTTLE_OFF, .dirty_limit = LIMIT};
	static const char *const name[] = {"a", "b", "c"};

	assert_non_null(b);
	b->c = cached_new(4 * MIB, 2 * MIB, PAGE, BLOCK);
	assert_int_equal(writeback_new(&config, b->c->cache, b->c->placement,
				 b->c->loop, &b->wb),
		0);
	assert_int_equal(
		throttle_new(b->c->cache, b->wb, b->c->loop, &limit, &b->t), 0);
	cache_set_wake(b->c->cache, throttle_wake, b->t);
	for (unsigned i = 0; i < 3; i++)
		b->client[i] = throttle_client_get(b->t, name[i]);
	*state = b;
	return 0;
}

static void is_quiet(void *arg)
{
	*(bool *)arg = true;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	for (unsigned i = 0; i < 3; i++)
		throttle_client_put(b->client[i]);
	writeback_quiesce(b->wb, is_quiet, &b->quiet);
	while (!b->quiet)
		assert_true(reactor_sim_step(b->c->loop));
	throttle_free(b->t);
	writeback_free(b->wb);
	cached_free(b->c);
	free(b);
	return 0;
}

static void came_in(struct throttle_waiter *w)
{
	struct writer *x = container_of(w, struct writer, w);

	assert_false(x->in);
	x->in = true;
	x->b->order[x->b->admitted++] = x->name;
}

static void ask_less(struct throttle_waiter *w, uint64_t piece)
{
	w->bytes = piece;
}

static bool ask(struct bed *b, struct writer *x, unsigned name, int client,
	uint64_t bytes)
{
	*x = (struct writer){.b = b,
		.name = name,
		.w = {.bytes = bytes,
			.client = client < 0 ? NULL : b->client[client],
			.reactor = b->c->loop,
			.admitted = came_in,
			.shrink = ask_less}};
	return throttle_admit(b->t, &x->w);
}

/* Let all that is due happen. */
static void settle(struct bed *b)
{
	reactor_sim_run_until(
		b->c->loop, reactor_now(b->c->loop) + NSEC_PER_MSEC);
}

static struct throttle_counts counts(struct bed *b)
{
	struct throttle_counts n;

	throttle_counts(b->t, &n);
	return n;
}

static void set_limit(struct bed *b, uint64_t limit)
{
	struct throttle_config config = {
		.mode = THROTTLE_OFF, .dirty_limit = limit};

	throttle_set(b->t, &config);
}

static void limit_is_exact(void **state)
{
	struct bed *b = *state;
	struct writer x, y;

	assert_true(ask(b, &x, 0, 0, LIMIT - BLOCK));
	assert_true(throttle_try(b->t, NULL, 0, BLOCK));
	assert_false(throttle_try(b->t, NULL, 0, 1));
	assert_false(ask(b, &y, 1, 0, BLOCK));
	settle(b);
	assert_false(y.in);
	assert_int_equal(cache_charged(b->c->cache), LIMIT);
	assert_int_equal(counts(b).parked, 1);
	cache_uncharge(b->c->cache, BLOCK);
	settle(b);
	assert_true(y.in);
	assert_int_equal(cache_charged(b->c->cache), LIMIT);
	assert_int_equal(counts_of(b->c).dirty_peak, LIMIT);
	cache_uncharge(b->c->cache, LIMIT);
}

static void parked_writer_is_not_overtaken(void **state)
{
	struct bed *b = *state;
	struct writer x, y;

	assert_true(throttle_try(b->t, NULL, 0, LIMIT - BLOCK));
	assert_false(ask(b, &x, 0, 0, 2 * BLOCK));
	/* this one would fit */
	assert_false(throttle_try(b->t, NULL, 0, BLOCK));
	assert_false(ask(b, &y, 1, 1, BLOCK));
	settle(b);
	assert_false(x.in || y.in);
	cache_uncharge(b->c->cache, 2 * BLOCK);
	settle(b);
	assert_true(x.in && y.in);
	assert_int_equal(b->order[0], 0);
	cache_uncharge(b->c->cache, cache_charged(b->c->cache));
}

static void clients_go_in_turn_and_each_in_its_order(void **state)
{
	struct bed *b = *state;
	/* a has three, b two, c one */
	static const int client[6] = {0, 0, 0, 1, 1, 2};
	static const unsigned want[6] = {0, 3, 5, 1, 4, 2};
	struct writer x[6];

	assert_true(throttle_try(b->t, NULL, 0, LIMIT));
	for (unsigned i = 0; i < 6; i++)
		assert_false(ask(b, &x[i], i, client[i], BLOCK));
	for (unsigned i = 0; i < 6; i++) {
		cache_uncharge(b->c->cache, BLOCK);
		settle(b);
		assert_int_equal(b->admitted, i + 1);
		assert_int_equal(b->order[i], want[i]);
	}
	cache_uncharge(b->c->cache, LIMIT);
}

static void turns_go_by_where_they_write(void **state)
{
	struct bed *b = *state;
	/* each comes back behind its place, and is of the next lap */
	static const int client[6] = {2, 0, 1, 1, 0, 2};
	static const uint64_t place[6] = {300, 100, 200, 201, 101, 301};
	static const unsigned want[6] = {1, 2, 0, 4, 3, 5};
	struct writer x[6];

	assert_true(throttle_try(b->t, NULL, 0, LIMIT));
	for (unsigned i = 0; i < 6; i++) {
		x[i] = (struct writer){.b = b,
			.name = i,
			.w = {.offset = place[i] * BLOCK,
				.bytes = BLOCK,
				.client = b->client[client[i]],
				.reactor = b->c->loop,
				.admitted = came_in}};
		assert_false(throttle_admit(b->t, &x[i].w));
	}
	for (unsigned i = 0; i < 6; i++) {
		cache_uncharge(b->c->cache, BLOCK);
		settle(b);
		assert_int_equal(b->admitted, i + 1);
		assert_int_equal(b->order[i], want[i]);
	}
	cache_uncharge(b->c->cache, LIMIT);
}

static void wake_admits_all_that_fit(void **state)
{
	struct bed *b = *state;
	struct writer x[4];

	assert_true(throttle_try(b->t, NULL, 0, LIMIT));
	for (unsigned i = 0; i < 4; i++)
		assert_false(ask(b, &x[i], i, -1, 4 * BLOCK));
	cache_uncharge(b->c->cache, 11 * BLOCK);
	settle(b);
	assert_int_equal(b->admitted, 2);
	cache_uncharge(b->c->cache, 5 * BLOCK);
	settle(b);
	assert_int_equal(b->admitted, 4);
	assert_int_equal(counts(b).parked, 0);
	cache_uncharge(b->c->cache, LIMIT);
}

static void raised_limit_admits(void **state)
{
	struct bed *b = *state;
	struct writer x;

	assert_true(throttle_try(b->t, NULL, 0, LIMIT));
	assert_false(ask(b, &x, 0, 0, BLOCK));
	set_limit(b, LIMIT + BLOCK);
	settle(b);
	assert_true(x.in);
	cache_uncharge(b->c->cache, LIMIT + BLOCK);
}

static void lowered_limit_lets_the_charge_fall(void **state)
{
	struct bed *b = *state;
	struct writer x;

	assert_true(throttle_try(b->t, NULL, 0, LIMIT));
	set_limit(b, LIMIT / 2);
	assert_int_equal(cache_charged(b->c->cache), LIMIT);
	assert_false(ask(b, &x, 0, 0, BLOCK));
	cache_uncharge(b->c->cache, LIMIT / 2);
	settle(b);
	assert_false(x.in);
	assert_false(throttle_try(b->t, NULL, 0, 1));
	cache_uncharge(b->c->cache, BLOCK);
	settle(b);
	assert_true(x.in);
	assert_int_equal(cache_charged(b->c->cache), LIMIT / 2);
	cache_uncharge(b->c->cache, LIMIT / 2);
}

static void parked_for_more_than_the_new_limit_asks_for_less(void **state)
{
	struct bed *b = *state;
	struct writer x[3];

	assert_true(throttle_try(b->t, NULL, 0, LIMIT));
	for (unsigned i = 0; i < 3; i++)
		assert_false(ask(b, &x[i], i, (int)i, LIMIT / 4));
	set_limit(b, 3 * BLOCK);
	assert_int_equal(x[0].w.bytes, throttle_piece(b->t));
	assert_int_equal(x[2].w.bytes, throttle_piece(b->t));
	settle(b);
	assert_int_equal(b->admitted, 0);
	cache_uncharge(b->c->cache, LIMIT - 3 * BLOCK);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(b->admitted, i);
		cache_uncharge(b->c->cache, BLOCK);
		settle(b);
		assert_int_equal(b->order[i], i);
	}
	assert_int_equal(b->admitted, 3);
	assert_int_equal(cache_charged(b->c->cache), 3 * BLOCK);
	cache_uncharge(b->c->cache, 3 * BLOCK);
}

/* It was cut to the old limit before the new one was set. */
static void comes_late_with_too_much_and_asks_for_less(void **state)
{
	struct bed *b = *state;
	struct writer x;

	set_limit(b, 2 * BLOCK);
	assert_true(throttle_try(b->t, NULL, 0, 2 * BLOCK));
	assert_false(ask(b, &x, 0, 0, LIMIT / 4));
	assert_int_equal(x.w.bytes, BLOCK);
	cache_uncharge(b->c->cache, 2 * BLOCK);
	settle(b);
	assert_true(x.in);
	cache_uncharge(b->c->cache, BLOCK);
}

static void dirt_is_written_for_who_is_parked(void **state)
{
	struct bed *b = *state;
	struct cached_io *io = io_new(b->c, 0, LIMIT);
	struct writer x;

	assert_true(throttle_try(b->t, NULL, 0, LIMIT));
	io->io.charge = LIMIT;
	assert_int_equal(io_finish(b->c, io, cache_write), 0);
	write_end(b->c, io);
	assert_false(ask(b, &x, 0, 0, BLOCK));
	reactor_sim_run_until(
		b->c->loop, reactor_now(b->c->loop) + NSEC_PER_SEC);
	assert_true(x.in);
	assert_true(asked(b->c, STORE_FLUSH, NULL) > 0);
	cache_uncharge(b->c->cache, BLOCK);
	clean(b->c);
}

static void pieces_are_a_share_of_the_limit(void **state)
{
	struct bed *b = *state;

	assert_int_equal(throttle_piece(b->t), LIMIT / 4);
	set_limit(b, 100 * KIB);
	assert_int_equal(throttle_piece(b->t), 16 * KIB);
	set_limit(b, BLOCK);
	assert_int_equal(throttle_piece(b->t), BLOCK);
	set_limit(b, 4 * GIB);
	assert_int_equal(throttle_piece(b->t), 4 * MIB);
}

static void pauses_are_measured(void **state)
{
	struct bed *b = *state;
	struct writer x;

	assert_true(throttle_try(b->t, NULL, 0, LIMIT));
	assert_false(ask(b, &x, 0, 0, BLOCK));
	reactor_sim_run_until(
		b->c->loop, reactor_now(b->c->loop) + 5 * NSEC_PER_MSEC);
	cache_uncharge(b->c->cache, BLOCK);
	settle(b);
	assert_int_equal(counts(b).pauses, 1);
	assert_int_equal(counts(b).pause_us_max, 5000);
	assert_int_equal(counts(b).pause_us_total, 5000);
	throttle_reset_peaks(b->t);
	assert_int_equal(counts(b).pause_us_max, 0);
	cache_uncharge(b->c->cache, LIMIT);
}

static void same_identity_is_the_same_client(void **state)
{
	struct bed *b = *state;
	struct throttle_client *again = throttle_client_get(b->t, "a");

	assert_ptr_equal(again, b->client[0]);
	assert_ptr_not_equal(again, b->client[1]);
	throttle_client_put(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(limit_is_exact),
		TEST(parked_writer_is_not_overtaken),
		TEST(clients_go_in_turn_and_each_in_its_order),
		TEST(turns_go_by_where_they_write),
		TEST(wake_admits_all_that_fit),
		TEST(raised_limit_admits),
		TEST(lowered_limit_lets_the_charge_fall),
		TEST(parked_for_more_than_the_new_limit_asks_for_less),
		TEST(comes_late_with_too_much_and_asks_for_less),
		TEST(dirt_is_written_for_who_is_parked),
		TEST(pieces_are_a_share_of_the_limit),
		TEST(pauses_are_measured),
		TEST(same_identity_is_the_same_client),
#undef TEST
	};

	return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
