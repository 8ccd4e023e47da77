/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-writeback.c: the flusher: what it writes, in which order and when, and
 * who is told what.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cached.h"
#include "writeback/writeback.h"

#define LIMIT (512 * KIB)
#define BACKGROUND (256 * KIB)
#define EXPIRE (30 * NSEC_PER_SEC)

struct bed {
	struct cached *c;
	struct writeback *wb;
	bool quiet;
};

struct waited_sync {
	struct writeback_sync s;
	bool done;
};

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));
	struct writeback_config config = {
		.dirty_limit = LIMIT,
		.dirty_background = BACKGROUND,
		.dirty_expire_ns = EXPIRE,
		.error_timeout_ns = 600 * NSEC_PER_SEC,
		.inflight = 4 * MIB,
		.name = "test",
	};

	assert_non_null(b);
	b->c = cached_new(8 * MIB, 4 * MIB, PAGE, BLOCK);
	assert_int_equal(writeback_new(&config, b->c->cache, b->c->placement,
				 b->c->loop, &b->wb),
		0);
	*state = b;
	return 0;
}

static void is_quiet(void *arg)
{
	*(bool *)arg = true;
}

static void sync_is_done(struct writeback_sync *s)
{
	container_of(s, struct waited_sync, s)->done = true;
}

static void start(struct bed *b, struct waited_sync *w, uint64_t offset,
	uint64_t end, bool stable)
{
	*w = (struct waited_sync){.s = {.reactor = b->c->loop,
					  .done = sync_is_done,
					  .offset = offset,
					  .end = end,
					  .stable = stable}};
	if (end)
		writeback_range(b->wb, &w->s);
	else
		writeback_flush(b->wb, &w->s);
}

static int wait_for(struct bed *b, struct waited_sync *w)
{
	while (!w->done)
		assert_true(reactor_sim_step(b->c->loop));
	return w->s.error;
}

static int flush(struct bed *b)
{
	struct waited_sync w;

	start(b, &w, 0, 0, true);
	return wait_for(b, &w);
}

static int range(struct bed *b, uint64_t offset, uint64_t end, bool stable)
{
	struct waited_sync w;

	start(b, &w, offset, end, stable);
	return wait_for(b, &w);
}

static int teardown(void **state)
{
	struct bed *b = *state;

	store_mends(b->c);
	while (flush(b))
		reactor_sim_run_until(
			b->c->loop, reactor_now(b->c->loop) + NSEC_PER_SEC);
	assert_int_equal(cache_charged(b->c->cache), 0);
	writeback_quiesce(b->wb, is_quiet, &b->quiet);
	while (!b->quiet)
		assert_true(reactor_sim_step(b->c->loop));
	writeback_free(b->wb);
	cached_free(b->c);
	free(b);
	return 0;
}

static void dirty(struct bed *b, unsigned tag, uint64_t at, uint64_t n)
{
	write_flat(b->c, tag, at, n);
	writeback_kick(b->wb);
}

static void run(struct bed *b, uint64_t ns)
{
	reactor_sim_run_until(b->c->loop, reactor_now(b->c->loop) + ns);
}

/* --- the flush pass ------------------------------------------------------ */

static void flush_writes_ascending_and_in_long_runs(void **state)
{
	struct bed *b = *state;
	static const unsigned order[] = {9, 2, 11, 1, 3, 10, 0};
	uint64_t bytes, last = 0;

	for (unsigned i = 0; i < 7; i++)
		write_flat(b->c, 2, order[i] * BLOCK, BLOCK);
	write_flat(b->c, 2, 5 * MIB, BLOCK);
	assert_int_equal(flush(b), 0);
	assert_int_equal(asked(b->c, STORE_WRITE, &bytes), 3);
	assert_int_equal(bytes, 8 * BLOCK);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(b->c->log[i].offset >= last);
		last = b->c->log[i].offset;
	}
	assert_int_equal(b->c->log[3].op, STORE_FLUSH); /* after all of it */
	for (unsigned i = 0; i < 3; i++)
		assert_true(b->c->log[i].completed < b->c->log[3].submitted);
	assert_true(stored(b->c, 2, 0, 4 * BLOCK));
}

