/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * free-space.h: what of the pool is free, and which piece of it to take.
 *
 * Kept in two orders, by offset and by (size, offset), as XFS does. Offsets
 * and lengths are in bytes; any unit, the caller's.
 *
 * 1. Both orders hold the same extents. They do not overlap, and no two of
 *    them touch.
 * 2. A function that fails has changed nothing.
 *
 * Nothing here locks, and none blocks: the pool's lock is held. Every function
 * is O(log n).
 */
#ifndef WEIR_PLACEMENT_FREE_SPACE_H
#define WEIR_PLACEMENT_FREE_SPACE_H

#include "btree.h"

#define FREE_SPACE_NO_TARGET UINT64_MAX

struct free_space {
	struct btree by_offset; /* (offset, length) */
	struct btree by_size;   /* (length, offset) */
	uint64_t bytes;
};

/* 0; can fail in time to come. */
int free_space_init(struct free_space *f);
void free_space_destroy(struct free_space *f);

/* Let the next `changes` adds, takes and allocs succeed. 0 or -ENOMEM. */
int free_space_reserve(struct free_space *f, unsigned changes);

/*
 * A range that is not free becomes free. 0, -ENOMEM, -EEXIST if part of it is
 * free already, or -EINVAL if it is empty or ends beyond 2^64 - 1.
 */
int free_space_add(struct free_space *f, uint64_t offset, uint64_t length);

/* The same for a range behind all that is free and not touching it, which is
 * not looked at: to fill it in order. */
int free_space_append(struct free_space *f, uint64_t offset, uint64_t length);

/*
 * A range that is free is so no longer. 0, -ENOMEM, -ENOENT if part of it is
 * not free, or -EINVAL.
 */
int free_space_take(struct free_space *f, uint64_t offset, uint64_t length);

/*
 * The free extent that covers `offset`, else the first after it: then
 * *start > offset. False: neither.
 */
bool free_space_find(const struct free_space *f, uint64_t offset,
	uint64_t *start, uint64_t *length);

/*
 * Where to put `want` bytes that would best lie at `target`. In this order:
 *   1. at the target, if all of it is free there;
 *   2. near: the nearest piece that holds all, among the 32 free extents
 *      before and the 32 after the target;
 *   3. the smallest extent that holds all, the first of those of its size;
 *   4. the largest there is: then *length < want.
 * With FREE_SPACE_NO_TARGET, 3 and 4 only. False if nothing is free, or
 * want is 0. Pure: *offset and *length can be taken, and are not.
 */
bool free_space_choose(const struct free_space *f, uint64_t target,
	uint64_t want, uint64_t *offset, uint64_t *length);

/* Choose and take. 0, -ENOMEM, or -ENOSPC if nothing is free. */
int free_space_alloc(struct free_space *f, uint64_t target, uint64_t want,
	uint64_t *offset, uint64_t *length);

static inline uint64_t free_space_bytes(const struct free_space *f)
{
	return f->bytes;
}

static inline uint64_t free_space_extents(const struct free_space *f)
{
	return f->by_offset.count;
}

/* The length of the largest free extent; 0: none. */
uint64_t free_space_largest(const struct free_space *f);

/* The memory it holds, bytes. */
static inline uint64_t free_space_memory(const struct free_space *f)
{
	return btree_memory(&f->by_offset) + btree_memory(&f->by_size);
}

/* For tests: rule 1. */
bool free_space_valid(const struct free_space *f);

#endif
