/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h: for the unit tests of device models: a load on a store in
 * simulated time. Include after cmocka.h.
 */
#ifndef WEIR_TESTS_DEVICE_H
#define WEIR_TESTS_DEVICE_H

#include "base/random.h"
#include "storage.h"

#define MS NSEC_PER_MSEC
#define DEVICE_MAX_DEPTH 256

struct device {
	struct reactor *r;
	struct store *s;
	char *buf;
};

/* `count` commands, `depth` of them in flight until they run out. */
struct device_load {
	enum store_op op;
	unsigned flags;
	uint64_t count, length, depth; /* depth 0: 1 */
	uint64_t start;                /* the first offset, bytes */
	uint64_t gap;                  /* from the end of one to the next */
	bool random;                   /* at random multiples of 4K instead */
	uint64_t seed;
};

struct device_run {
	struct device *d;
	struct device_load load;
	uint64_t left;
	struct device_slot {
		struct store_io io;
		struct iovec iov;
		struct device_run *run;
	} slot[DEVICE_MAX_DEPTH];
	unsigned active;
};

static inline struct device device_open(const char *spec)
{
	return (struct device){
		.r = reactor_sim_new(1),
		.s = store_must_open(spec),
		.buf = calloc(1, 32 * MIB),
	};
}

static inline void device_close(struct device *d)
{
	store_close(d->s);
	reactor_free(d->r);
	free(d->buf);
}

static inline uint64_t device_offset(struct device_run *run)
{
	struct device_load *load = &run->load;
	uint64_t room = run->d->s->info.size - load->length;
	uint64_t offset = load->start;

	if (load->random)
		return random_below(&load->seed, room / 4096) * 4096;
	load->start += load->length + load->gap;
	return offset;
}

static inline void device_next(struct device_slot *slot)
{
	struct device_run *run = slot->run;

	run->left--;
	run->active++;
	slot->iov = (struct iovec){run->d->buf, run->load.length};
	slot->io.op = run->load.op;
	slot->io.flags = run->load.flags;
	slot->io.offset = device_offset(run);
	slot->io.length = run->load.length;
	slot->io.iov = &slot->iov;
	slot->io.niov = 1;
	store_submit(run->d->s, &slot->io);
}

static inline void device_slot_done(struct store_io *io)
{
	struct device_slot *slot = container_of(io, struct device_slot, io);

	assert_int_equal(io->error, 0);
	slot->run->active--;
	if (slot->run->left)
		device_next(slot);
}

/* Put a load on it; returns how long it took until all was answered, ns. */
static inline uint64_t device_run(struct device *d, struct device_load load)
{
	struct device_run run = {.d = d, .load = load, .left = load.count};
	uint64_t start = reactor_now(d->r);
	uint64_t depth = load.depth ? load.depth : 1;

	assert_in_range(depth, 1, DEVICE_MAX_DEPTH);
	for (unsigned i = 0; i < depth && run.left; i++) {
		run.slot[i].run = &run;
		run.slot[i].io.reactor = d->r;
		run.slot[i].io.done = device_slot_done;
		device_next(&run.slot[i]);
	}
	while (run.active)
		assert_true(reactor_sim_step(d->r));
	assert_int_equal(run.left, 0);
	return reactor_now(d->r) - start;
}

/* The same on a new device of its own. */
static inline uint64_t device_time(const char *spec, struct device_load load)
{
	struct device d = device_open(spec);
	uint64_t took = device_run(&d, load);

	device_close(&d);
	return took;
}

/* Print both and fail if they are further apart than so many percent. */
static inline void assert_near(
	const char *what, double measured, double computed, double percent)
{
	print_message("# %s: measured %.6g, computed %.6g\n", what, measured,
		computed);
	if (measured < computed * (1 - percent / 100) ||
		measured > computed * (1 + percent / 100))
		fail_msg("%s: %.6g is not %.6g", what, measured, computed);
}

/* Millions of bytes a second. */
static inline double rate_of(const struct device_load *load, uint64_t ns)
{
	return (double)(load->count * load->length) * 1e3 / (double)ns;
}

#endif