static void flush_of_nothing_asks_nothing(void **state)
{
	struct bed *b = *state;

	assert_int_equal(flush(b), 0);
	dirty(b, 2, 0, BLOCK);
	assert_int_equal(flush(b), 0);
	forget_asked(b->c);
	assert_int_equal(flush(b), 0);
	assert_int_equal(asked(b->c, STORE_FLUSH, NULL), 0);
}

static void flushes_that_wait_share_a_pass(void **state)
{
	struct bed *b = *state;
	struct waited_sync w[8];

	dirty(b, 2, 0, BLOCK);
	store_hangs(b->c, STORE_WRITE);
	start(b, &w[0], 0, 0, true);
	run(b, NSEC_PER_MSEC);
	for (unsigned i = 1; i < 8; i++)
		start(b, &w[i], 0, 0, true);
	run(b, NSEC_PER_MSEC);
	store_mends(b->c);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(wait_for(b, &w[i]), 0);
	assert_int_equal(asked(b->c, STORE_FLUSH, NULL), 1);
}

static void flush_comes_back_for_what_was_under_writeback(void **state)
{
	struct bed *b = *state;
	struct waited_sync early, late;

	dirty(b, 2, 0, BLOCK);
	store_hangs(b->c, STORE_WRITE);
	start(b, &early, 0, 0, true);
	run(b, NSEC_PER_MSEC);
	write_flat(b->c, 3, 0, BLOCK);
	write_flat(b->c, 3, 4 * BLOCK, BLOCK);
	start(b, &late, 0, 0, true);
	run(b, NSEC_PER_MSEC);
	store_mends(b->c);
	assert_int_equal(wait_for(b, &early), 0);
	assert_int_equal(wait_for(b, &late), 0);
	assert_int_equal(cache_charged(b->c->cache), 0);
	assert_true(stored(b->c, 3, 0, BLOCK));
	assert_true(stored(b->c, 3, 4 * BLOCK, BLOCK));
}

static void failed_write_fails_the_flush_until_it_went_through(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, BLOCK);
	store_breaks(b->c, STORE_WRITE, 2);
	assert_int_equal(flush(b), -EIO);
	assert_int_equal(flush(b), -EIO);
	assert_int_equal(flush(b), 0);
	assert_true(stored(b->c, 2, 0, BLOCK));
}

static void failed_store_flush_writes_all_of_it_again(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, BLOCK);
	store_breaks(b->c, STORE_FLUSH, 1);
	assert_int_equal(flush(b), -EIO);
	forget_asked(b->c);
	assert_int_equal(flush(b), 0);
	assert_int_equal(asked(b->c, STORE_WRITE, NULL), 1);
	assert_int_equal(asked(b->c, STORE_FLUSH, NULL), 1);
}

/* --- ranges -------------------------------------------------------------- */

static void range_writes_itself_only_and_with_fua(void **state)
{
	struct bed *b = *state;
	uint64_t bytes;

	dirty(b, 2, 0, 16 * BLOCK);
	assert_int_equal(range(b, 4 * BLOCK, 6 * BLOCK, true), 0);
	assert_int_equal(asked(b->c, STORE_WRITE, &bytes), 1);
	assert_int_equal(bytes, 2 * BLOCK);
	assert_int_equal(b->c->log[0].offset, 4 * BLOCK);
	assert_true(b->c->log[0].flags & STORE_FUA);
	assert_int_equal(asked(b->c, STORE_FLUSH, NULL), 0);
	assert_int_equal(cache_dirty(b->c->cache), 14 * BLOCK);
}

static void range_on_a_store_without_fua_is_flushed(void **state)
{
	struct bed *b = *state;

	b->c->placement->info.can_fua = false;
	dirty(b, 2, 0, 4 * BLOCK);
	assert_int_equal(range(b, 0, BLOCK, true), 0);
	assert_false(b->c->log[0].flags & STORE_FUA);
	assert_int_equal(asked(b->c, STORE_FLUSH, NULL), 1);
	assert_int_equal(asked(b->c, STORE_WRITE, NULL), 1);
}

