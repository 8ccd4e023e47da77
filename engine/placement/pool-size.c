/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-size.c: how large a pool must be, and making it larger.
 *
 * Growing opens the pool on a loop of its own, changes its sizes, and closes
 * it: closing ends with a checkpoint, whose superblock has the new ones. Until
 * that is durable the pool is what it was.
 */
#include <errno.h>
#include <inttypes.h>

#include "../base/size.h"
#include "pool-impl.h"

/* What a map needs beside the data: two checkpoints of as many extents as
 * there can be, and some that trims split. See affordable(). */
static uint64_t books_for(uint64_t logical_size)
{
	return 2 * chain_bytes(logical_size / POOL_UNIT + 4096);
}

uint64_t pool_space_for(uint64_t logical_size)
{
	const uint64_t round = UINT64_C(1) << 20;
	uint64_t bytes, journal;

	if (logical_size > EXTENT_LOGICAL_END)
		return UINT64_MAX;
	bytes = POOL_JOURNAL_OFFSET + logical_size + books_for(logical_size);
	journal = bytes / 255 + POOL_UNIT; /* 1/256 of all */
	if (journal < POOL_JOURNAL_MIN)
		journal = POOL_JOURNAL_MIN;
	if (journal > POOL_JOURNAL_MAX)
		journal = POOL_JOURNAL_MAX;
	bytes = (bytes + journal + round - 1) / round * round;
	return bytes > EXTENT_PHYSICAL_END ? UINT64_MAX : bytes;
}

static int refuse_shrinking(
	const char *what, uint64_t now, uint64_t wanted, struct error *error)
{
	char is[16], want[16];

	return error_set(error, -EINVAL, "the %s is %s and cannot shrink to %s",
		what, size_format(now, is), size_format(wanted, want));
}

static int check_sizes(const struct pool *p, const struct pool_geometry *g,
	struct error *error)
{
	const struct super *s = &p->super;

	if (g->logical_size % POOL_UNIT || g->physical_size % POOL_UNIT)
		return error_set(error, -EINVAL,
			"the size must be a multiple of %u bytes", POOL_UNIT);
	if (g->logical_size && g->logical_size < s->logical_size)
		return refuse_shrinking(
			"device", s->logical_size, g->logical_size, error);
	if (g->physical_size && g->physical_size < s->physical_size)
		return refuse_shrinking(
			"pool", s->physical_size, g->physical_size, error);
	if (g->physical_size > p->base.store->info.size)
		return error_set(error, -EINVAL, "the store is smaller");
	if (g->logical_size > EXTENT_LOGICAL_END ||
		g->physical_size > EXTENT_PHYSICAL_END)
		return error_set(error, -EINVAL, "too large");
	return 0;
}

static int set_sizes(struct pool *p, const struct pool_geometry *g)
{
	struct super *s = &p->super;
	uint64_t more =
		g->physical_size ? g->physical_size - s->physical_size : 0;
	int err = more ? free_space_add(&p->space, s->physical_size, more) : 0;

	if (err)
		return err;
	s->physical_size += more;
	if (g->logical_size)
		s->logical_size = g->logical_size;
	p->resized = true;
	return 0;
}

static void quiet(void *arg)
{
	*(bool *)arg = true;
}

/* Close in order: 0 if the new superblock is durable. */
static int finish(struct pool *p, struct error *error)
{
	uint64_t before = p->super.generation;
	bool done = false;

	placement_quiesce(&p->base, quiet, &done);
	while (!done && reactor_sim_step(p->home))
		;
	if (p->super.generation == before)
		return error_set(
			error, -EIO, "the new superblock could not be written");
	return 0;
}

int pool_grow(const char *spec, const struct pool_geometry *geometry,
	struct error *error)
{
	struct placement_config config = {
		.spec = spec, .home = reactor_sim_new(1)};
	struct placement *placement;
	int err;

	if (!config.home)
		return error_set(error, -ENOMEM, "out of memory");
	err = placement_open(&config, &placement, error);
	if (!err) {
		struct pool *p = pool_of(placement);

		err = check_sizes(p, geometry, error);
		if (!err && set_sizes(p, geometry))
			err = error_set(error, -ENOMEM, "out of memory");
		if (!err)
			err = finish(p, error);
		placement_close(placement);
	}
	reactor_free(config.home);
	return err;
}
