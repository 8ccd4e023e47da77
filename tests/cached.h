/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cached.h: for the unit tests of the cache and of what stands on it: a cache
 * over a recording store in memory, on a simulated loop. Include after
 * cmocka.h.
 *
 * Data is a function of (tag, offset); the store begins as tag 1 has it.
 * Whatever a test does, the state rules are walked at its end, and a cache
 * that is all clean must have nothing charged and give all its memory back.
 */
#ifndef WEIR_TESTS_CACHED_H
#define WEIR_TESTS_CACHED_H

#include <errno.h>

#include "cache/cache-impl.h"
#include "placement/placement.h"
#include "storage.h"
#include "store/fault.h"

#define BLOCK UINT64_C(4096)
#define PAGE (64 * KIB)
#define LOG_MAX 2048U
#define DATA_MAX (8 * MIB) /* the store of a larger one begins as zeroes */

struct cached {
	struct reactor *loop;
	struct store *store;
	struct placement *placement;
	struct cache *cache;
	uint64_t size;
	struct store_fault_record log[LOG_MAX];
};

/* A read or write by one client. */
struct cached_io {
	struct cache_io io;
	bool woken;
	unsigned char *buf;
	struct iovec iov[600], *payload;
	int npayload;
};

static inline unsigned char data_byte(unsigned tag, uint64_t at)
{
	return (unsigned char)(tag * 59 + at / 512 * 7 + at);
}

static inline void data_put(
	unsigned char *buf, unsigned tag, uint64_t at, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		buf[i] = data_byte(tag, at + i);
}

static inline bool data_same(
	const unsigned char *buf, unsigned tag, uint64_t at, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (buf[i] != data_byte(tag, at + i))
			return false;
	}
	return true;
}

/* --- life ---------------------------------------------------------------- */

static inline struct cached *cached_make(
	uint64_t size, struct cache_config config)
{
	struct cached *c = calloc(1, sizeof(*c));
	struct error error = {""};
	unsigned char *data = malloc(size <= DATA_MAX ? size : 1);
	char spec[64];
	struct placement_config place = {.spec = spec};

	assert_non_null(c);
	assert_non_null(data);
	c->size = size;
	c->loop = reactor_sim_new(size + config.block_size);
	snprintf(spec, sizeof(spec), "fault:record=on,mem:%llu",
		(unsigned long long)size);
	place.home = c->loop;
	assert_int_equal(placement_open(&place, &c->placement, &error), 0);
	c->store = c->placement->store;
	if (size <= DATA_MAX) {
		data_put(data, 1, 0, size);
		assert_int_equal(
			io_do(c->store, c->loop, STORE_WRITE, 0, size, data, 0),
			0);
	}
	free(data);
	store_fault_record(c->store, true);
	config.clock = c->loop;
	config.size = size;
	config.extra = 64 * MIB;
	assert_int_equal(cache_new(&config, c->placement, &c->cache), 0);
	return c;
}

static inline struct cached *cached_new(uint64_t size, uint64_t cache_size,
	uint32_t page_size, uint32_t block_size)
{
	return cached_make(size,
		(struct cache_config){
			.cache_size = cache_size,
			.page_size = page_size,
			.block_size = block_size,
			.subpage = true,
		});
}

static inline struct cache_counts counts_of(struct cached *c)
{
	struct cache_counts n;

	cache_counts(c->cache, &n);
	return n;
}

static inline void check_rules(struct cached *c)
{
	const char *wrong = cache_check(c->cache);

	if (wrong)
		fail_msg("%s", wrong);
}

static inline bool memory_is_free(const struct arena *a)
{
	return a->whole_count * CHUNK_FRAMES + a->broken_free ==
		(a->fresh - 1) * CHUNK_FRAMES;
}

static inline void cached_free(struct cached *c)
{
	struct cache_counts n;

	while (reactor_sim_step(c->loop))
		;
	check_rules(c);
	n = counts_of(c);
	assert_int_equal(n.charged, n.dirty + n.writeback + n.unstable);
	cache_drop_clean(c->cache);
	if (!n.charged) {
		n = counts_of(c);
		assert_int_equal(n.cached, 0);
		assert_int_equal(n.pages, 0);
		assert_true(memory_is_free(&c->cache->arena));
	}
	cache_free(c->cache);
	placement_close(c->placement);
	reactor_free(c->loop);
	free(c);
}

/* --- reads and writes ---------------------------------------------------- */

static inline void cached_woken(struct cache_waiter *w)
{
	container_of(w, struct cached_io, io.waiter)->woken = true;
}

static inline struct cached_io *io_new(
	struct cached *c, uint64_t offset, uint64_t length)
{
	struct cached_io *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	x->buf = malloc(length ? length : 1);
	x->io = (struct cache_io){
		.pos = offset,
		.end = offset + length,
		.reactor = c->loop,
		.waiter.wake = cached_woken,
		.buf = x->buf,
	};
	return x;
}

static inline void io_free(struct cached_io *x)
{
	free(x->buf);
	free(x);
}

/* Call again whenever it is woken, until it is over. */
static inline int io_finish(struct cached *c, struct cached_io *x,
	int (*call)(struct cache *c, struct cache_io *io))
{
	int err;

	while ((err = call(c->cache, &x->io)) == -EINPROGRESS) {
		while (!x->woken)
			assert_true(reactor_sim_step(c->loop));
		x->woken = false;
	}
	return err;
}

/* Go on after a first call that had to wait. */
static inline int io_resume(struct cached *c, struct cached_io *x,
	int (*call)(struct cache *c, struct cache_io *io))
{
	while (!x->woken)
		assert_true(reactor_sim_step(c->loop));
	x->woken = false;
	return io_finish(c, x, call);
}

