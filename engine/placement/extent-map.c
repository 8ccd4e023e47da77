/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extent-map.c: see extent-map.h. An extent is one item of the tree, 16 bytes,
 * its places and length in units of 4 KiB:
 *
 *        63            16 15            0
 *     a [ logical: 48    | length: high  ]
 *     b [ length: low | U | physical: 47 ]   U: unwritten
 *        63         48  47 46           0
 *
 * Since extents do not overlap, `a` alone orders them.
 */
#include <assert.h>
#include <errno.h>

#include "extent-map.h"

#define UNWRITTEN (UINT64_C(1) << 47)

static struct btree_item extent_pack(const struct extent *e)
{
	uint64_t length = e->length / EXTENT_UNIT;

	return (struct btree_item){
		.a = e->logical / EXTENT_UNIT << 16 | length >> 16,
		.b = length << 48 | (e->unwritten ? UNWRITTEN : 0) |
			e->physical / EXTENT_UNIT,
	};
}

static struct extent extent_unpack(struct btree_item i)
{
	return (struct extent){
		.logical = (i.a >> 16) * EXTENT_UNIT,
		.physical = (i.b & (UNWRITTEN - 1)) * EXTENT_UNIT,
		.length = ((i.a & 0xffff) << 16 | i.b >> 48) * EXTENT_UNIT,
		.unwritten = i.b & UNWRITTEN,
	};
}

static uint64_t extent_end(const struct extent *e)
{
	return e->logical + e->length;
}

bool extent_map_before(
	const struct extent_map *m, uint64_t logical, struct extent *out)
{
	struct btree_item item;
	struct btree_item key = {
		logical / EXTENT_UNIT << 16 | 0xffff, UINT64_MAX};

	if (!btree_before(&m->tree, key, &item))
		return false;
	*out = extent_unpack(item);
	return true;
}

int extent_map_init(struct extent_map *m)
{
	btree_init(&m->tree);
	m->mapped = 0;
	return 0;
}

void extent_map_destroy(struct extent_map *m)
{
	btree_destroy(&m->tree);
	m->mapped = 0;
}

bool extent_map_find(
	const struct extent_map *m, uint64_t logical, struct extent *out)
{
	struct btree_item item;

	if (logical >= EXTENT_LOGICAL_END)
		return false;
	if (extent_map_before(m, logical, out) && extent_end(out) > logical)
		return true;
	if (!btree_after(&m->tree,
		    (struct btree_item){logical / EXTENT_UNIT << 16, 0}, &item))
		return false;
	*out = extent_unpack(item);
	return true;
}

bool extent_map_next(
	const struct extent_map *m, uint64_t *pos, struct extent *out)
{
	if (!extent_map_find(m, *pos, out))
		return false;
	if (out->logical < *pos) {
		uint64_t skip = *pos - out->logical;

		out->logical += skip;
		out->physical += skip;
		out->length -= skip;
	}
	*pos = extent_end(out);
	return true;
}

/* --- changes; what they insert is reserved before --- */

static void map_insert(struct extent_map *m, const struct extent *e)
{
	btree_insert(&m->tree, extent_pack(e));
	m->mapped += e->length;
}

static void map_remove(struct extent_map *m, const struct extent *e)
{
	btree_remove(&m->tree, extent_pack(e));
	m->mapped -= e->length;
}

static void map_replace(struct extent_map *m, const struct extent *old,
	const struct extent *now)
{
	btree_replace(&m->tree, extent_pack(old), extent_pack(now));
	m->mapped += now->length - old->length;
}

/* The part of `e` within [from, to). */
static struct extent extent_cut(
	const struct extent *e, uint64_t from, uint64_t to)
{
	uint64_t start = from > e->logical ? from : e->logical;
	uint64_t end = to < extent_end(e) ? to : extent_end(e);

	return (struct extent){
		.logical = start,
		.physical = e->physical + (start - e->logical),
		.length = end > start ? end - start : 0,
		.unwritten = e->unwritten,
	};
}

/* Take [from, to) out of an extent that overlaps it. */
static void map_punch(struct extent_map *m, const struct extent *e,
	uint64_t from, uint64_t to)
{
	struct extent head = extent_cut(e, 0, from);
	struct extent tail = extent_cut(e, to, UINT64_MAX);

	if (head.length)
		map_replace(m, e, &head);
	else if (tail.length)
		map_replace(m, e, &tail);
	else
		map_remove(m, e);
	if (head.length && tail.length)
		map_insert(m, &tail);
}

