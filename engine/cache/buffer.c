/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buffer.c: memory for payloads and pages, and the copy that keeps what is
 * held by others unchanged (state rule 6).
 */
#include <errno.h>
#include <string.h>

#include "cache-impl.h"

unsigned cache_max_iov(uint64_t length)
{
	return (unsigned)(length / FRAME_SIZE) + 4;
}

void cache_release(struct cache *c, const struct iovec *iov, unsigned niov)
{
	for (unsigned i = 0; i < niov; i++)
		arena_put(&c->arena, arena_frame(&c->arena, iov[i].iov_base),
			arena_span(iov[i].iov_base, iov[i].iov_len));
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

int frame_writable(struct cache *c, struct page *p, unsigned i, bool whole,
	struct delta *d)
{
	frame_t *slot = &page_frames(c, p)[i];
	unsigned got;
	frame_t f;

	if (*slot && !arena_shared(&c->arena, *slot))
		return 0;
	f = arena_alloc(&c->arena, 1, &got);
	if (!f)
		return -ENOMEM;
	if (*slot) {
		if (!whole)
			memcpy(arena_data(&c->arena, f),
				arena_data(&c->arena, *slot), FRAME_SIZE);
		arena_put(&c->arena, *slot, 1);
	} else {
		d->used += FRAME_SIZE;
	}
	*slot = f;
	return 0;
}
