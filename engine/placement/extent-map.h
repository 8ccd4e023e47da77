/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extent-map.h: which piece of the pool holds which piece of the device.
 *
 * An ordered set of extents in memory, for tens of millions of them. Places
 * and lengths are in bytes and multiples of 4 KiB; logical ones are below
 * 2^60, physical ones below 2^59.
 *
 * 1. Extents do not overlap logically. No two neighbours could be one: where
 *    one goes on both logically and physically with the same flag, they are
 *    merged, unless one extent cannot be that long (EXTENT_LENGTH_MAX).
 * 2. A function that fails has changed nothing.
 * 3. Memory is at most 40 bytes an extent, from some thousands on, of the most
 *    there were: what removals leave free is kept for those that come, or
 *    goes back to the kernel in whole chunks.
 *
 * Nothing here locks: the map is its owner's, who keeps a lock. The functions
 * that take a const map may run in several threads at once while none changes
 * it (a pthread_rwlock of the owner). None blocks.
 */
#ifndef WEIR_PLACEMENT_EXTENT_MAP_H
#define WEIR_PLACEMENT_EXTENT_MAP_H

#include "btree.h"

#define EXTENT_UNIT UINT64_C(4096)
#define EXTENT_LOGICAL_END (UINT64_C(1) << 60)
#define EXTENT_PHYSICAL_END (UINT64_C(1) << 59)
#define EXTENT_LENGTH_MAX (UINT64_C(0xffffffff) * EXTENT_UNIT)

struct extent {
	uint64_t logical, physical, length; /* bytes */
	bool unwritten;                     /* allocated, reads as zeroes */
};

struct extent_map {
	struct btree tree;
	uint64_t mapped; /* bytes, unwritten ones as well */
};

/*
 * Told of a piece of an extent that is no longer mapped: its own logical and
 * physical place and flag. Must not use the map.
 */
typedef void extent_freed(void *arg, const struct extent *piece);

/* 0; can fail in time to come. */
int extent_map_init(struct extent_map *m);
void extent_map_destroy(struct extent_map *m);

/*
 * The extent that covers `logical`, whole; else the first after it, whose
 * out->logical is then greater. False: neither.
 */
bool extent_map_find(
	const struct extent_map *m, uint64_t logical, struct extent *out);

/* The last extent that begins at or before `logical`. False: none. */
bool extent_map_before(
	const struct extent_map *m, uint64_t logical, struct extent *out);

/*
 * Let the next `sets` calls of extent_map_set() or extent_map_clear() succeed,
 * so that they can follow a record that was committed. 0 or -ENOMEM.
 */
int extent_map_reserve(struct extent_map *m, unsigned sets);

/*
 * Map a range, in place of whatever was there. `freed`, which may be NULL, is
 * told each piece there was whose physical place is another now; a changed
 * flag alone frees nothing. Any length, also over EXTENT_LENGTH_MAX: it is
 * then kept as several extents.
 * 0, -ENOMEM, or -EINVAL for a place or length that cannot be.
 */
int extent_map_set(struct extent_map *m, const struct extent *e,
	extent_freed *freed, void *arg);

/*
 * Map a range behind all that is mapped, without looking anything up: to fill
 * a map in order. `last` is the caller's, zeroes before the first call: the
 * map's last extent. 0, -ENOMEM, or -EINVAL, also if the range is not behind
 * it or longer than EXTENT_LENGTH_MAX.
 */
int extent_map_append(
	struct extent_map *m, struct extent *last, const struct extent *e);

/* Unmap a range; `freed` as above. 0, -ENOMEM or -EINVAL. */
int extent_map_clear(struct extent_map *m, uint64_t logical, uint64_t length,
	extent_freed *freed, void *arg);

/*
 * Walk the extents in logical order, across changes: the first that ends
 * after *pos, cut to what lies from *pos on; *pos becomes its end. Begin with
 * *pos = 0. An extent merged or split on the way is neither missed nor seen
 * twice. False at the end.
 */
bool extent_map_next(
	const struct extent_map *m, uint64_t *pos, struct extent *out);

static inline uint64_t extent_map_count(const struct extent_map *m)
{
	return m->tree.count;
}

/* Bytes of the device that have a place, unwritten ones as well. */
static inline uint64_t extent_map_mapped_bytes(const struct extent_map *m)
{
	return m->mapped;
}

/* The memory it holds, bytes. */
static inline uint64_t extent_map_memory(const struct extent_map *m)
{
	return btree_memory(&m->tree);
}

#endif