static void range_that_need_not_last_is_only_written(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, BLOCK);
	assert_int_equal(range(b, 0, BLOCK, false), 0);
	assert_int_equal(asked(b->c, STORE_WRITE, NULL), 1);
	assert_int_equal(asked(b->c, STORE_FLUSH, NULL), 0);
	assert_int_equal(cache_unstable(b->c->cache), BLOCK);
}

/* The write under way was not durable and nothing shows that it was there. */
static void range_dirtied_again_while_written_is_flushed(void **state)
{
	struct bed *b = *state;
	struct waited_sync plain, fua;

	dirty(b, 2, 0, BLOCK);
	store_hangs(b->c, STORE_WRITE);
	start(b, &plain, 0, BLOCK, false);
	run(b, NSEC_PER_MSEC);
	start(b, &fua, 0, BLOCK, true);
	run(b, NSEC_PER_MSEC);
	write_flat(b->c, 3, 0, BLOCK);
	store_mends(b->c);
	assert_int_equal(wait_for(b, &fua), 0);
	assert_int_equal(wait_for(b, &plain), 0);
	assert_int_equal(asked(b->c, STORE_FLUSH, NULL), 1);
}

static void what_went_past_the_cache_is_flushed_alone(void **state)
{
	struct bed *b = *state;
	struct waited_sync w = {.s = {.reactor = b->c->loop,
					.done = sync_is_done,
					.stable = true}};

	dirty(b, 2, 0, BLOCK);
	writeback_note_through(b->wb, STORE_ZERO, 0, MIB, 2 * MIB);
	writeback_range(b->wb, &w.s);
	assert_int_equal(wait_for(b, &w), 0);
	assert_int_equal(asked(b->c, STORE_FLUSH, NULL), 1);
	assert_int_equal(asked(b->c, STORE_WRITE, NULL), 0);
}

/* --- on its own ---------------------------------------------------------- */

static void background_writes_what_is_over_its_threshold(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, BACKGROUND);
	run(b, NSEC_PER_SEC);
	assert_int_equal(asked(b->c, STORE_WRITE, NULL), 0);
	dirty(b, 2, BACKGROUND, BLOCK);
	run(b, NSEC_PER_MSEC);
	assert_true(asked(b->c, STORE_WRITE, NULL) > 0);
	assert_true(cache_dirty(b->c->cache) <= BACKGROUND);
	assert_true(cache_dirty(b->c->cache) > 0); /* but no more */
}

static void old_dirt_is_written_and_flushed(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, BLOCK);
	run(b, EXPIRE - NSEC_PER_SEC);
	assert_int_equal(asked(b->c, STORE_WRITE, NULL), 0);
	run(b, EXPIRE);
	assert_int_equal(asked(b->c, STORE_WRITE, NULL), 1);
	run(b, EXPIRE);
	assert_int_equal(cache_charged(b->c->cache), 0);
}

/* The background stopped half-way, and nothing was ever old again. */
static void old_dirt_is_written_after_half_a_background_walk(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, BACKGROUND + BLOCK);
	run(b, NSEC_PER_SEC);
	assert_true(cache_dirty(b->c->cache) > 0);
	run(b, 3 * EXPIRE);
	assert_int_equal(cache_dirty(b->c->cache), 0);
}

static void press_writes_and_flushes_below_the_threshold(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, 8 * BLOCK);
	writeback_press(b->wb);
	run(b, NSEC_PER_SEC);
	assert_true(cache_charged(b->c->cache) <= 4 * BLOCK);
	assert_true(asked(b->c, STORE_FLUSH, NULL) > 0);
}

static void small_limit_is_written_in_short_runs(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, LIMIT);
	assert_int_equal(flush(b), 0);
	assert_true(asked(b->c, STORE_WRITE, NULL) >= 8);
	for (unsigned i = 0; b->c->log[i].op == STORE_WRITE; i++)
		assert_true(b->c->log[i].length <= LIMIT / 8);
}

