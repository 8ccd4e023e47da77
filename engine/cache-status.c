/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cache-status.c: what the cache holds of a range, for who asks.
 */
#include "engine-impl.h"

#define LOOKS 4096U /* one call's; each is a page, or a stretch without any */

_Static_assert(ENGINE_CACHED == CACHE_IS_UPTODATE &&
		ENGINE_DIRTY == CACHE_IS_DIRTY &&
		ENGINE_WRITING == CACHE_IS_WRITEBACK &&
		ENGINE_UNSTABLE == CACHE_IS_UNSTABLE,
	"the flags of an extent are the cache's");

unsigned engine_cache_status(const struct engine_export *x, uint64_t offset,
	uint64_t length, struct engine_extent *extents, unsigned n)
{
	struct cache *c = x->engine->cache;
	uint64_t end = offset + length, stop;
	unsigned filled = 0;

	for (unsigned i = 0; i < LOOKS && offset < end; i++, offset = stop) {
		uint32_t flags = cache_block_state(c, offset, end, &stop);

		if (!filled || extents[filled - 1].flags != flags) {
			if (filled == n)
				break;
			extents[filled++] =
				(struct engine_extent){.flags = flags};
		}
		extents[filled - 1].length += stop - offset;
	}
	return filled;
}
