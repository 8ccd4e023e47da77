/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * free-space.c: see free-space.h.
 */
#include <errno.h>

#include "free-space.h"

/* How many free extents on each side of a target are looked at. */
#define NEAR 32

struct run {
	uint64_t offset, length;
};

static uint64_t run_end(struct run r)
{
	return r.offset + r.length;
}

static struct btree_item key_offset(struct run r)
{
	return (struct btree_item){r.offset, r.length};
}

static struct btree_item key_size(struct run r)
{
	return (struct btree_item){r.length, r.offset};
}

/* The last free extent that begins at or before `offset`. */
static bool run_before(
	const struct free_space *f, uint64_t offset, struct run *out)
{
	struct btree_item item;

	if (!btree_before(&f->by_offset,
		    (struct btree_item){offset, UINT64_MAX}, &item))
		return false;
	*out = (struct run){item.a, item.b};
	return true;
}

/* The first free extent that begins at or after `offset`. */
static bool run_after(
	const struct free_space *f, uint64_t offset, struct run *out)
{
	struct btree_item item;

	if (!btree_after(&f->by_offset, (struct btree_item){offset, 0}, &item))
		return false;
	*out = (struct run){item.a, item.b};
	return true;
}

/* --- changes; what they insert is reserved before --- */

static void run_insert(struct free_space *f, struct run r)
{
	btree_insert(&f->by_offset, key_offset(r));
	btree_insert(&f->by_size, key_size(r));
	f->bytes += r.length;
}

static void run_remove(struct free_space *f, struct run r)
{
	btree_remove(&f->by_offset, key_offset(r));
	btree_remove(&f->by_size, key_size(r));
	f->bytes -= r.length;
}

/* The two overlap. */
static void run_replace(struct free_space *f, struct run old, struct run now)
{
	btree_replace(&f->by_offset, key_offset(old), key_offset(now));
	btree_remove(&f->by_size, key_size(old));
	btree_insert(&f->by_size, key_size(now));
	f->bytes += now.length - old.length;
}

int free_space_init(struct free_space *f)
{
	btree_init(&f->by_offset);
	btree_init(&f->by_size);
	f->bytes = 0;
	return 0;
}

void free_space_destroy(struct free_space *f)
{
	btree_destroy(&f->by_offset);
	btree_destroy(&f->by_size);
	f->bytes = 0;
}

int free_space_reserve(struct free_space *f, unsigned changes)
{
	/* Cutting a piece from the middle moves one in by_size and adds one. */
	int err = btree_reserve(&f->by_offset, changes);

	return err ? err : btree_reserve(&f->by_size, 2 * changes);
}

static int range_check(uint64_t offset, uint64_t length)
{
	return length && length <= UINT64_MAX - offset ? 0 : -EINVAL;
}

int free_space_add(struct free_space *f, uint64_t offset, uint64_t length)
{
	struct run now = {offset, length}, left = {0}, right = {0};
	int err = range_check(offset, length);
	bool has_left, has_right;

	if (err)
		return err;
	has_left = run_before(f, offset, &left);
	has_right = run_after(f, offset, &right);
	if ((has_left && run_end(left) > offset) ||
		(has_right && right.offset < offset + length))
		return -EEXIST;
	err = free_space_reserve(f, 1);
	if (err)
		return err;
	has_left = has_left && run_end(left) == offset;
	has_right = has_right && right.offset == offset + length;
	if (has_right) {
		now.length += right.length;
		run_remove(f, right);
	}
	if (has_left) {
		now = (struct run){left.offset, left.length + now.length};
		run_replace(f, left, now);
	} else {
		run_insert(f, now);
	}
	return 0;
}

int free_space_append(struct free_space *f, uint64_t offset, uint64_t length)
{
	int err = range_check(offset, length);

	if (!err)
		err = free_space_reserve(f, 1);
	if (!err)
		run_insert(f, (struct run){offset, length});
	return err;
}

