/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * btree.c: see btree.h.
 *
 *   inner   [ m0 | m1 | m2 ... ]     mi: the first item below child i, exactly
 *             |    |    |
 *   leaf    [ items in order ]
 *
 * As the first items are exact, the last item at or before a key is below the
 * last child that does not begin after it: one walk down finds it.
 *
 * A change walks down once and keeps its path, [0] being the leaf:
 *
 *   insert: full? give to a sibling, else split; a new child goes one level up
 *   remove: under half full? take from a sibling, or join it; its parent
 *           loses a child
 *
 * and then sets right the first items above.
 */
#include <assert.h>

#include "btree-node.h"

/* A node of 42 children at least, and 2^64 items at most. */
#define LEVELS_MAX 12

struct step {
	struct btree_node *node;
	unsigned at; /* of the item or child taken */
};

struct path {
	struct step step[LEVELS_MAX]; /* [0]: the leaf */
};

void btree_init(struct btree *t)
{
	*t = (struct btree){0};
	slab_init(&t->slab, NODE_SIZE);
}

void btree_destroy(struct btree *t)
{
	slab_destroy(&t->slab);
	btree_init(t);
}

int btree_reserve(struct btree *t, unsigned inserts)
{
	/* Each may split a node of every level and add one. */
	return slab_reserve(&t->slab, (uint64_t)inserts * (t->levels + 2));
}

/* --- walking --- */

/* At the leaf: how many items do not come after `key`. */
static void btree_walk(
	const struct btree *t, struct btree_item key, struct path *p)
{
	struct btree_node *n = t->root;

	for (unsigned level = t->levels; level--;) {
		unsigned rank;

		node_prefetch(n, level);
		rank = node_rank(n, key, level);
		if (level && rank)
			rank--;
		p->step[level] = (struct step){n, rank};
		if (level)
			n = node_child(n, rank);
	}
}

/* The node of `level` begins with another item now: tell those above. */
static void path_fix_first(
	const struct btree *t, struct path *p, unsigned level)
{
	struct btree_item first = node_item(p->step[level].node, 0, level);

	while (++level < t->levels) {
		struct step *up = &p->step[level];

		node_set(up->node, up->at, first, level);
		if (up->at)
			break;
	}
}

/* Whether the node of `level` is the last one of its level. */
static bool path_is_last(const struct btree *t, struct path *p, unsigned level)
{
	while (++level < t->levels)
		if (p->step[level].at + 1 != p->step[level].node->count)
			return false;
	return true;
}

bool btree_before(
	const struct btree *t, struct btree_item key, struct btree_item *out)
{
	const struct btree_node *n = t->root;

	for (unsigned level = t->levels; level--;) {
		unsigned rank;

		node_prefetch(n, level);
		rank = node_rank(n, key, level);
		if (!rank)
			return false;
		if (!level)
			*out = node_item(n, rank - 1, 0);
		else
			n = node_child(n, rank - 1);
	}
	return t->count > 0;
}

bool btree_after(
	const struct btree *t, struct btree_item key, struct btree_item *out)
{
	struct path p;
	struct step *leaf = &p.step[0];

	if (!t->count)
		return false;
	btree_walk(t, key, &p);
	if (leaf->at &&
		!item_before(node_item(leaf->node, leaf->at - 1, 0), key)) {
		*out = key;
		return true;
	}
	if (leaf->at < leaf->node->count) {
		*out = node_item(leaf->node, leaf->at, 0);
		return true;
	}
	for (unsigned level = 1; level < t->levels; level++) {
		struct step *up = &p.step[level];

		if (up->at + 1 < up->node->count) {
			*out = node_item(up->node, up->at + 1, level);
			return true;
		}
	}
	return false;
}

/* --- inserting --- */

/*
 * The full node of `level` gives half of a sibling's room to that sibling, if
 * it has a quarter of a node. `*at`, where an item is to go in, may then be in
 * the sibling, and the path with it.
 */
static bool path_give(
	const struct btree *t, struct path *p, unsigned level, unsigned *at)
{
	const unsigned max = node_max(level);
	struct step *own = &p->step[level], *up = own + 1;
	struct btree_node *n = own->node, *q = up->node, *side;
	unsigned k;

	if (level + 1 == t->levels)
		return false;
	side = up->at ? node_child(q, up->at - 1) : NULL;
	if (side && max - side->count >= max / 4) {
		k = (max - (unsigned)side->count + 1) / 2;
		node_give_left(side, n, k, level);
		node_set(q, up->at, node_item(n, 0, level), level + 1);
		if (*at > k) {
			*at -= k;
		} else {
			own->node = side;
			up->at--;
			*at += (unsigned)side->count - k;
		}
		return true;
	}
	side = up->at + 1 < q->count ? node_child(q, up->at + 1) : NULL;
	if (side && max - side->count >= max / 4) {
		k = (max - (unsigned)side->count + 1) / 2;
		node_give_right(n, side, k, level);
		node_set(q, up->at + 1, node_item(side, 0, level), level + 1);
		if (*at > n->count) {
			own->node = side;
			up->at++;
			*at -= (unsigned)n->count;
		}
		return true;
	}
	return false;
}

static struct btree_node *node_new(struct btree *t)
{
	struct btree_node *n = slab_alloc(&t->slab);

	assert(n); /* reserved */
	n->count = 0;
	return n;
}

/*
 * Split the full node of `level` and put the item into one of the two. The
 * right one is returned. At the end of the tree the left one stays full: more
 * will come after this item.
 */
