/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * btree-node.h: a node of the tree in btree.h: its layout, searching it, and
 * moving its items, with the children where it has them. For btree.c alone.
 *
 * `level` is the node's height: 0 is a leaf.
 */
#ifndef WEIR_PLACEMENT_BTREE_NODE_H
#define WEIR_PLACEMENT_BTREE_NODE_H

#include <assert.h>
#include <string.h>

#include "btree.h"

#define NODE_SIZE 2048
#define LEAF_MAX 127
#define INNER_MAX 85

/*
 * Column by column, so that a search touches few lines: all a's, in an inner
 * node all children, all b's; of LEAF_MAX or INNER_MAX rows.
 */
struct btree_node {
	uint64_t count; /* rows in use */
	union {
		uint64_t word[NODE_SIZE / 8 - 1];
		struct btree_node *child[NODE_SIZE / 8 - 1];
	};
};

static_assert(sizeof(struct btree_node) == NODE_SIZE, "a node is full");
static_assert(2 * LEAF_MAX < NODE_SIZE / 8, "a leaf fits");
static_assert(3 * INNER_MAX < NODE_SIZE / 8, "an inner node fits");

static inline unsigned node_max(unsigned level)
{
	return level ? INNER_MAX : LEAF_MAX;
}

/* Where the column of the b's begins. */
static inline unsigned node_b(unsigned level)
{
	return level ? 2 * INNER_MAX : LEAF_MAX;
}

static inline struct btree_item node_item(
	const struct btree_node *n, uint64_t at, unsigned level)
{
	return (struct btree_item){n->word[at], n->word[node_b(level) + at]};
}

static inline void node_set(struct btree_node *n, uint64_t at,
	struct btree_item item, unsigned level)
{
	n->word[at] = item.a;
	n->word[node_b(level) + at] = item.b;
}

/* The children of an inner node. */
static inline struct btree_node **node_children(struct btree_node *n)
{
	return &n->child[INNER_MAX];
}

static inline struct btree_node *node_child(
	const struct btree_node *n, uint64_t at)
{
	return n->child[INNER_MAX + at];
}

static inline bool item_before(struct btree_item x, struct btree_item y)
{
	return x.a != y.a ? x.a < y.a : x.b < y.b;
}

/* How many of n ordered numbers are at most `key`. No jumps to guess. */
static inline unsigned rank_of(const uint64_t *at, unsigned n, uint64_t key)
{
	const uint64_t *base = at;

	while (n > 1) {
		unsigned half = n / 2;

		base += base[half - 1] <= key ? half : 0;
		n -= half;
	}
	return (unsigned)(base - at) + (n && *base <= key);
}

/* How many items of the node do not come after `key`. */
static inline unsigned node_rank(
	const struct btree_node *n, struct btree_item key, unsigned level)
{
	unsigned end = rank_of(n->word, (unsigned)n->count, key.a), first;

	if (!end || n->word[end - 1] != key.a)
		return end;
	first = key.a ? rank_of(n->word, end, key.a - 1) : 0;
	return first +
		rank_of(n->word + node_b(level) + first, end - first, key.b);
}

/*
 * The lines of a node that a search may want, at once: they are missed
 * together, not in turn.
 */
static inline void node_prefetch(const struct btree_node *n, unsigned level)
{
	const char *end = level ? (const char *)&n->word[2 * INNER_MAX]
				: (const char *)(n + 1);

	for (const char *at = (const char *)n; at < end; at += 64)
		__builtin_prefetch(at);
}

static inline void node_move(struct btree_node *to, uint64_t to_at,
	const struct btree_node *from, uint64_t from_at, uint64_t n,
	unsigned level)
{
	const unsigned columns = level ? 3 : 2, max = node_max(level);

	for (unsigned i = 0; i < columns; i++)
		memmove(to->word + i * max + to_at,
			from->word + i * max + from_at, n * sizeof(*to->word));
}

static inline void node_put(struct btree_node *n, uint64_t at,
	struct btree_item item, struct btree_node *child, unsigned level)
{
	node_move(n, at + 1, n, at, n->count - at, level);
	node_set(n, at, item, level);
	if (level)
		node_children(n)[at] = child;
	n->count++;
}

static inline void node_cut(struct btree_node *n, uint64_t at, unsigned level)
{
	n->count--;
	node_move(n, at, n, at + 1, n->count - at, level);
}

/* The first `k` of `b` to the end of `a`, its left neighbour. */
static inline void node_give_left(
	struct btree_node *a, struct btree_node *b, uint64_t k, unsigned level)
{
	node_move(a, a->count, b, 0, k, level);
	a->count += k;
	b->count -= k;
	node_move(b, 0, b, k, b->count, level);
}

/* The last `k` of `a` to the front of `b`, its right neighbour. */
static inline void node_give_right(
	struct btree_node *a, struct btree_node *b, uint64_t k, unsigned level)
{
	node_move(b, k, b, 0, b->count, level);
	a->count -= k;
	node_move(b, 0, a, a->count, k, level);
	b->count += k;
}

#endif
