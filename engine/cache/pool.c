/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c: the arena's first chunks, set aside for direct requests. The
 * kernel may have them pinned (reactor_fix()), so that they never leave
 * memory: they go neither to the arena's lists nor back to the system.
 *
 * What is asked for comes in one piece, whole chunks of it, or not at all:
 * the caller takes ordinary memory then. Under the arena's lock.
 */
#include <errno.h>

#include "../base/bitmap.h"
#include "../base/cleanup.h"
#include "arena.h"

#define ALL_FREE ((1U << CHUNK_FRAMES) - 1)
#define FIRST 1U /* chunk 0 is never handed out */

int arena_set_pool(struct arena *a, uint64_t bytes)
{
	uint32_t chunks = (uint32_t)(bytes / CHUNK_SIZE);

	if (chunks > POOL_CHUNKS)
		chunks = POOL_CHUNKS;
	if (arena_populate(a, (FIRST + (uint64_t)chunks) * CHUNK_SIZE))
		return -ENOMEM;
	a->pool_chunks = chunks;
	a->fresh = FIRST + chunks;
	return 0;
}

/* The first of `n` free chunks in a row; a->pool_chunks: there are none. */
static uint32_t find_chunks(const struct arena *a, uint32_t n)
{
	uint32_t end = a->pool_chunks, at = 0, used;

	for (; at + n <= end; at = used) {
		at = (uint32_t)bitmap_find(a->pool_used, at, end, false);
		used = (uint32_t)bitmap_find(a->pool_used, at, end, true);
		if (used - at >= n)
			return at;
	}
	return end;
}

frame_t arena_alloc_pool(struct arena *a, unsigned want)
{
	unsigned chunks = (want + CHUNK_FRAMES - 1) / CHUNK_FRAMES;
	uint32_t at;
	frame_t f;

	if (!a->pool_chunks)
		return 0;
	{
		SCOPED_LOCK(&a->lock);

		at = find_chunks(a, chunks);
		if (at == a->pool_chunks)
			return 0;
		bitmap_set(a->pool_used, at, chunks);
		for (unsigned i = 0; i < chunks; i++)
			a->chunk[FIRST + at + i].free = 0;
		if (want % CHUNK_FRAMES) /* the rest of the last is not used */
			a->chunk[FIRST + at + chunks - 1].free =
				(uint16_t)(ALL_FREE << want % CHUNK_FRAMES);
	}
	f = (FIRST + at) * CHUNK_FRAMES;
	for (unsigned i = 0; i < want; i++)
		atomic_store_explicit(&a->refs[f + i], 1, memory_order_relaxed);
	return f;
}

void arena_free_pool(struct arena *a, uint32_t c, unsigned first, unsigned n)
{
	struct arena_chunk *k = &a->chunk[c];

	k->free |= (uint16_t)(((1U << n) - 1) << first);
	if (k->free == ALL_FREE)
		bitmap_clear(a->pool_used, c - FIRST, 1);
}

void arena_pool(const struct arena *a, struct iovec *out)
{
	out->iov_base = a->base + FIRST * CHUNK_SIZE;
	out->iov_len = a->pool_chunks * CHUNK_SIZE;
}
