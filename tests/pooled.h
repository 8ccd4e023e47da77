/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pooled.h: for the unit tests of pools: a pool on a recording store with a
 * volatile cache, on a simulated loop. Include after cmocka.h.
 *
 *   placement pool -> fault (records, fails) -> volatile -> a memory file
 *
 * Data is a function of (tag, offset); tag 0 is zeroes.
 */
#ifndef WEIR_TESTS_POOLED_H
#define WEIR_TESTS_POOLED_H

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "placement/placement.h"
#include "storage.h"
#include "store/fault.h"

#define UNIT UINT64_C(4096)
#define POOLED_LOG 8192U

struct pooled {
	struct reactor *loop;
	struct placement *pool;
	struct store *store; /* the recording one */
	char inner[128];     /* the store's spec */
	char spec[160];
	unsigned flags, sabotage;
	bool immediate, serial;
	int fd;
	unsigned char *map; /* what is durable */
	uint64_t size;      /* of the store */
	bool quiet;
	struct store_fault_record log[POOLED_LOG];
};

struct pooled_io {
	struct store_io io;
	struct iovec iov;
	unsigned char *buf;
	bool done;
};

static inline void tag_put(
	unsigned char *buf, unsigned tag, uint64_t at, uint64_t n)
{
	for (uint64_t i = 0; i < n; i += 8) {
		uint64_t word = tag ? (uint64_t)tag << 48 | (at + i) : 0;

		memcpy(buf + i, &word, 8);
	}
}

static inline bool tag_is(
	const unsigned char *buf, unsigned tag, uint64_t at, uint64_t n)
{
	for (uint64_t i = 0; i < n; i += 8) {
		uint64_t word = tag ? (uint64_t)tag << 48 | (at + i) : 0;

		if (memcmp(buf + i, &word, 8))
			return false;
	}
	return true;
}

/* --- life ---------------------------------------------------------------- */

/* The store alone, full of what was there before. */
static inline struct pooled *pooled_blank(uint64_t size)
{
	struct pooled *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->size = size;
	b->fd = memfd_create("weir-pool", 0);
	assert_true(b->fd >= 0);
	assert_int_equal(ftruncate(b->fd, (off_t)size), 0);
	b->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	assert_ptr_not_equal(b->map, MAP_FAILED);
	tag_put(b->map, 99, 0, size);
	b->loop = reactor_sim_new(size);
	snprintf(b->inner, sizeof(b->inner),
		"fault:record=on,volatile:/proc/self/fd/%d", b->fd);
	snprintf(b->spec, sizeof(b->spec), "pool:[%s]", b->inner);
	return b;
}

static inline void pooled_format(struct pooled *b, uint64_t logical)
{
	struct pool_geometry g = {.logical_size = logical};
	struct store *s = store_must_open(b->inner);
	struct error error = {""};

	if (pool_format(s, &g, &error))
		fail_msg("%s", error.text);
	store_close(s);
}

/* 0, or the error with its text. */
static inline int pooled_try(struct pooled *b, struct error *error)
{
	struct placement_config config = {
		.spec = b->spec,
		.flags = b->flags,
		.home = b->loop,
		.immediate = b->immediate,
		.serial = b->serial,
		.sabotage = b->sabotage,
	};
	int err = placement_open(&config, &b->pool, error);

	if (!err) {
		b->store = b->pool->store;
		store_fault_record(b->store, true);
	}
	return err;
}

static inline void pooled_open(struct pooled *b)
{
	struct error error = {""};

	if (pooled_try(b, &error))
		fail_msg("%s", error.text);
}

static inline struct pooled *pooled_new(uint64_t size, uint64_t logical)
{
	struct pooled *b = pooled_blank(size);

	pooled_format(b, logical);
	pooled_open(b);
	return b;
}

static inline void pooled_quiet(void *arg)
{
	((struct pooled *)arg)->quiet = true;
}

/* Close in order. */
static inline void pooled_close(struct pooled *b)
{
	b->quiet = false;
	placement_quiesce(b->pool, pooled_quiet, b);
	while (!b->quiet)
		assert_true(reactor_sim_step(b->loop));
	placement_close(b->pool);
	b->pool = NULL;
}

/* Close without a word, as if the process had died; what is under way on the
 * store ends. */
static inline void pooled_drop(struct pooled *b)
{
	while (reactor_sim_step(b->loop))
		;
	placement_close(b->pool);
	b->pool = NULL;
}

