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
#include <endian.h>
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

/* False: it does not open, or cannot be read; run->failure says why unless
 * `damaged`, which is reason enough. */
static bool read_pool(struct run *run, bool damaged)
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
		if (!damaged)
			run_fail(run,
				"what a power cut leaves does not open: %s",
				error.text);
		reactor_free(config.home);
		return false;
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
	return !err;
}

static const unsigned char *device(struct run *run)
{
	if (!run->plan.pool)
		return run->copy;
	read_pool(run, false);
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

/* --- damage -------------------------------------------------------------- */

#define UNIT 4096U
#define JOURNAL (128U << 10) /* where it begins: weir-pool(5) */

static uint64_t number_at(const unsigned char *p)
{
	uint64_t n;

	memcpy(&n, p, sizeof(n));
	return le64toh(n);
}

/* A journal entry that another, later one says was durable; NULL: none. */
static unsigned char *proven_entry(struct run *run)
{
	unsigned char *ring = run->copy + JOURNAL, *found = NULL;
	uint64_t units = run->plan.journal_size / UNIT, durable = 0, n = 0;

	for (uint64_t i = 0; i < units; i++) {
		const unsigned char *e = ring + i * UNIT;

		if (!memcmp(e, "weirjrnl", 8) && number_at(e + 32) > durable)
			durable = number_at(e + 32);
	}
	for (uint64_t i = 0; i < units; i++) {
		unsigned char *e = ring + i * UNIT;

		if (memcmp(e, "weirjrnl", 8) || number_at(e + 24) > durable)
			continue;
		if (!pick(run, ++n)) /* each as likely */
			found = e;
	}
	return found;
}

const unsigned char *image_damaged(struct run *run)
{
	unsigned char *entry;

	store_fault_snapshot(engine_store(run->engine),
		random_next(&run->random), run->copy);
	entry = run->plan.pool ? proven_entry(run) : NULL;
	if (!entry)
		return NULL;
	entry[pick(run, 64 + 24)] ^= (unsigned char)(1 + pick(run, 255));
	return read_pool(run, true) ? run->device : NULL;
}
