/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-alloc.c: choosing where blocks go. The pool's lock is held for writing.
 *
 * Delayed (the default): when a write reaches the placement.
 *  1. Space held ahead of a stream that this write goes on with.
 *  2. As far from a near neighbour on the store as on the device, so that
 *     what is between them still fits in.
 *  3. Without a neighbour: as far into the store as into the device, if the
 *     store is large enough for all of it; else in the middle of the largest
 *     free extent, where a stream has room to grow.
 * A write that goes on with an extent takes space ahead of itself as well:
 * twice the extent, as a power of two, less when the pool is nearly full, so
 * that streams written in turns do not end up in slices (XFS does it so). It
 * is held in memory only, and given up when space is short, when nothing was
 * allocated from one commit to the next, and for a newer stream. Where it can
 * go on no longer it begins anew as in 3.
 *
 * Immediate, for comparison: when space is promised, one after the other in
 * the order in which that happens.
 */
#include <errno.h>

#include "pool-impl.h"

#define NEAR (UINT64_C(64) << 20) /* bytes; a neighbour is no further off */
#define AHEAD_FROM (UINT64_C(64) << 10) /* bytes; an extent to go on with */
#define AHEAD_MAX (UINT64_C(256) << 20) /* bytes */

static uint64_t space_start(const struct pool *p)
{
	return p->super.journal_offset + p->super.journal_size;
}

static void freed(void *pool, const struct extent *piece)
{
	struct pool *p = pool;

	/* No memory: lost until the pool is opened again. */
	free_space_add(&p->space, piece->physical, piece->length);
}

/* Take what a map of places holds for the range's beginning. */
static bool take_held(struct extent_map *m, uint64_t logical, uint64_t want,
	uint64_t *physical, uint64_t *length)
{
	struct extent e;

	if (!extent_map_find(m, logical, &e) || e.logical > logical)
		return false;
	*physical = e.physical + (logical - e.logical);
	*length = e.logical + e.length - logical;
	if (*length > want)
		*length = want;
	return !extent_map_clear(m, logical, *length, NULL, NULL);
}

/* --- where --------------------------------------------------------------- */

static bool near_before(
	const struct extent_map *m, uint64_t logical, struct extent *e)
{
	return extent_map_before(m, logical, e) &&
		logical - (e->logical + e->length) <= NEAR;
}

/* The neighbour before, written or being written; the nearer one. */
static bool neighbour(
	const struct pool *p, uint64_t logical, struct extent *out)
{
	struct extent mapped, placing;
	bool is_mapped = near_before(&p->map, logical, &mapped);
	bool is_placing = near_before(&p->placing, logical, &placing);

	if (is_placing && (!is_mapped || placing.logical > mapped.logical))
		*out = placing;
	else if (is_mapped)
		*out = mapped;
	return is_mapped || is_placing;
}

static uint64_t middle_of_largest(const struct pool *p)
{
	uint64_t offset, length;

	if (!free_space_choose(&p->space, FREE_SPACE_NO_TARGET,
		    free_space_largest(&p->space), &offset, &length))
		return FREE_SPACE_NO_TARGET;
	return offset + length / 2 / POOL_UNIT * POOL_UNIT;
}

static uint64_t target_for(const struct pool *p, uint64_t logical, uint64_t end)
{
	uint64_t start = space_start(p);
	struct extent e;

	if (neighbour(p, logical, &e))
		return e.physical + (logical - e.logical);
	if (extent_map_find(&p->map, logical, &e) && e.logical - end <= NEAR &&
		e.physical >= start + (e.logical - logical))
		return e.physical - (e.logical - logical);
	if (p->super.physical_size - start >= p->super.logical_size)
		return start + logical;
	return middle_of_largest(p);
}

/* --- ahead --------------------------------------------------------------- */

/* A power of two, smaller as the pool fills up: by 2 below 5% free, once more
 * below each of 4, 3, 2 and 1%. */
static uint64_t ahead_of(const struct pool *p, uint64_t run)
{
	uint64_t room = p->super.physical_size - space_start(p);
	uint64_t percent = free_space_bytes(&p->space) / (room / 100 + 1);
	uint64_t bytes;

	if (run < AHEAD_FROM)
		return 0;
	bytes = UINT64_C(2) << (63 - __builtin_clzll(run));
	if (bytes > AHEAD_MAX)
		bytes = AHEAD_MAX;
	if (percent < 5)
		bytes >>= 2 + (4 - percent);
	return bytes / POOL_UNIT * POOL_UNIT;
}

/* Where the hole that begins at `at` ends, or `end`. */
static uint64_t hole_end(const struct extent_map *m, uint64_t at, uint64_t end)
{
	struct extent e;

	if (!extent_map_find(m, at, &e) || e.logical >= end)
		return end;
	return e.logical > at ? e.logical : at;
}

/* How much to take beyond [logical, end). */
static uint64_t ahead_wanted(
	const struct pool *p, uint64_t logical, uint64_t end)
{
	struct extent e;
	uint64_t stop;

	if (!neighbour(p, logical, &e) || e.logical + e.length != logical)
		return 0;
	stop = end + ahead_of(p, e.length);
	if (stop > p->base.info.size)
		stop = p->base.info.size;
	stop = hole_end(&p->map, end, stop);
	stop = hole_end(&p->placing, end, stop);
	return hole_end(&p->ahead, end, stop) - end;
}

