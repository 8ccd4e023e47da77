/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.c: see heap.h. at[i]'s children are at[2i] and at[2i + 1].
 */
#include <stdbool.h>
#include <stdlib.h>

#include "heap.h"
#include "log.h"

void heap_free(struct heap *h)
{
	free(h->at);
	*h = (struct heap){0};
}

static bool entry_before(const struct heap_entry *a, const struct heap_entry *b)
{
	return a->due != b->due ? a->due < b->due : a->tie < b->tie;
}

static void heap_put(struct heap *h, size_t pos, struct heap_entry entry)
{
	h->at[pos] = entry;
	if (entry.pos)
		*entry.pos = pos;
}

/* Put `entry` at the hole `pos` or, while it is due sooner, above it. */
static size_t heap_sift_up(struct heap *h, size_t pos, struct heap_entry entry)
{
	while (pos > 1 && entry_before(&entry, &h->at[pos / 2])) {
		heap_put(h, pos, h->at[pos / 2]);
		pos /= 2;
	}
	heap_put(h, pos, entry);
	return pos;
}

static void heap_sift_down(struct heap *h, size_t pos, struct heap_entry entry)
{
	for (;;) {
		size_t child = pos * 2;

		if (child < h->used &&
			entry_before(&h->at[child + 1], &h->at[child]))
			child++;
		if (child > h->used || !entry_before(&h->at[child], &entry))
			break;
		heap_put(h, pos, h->at[child]);
		pos = child;
	}
	heap_put(h, pos, entry);
}

static void heap_grow(struct heap *h)
{
	size_t room = h->room ? h->room * 2 : 64;
	struct heap_entry *at = reallocarray(h->at, room, sizeof *at);

	if (!at) {
		log_error("out of memory for %zu timers", room);
		abort();
	}
	h->at = at;
	h->room = room;
}

void heap_push(struct heap *h, struct heap_entry entry)
{
	if (h->used + 1 >= h->room)
		heap_grow(h);
	h->used++;
	heap_sift_up(h, h->used, entry);
}

struct heap_entry heap_remove(struct heap *h, size_t pos)
{
	struct heap_entry out = h->at[pos];
	struct heap_entry last = h->at[h->used--];

	if (pos <= h->used && heap_sift_up(h, pos, last) == pos)
		heap_sift_down(h, pos, last);
	if (out.pos)
		*out.pos = 0;
	return out;
}
