/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h: the memory that cached data lies in.
 *
 * One large reservation of address space, handed out in frames of 4 KiB. It
 * is opened for use a step at a time, because where all memory of the process
 * is locked (mlockall(2)), all that may be written is filled.
 * Sixteen frames make a chunk of 64 KiB; a long buffer gets whole chunks, so
 * that it is contiguous, a short one gets frames of chunks already broken up;
 * so does a long one while too much lies free in those.
 *
 * Every frame in use has a reference count. A page holds one reference to
 * each of its frames; a reader that is sending them, or a store write that is
 * under way, holds another. A frame with more than one reference must not be
 * changed: it is copied first.
 *
 * Any thread may call these; nothing blocks but a short mutex.
 */
#ifndef WEIR_CACHE_ARENA_H
#define WEIR_CACHE_ARENA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define FRAME_SHIFT 12
#define FRAME_SIZE (1U << FRAME_SHIFT)
#define CHUNK_FRAMES 16U
#define CHUNK_SIZE (CHUNK_FRAMES * FRAME_SIZE)
#define POOL_CHUNKS 256U /* the most that can be set aside */

typedef uint32_t frame_t; /* 0: none */

struct arena_chunk {
	uint16_t free;       /* a bit for each free frame */
	uint32_t prev, next; /* in the list of broken chunks */
};

struct arena {
	unsigned char *base;
	size_t chunks, ready;    /* reserved; open for use */
	_Atomic(uint32_t) *refs; /* one a frame */
	_Alignas(64) pthread_mutex_t lock;
	struct arena_chunk *chunk; /* the rest is under the lock */
	uint32_t broken;           /* head of the list; 0: none */
	uint32_t *whole;           /* stack of free chunks */
	uint32_t whole_count;
	uint32_t fresh;          /* chunks from here on were never used */
	uint32_t broken_free;    /* frames free in broken chunks */
	uint32_t slack;          /* the most of those, while chunks are given */
	uint32_t resident_whole; /* of the stack, those that have memory */
	uint32_t pool_chunks;    /* set aside (pool.c), from chunk 1 on */
	uint64_t pool_used[POOL_CHUNKS / 64]; /* a bit for each of them */
};

/* Reserve room for `bytes`. 0 or -ENOMEM. */
int arena_init(struct arena *a, uint64_t bytes);
void arena_destroy(struct arena *a);
/* Have memory behind the first `bytes`, rather than when they are first used.
 * 0 or -ENOMEM. Blocks for as long as that takes; before it is used. */
int arena_populate(struct arena *a, uint64_t bytes);
/* The most frames that may lie free in broken chunks while a long buffer still
 * gets whole ones. */
void arena_set_slack(struct arena *a, uint32_t frames);

static inline unsigned char *arena_data(const struct arena *a, frame_t f)
{
	return a->base + ((size_t)f << FRAME_SHIFT);
}

/* The frame that a pointer into the arena lies in. */
static inline frame_t arena_frame(const struct arena *a, const void *p)
{
	return (frame_t)((size_t)((const unsigned char *)p - a->base) >>
		FRAME_SHIFT);
}

/*
 * Get up to `want` contiguous frames, each with one reference: as many as
 * come in one piece. Starts at a chunk when `want` is a chunk or more. Sets
 * *got; returns the first, or 0 if the arena is full.
 */
frame_t arena_alloc(struct arena *a, unsigned want, unsigned *got);

/* --- pool.c: memory set aside, in one place and never given back ---------- */

/* Set so many bytes aside, POOL_CHUNKS at most. Before any is handed out. 0,
 * or -ENOMEM. */
int arena_set_pool(struct arena *a, uint64_t bytes);
/* Where it is; a length of 0: there is none. */
void arena_pool(const struct arena *a, struct iovec *out);
/* Get `want` contiguous frames of it, each with one reference, or 0. */
frame_t arena_alloc_pool(struct arena *a, unsigned want);
/* Frames of its chunk `c` are free again. For arena.c, lock held. */
void arena_free_pool(struct arena *a, uint32_t c, unsigned first, unsigned n);

/* -------------------------------------------------------------------------- */

/* One more reference for each of `n` frames from `f`. */
static inline void arena_get(struct arena *a, frame_t f, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		atomic_fetch_add_explicit(
			&a->refs[f + i], 1, memory_order_relaxed);
}

/* Drop a reference of each of `n` frames from `f`. */
void arena_put(struct arena *a, frame_t f, unsigned n);

/* Does somebody besides the caller hold the frame? */
static inline bool arena_shared(const struct arena *a, frame_t f)
{
	return atomic_load_explicit(&a->refs[f], memory_order_acquire) > 1;
}

/* The frames that the bytes [p, p + length) touch. */
static inline unsigned arena_span(const void *p, size_t length)
{
	size_t head = (size_t)p & (FRAME_SIZE - 1);

	return (unsigned)((head + length + FRAME_SIZE - 1) >> FRAME_SHIFT);
}

#endif
