/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-image.c: what the device would hold after a power cut.
 *
 *   the store's file --cut: any of what is not flushed--> a copy
 *   a copy --opened by a placement of its own, and read--> the device's bytes
 *
 * A raw store's bytes are the device's.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"
#include "placement/placement.h"
#include "store/fault.h"

#define READ_BYTES (64U << 10)

static int memory_file(uint64_t size)
{
	int fd = memfd_create("weir-model", 0);

	if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
		abort();
	return fd;
}

static void *map_file(int fd, uint64_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert(map != MAP_FAILED);
	return map;
}

/* An empty pool in the store's file. */
static void format(struct run *run)
{
	struct pool_geometry geometry = {
		.logical_size = run->plan.size,
		.journal_size = run->plan.journal_size,
	};
	struct error error = {""};
	struct store *s;
	char spec[64];

	snprintf(spec, sizeof(spec), "volatile:/proc/self/fd/%d", run->image);
	if (store_open(spec, 0, &s, &error) ||
		pool_format(s, &geometry, &error)) {
		fprintf(stderr, "%s\n", error.text);
		abort();
	}
	store_close(s);
}

void image_make(struct run *run)
{
	run->store_size = run->plan.pool ? run->plan.space : run->plan.size;
	run->image = memory_file(run->store_size);
	run->map = map_file(run->image, run->store_size);
	run->scratch = memory_file(run->store_size);
	run->copy = map_file(run->scratch, run->store_size);
	run->device = malloc(run->plan.size);
	assert(run->device);
	run->last_id = 1;
	if (run->plan.pool)
		format(run);
	else
		data_fill(run->map, run->plan.prefilled ? 1 : 0, 0,
			run->store_size);
}

void image_free(struct run *run)
{
	munmap(run->map, run->store_size);
	munmap(run->copy, run->store_size);
	close(run->image);
	close(run->scratch);
	free(run->device);
}

/* --- reading a pool ------------------------------------------------------ */

struct reading {
	struct store_io io;
	bool done;
};

static void read_done(struct store_io *io)
{
	container_of(io, struct reading, io)->done = true;
}

static int read_piece(struct placement *p, struct reactor *r, uint64_t offset,
	void *buf, uint64_t length)
{
	struct iovec iov = {buf, length};
	struct reading reading = {
		.io = {.op = STORE_READ,
			.offset = offset,
			.length = length,
			.iov = &iov,
			.niov = 1,
			.reactor = r,
			.done = read_done},
	};

	placement_submit(p, &reading.io);
	while (!reading.done && reactor_sim_step(r))
		;
	return reading.done ? reading.io.error : -ETIMEDOUT;
}

static void quiet(void *arg)
{
	*(bool *)arg = true;
}

static void close_pool(struct placement *p, struct reactor *r)
{
	bool done = false;

	placement_quiesce(p, quiet, &done);
	while (!done && reactor_sim_step(r))
		;
	assert(done);
	placement_close(p);
}

static void read_pool(struct run *run)
{
	struct placement_config config = {
		.flags = chance(run, 30) ? STORE_OPEN_READONLY : 0,
		.home = reactor_sim_new(run->plan.seed),
		.sabotage = run->plan.sabotage,
	};
	struct error error = {""};
	struct placement *p;
	char spec[64];
	int err = 0;

	snprintf(spec, sizeof(spec), "pool:[volatile:/proc/self/fd/%d]",
		run->scratch);
	config.spec = spec;
	if (placement_open(&config, &p, &error)) {
		run_fail(run, "what a power cut leaves does not open: %s",
			error.text);
		reactor_free(config.home);
		return;
	}
	for (uint64_t at = 0, n; at < run->plan.size && !err; at += n) {
		n = run->plan.size - at;
		if (n > READ_BYTES)
			n = READ_BYTES;
		err = read_piece(p, config.home, at, run->device + at, n);
	}
	if (err)
		run_fail(
			run, "what a power cut leaves cannot be read: %d", err);
	close_pool(p, config.home);
	reactor_free(config.home);
}

static const unsigned char *device(struct run *run)
{
	if (!run->plan.pool)
		return run->copy;
	read_pool(run);
	return run->device;
}

const unsigned char *image_now(struct run *run)
{
	memcpy(run->copy, run->map, run->store_size);
	return device(run);
}

const unsigned char *image_cut(struct run *run)
{
	store_fault_snapshot(engine_store(run->engine),
		random_next(&run->random), run->copy);
	return device(run);
}
