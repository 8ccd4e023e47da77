/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buffer.c: memory for payloads and pages, and the copy that keeps what is
 * held by others unchanged (state rule 6).
 */
#include <errno.h>
#include <string.h>

#include "cache-impl.h"

/* Of one payload in the memory set aside, bytes: longer ones gain nothing by
 * it. */
#define DIRECT_MAX (UINT64_C(1) << 20)

unsigned cache_max_iov(uint64_t length)
{
	return (unsigned)(length / FRAME_SIZE) + 4;
}

void cache_hold(struct cache *c, const struct iovec *iov, unsigned niov)
{
	for (unsigned i = 0; i < niov; i++)
		arena_get(&c->arena, arena_frame(&c->arena, iov[i].iov_base),
			arena_span(iov[i].iov_base, iov[i].iov_len));
}

void cache_release(struct cache *c, const struct iovec *iov, unsigned niov)
{
	for (unsigned i = 0; i < niov; i++) {
		if (iov[i].iov_base) /* not a hole */
			arena_put(&c->arena,
				arena_frame(&c->arena, iov[i].iov_base),
				arena_span(iov[i].iov_base, iov[i].iov_len));
	}
}

int cache_payload(struct cache *c, uint64_t offset, uint64_t length,
	struct iovec *iov, unsigned max)
{
	uint64_t skip = offset & (FRAME_SIZE - 1);
	unsigned n = 0;

	while (length) {
		uint64_t want = (skip + length + FRAME_SIZE - 1) >> FRAME_SHIFT;
		/* Chunks where the device's chunks are, or none lines up. */
		uint64_t ahead = CHUNK_FRAMES -
			((offset >> FRAME_SHIFT) & (CHUNK_FRAMES - 1));
		unsigned got;
		frame_t f;

		if (ahead != CHUNK_FRAMES && want > ahead)
			want = ahead;
		f = n < max ? arena_alloc(&c->arena, (unsigned)want, &got) : 0;
		if (!f) {
			cache_release(c, iov, n);
			return n < max ? -ENOMEM : -E2BIG;
		}
		iov[n].iov_base = arena_data(&c->arena, f) + skip;
		iov[n].iov_len =
			min_u64(((uint64_t)got << FRAME_SHIFT) - skip, length);
		offset += iov[n].iov_len;
		length -= iov[n].iov_len;
		skip = 0;
		n++;
	}
	return (int)n;
}

int cache_direct_payload(struct cache *c, uint64_t offset, uint64_t length,
	struct iovec *iov, unsigned max)
{
	uint64_t skip = offset & (FRAME_SIZE - 1);
	frame_t f = 0;

	if (length && length <= DIRECT_MAX)
		f = arena_alloc_pool(&c->arena,
			(unsigned)((skip + length + FRAME_SIZE - 1) >>
				FRAME_SHIFT));
	if (!f)
		return cache_payload(c, offset, length, iov, max);
	iov[0].iov_base = arena_data(&c->arena, f) + skip;
	iov[0].iov_len = length;
	return 1;
}

void cache_direct_memory(const struct cache *c, struct iovec *out)
{
	arena_pool(&c->arena, out);
}

int frames_new(struct cache *c, struct page *p, unsigned i, unsigned n,
	struct delta *d)
{
	frame_t *slot = page_frames(c, p) + i, f;
	unsigned want = 1, got;

	while (want < n && !slot[want])
		want++;
	f = arena_alloc(&c->arena, want, &got);
	if (!f)
		return -ENOMEM;
	for (unsigned k = 0; k < got; k++)
		slot[k] = f + k;
	d->used += (int64_t)got << FRAME_SHIFT;
	return 0;
}

int frame_writable(struct cache *c, struct page *p, unsigned i, bool whole,
	struct delta *d)
{
	frame_t *slot = &page_frames(c, p)[i], old = *slot;
	int err;

	if (!old)
		return frames_new(c, p, i, 1, d);
	if (!arena_shared(&c->arena, old))
		return 0;
	*slot = 0;
	err = frames_new(c, p, i, 1, d);
	if (err) {
		*slot = old;
		return err;
	}
	d->used -= FRAME_SIZE;
	if (!whole)
		memcpy(arena_data(&c->arena, *slot), arena_data(&c->arena, old),
			FRAME_SIZE);
	arena_put(&c->arena, old, 1);
	return 0;
}
