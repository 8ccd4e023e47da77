/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * btree.h: an ordered set of pairs of numbers, for millions of them: what the
 * extent map and the free space are kept in.
 *
 * A B+tree (Comer, "The ubiquitous B-tree", 1979) of wide nodes, ordered by
 * (a, b). A node whose sibling has room gives items to it before it splits,
 * so that trees filled in order end up nearly full.
 *
 * 1. Every node but the root, and but the last of each level, is at least
 *    half full: at most 40 bytes of memory an item, inner nodes included,
 *    from a few thousand items on. What removals leave free is used again, or
 *    given back in whole chunks (slab.h).
 * 2. Only btree_reserve() needs memory. After it the named number of inserts
 *    cannot fail, whatever is removed between them.
 *
 * Nothing here locks. Looking up from several threads at once is fine while
 * nobody changes the tree.
 */
#ifndef WEIR_PLACEMENT_BTREE_H
#define WEIR_PLACEMENT_BTREE_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/slab.h"

struct btree_item {
	uint64_t a, b;
};

struct btree {
	struct btree_node *root; /* NULL: empty */
	unsigned levels;         /* 1: the root is a leaf */
	uint64_t count;          /* items */
	struct slab slab;
};

void btree_init(struct btree *t);
void btree_destroy(struct btree *t);

/* Let `inserts` more succeed. 0 or -ENOMEM. */
int btree_reserve(struct btree *t, unsigned inserts);

/* An item that is not in the tree yet; reserved before. */
void btree_insert(struct btree *t, struct btree_item item);
/* An item that is in the tree. */
void btree_remove(struct btree *t, struct btree_item item);
/*
 * Put `now` where `old`, an item of the tree, stands: no item between the
 * two. Cheaper than a removal and an insert, and needs no memory.
 */
void btree_replace(
	struct btree *t, struct btree_item old, struct btree_item now);

/* The last item at or before `key`; false: none. */
bool btree_before(
	const struct btree *t, struct btree_item key, struct btree_item *out);
/* The first item at or after `key`; false: none. */
bool btree_after(
	const struct btree *t, struct btree_item key, struct btree_item *out);

/* The memory it holds, bytes. */
static inline uint64_t btree_memory(const struct btree *t)
{
	return slab_memory(&t->slab);
}

/* For tests: the order, the fill and the levels are as they must be. */
bool btree_valid(const struct btree *t);

#endif
