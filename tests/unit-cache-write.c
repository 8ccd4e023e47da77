/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-cache-write.c: writes, the memory that others hold meanwhile (rule 6
 * of cache.h), and ranges kept from everybody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
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

/* A read that holds the cache's own memory. */
static struct cached_io *hold(struct cached *c, uint64_t offset, uint64_t n)
{
	struct cached_io *x = io_new(c, offset, n);

	x->io.buf = NULL;
	x->io.iov = x->iov;
	x->io.max_iov = 600;
	assert_int_equal(io_finish(c, x, cache_read), 0);
	return x;
}

static bool holds(const struct cached_io *x, unsigned tag, uint64_t at)
{
	for (unsigned i = 0; i < x->io.niov; i++) {
		if (!data_same(x->iov[i].iov_base, tag, at, x->iov[i].iov_len))
			return false;
		at += x->iov[i].iov_len;
	}
	return true;
}

static void let_go(struct cached *c, struct cached_io *x)
{
	cache_release(c->cache, x->iov, x->io.niov);
	io_free(x);
}

static void rule6_what_a_reader_holds_does_not_change(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = hold(c, 100, 3 * BLOCK);

	write_flat(c, 2, 0, BLOCK + 50);
	write_payload(c, 3, BLOCK + 50, 2 * BLOCK + 100);
	assert_true(holds(x, 1, 100));
	assert_true(sees(c, 2, 0, BLOCK + 50));
	assert_true(sees(c, 3, BLOCK + 50, 2 * BLOCK + 100));
	let_go(c, x);
	clean(c);
}

static void rule6_held_memory_outlives_its_page(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = hold(c, 0, PAGE);

	assert_true(cache_drop_clean(c->cache) >= PAGE);
	write_flat(c, 2, 0, 4 * PAGE);
	assert_true(holds(x, 1, 0));
	let_go(c, x);
	clean(c);
}