/* Empty [from, to), telling `freed` of what does not stay where `e` puts it. */
static void map_empty(struct extent_map *m, uint64_t from, uint64_t to,
	const struct extent *e, extent_freed *freed, void *arg)
{
	struct extent old;

	while (extent_map_find(m, from, &old) && old.logical < to) {
		struct extent piece = extent_cut(&old, from, to);

		map_punch(m, &old, from, to);
		if (freed &&
			(!e ||
				piece.physical - e->physical !=
					piece.logical - e->logical))
			freed(arg, &piece);
	}
}

/* Whether `b` goes on where `a` ends, and the two can be one extent. */
static bool extent_joins(const struct extent *a, const struct extent *b)
{
	return extent_end(a) == b->logical &&
		a->physical + a->length == b->physical &&
		a->unwritten == b->unwritten &&
		a->length + b->length <= EXTENT_LENGTH_MAX;
}

/* Put an extent into an empty range: into its neighbours, if it can. */
static void map_fill(struct extent_map *m, struct extent e)
{
	struct extent before, after;
	bool left = e.logical && extent_map_before(m, e.logical - 1, &before) &&
		extent_joins(&before, &e);
	struct extent joined = left ? before : e;

	if (left)
		joined.length += e.length;
	if (extent_map_find(m, extent_end(&e), &after) &&
		extent_joins(&joined, &after)) {
		joined.length += after.length;
		map_remove(m, &after);
	}
	if (left)
		map_replace(m, &before, &joined);
	else
		map_insert(m, &joined);
}

static bool range_valid(uint64_t start, uint64_t length, uint64_t limit)
{
	return length && !(start % EXTENT_UNIT) && !(length % EXTENT_UNIT) &&
		start < limit && length <= limit - start;
}

int extent_map_reserve(struct extent_map *m, unsigned sets)
{
	/* A tail, and the extent itself. */
	return btree_reserve(&m->tree, 2 * sets);
}

int extent_map_set(struct extent_map *m, const struct extent *e,
	extent_freed *freed, void *arg)
{
	uint64_t pieces = (e->length - 1) / EXTENT_LENGTH_MAX + 1;
	int err;

	if (!range_valid(e->logical, e->length, EXTENT_LOGICAL_END) ||
		!range_valid(e->physical, e->length, EXTENT_PHYSICAL_END))
		return -EINVAL;
	err = btree_reserve(&m->tree, (unsigned)pieces + 1);
	if (err)
		return err;
	map_empty(m, e->logical, extent_end(e), e, freed, arg);
	for (uint64_t at = e->logical; at < extent_end(e);) {
		uint64_t left = extent_end(e) - at;
		uint64_t now =
			left < EXTENT_LENGTH_MAX ? left : EXTENT_LENGTH_MAX;

		map_fill(m, extent_cut(e, at, at + now));
		at += now;
	}
	return 0;
}

int extent_map_append(
	struct extent_map *m, struct extent *last, const struct extent *e)
{
	struct extent joined = *last;
	int err;

	if (!range_valid(e->logical, e->length, EXTENT_LOGICAL_END) ||
		!range_valid(e->physical, e->length, EXTENT_PHYSICAL_END) ||
		e->length > EXTENT_LENGTH_MAX || e->logical < extent_end(last))
		return -EINVAL;
	err = btree_reserve(&m->tree, 1);
	if (err)
		return err;
	if (last->length && extent_joins(last, e)) {
		joined.length += e->length;
		map_replace(m, last, &joined);
		*last = joined;
	} else {
		map_insert(m, e);
		*last = *e;
	}
	return 0;
}

int extent_map_clear(struct extent_map *m, uint64_t logical, uint64_t length,
	extent_freed *freed, void *arg)
{
	int err;

	if (!range_valid(logical, length, EXTENT_LOGICAL_END))
		return -EINVAL;
	err = btree_reserve(&m->tree, 1);
	if (err)
		return err;
	map_empty(m, logical, logical + length, NULL, freed, arg);
	return 0;
}
