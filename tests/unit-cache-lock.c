/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-cache-lock.c: ranges kept from everybody: whom a lock keeps off, and
 * what goes on beside it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cached.h"

static int setup(void **state)
{
	*state = cached_new(4 * MIB, 2 * MIB, PAGE, BLOCK);
	return 0;
}

static int teardown(void **state)
{
	cached_free(*state);
	return 0;
}

struct locker {
	struct cache_range_lock l;
	bool woken;
};

static void locker_woken(struct cache_waiter *w)
{
	container_of(w, struct locker, l.waiter)->woken = true;
}

static struct locker locker(
	struct cached *c, uint64_t offset, uint64_t end, bool shared)
{
	return (struct locker){
		.l = {.offset = offset,
			.end = end,
			.shared = shared,
			.waiter = {.wake = locker_woken, .reactor = c->loop}}};
}

static int lock(struct cached *c, struct locker *k)
{
	int err = cache_range_lock(c->cache, &k->l);

	return err ? err : cache_range_idle(c->cache, &k->l);
}

static void unlock(struct cached *c, struct locker *k)
{
	cache_range_unlock(c->cache, &k->l);
	while (reactor_sim_step(c->loop))
		;
}

static void neighbours_of_a_locked_block_go_on(void **state)
{
	struct cached *c = *state;
	struct locker k = locker(c, 2 * BLOCK, 4 * BLOCK, false);
	struct locker beside = locker(c, 4 * BLOCK, 5 * BLOCK, false);
	struct cached_io *w = write_new(c, 3, 3 * BLOCK, BLOCK);
	struct taken t;

	write_flat(c, 2, 0, 8 * BLOCK);
	assert_int_equal(lock(c, &k), 0);
	assert_int_equal(lock(c, &beside), 0);
	unlock(c, &beside);
	assert_int_equal(cache_write(c->cache, &w->io), -EINPROGRESS);
	write_flat(c, 4, BLOCK, BLOCK);
	assert_true(sees(c, 2, 4 * BLOCK, 4 * BLOCK));
	/* writeback: up to it, and from its end on */
	assert_int_equal(take(c, &t, 0), 0);
	assert_int_equal(t.run.end, 2 * BLOCK);
	put(c, &t, false);
	assert_int_equal(take(c, &t, 0), 0);
	assert_true(t.run.skipped);
	assert_int_equal(t.run.offset, 4 * BLOCK);
	put(c, &t, false);
	unlock(c, &k);
	assert_int_equal(io_resume(c, w, cache_write), 0);
	write_end(c, w);
	clean(c);
	assert_true(stored(c, 3, 3 * BLOCK, BLOCK));
}

static void page_is_filled_around_a_locked_block(void **state)
{
	struct cached *c = *state;
	struct locker k = locker(c, 2 * BLOCK, 3 * BLOCK, false);
	struct cached_io *r = io_new(c, 0, PAGE);

	assert_int_equal(lock(c, &k), 0);
	assert_true(sees(c, 1, 0, BLOCK));
	assert_true(sees(c, 1, 3 * BLOCK, PAGE - 3 * BLOCK));
	assert_int_equal(cache_read(c->cache, &r->io), -EINPROGRESS);
	assert_int_equal(cache_range_idle(c->cache, &k.l), 0);
	for (unsigned i = 0; i < asked(c, STORE_READ, NULL); i++)
		assert_true(c->log[i].offset >= 3 * BLOCK ||
			c->log[i].offset + c->log[i].length <= 2 * BLOCK);
	unlock(c, &k);
	assert_int_equal(io_resume(c, r, cache_read), 0);
	assert_true(data_same(r->buf, 1, 0, PAGE));
	io_free(r);
}

static void shared_locks_keep_only_writeback_off(void **state)
{
	struct cached *c = *state;
	struct locker a = locker(c, 0, 2 * BLOCK, true);
	struct locker b = locker(c, BLOCK, 3 * BLOCK, true);
	struct taken t;

	assert_int_equal(lock(c, &a), 0);
	assert_int_equal(lock(c, &b), 0);
	assert_true(sees(c, 1, 0, 4 * BLOCK)); /* with a fill */
	write_flat(c, 2, 0, 4 * BLOCK);
	assert_true(sees(c, 2, 0, 4 * BLOCK));
	assert_int_equal(take(c, &t, 0), 0);
	assert_int_equal(t.run.offset, 3 * BLOCK);
	put(c, &t, false);
	unlock(c, &a);
	assert_int_equal(take(c, &t, 0), 0);
	assert_int_equal(t.run.offset, 0);
	assert_int_equal(t.run.end, BLOCK);
	put(c, &t, false);
	unlock(c, &b);
	clean(c);
}

static void shared_lock_waits_for_writeback_but_no_fill(void **state)
{
	struct cached *c = *state;
	struct locker a = locker(c, 0, BLOCK, true);
	struct locker b = locker(c, BLOCK, 2 * BLOCK, true);
	struct cached_io *r = io_new(c, BLOCK, BLOCK);
	struct taken t;

	write_flat(c, 2, 0, BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	assert_int_equal(cache_read(c->cache, &r->io), -EINPROGRESS);
	assert_int_equal(lock(c, &b), 0);
	assert_int_equal(lock(c, &a), -EINPROGRESS);
	put(c, &t, false);
	while (!a.woken)
		assert_true(reactor_sim_step(c->loop));
	assert_int_equal(cache_range_idle(c->cache, &a.l), 0);
	unlock(c, &a);
	unlock(c, &b);
	assert_int_equal(io_resume(c, r, cache_read), 0);
	io_free(r);
	clean(c);
}

/* Else a stream of readers would keep a writer off for ever. */
static void shared_and_other_locks_are_had_in_order(void **state)
{
	struct cached *c = *state;
	struct locker first = locker(c, 0, PAGE, true);
	struct locker change = locker(c, 0, BLOCK, false);
	struct locker late = locker(c, 0, PAGE, true);

	assert_int_equal(lock(c, &first), 0);
	assert_int_equal(lock(c, &change), -EINPROGRESS);
	assert_int_equal(lock(c, &late), -EINPROGRESS);
	unlock(c, &first);
	assert_true(change.woken);
	assert_false(late.woken);
	assert_int_equal(lock(c, &change), 0);
	unlock(c, &change);
	assert_true(late.woken);
	assert_int_equal(lock(c, &late), 0);
	unlock(c, &late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(neighbours_of_a_locked_block_go_on),
		TEST(page_is_filled_around_a_locked_block),
		TEST(shared_locks_keep_only_writeback_off),
		TEST(shared_lock_waits_for_writeback_but_no_fill),
		TEST(shared_and_other_locks_are_had_in_order),
#undef TEST
	};

	return cmocka_run_group_tests_name("cache lock", tests, NULL, NULL);
}