/* --- failures ------------------------------------------------------------ */

/* Below the background threshold it was left until it was old, or a flush. */
static void failed_write_is_tried_again_with_back_off(void **state)
{
	struct bed *b = *state;
	uint64_t before, gap = 0;
	unsigned n;

	dirty(b, 2, 0, BLOCK);
	store_breaks(b->c, STORE_WRITE, 0);
	assert_int_equal(flush(b), -EIO);
	n = asked(b->c, STORE_WRITE, NULL);
	for (unsigned i = 0; i < 4; i++) {
		before = reactor_now(b->c->loop);
		while (asked(b->c, STORE_WRITE, NULL) == n &&
			reactor_now(b->c->loop) < before + EXPIRE / 2)
			run(b, 10 * NSEC_PER_MSEC);
		assert_int_equal(asked(b->c, STORE_WRITE, NULL), n + 1);
		n++;
		before = reactor_now(b->c->loop) - before;
		assert_true(before * 10 >= gap * 15);
		gap = before;
	}
	assert_true(gap >= 600 * NSEC_PER_MSEC);
	store_mends(b->c);
	run(b, EXPIRE);
	assert_int_equal(cache_dirty(b->c->cache), 0);
	assert_false(writeback_failing(b->wb, 0, BLOCK));
}

static void range_fails_for_good_after_the_error_timeout(void **state)
{
	struct bed *b = *state;

	dirty(b, 2, 0, BLOCK);
	store_breaks(b->c, STORE_WRITE, 0);
	assert_int_equal(flush(b), -EIO);
	assert_false(writeback_failing(b->wb, 0, BLOCK));
	run(b, 601 * NSEC_PER_SEC);
	assert_true(writeback_failing(b->wb, 0, BLOCK));
	assert_false(writeback_failing(b->wb, MIB, 2 * MIB));
	store_mends(b->c);
	assert_int_equal(flush(b), 0);
	assert_false(writeback_failing(b->wb, 0, BLOCK));
}

/* The tick looked every millisecond for a try that was due. */
static void failing_store_is_waited_for_without_spinning(void **state)
{
	struct bed *b = *state;
	unsigned steps = 0;
	uint64_t end;

	dirty(b, 2, 0, BLOCK);
	store_breaks(b->c, STORE_WRITE, 0);
	assert_int_equal(flush(b), -EIO);
	end = reactor_now(b->c->loop) + 20 * NSEC_PER_SEC;
	while (reactor_now(b->c->loop) < end && steps < 100000) {
		assert_true(reactor_sim_step(b->c->loop));
		steps++;
	}
	assert_true(steps < 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(flush_writes_ascending_and_in_long_runs),
		TEST(flush_of_nothing_asks_nothing),
		TEST(flushes_that_wait_share_a_pass),
		TEST(flush_comes_back_for_what_was_under_writeback),
		TEST(failed_write_fails_the_flush_until_it_went_through),
		TEST(failed_store_flush_writes_all_of_it_again),
		TEST(range_writes_itself_only_and_with_fua),
		TEST(range_on_a_store_without_fua_is_flushed),
		TEST(range_that_need_not_last_is_only_written),
		TEST(range_dirtied_again_while_written_is_flushed),
		TEST(what_went_past_the_cache_is_flushed_alone),
		TEST(background_writes_what_is_over_its_threshold),
		TEST(old_dirt_is_written_and_flushed),
		TEST(old_dirt_is_written_after_half_a_background_walk),
		TEST(press_writes_and_flushes_below_the_threshold),
		TEST(small_limit_is_written_in_short_runs),
		TEST(failed_write_is_tried_again_with_back_off),
		TEST(range_fails_for_good_after_the_error_timeout),
		TEST(failing_store_is_waited_for_without_spinning),
#undef TEST
	};

	return cmocka_run_group_tests_name("writeback", tests, NULL, NULL);
}