int free_space_take(struct free_space *f, uint64_t offset, uint64_t length)
{
	struct run whole, head, tail;
	int err = range_check(offset, length);

	if (err)
		return err;
	if (!run_before(f, offset, &whole) || run_end(whole) < offset + length)
		return -ENOENT;
	err = free_space_reserve(f, 1);
	if (err)
		return err;
	head = (struct run){whole.offset, offset - whole.offset};
	tail = (struct run){
		offset + length, run_end(whole) - (offset + length)};
	if (head.length)
		run_replace(f, whole, head);
	else if (tail.length)
		run_replace(f, whole, tail);
	else
		run_remove(f, whole);
	if (head.length && tail.length)
		run_insert(f, tail);
	return 0;
}

bool free_space_find(const struct free_space *f, uint64_t offset,
	uint64_t *start, uint64_t *length)
{
	struct run r;

	if (!(run_before(f, offset, &r) && run_end(r) > offset) &&
		!run_after(f, offset, &r))
		return false;
	*start = r.offset;
	*length = r.length;
	return true;
}

uint64_t free_space_largest(const struct free_space *f)
{
	struct btree_item item;

	if (!btree_before(&f->by_size,
		    (struct btree_item){UINT64_MAX, UINT64_MAX}, &item))
		return 0;
	return item.a;
}

/* --- choosing --- */

/* The last place before `target` that holds `want`: the end of an extent. */
static bool near_before(const struct free_space *f, uint64_t target,
	uint64_t want, uint64_t *offset)
{
	struct run r;

	for (unsigned i = 0; i < NEAR && run_before(f, target, &r); i++) {
		if (r.length >= want) {
			*offset = run_end(r) - want;
			return true;
		}
		if (!r.offset)
			break;
		target = r.offset - 1;
	}
	return false;
}

/* The first place after `target` that holds `want`. */
static bool near_after(const struct free_space *f, uint64_t target,
	uint64_t want, uint64_t *offset)
{
	struct run r;

	for (unsigned i = 0; i < NEAR && run_after(f, target, &r); i++) {
		if (r.length >= want) {
			*offset = r.offset;
			return true;
		}
		target = run_end(r);
	}
	return false;
}

/* 1 and 2: at the target or near it. */
static bool choose_near(const struct free_space *f, uint64_t target,
	uint64_t want, uint64_t *offset)
{
	uint64_t before = 0, after = 0;
	bool has_before, has_after;
	struct run r;

	if (run_before(f, target, &r) && run_end(r) > target &&
		run_end(r) - target >= want) {
		*offset = target;
		return true;
	}
	has_before = near_before(f, target, want, &before);
	has_after = near_after(f, target, want, &after);
	if (has_before && has_after)
		has_before = target - before < after - target;
	*offset = has_before ? before : after;
	return has_before || has_after;
}

bool free_space_choose(const struct free_space *f, uint64_t target,
	uint64_t want, uint64_t *offset, uint64_t *length)
{
	struct btree_item item;

	if (!want || !f->bytes)
		return false;
	*length = want;
	if (target != FREE_SPACE_NO_TARGET &&
		choose_near(f, target, want, offset))
		return true;
	if (btree_after(&f->by_size, (struct btree_item){want, 0}, &item)) {
		*offset = item.b;
		return true;
	}
	btree_before(&f->by_size, (struct btree_item){want, 0}, &item);
	*length = item.a;
	*offset = item.b;
	return true;
}

int free_space_alloc(struct free_space *f, uint64_t target, uint64_t want,
	uint64_t *offset, uint64_t *length)
{
	if (!free_space_choose(f, target, want, offset, length))
		return -ENOSPC;
	return free_space_take(f, *offset, *length);
}

bool free_space_valid(const struct free_space *f)
{
	uint64_t bytes = 0, extents = 0, end = 0, at = 0;
	struct btree_item item;
	struct run r;

	for (; run_after(f, at, &r); at = end = run_end(r)) {
		if (!r.length || (extents && r.offset == end) ||
			!btree_after(&f->by_size, key_size(r), &item) ||
			item.a != r.length || item.b != r.offset)
			return false;
		bytes += r.length;
		extents++;
	}
	return bytes == f->bytes && extents == f->by_offset.count &&
		extents == f->by_size.count && btree_valid(&f->by_offset) &&
		btree_valid(&f->by_size);
}
