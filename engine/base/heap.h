/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.h: a binary heap of things due at a time, for the reactors, or in
 * an order, for simulated devices.
 *
 * Entries are ordered by (due, tie). An entry may carry the address of a
 * position that the heap keeps up to date (1..; 0: not in the heap), so that
 * it can be taken out from the middle.
 *
 * Nothing here locks: one reactor owns a heap. Growing aborts the process
 * when memory is out, since arming a timer cannot fail.
 */
#ifndef WEIR_BASE_HEAP_H
#define WEIR_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

struct heap_entry {
	uint64_t due;  /* ns */
	uint64_t tie;  /* order among those due at once */
	void *item;    /* the owner's */
	unsigned kind; /* the owner's: what item is */
	size_t *pos;   /* NULL: never removed from the middle */
};

/* Zero-initialise. */
struct heap {
	struct heap_entry *at; /* at[1..used] */
	size_t used, room;
};

void heap_free(struct heap *h);
void heap_push(struct heap *h, struct heap_entry entry);

/* Take out the entry at `pos`, 1 being the first due. */
struct heap_entry heap_remove(struct heap *h, size_t pos);

/* The entry due first; NULL if there is none. */
static inline const struct heap_entry *heap_first(const struct heap *h)
{
	return h->used ? &h->at[1] : NULL;
}

#endif