/* Does a read see just what `tag` wrote there? */
static inline bool sees(
	struct cached *c, unsigned tag, uint64_t offset, uint64_t length)
{
	struct cached_io *x = io_new(c, offset, length);
	bool same;

	assert_int_equal(io_finish(c, x, cache_read), 0);
	same = data_same(x->buf, tag, offset, length);
	io_free(x);
	return same;
}

/* Does the store hold it? */
static inline bool stored(
	struct cached *c, unsigned tag, uint64_t offset, uint64_t length)
{
	unsigned char *buf = malloc(length);
	bool same;

	store_fault_record(c->store, false);
	assert_int_equal(
		io_do(c->store, c->loop, STORE_READ, offset, length, buf, 0),
		0);
	same = data_same(buf, tag, offset, length);
	free(buf);
	return same;
}

static inline struct cached_io *write_new(
	struct cached *c, unsigned tag, uint64_t offset, uint64_t length)
{
	struct cached_io *x = io_new(c, offset, length);
	uint64_t block = cache_block_size(c->cache);

	data_put(x->buf, tag, offset, length);
	x->io.charge = (offset + length + block - 1) / block * block -
		offset / block * block;
	assert_true(cache_charge(c->cache, x->io.charge, UINT64_MAX));
	return x;
}

static inline void write_end(struct cached *c, struct cached_io *x)
{
	cache_uncharge(c->cache, x->io.charge);
	io_free(x);
}

static inline void write_flat(
	struct cached *c, unsigned tag, uint64_t offset, uint64_t length)
{
	struct cached_io *x = write_new(c, tag, offset, length);

	assert_int_equal(io_finish(c, x, cache_write), 0);
	write_end(c, x);
}

/* Move a write's data to memory that can become the pages'. */
static inline void write_use_payload(struct cached *c, struct cached_io *x)
{
	unsigned char *from = x->buf;

	x->npayload = cache_payload(
		c->cache, x->io.pos, x->io.end - x->io.pos, x->iov, 600);
	assert_true(x->npayload > 0);
	for (int i = 0; i < x->npayload; i++) {
		memcpy(x->iov[i].iov_base, from, x->iov[i].iov_len);
		from += x->iov[i].iov_len;
	}
	x->io.source = CACHE_PAYLOAD;
	x->io.iov = x->iov;
	x->io.niov = (unsigned)x->npayload;
}

static inline void write_payload(
	struct cached *c, unsigned tag, uint64_t offset, uint64_t length)
{
	struct cached_io *x = write_new(c, tag, offset, length);

	write_use_payload(c, x);
	assert_int_equal(io_finish(c, x, cache_write), 0);
	cache_release(c->cache, x->iov, (unsigned)x->npayload);
	write_end(c, x);
}

/* --- the store ----------------------------------------------------------- */

/* How many of an op, and of how many bytes, since the log was started. */
static inline unsigned asked(
	struct cached *c, enum store_op op, uint64_t *bytes)
{
	size_t n = store_fault_log(c->store, c->log, LOG_MAX);
	unsigned found = 0;

	assert_true(n <= LOG_MAX);
	if (bytes)
		*bytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (c->log[i].op != op)
			continue;
		found++;
		if (bytes)
			*bytes += c->log[i].length;
	}
	return found;
}

static inline void forget_asked(struct cached *c)
{
	store_fault_record(c->store, true);
}

static inline void store_breaks(
	struct cached *c, enum store_op op, uint64_t count)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(op),
		.count = count,
	};

	store_fault_set(c->store, &rule, 1);
}

static inline void store_hangs(struct cached *c, enum store_op op)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_HANG, .ops = STORE_FAULT_OP(op)};

	store_fault_set(c->store, &rule, 1);
}

static inline void store_mends(struct cached *c)
{
	store_fault_set(c->store, NULL, 0);
	store_fault_release(c->store);
}

/* --- writing back by hand ------------------------------------------------ */

struct taken {
	struct cache_run run;
	struct iovec iov[64];
};

/* Take the first run of dirty blocks at or after `from`. */
static inline int take(struct cached *c, struct taken *t, uint64_t from)
{
	uint64_t span = cache_span(c->cache);

	t->run = (struct cache_run){.iov = t->iov, .max_iov = 64};
	return cache_take_dirty(c->cache, from, from / span * span + span,
		UINT64_MAX, MIB, UINT64_MAX, &t->run);
}

/* Write a run to the store as the flusher would. */
static inline void put(struct cached *c, struct taken *t, bool stable)
{
	struct waited_io w = {.io = {.op = STORE_WRITE,
				      .offset = t->run.offset,
				      .length = t->run.end - t->run.offset,
				      .iov = t->iov,
				      .niov = t->run.niov,
				      .reactor = c->loop,
				      .done = waited_io_done}};

	placement_submit(c->placement, &w.io);
	while (!w.done)
		assert_true(reactor_sim_step(c->loop));
	cache_run_done(c->cache, &t->run, w.io.error, stable);
}

/* Make everything clean. */
static inline void clean(struct cached *c)
{
	uint64_t span = cache_span(c->cache);
	struct taken t;

	for (uint64_t at = 0; at < c->size; at += span) {
		for (uint64_t from = at; !take(c, &t, from);) {
			from = t.run.end;
			put(c, &t, false);
			if (from >= at + span)
				break;
		}
	}
	cache_flush_end(c->cache, cache_flush_begin(c->cache), 0);
	assert_int_equal(cache_charged(c->cache), 0);
}

#endif