/* Cut the power and close: nothing of that reaches the store. */
static inline void pooled_power_cut(struct pooled *b, uint64_t seed)
{
	store_fault_power_cut(b->store, seed);
	reactor_sim_run_until(b->loop, reactor_now(b->loop) + 5 * NSEC_PER_SEC);
	pooled_close(b);
}

static inline void pooled_free(struct pooled *b)
{
	if (b->pool)
		pooled_close(b);
	reactor_free(b->loop);
	munmap(b->map, b->size);
	close(b->fd);
	free(b);
}

/* --- ios ----------------------------------------------------------------- */

static inline void pooled_io_done(struct store_io *io)
{
	struct pooled_io *x = container_of(io, struct pooled_io, io);

	assert_false(x->done);
	x->done = true;
}

static inline struct pooled_io *pooled_start(struct pooled *b, enum store_op op,
	unsigned tag, uint64_t offset, uint64_t length, unsigned flags)
{
	struct pooled_io *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	if (op == STORE_READ || op == STORE_WRITE) {
		x->buf = aligned_alloc(4096, length);
		assert_non_null(x->buf);
		tag_put(x->buf, op == STORE_WRITE ? tag : 77, offset, length);
	}
	x->iov = (struct iovec){x->buf, length};
	x->io = (struct store_io){
		.op = op,
		.flags = flags,
		.offset = offset,
		.length = length,
		.iov = &x->iov,
		.niov = 1,
		.reactor = b->loop,
		.done = pooled_io_done,
	};
	placement_submit(b->pool, &x->io);
	assert_false(x->done);
	return x;
}

static inline int pooled_end(struct pooled *b, struct pooled_io *x)
{
	int error;

	while (!x->done)
		assert_true(reactor_sim_step(b->loop));
	error = x->io.error;
	free(x->buf);
	free(x);
	return error;
}

static inline int pooled_do(struct pooled *b, enum store_op op, unsigned tag,
	uint64_t offset, uint64_t length, unsigned flags)
{
	return pooled_end(b, pooled_start(b, op, tag, offset, length, flags));
}

/* These must succeed. */
static inline void pooled_write(
	struct pooled *b, unsigned tag, uint64_t offset, uint64_t length)
{
	assert_int_equal(pooled_do(b, STORE_WRITE, tag, offset, length, 0), 0);
}

static inline void pooled_trim(
	struct pooled *b, uint64_t offset, uint64_t length)
{
	assert_int_equal(pooled_do(b, STORE_TRIM, 0, offset, length, 0), 0);
}

static inline void pooled_flush(struct pooled *b)
{
	assert_int_equal(pooled_do(b, STORE_FLUSH, 0, 0, 0, 0), 0);
}

static inline bool pooled_sees(
	struct pooled *b, unsigned tag, uint64_t offset, uint64_t length)
{
	struct pooled_io *x = pooled_start(b, STORE_READ, 0, offset, length, 0);
	bool same;

	while (!x->done)
		assert_true(reactor_sim_step(b->loop));
	same = !x->io.error && tag_is(x->buf, tag, offset, length);
	pooled_end(b, x);
	return same;
}

static inline struct pool_counts pooled_counts(struct pooled *b)
{
	struct pool_counts n;

	assert_true(pool_counts(b->pool, &n));
	return n;
}

/* --- the store ----------------------------------------------------------- */

/* How many of an op since the log was begun, and how many bytes. */
static inline unsigned pooled_asked(
	struct pooled *b, enum store_op op, uint64_t *bytes)
{
	size_t n = store_fault_log(b->store, b->log, POOLED_LOG);
	unsigned found = 0;

	assert_true(n <= POOLED_LOG);
	if (bytes)
		*bytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (b->log[i].op != op)
			continue;
		found++;
		if (bytes)
			*bytes += b->log[i].length;
	}
	return found;
}

static inline void pooled_record(struct pooled *b)
{
	store_fault_record(b->store, true);
}

/* Make an op fail: after `skip` of them the next `count` (0: all). */
static inline void pooled_break(
	struct pooled *b, enum store_op op, uint64_t skip, uint64_t count)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(op),
		.skip = skip,
		.count = count,
	};

	store_fault_set(b->store, &rule, 1);
}

static inline void pooled_hang(struct pooled *b, enum store_op op)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_HANG, .ops = STORE_FAULT_OP(op)};

	store_fault_set(b->store, &rule, 1);
}

static inline void pooled_mend(struct pooled *b)
{
	store_fault_set(b->store, NULL, 0);
	store_fault_release(b->store);
}

#endif
