/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slab.c: see slab.h. The chunk of an object is found by rounding its address
 * down; the chunk's head stands where its first objects would.
 */
#include <errno.h>
#include <sys/mman.h>

#include "slab.h"

#define CHUNK_SIZE ((size_t)2 << 20)

struct chunk {
	struct list link;   /* in partial or full */
	void *free;         /* freed objects, each holding the next */
	uint32_t used, cut; /* objects in use; ever used: the rest is new */
};

static size_t chunk_first(const struct slab *s)
{
	return (sizeof(struct chunk) + s->size - 1) / s->size * s->size;
}

static uint32_t chunk_room(const struct slab *s)
{
	return (uint32_t)((CHUNK_SIZE - chunk_first(s)) / s->size);
}

static struct chunk *chunk_of(void *object)
{
	return (void *)((uintptr_t)object & ~(uintptr_t)(CHUNK_SIZE - 1));
}

/* Twice the size holds an aligned chunk; the rest is given back. */
static struct chunk *chunk_map(void)
{
	char *at = mmap(NULL, 2 * CHUNK_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (at == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)at & (CHUNK_SIZE - 1);
	if (before)
		munmap(at, before);
	munmap(at + before + CHUNK_SIZE, CHUNK_SIZE - before);
	return (void *)(at + before);
}

static int slab_grow(struct slab *s)
{
	struct chunk *c = chunk_map();

	if (!c)
		return -ENOMEM;
	if (s->chunks)
		madvise(c, CHUNK_SIZE, MADV_HUGEPAGE);
	s->chunks++;
	s->empty++;
	list_push_tail(&s->partial, &c->link);
	return 0;
}

static void slab_shrink(struct slab *s, struct chunk *c)
{
	list_remove(&c->link);
	s->chunks--;
	s->empty--;
	s->touched -= c->cut;
	munmap(c, CHUNK_SIZE);
}

void slab_init(struct slab *s, size_t size)
{
	*s = (struct slab){.size = size};
	list_init(&s->partial);
	list_init(&s->full);
}

void slab_destroy(struct slab *s)
{
	list_splice_tail(&s->partial, &s->full);
	list_for_each_safe (node, &s->partial)
		munmap(list_entry(node, struct chunk, link), CHUNK_SIZE);
	slab_init(s, s->size);
}

int slab_reserve(struct slab *s, uint64_t n)
{
	while (s->chunks * chunk_room(s) - s->used < n) {
		int err = slab_grow(s);

		if (err)
			return err;
	}
	return 0;
}

void *slab_alloc(struct slab *s)
{
	struct chunk *c;
	void *object;

	if (list_empty(&s->partial) && slab_grow(s))
		return NULL;
	c = list_entry(s->partial.next, struct chunk, link);
	object = c->free;
	if (object) {
		c->free = *(void **)object;
	} else {
		object = (char *)c + chunk_first(s) + c->cut++ * s->size;
		s->touched++;
	}
	s->empty -= !c->used++;
	s->used++;
	if (c->used == chunk_room(s)) {
		list_remove(&c->link);
		list_push_head(&s->full, &c->link);
	}
	return object;
}

void slab_free(struct slab *s, void *object)
{
	struct chunk *c = chunk_of(object);

	if (c->used == chunk_room(s)) {
		list_remove(&c->link);
		list_push_head(&s->partial, &c->link);
	}
	*(void **)object = c->free;
	c->free = object;
	s->used--;
	s->empty += !--c->used;
	if (!c->used && s->empty > 1)
		slab_shrink(s, c);
}

uint64_t slab_memory(const struct slab *s)
{
	return s->chunks > 1 ? s->chunks * CHUNK_SIZE : s->touched * s->size;
}