static void stream_drop(struct pool *p, struct stream *s)
{
	if (s->length)
		extent_map_clear(&p->ahead, s->logical, s->length, freed, p);
	s->length = 0;
}

bool pool_drop_ahead(struct pool *p)
{
	bool any = extent_map_count(&p->ahead);

	for (unsigned i = 0; any && i < STREAMS; i++)
		stream_drop(p, &p->stream[i]);
	return any;
}

void pool_idle(struct pool *p)
{
	if (!p->allocated)
		pool_drop_ahead(p);
	p->allocated = false;
}

/* Hold it. It is free again if that cannot be. */
static void hold_ahead(struct pool *p, const struct extent *e)
{
	struct stream *s = &p->stream[p->next_stream++ % STREAMS];

	stream_drop(p, s);
	if (extent_map_set(&p->ahead, e, NULL, NULL)) {
		freed(p, e);
		return;
	}
	s->logical = e->logical;
	s->length = e->length;
}

/* What is free from `at` on, `most` at most. */
static uint64_t free_from(const struct pool *p, uint64_t at, uint64_t most)
{
	uint64_t start, length;

	if (!free_space_find(&p->space, at, &start, &length) || start > at)
		return 0;
	length -= at - start;
	return length < most ? length : most;
}

/*
 * At the target if at least the write fits in there, even if less than wanted
 * is left ahead of it: it goes on with an extent, or fills a gap. A stream for
 * which it does not begins anew where a new one would: the front of a hole is
 * where another stream goes on. Else where all of it fits.
 */
static bool choose(const struct pool *p, uint64_t target, uint64_t want,
	uint64_t ahead, uint64_t *physical, uint64_t *length)
{
	*physical = target;
	*length = target == FREE_SPACE_NO_TARGET
		? 0
		: free_from(p, target, want + ahead);
	if (*length < want && ahead &&
		free_space_largest(&p->space) / 2 >= want) {
		*physical = middle_of_largest(p);
		*length = free_from(p, *physical, want + ahead);
	}
	if (*length >= want)
		return true;
	return free_space_choose(
		&p->space, target, want + ahead, physical, length);
}

static int alloc_delayed(struct pool *p, uint64_t logical, uint64_t want,
	uint64_t *physical, uint64_t *length)
{
	uint64_t end = logical + want;
	uint64_t ahead = ahead_wanted(p, logical, end);
	struct extent held;
	int err;

	if (take_held(&p->ahead, logical, want, physical, length))
		return 0;
	if (!choose(p, target_for(p, logical, end), want, ahead, physical,
		    length))
		return -ENOSPC;
	err = free_space_take(&p->space, *physical, *length);
	if (err || *length <= want)
		return err;
	held = (struct extent){
		.logical = end,
		.physical = *physical + want,
		.length = *length - want,
	};
	*length = want;
	hold_ahead(p, &held);
	return 0;
}

/* --- immediate ----------------------------------------------------------- */

/* After the one before, and from the start again at the end. */
static int choose_now(struct pool *p, struct extent *e)
{
	uint64_t want = e->length, from = p->arrival, start, length;
	int err;

	if (!free_space_find(&p->space, from, &start, &length)) {
		from = 0;
		if (!free_space_find(&p->space, from, &start, &length))
			return -ENOSPC;
	}
	if (start < from) {
		length -= from - start;
		start = from;
	}
	e->physical = start;
	e->length = length < want ? length : want;
	err = free_space_take(&p->space, e->physical, e->length);
	if (err)
		return err;
	p->arrival = e->physical + e->length;
	err = extent_map_set(&p->chosen, e, NULL, NULL);
	if (err)
		freed(p, e);
	return err;
}

int pool_choose_now(struct pool *p, uint64_t logical, uint64_t end)
{
	int err = 0;

	while (!err && logical < end) {
		struct extent e = {.logical = logical, .length = end - logical};

		err = choose_now(p, &e);
		logical += e.length;
	}
	return err;
}

void pool_unchoose(struct pool *p, uint64_t logical, uint64_t end)
{
	if (extent_map_count(&p->chosen))
		extent_map_clear(&p->chosen, logical, end - logical, freed, p);
}

/* --- both ---------------------------------------------------------------- */

int pool_alloc(struct pool *p, uint64_t logical, uint64_t want,
	uint64_t *physical, uint64_t *length)
{
	struct extent e = {.logical = logical};
	int err = 0;

	if (!take_held(&p->chosen, logical, want, physical, length))
		err = alloc_delayed(p, logical, want, physical, length);
	if (err == -ENOSPC && pool_drop_ahead(p))
		err = alloc_delayed(p, logical, want, physical, length);
	if (err)
		return err;
	e.physical = *physical;
	e.length = *length;
	err = extent_map_set(&p->placing, &e, NULL, NULL);
	if (err) {
		freed(p, &e);
		return err;
	}
	p->allocating += *length;
	p->allocated = true;
	return 0;
}

void pool_placed(struct pool *p, uint64_t logical, uint64_t length)
{
	p->allocating -= length;
	/* Only a hint: without memory it may stay. */
	extent_map_clear(&p->placing, logical, length, NULL, NULL);
}