static struct btree_node *path_split(struct btree *t, struct path *p,
	unsigned level, unsigned at, struct btree_item item,
	struct btree_node *child)
{
	struct btree_node *n = p->step[level].node, *right = node_new(t);
	bool append = at == n->count && path_is_last(t, p, level);

	node_give_right(n, right, append ? 0 : n->count / 2, level);
	if (at > n->count || append)
		node_put(right, at - n->count, item, child, level);
	else
		node_put(n, at, item, child, level);
	return right;
}

static void btree_grow(struct btree *t, struct btree_node *right)
{
	struct btree_node *root = node_new(t), *left = t->root;
	unsigned level = t->levels++;

	node_put(root, 0, node_item(left, 0, level - 1), left, level);
	node_put(root, 1, node_item(right, 0, level - 1), right, level);
	t->root = root;
}

void btree_insert(struct btree *t, struct btree_item item)
{
	struct btree_node *child = NULL;
	struct path p;
	unsigned at;

	if (!t->levels) {
		t->root = node_new(t);
		t->levels = 1;
	}
	t->count++;
	btree_walk(t, item, &p);
	at = p.step[0].at;
	for (unsigned level = 0; level < t->levels; level++) {
		struct step *own = &p.step[level];

		if (own->node->count < node_max(level) ||
			path_give(t, &p, level, &at)) {
			node_put(own->node, at, item, child, level);
			if (!at)
				path_fix_first(t, &p, level);
			return;
		}
		child = path_split(t, &p, level, at, item, child);
		if (!at)
			path_fix_first(t, &p, level);
		item = node_item(child, 0, level);
		at = own[1].at + 1;
	}
	btree_grow(t, child);
}

/* --- removing --- */

/*
 * The node of `level` may be under half full: even it out with a sibling, or
 * join the two. True if its parent lost a child.
 */
static bool path_balance(struct btree *t, struct path *p, unsigned level)
{
	const unsigned max = node_max(level);
	struct step *own = &p->step[level], *up = own + 1;
	struct btree_node *q = up->node, *a, *b;

	if (own->node->count >= max / 2)
		return false;
	if (q->count == 1) { /* the last of the level */
		if (own->node->count)
			return false;
		slab_free(&t->slab, own->node);
		node_cut(q, 0, level + 1);
		return true;
	}
	if (up->at)
		up->at--;
	a = own->node = node_child(q, up->at);
	b = node_child(q, up->at + 1);
	if (a->count + b->count <= max) {
		node_give_left(a, b, b->count, level);
		slab_free(&t->slab, b);
		node_cut(q, up->at + 1, level + 1);
		return true;
	}
	if (a->count < b->count)
		node_give_left(a, b, (b->count - a->count) / 2, level);
	else
		node_give_right(a, b, (a->count - b->count) / 2, level);
	node_set(q, up->at + 1, node_item(b, 0, level), level + 1);
	return false;
}

/* Drop a root with one child, or with none. */
static void btree_lower(struct btree *t)
{
	while (t->levels > 1 && t->root->count == 1) {
		struct btree_node *root = t->root;

		t->root = node_child(root, 0);
		t->levels--;
		slab_free(&t->slab, root);
	}
	if (!t->root->count) {
		slab_free(&t->slab, t->root);
		t->root = NULL;
		t->levels = 0;
	}
}

void btree_remove(struct btree *t, struct btree_item item)
{
	struct path p;
	struct step *leaf = &p.step[0];

	assert(t->count);
	btree_walk(t, item, &p);
	assert(leaf->at);
	leaf->at--;
	assert(!item_before(node_item(leaf->node, leaf->at, 0), item));
	node_cut(leaf->node, leaf->at, 0);
	if (!leaf->at && leaf->node->count)
		path_fix_first(t, &p, 0);
	t->count--;
	for (unsigned level = 0; level + 1 < t->levels; level++)
		if (!path_balance(t, &p, level))
			break;
	btree_lower(t);
}

void btree_replace(
	struct btree *t, struct btree_item old, struct btree_item now)
{
	struct path p;
	struct step *leaf = &p.step[0];

	btree_walk(t, old, &p);
	assert(leaf->at);
	leaf->at--;
	node_set(leaf->node, leaf->at, now, 0);
	if (!leaf->at)
		path_fix_first(t, &p, 0);
}

/* --- checking --- */

static bool node_valid(const struct btree *t, const struct btree_node *n,
	unsigned level, bool last, uint64_t *count)
{
	const unsigned max = node_max(level);

	if (!n->count || n->count > max || (!last && n->count < max / 2))
		return false;
	for (uint64_t i = 1; i < n->count; i++)
		if (!item_before(
			    node_item(n, i - 1, level), node_item(n, i, level)))
			return false;
	if (!level) {
		*count += n->count;
		return true;
	}
	for (uint64_t i = 0; i < n->count; i++) {
		const struct btree_node *c = node_child(n, i);
		struct btree_item first = node_item(n, i, level);
		bool end = i + 1 == n->count;

		if (!node_valid(t, c, level - 1, last && end, count) ||
			item_before(first, node_item(c, 0, level - 1)) ||
			item_before(node_item(c, 0, level - 1), first))
			return false;
		if (level == 1 && !end &&
			!item_before(node_item(c, c->count - 1, 0),
				node_item(n, i + 1, 1)))
			return false;
	}
	return true;
}

bool btree_valid(const struct btree *t)
{
	uint64_t count = 0;

	if (!t->levels)
		return !t->root && !t->count && !t->slab.used;
	return node_valid(t, t->root, t->levels - 1, true, &count) &&
		count == t->count;
}
