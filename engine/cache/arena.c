/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.c: frames and chunks.
 *
 * What must hold, under the lock:
 *  1. A chunk is whole and on the stack (free == all), broken and on the list
 *     (free is neither none nor all), full (free == 0), or never used.
 *  2. The top `resident_whole` chunks of the stack have memory behind them;
 *     the ones below were given back to the system.
 *  3. Chunk 0 is never handed out, so that frame 0 can mean "none".
 *  4. What describes the first `ready` chunks, and they themselves, may be
 *     touched; fresh <= ready.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "arena.h"

#define ALL_FREE ((1U << CHUNK_FRAMES) - 1)
/* Free chunks that keep their memory, for the next writers: 24 MiB, less than
 * the 32 MiB that memory may be over the budget. */
#define KEEP_RESIDENT 384U
#define HUGE_PAGE (2U << 20) /* bytes; of most machines */

#define STEP 1024U /* chunks opened for use at a time: 64 MiB */

static void *reserve(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void unreserve(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/* From a huge page's start on, so that no chunk lies across two. */
static void *reserve_aligned(size_t bytes)
{
	unsigned char *p = reserve(bytes + HUGE_PAGE);
	size_t head = -(uintptr_t)p % HUGE_PAGE;

	if (!p)
		return NULL;
	if (head)
		munmap(p, head);
	munmap(p + head + bytes, HUGE_PAGE - head);
	return p + head;
}

/* Open entries [from, to) of an array of them for use. */
static int open_up(void *array, size_t entry, size_t from, size_t to)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t start = from * entry / page * page;

	return mprotect((char *)array + start, to * entry - start,
		PROT_READ | PROT_WRITE);
}

/* Open one more step; false: that was all. Lock held. */
static bool grow(struct arena *a)
{
	size_t from = a->ready, to = from + STEP;

	if (to > a->chunks)
		to = a->chunks;
	if (from == to || open_up(a->base, CHUNK_SIZE, from, to) ||
		open_up(a->refs, CHUNK_FRAMES * sizeof(*a->refs), from, to) ||
		open_up(a->chunk, sizeof(*a->chunk), from, to) ||
		open_up(a->whole, sizeof(*a->whole), from, to))
		return false;
	a->ready = to;
	return true;
}

/* Is there a chunk that was never used? Lock held. */
static bool has_fresh(struct arena *a)
{
	return a->fresh < a->ready || grow(a);
}

int arena_populate(struct arena *a, uint64_t bytes)
{
	SCOPED_LOCK(&a->lock);

	while (a->ready * CHUNK_SIZE < bytes) {
		if (!grow(a))
			return -ENOMEM;
	}
	for (uint64_t at = 0; at < bytes; at += FRAME_SIZE)
		*(volatile unsigned char *)(a->base + at) = 0;
	return 0;
}

int arena_init(struct arena *a, uint64_t bytes)
{
	size_t chunks = (size_t)(bytes / CHUNK_SIZE) + 2;

	*a = (struct arena){.chunks = chunks, .fresh = 1, .slack = UINT32_MAX};
	if (chunks > UINT32_MAX / CHUNK_FRAMES)
		return -ENOMEM;
	pthread_mutex_init(&a->lock, NULL);
	a->base = reserve_aligned(chunks * CHUNK_SIZE);
	a->refs = reserve(chunks * CHUNK_FRAMES * sizeof(*a->refs));
	a->chunk = reserve(chunks * sizeof(*a->chunk));
	a->whole = reserve(chunks * sizeof(*a->whole));
	if (!a->base || !a->refs || !a->chunk || !a->whole) {
		arena_destroy(a);
		return -ENOMEM;
	}
	madvise(a->base, chunks * CHUNK_SIZE, MADV_HUGEPAGE);
	return 0;
}

void arena_destroy(struct arena *a)
{
	unreserve(a->base, a->chunks * CHUNK_SIZE);
	unreserve(a->refs, a->chunks * CHUNK_FRAMES * sizeof(*a->refs));
	unreserve(a->chunk, a->chunks * sizeof(*a->chunk));
	unreserve(a->whole, a->chunks * sizeof(*a->whole));
	a->base = NULL;
	a->refs = NULL;
	a->chunk = NULL;
	a->whole = NULL;
	pthread_mutex_destroy(&a->lock);
}

void arena_set_slack(struct arena *a, uint32_t frames)
{
	SCOPED_LOCK(&a->lock);

	a->slack = frames;
}

static void list_broken(struct arena *a, uint32_t c)
{
	a->chunk[c].prev = 0;
	a->chunk[c].next = a->broken;
	if (a->broken)
		a->chunk[a->broken].prev = c;
	a->broken = c;
}

static void unlist_broken(struct arena *a, uint32_t c)
{
	struct arena_chunk *k = &a->chunk[c];

	if (k->prev)
		a->chunk[k->prev].next = k->next;
	else
		a->broken = k->next;
	if (k->next)
		a->chunk[k->next].prev = k->prev;
}

/* A whole free chunk, or 0. */
static uint32_t take_whole(struct arena *a)
{
	if (a->whole_count) {
		if (a->resident_whole)
			a->resident_whole--;
		return a->whole[--a->whole_count];
	}
	return has_fresh(a) ? a->fresh++ : 0;
}

static void give_whole(struct arena *a, uint32_t c)
{
	uint32_t gone = a->whole_count - a->resident_whole;

	if (a->resident_whole < KEEP_RESIDENT) {
		a->whole[a->whole_count++] = c;
		a->resident_whole++;
		return;
	}
	madvise(a->base + (size_t)c * CHUNK_SIZE, CHUNK_SIZE, MADV_DONTNEED);
	a->whole[a->whole_count++] = a->whole[gone];
	a->whole[gone] = c;
}

/* The longest run of set bits from the lowest one, at most `want`. */
static unsigned low_run(uint16_t bits, unsigned want)
{
	unsigned n = (unsigned)__builtin_ctz(
		~((unsigned)bits >> __builtin_ctz(bits)));

	return n < want ? n : want;
}

static frame_t alloc_broken(struct arena *a, unsigned want, unsigned *got)
{
	uint32_t c = a->broken;
	unsigned first, n;

	if (!c) {
		c = take_whole(a);
		if (!c)
			return 0;
		a->chunk[c].free = ALL_FREE;
		a->broken_free += CHUNK_FRAMES;
		list_broken(a, c);
	}
	first = (unsigned)__builtin_ctz(a->chunk[c].free);
	n = low_run(a->chunk[c].free, want);
	a->chunk[c].free &= (uint16_t) ~(((1U << n) - 1) << first);
	a->broken_free -= n;
	if (!a->chunk[c].free)
		unlist_broken(a, c);
	*got = n;
	return c * CHUNK_FRAMES + first;
}

/* Whole chunks in a row, as many as the stack or the fresh end give. */
static frame_t alloc_chunks(struct arena *a, unsigned want, unsigned *got)
{
	unsigned chunks = want / CHUNK_FRAMES, n = 1;
	uint32_t c = take_whole(a);

	if (!c)
		return 0;
	/* A run that was freed together lies on the stack upside down. */
	while (n < chunks && a->whole_count &&
		a->whole[a->whole_count - 1] == c - 1) {
		c = take_whole(a);
		n++;
	}
	while (n < chunks && !a->whole_count && a->fresh == c + n &&
		has_fresh(a)) {
		a->fresh++;
		n++;
	}
	for (unsigned i = 0; i < n; i++)
		a->chunk[c + i].free = 0;
	*got = n * CHUNK_FRAMES;
	return c * CHUNK_FRAMES;
}

frame_t arena_alloc(struct arena *a, unsigned want, unsigned *got)
{
	frame_t f = 0;

	{
		SCOPED_LOCK(&a->lock);
		if (want >= CHUNK_FRAMES && a->broken_free <= a->slack)
			f = alloc_chunks(a, want, got);
		if (!f)
			f = alloc_broken(a, want, got);
	}
	if (!f)
		return 0;
	for (unsigned i = 0; i < *got; i++)
		atomic_store_explicit(&a->refs[f + i], 1, memory_order_relaxed);
	return f;
}

/* Free frames [first, first + n) of chunk c. Lock held. */
static void free_in_chunk(
	struct arena *a, uint32_t c, unsigned first, unsigned n)
{
	struct arena_chunk *k = &a->chunk[c];
	uint16_t before = k->free;

	if (c <= a->pool_chunks) {
		arena_free_pool(a, c, first, n);
		return;
	}
	k->free |= (uint16_t)(((1U << n) - 1) << first);
	a->broken_free += n;
	if (k->free == ALL_FREE) {
		a->broken_free -= CHUNK_FRAMES;
		if (before)
			unlist_broken(a, c);
		give_whole(a, c);
	} else if (!before) {
		list_broken(a, c);
	}
}

static void free_run(struct arena *a, frame_t f, unsigned n)
{
	SCOPED_LOCK(&a->lock);

	while (n) {
		unsigned first = f % CHUNK_FRAMES;
		unsigned here = CHUNK_FRAMES - first;

		if (here > n)
			here = n;
		free_in_chunk(a, f / CHUNK_FRAMES, first, here);
		f += here;
		n -= here;
	}
}

/* The last holder is alone: nobody can take a reference beside it. */
static bool drop_ref(_Atomic(uint32_t) *ref)
{
	if (atomic_load_explicit(ref, memory_order_acquire) == 1)
		return true;
	return atomic_fetch_sub_explicit(ref, 1, memory_order_acq_rel) == 1;
}

void arena_put(struct arena *a, frame_t f, unsigned n)
{
	_Atomic(uint32_t) *ref = &a->refs[f];

	for (unsigned i = 0, from; i < n; i++) {
		for (from = i; i < n && drop_ref(&ref[i]); i++)
			;
		if (i > from)
			free_run(a, f + from, i - from);
	}
}
