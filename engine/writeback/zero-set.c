/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zero-set.c: a sorted array: a search is a few steps, and a change moves
 * what lies behind it, a few thousand ranges at most.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "zero-set.h"

/* The first range that ends after `at`. */
static size_t find(const struct zero_set *s, uint64_t at)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->range[middle].end > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The first range from `i` on that begins at or after `end`. */
static size_t find_end(const struct zero_set *s, size_t i, uint64_t end)
{
	while (i < s->count && s->range[i].offset < end)
		i++;
	return i;
}

/* Put n ranges in the place of [i, j). */
static int splice(struct zero_set *s, size_t i, size_t j,
	const struct zero_range *with, size_t n)
{
	size_t count = s->count - (j - i) + n;

	if (count > s->room) {
		size_t room = count < 16 ? 16 : 2 * count;
		struct zero_range *range =
			realloc(s->range, room * sizeof(*range));

		if (!range)
			return -ENOMEM;
		s->range = range;
		s->room = room;
	}
	if (s->count > j)
		memmove(&s->range[i + n], &s->range[j],
			(s->count - j) * sizeof(*s->range));
	if (n)
		memcpy(&s->range[i], with, n * sizeof(*with));
	s->count = count;
	return 0;
}

/* Append to a short list; ranges that touch and are alike become one. */
static void append(struct zero_range *to, size_t *n, struct zero_range z)
{
	if (z.offset >= z.end)
		return;
	if (*n && to[*n - 1].end == z.offset && to[*n - 1].flags == z.flags)
		to[*n - 1].end = z.end;
	else
		to[(*n)++] = z;
}

/* Replace what is in [offset, end) by the range, if there is one. */
static int replace(struct zero_set *s, uint64_t offset, uint64_t end,
	const struct zero_range *new)
{
	size_t i = find(s, offset), j = find_end(s, i, end), n = 0;
	struct zero_range with[5], last;

	if (!new &&i == j)
		return 0;
	/* The neighbours too: they may touch. */
	if (i > 0)
		append(with, &n, s->range[i - 1]);
	if (i < j) {
		last = s->range[i];
		last.end = offset;
		append(with, &n, last);
	}
	if (new)
		append(with, &n, *new);
	if (i < j) {
		last = s->range[j - 1];
		last.offset = end;
		append(with, &n, last);
	}
	if (j < s->count)
		append(with, &n, s->range[j]);
	return splice(s, i - (i > 0), j + (j < s->count), with, n);
}

int zero_set_add(
	struct zero_set *s, uint64_t offset, uint64_t end, unsigned flags)
{
	struct zero_range z = {offset, end, flags};

	return replace(s, offset, end, &z);
}

int zero_set_cut(struct zero_set *s, uint64_t offset, uint64_t end)
{
	return replace(s, offset, end, NULL);
}

void zero_set_drop(struct zero_set *s, uint64_t offset, uint64_t end)
{
	size_t i = find(s, offset);

	splice(s, i, find_end(s, i, end), NULL, 0); /* fewer: cannot fail */
}

bool zero_set_splits(const struct zero_set *s, uint64_t offset, uint64_t end)
{
	size_t i = find(s, offset);

	return i < s->count && s->range[i].offset < offset &&
		s->range[i].end > end;
}

void zero_set_free(struct zero_set *s)
{
	free(s->range);
	*s = (struct zero_set){0};
}