static void rule6_store_gets_what_was_taken(void **state)
{
	struct cached *c = *state;
	struct taken t;

	write_flat(c, 2, 0, 2 * BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	write_flat(c, 3, 0, BLOCK / 2);
	write_payload(c, 3, BLOCK, BLOCK);
	put(c, &t, false);
	assert_true(stored(c, 2, 0, 2 * BLOCK));
	assert_true(sees(c, 3, 0, BLOCK / 2));
	assert_true(sees(c, 2, BLOCK / 2, BLOCK / 2));
	clean(c);
	assert_true(stored(c, 3, BLOCK, BLOCK));
}

static void payload_becomes_the_pages_without_a_copy(void **state)
{
	struct cached *c = *state;
	struct cached_io *w = write_new(c, 2, PAGE, PAGE), *x;

	write_use_payload(c, w);
	x = NULL;
	assert_int_equal(cache_write(c->cache, &w->io), 0);
	x = hold(c, PAGE, PAGE);
	assert_int_equal(x->io.niov, 1);
	assert_ptr_equal(x->iov[0].iov_base, w->iov[0].iov_base);
	assert_int_equal(counts_of(c).cached / PAGE, 1);
	let_go(c, x);
	cache_release(c->cache, w->iov, (unsigned)w->npayload);
	write_end(c, w);
	clean(c);
}

/* Whatever part of it pages took, and whatever they did not. */
static void payload_is_given_to_the_pages(void **state)
{
	static const struct {
		uint64_t offset, length;
	} io[] = {{0, 2 * PAGE}, {100, 2 * PAGE}, {BLOCK, 50}, {BLOCK - 7, 14},
		{3 * BLOCK + 1, BLOCK - 1}, {PAGE - BLOCK, PAGE}};
	struct cached *c = *state;

	for (unsigned i = 0; i < sizeof(io) / sizeof(io[0]); i++) {
		struct cached_io *w = write_new(
					 c, 2 + i, io[i].offset, io[i].length),
				 *x;

		write_use_payload(c, w);
		w->io.give = true;
		assert_int_equal(io_finish(c, w, cache_write), 0);
		cache_release_rest(c->cache, &w->io, io[i].offset, w->iov,
			(unsigned)w->npayload);
		write_end(c, w);
		/* nobody else holds it: it is written in place */
		x = hold(c, io[i].offset, io[i].length);
		write_payload(c, 50, PAGE / 2, 4 * PAGE);
		assert_true(holds(x, 2 + i, io[i].offset));
		let_go(c, x);
	}
	clean(c);
}

/* The store fails after the first pages: what they took is theirs. */
static void payload_of_a_write_that_fails_is_given_in_part(void **state)
{
	struct cached *c = *state;
	struct cached_io *w = write_new(c, 2, BLOCK, 2 * PAGE + 10);

	store_breaks(c, STORE_READ, 0);
	write_use_payload(c, w);
	w->io.give = true;
	assert_int_equal(io_finish(c, w, cache_write), -EIO);
	assert_true(w->io.pos > BLOCK && w->io.pos <= 2 * PAGE);
	cache_release_rest(
		c->cache, &w->io, BLOCK, w->iov, (unsigned)w->npayload);
	assert_true(sees(c, 2, BLOCK, w->io.pos - BLOCK));
	write_end(c, w);
	store_mends(c);
	clean(c);
}

static void payload_is_copied_if_that_is_asked_for(void **state)
{
	struct cached *c = *state;
	struct cached_io *w = write_new(c, 2, 100, 2 * PAGE), *x;

	write_use_payload(c, w);
	w->io.copy = true;
	assert_int_equal(io_finish(c, w, cache_write), 0);
	memset(w->iov[0].iov_base, 0, w->iov[0].iov_len);
	cache_release(c->cache, w->iov, (unsigned)w->npayload);
	write_end(c, w);
	x = hold(c, 100, 2 * PAGE);
	assert_true(holds(x, 2, 100));
	let_go(c, x);
	clean(c);
}

static void payload_of_a_page_is_one_piece(void **state)
{
	struct cached *c = *state;
	struct iovec iov[64];
	int n = cache_payload(c->cache, 3 * PAGE, 2 * PAGE, iov, 64);

	assert_int_equal(n, 1);
	assert_int_equal(iov[0].iov_len, 2 * PAGE);
	cache_release(c->cache, iov, 1);
	assert_int_equal(
		cache_payload(c->cache, 100, 8 * PAGE, iov, 1), -E2BIG);
	n = cache_payload(c->cache, 100, PAGE, iov, 64);
	assert_int_equal((uintptr_t)iov[0].iov_base % BLOCK, 100);
	cache_release(c->cache, iov, (unsigned)n);
}

static void zeroes_need_no_memory_of_the_writer(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = write_new(c, 2, 100, PAGE), *r;

	x->io.source = CACHE_ZEROES;
	assert_int_equal(io_finish(c, x, cache_write), 0);
	write_end(c, x);
	r = io_new(c, 100, PAGE);
	assert_int_equal(io_finish(c, r, cache_read), 0);
	for (unsigned i = 0; i < PAGE; i++)
		assert_int_equal(r->buf[i], 0);
	io_free(r);
	assert_true(sees(c, 1, 0, 100));
	clean(c);
}

static void charge_is_used_for_what_was_not_dirty(void **state)
{
	struct cached *c = *state;
	struct cached_io *x;

	write_flat(c, 2, BLOCK, BLOCK);
	x = write_new(c, 3, 0, 3 * BLOCK);
	assert_int_equal(cache_write(c->cache, &x->io), 0);
	assert_int_equal(x->io.charge, BLOCK); /* left over */
	write_end(c, x);
	assert_int_equal(cache_charged(c->cache), 3 * BLOCK);
	clean(c);
}

static void who_has_no_loop_is_told_to_come_again(void **state)
{
	struct cached *c = *state;
	struct cached_io *x = io_new(c, 0, BLOCK);

	x->io.reactor = NULL;
	assert_int_equal(cache_read(c->cache, &x->io), -EAGAIN);
	assert_int_equal(asked(c, STORE_READ, NULL), 0);
	x->io.reactor = c->loop;
	assert_int_equal(io_finish(c, x, cache_read), 0);
	assert_true(data_same(x->buf, 1, 0, BLOCK));
	io_free(x);
}

/* --- ranges -------------------------------------------------------------- */

static void locked_range_waits_for_its_end(void **state)
{
	struct cached *c = *state;
	struct cache_range_lock l = {.offset = PAGE, .end = PAGE + BLOCK};
	struct cached_io *w = write_new(c, 2, PAGE + 100, BLOCK);
	struct cached_io *r = io_new(c, PAGE, BLOCK);

	write_flat(c, 3, PAGE, BLOCK);
	assert_int_equal(cache_range_lock(c->cache, &l), 0);
	assert_int_equal(cache_write(c->cache, &w->io), -EINPROGRESS);
	assert_int_equal(cache_read(c->cache, &r->io), -EINPROGRESS);
	write_flat(c, 2, PAGE + 2 * BLOCK, BLOCK); /* its neighbour goes on */
	while (reactor_sim_step(c->loop))
		;
	assert_false(w->woken || r->woken);
	cache_range_unlock(c->cache, &l);
	assert_int_equal(io_resume(c, r, cache_read), 0);
	assert_true(data_same(r->buf, 3, PAGE, BLOCK));
	assert_int_equal(io_resume(c, w, cache_write), 0);
	write_end(c, w);
	io_free(r);
	clean(c);
}

struct locker {
	struct cache_range_lock l;
	bool woken;
};

static void locker_woken(struct cache_waiter *w)
{
	container_of(w, struct locker, l.waiter)->woken = true;
}

static void overlapping_locks_are_had_in_order(void **state)
{
	struct cached *c = *state;
	struct locker k[3] = {0};

	for (unsigned i = 0; i < 3; i++) {
		k[i].l = (struct cache_range_lock){.offset = i * PAGE,
			.end = (i + 2) * PAGE,
			.waiter = {.wake = locker_woken, .reactor = c->loop}};
		assert_int_equal(cache_range_lock(c->cache, &k[i].l),
			i ? -EINPROGRESS : 0);
	}
	cache_range_unlock(c->cache, &k[0].l);
	while (reactor_sim_step(c->loop))
		;
	assert_true(k[1].woken);
	assert_false(k[2].woken);
	assert_int_equal(cache_range_lock(c->cache, &k[1].l), 0);
	cache_range_unlock(c->cache, &k[1].l);
	while (!k[2].woken)
		assert_true(reactor_sim_step(c->loop));
	assert_int_equal(cache_range_lock(c->cache, &k[2].l), 0);
	cache_range_unlock(c->cache, &k[2].l);
}

static void range_is_idle_when_its_writeback_ended(void **state)
{
	struct cached *c = *state;
	struct locker k = {
		.l = {.offset = 0,
			.end = PAGE,
			.waiter = {.wake = locker_woken, .reactor = c->loop}}};
	struct taken t, other;

	write_flat(c, 2, 0, BLOCK);
	assert_int_equal(take(c, &t, 0), 0);
	write_flat(c, 2, 2 * BLOCK, BLOCK);
	assert_int_equal(cache_range_lock(c->cache, &k.l), 0);
	assert_int_equal(cache_range_idle(c->cache, &k.l), -EINPROGRESS);
	assert_int_equal(take(c, &other, 0), -EBUSY); /* locked */
	put(c, &t, false);
	while (!k.woken)
		assert_true(reactor_sim_step(c->loop));
	assert_int_equal(cache_range_idle(c->cache, &k.l), 0);
	cache_range_unlock(c->cache, &k.l);
	clean(c);
}

static void forgotten_range_owes_nothing(void **state)
{
	struct cached *c = *state;
	struct cache_range_lock l = {.offset = 0, .end = 4 * MIB};
	struct taken t;

	write_flat(c, 2, 0, 4 * BLOCK);
	write_flat(c, 2, 8 * PAGE, PAGE);
	assert_int_equal(take(c, &t, 8 * PAGE), 0);
	put(c, &t, false); /* unstable */
	assert_int_equal(cache_range_lock(c->cache, &l), 0);
	assert_int_equal(cache_range_idle(c->cache, &l), 0);
	/* but what is only in part in it is kept */
	cache_invalidate(c->cache, BLOCK / 2, 8 * PAGE + BLOCK);
	check_rules(c);
	assert_int_equal(counts_of(c).dirty, BLOCK);
	assert_int_equal(counts_of(c).unstable, PAGE - BLOCK);
	assert_int_equal(cache_charged(c->cache), PAGE);
	cache_range_unlock(c->cache, &l);
	assert_true(sees(c, 2, 0, BLOCK));
	assert_true(sees(c, 1, BLOCK, 3 * BLOCK));
	assert_true(sees(c, 2, 8 * PAGE, PAGE)); /* as the store has it */
	clean(c);
}

/* --- anything at all ----------------------------------------------------- */

static void change(struct cached *c, unsigned char *flat, uint64_t *seed)
{
	uint64_t at = random_below(seed, c->size - 1);
	uint64_t n = 1 + random_below(seed, 3 * PAGE);
	unsigned tag = 2 + (unsigned)random_below(seed, 100);

	if (n > c->size - at)
		n = c->size - at;
	if (random_below(seed, 2))
		write_flat(c, tag, at, n);
	else
		write_payload(c, tag, at, n);
	data_put(flat + at, tag, at, n);
}

static void compare(struct cached *c, const unsigned char *flat)
{
	struct cached_io *x = io_new(c, 0, c->size);

	assert_int_equal(io_finish(c, x, cache_read), 0);
	assert_memory_equal(x->buf, flat, c->size);
	io_free(x);
}

static void writes_of_any_shape(uint32_t page, uint32_t block)
{
	struct cached *c = cached_new(MIB + 1536, MIB, page, block);
	unsigned char *flat = malloc(c->size);
	uint64_t seed = page + block;
	struct taken t;

	data_put(flat, 1, 0, c->size);
	for (unsigned i = 0; i < 60; i++) {
		change(c, flat, &seed);
		if (i % 7 == 0 &&
			!take(c, &t,
				random_below(&seed, 16) * cache_span(c->cache) %
					MIB)) {
			change(c, flat, &seed);
			put(c, &t, i % 2);
		}
		if (i % 11 == 0)
			cache_drop_clean(c->cache);
		check_rules(c);
	}
	compare(c, flat);
	clean(c);
	cache_drop_clean(c->cache);
	compare(c, flat);
	free(flat);
	cached_free(c);
}

static void writes_of_any_shape_on_every_geometry(void **state)
{
	(void)state;
	writes_of_any_shape(4096, 512);
	writes_of_any_shape(4096, 4096);
	writes_of_any_shape(65536, 512);
	writes_of_any_shape(65536, 4096);
	writes_of_any_shape(65536, 16384);
	writes_of_any_shape(65536, 65536);
	writes_of_any_shape(1 << 20, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(rule6_what_a_reader_holds_does_not_change),
		TEST(rule6_held_memory_outlives_its_page),
		TEST(rule6_store_gets_what_was_taken),
		TEST(payload_becomes_the_pages_without_a_copy),
		TEST(payload_is_given_to_the_pages),
		TEST(payload_of_a_write_that_fails_is_given_in_part),
		TEST(payload_is_copied_if_that_is_asked_for),
		TEST(payload_of_a_page_is_one_piece),
		TEST(zeroes_need_no_memory_of_the_writer),
		TEST(charge_is_used_for_what_was_not_dirty),
		TEST(who_has_no_loop_is_told_to_come_again),
		TEST(locked_range_waits_for_its_end),
		TEST(overlapping_locks_are_had_in_order),
		TEST(range_is_idle_when_its_writeback_ended),
		TEST(forgotten_range_owes_nothing),
		cmocka_unit_test(writes_of_any_shape_on_every_geometry),
#undef TEST
	};

	return cmocka_run_group_tests_name("cache write", tests, NULL, NULL);
}
