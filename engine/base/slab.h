/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slab.h: memory for very many things of one size.
 *
 * Objects are cut from chunks of 2 MiB, aligned so. From the second on the
 * kernel is asked to back them with huge pages: a look-up among 10 million
 * extents then misses its caches, but not the TLB as well. A chunk whose last
 * object is freed goes back to the kernel; one is kept.
 *
 * 1. An object never moves.
 * 2. After slab_reserve(s, n) the next n slab_alloc() succeed; so they do with
 *    slab_free() between them, if n objects fit in a chunk.
 *
 * Nothing here locks: the owner does.
 */
#ifndef WEIR_BASE_SLAB_H
#define WEIR_BASE_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include "list.h"

struct slab {
	size_t size;         /* of an object, bytes; a multiple of 16 */
	struct list partial; /* the chunks with a free object */
	struct list full;    /* the others */
	uint64_t chunks;     /* in all */
	uint64_t empty;      /* those with no object in use: 0 or 1, but for */
			     /* what slab_reserve() holds ready */
	uint64_t used;       /* objects */
	uint64_t touched;    /* objects of the chunks that ever were used */
};

/* Objects are aligned to `size` if that is a power of two, else to 16. */
void slab_init(struct slab *s, size_t size);
/* Everything allocated from it is gone. */
void slab_destroy(struct slab *s);

/* Have room for `n` more. 0 or -ENOMEM. */
int slab_reserve(struct slab *s, uint64_t n);
/* Uninitialised. NULL when there is no memory and none was reserved. */
void *slab_alloc(struct slab *s);
void slab_free(struct slab *s, void *object);

/* The most it holds of the machine's memory, bytes. */
uint64_t slab_memory(const struct slab *s);

#endif
