/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request-status.c: what is allocated and what reads as zeroes: the store's
 * answer, with what the cache has not written yet laid over it.
 *
 * The answer may end early: a request looks at a bounded number of pages.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine-impl.h"

#define LOOK_PAGES 4096U
#define STORE_EXTENTS 64

struct status {
	struct engine_request *req;
	unsigned filled;
	uint64_t pos, end;
};

/* Append up to `to`; false: there is no room for more. */
static bool push(struct status *s, uint64_t to, uint32_t flags)
{
	struct engine_extent *last =
		s->filled ? &s->req->extents[s->filled - 1] : NULL;

	if (to == s->pos)
		return true;
	if (!last || last->flags != flags) {
		if (s->filled == s->req->nextents)
			return false;
		last = &s->req->extents[s->filled++];
		*last = (struct engine_extent){.flags = flags};
	}
	last->length += to - s->pos;
	s->pos = to;
	return true;
}

static uint32_t engine_flags(unsigned store)
{
	return (store & STORE_HOLE ? ENGINE_HOLE : 0) |
		(store & STORE_ZEROES ? ENGINE_ZEROES : 0);
}

/* One extent of the store, less what is newer in the cache. False: the
 * answer ends here. */
static bool lay_over(
	struct status *s, struct cache *c, uint64_t to, uint32_t flags)
{
	while (s->pos < to) {
		uint64_t start, stop, seen;

		if (!flags || !cache_charged(c))
			return push(s, to, flags);
		if (!cache_next_busy(
			    c, s->pos, to, LOOK_PAGES, &start, &stop, &seen))
			return push(s, seen, flags) && seen == to;
		if (!push(s, start, flags) || !push(s, stop, 0))
			return false;
	}
	return true;
}

static int answer(struct request *r, struct engine_request *req)
{
	struct store_extent *extent = r->u.store.extents;
	uint64_t end = req->offset + req->length, to = req->offset;
	struct status s = {.req = req, .pos = req->offset};

	for (int i = 0; i < r->u.store.nextents && !r->error; i++) {
		to += extent[i].length;
		if (!lay_over(&s, r->e->cache, to < end ? to : end,
			    engine_flags(extent[i].flags)) ||
			to >= end)
			break;
	}
	free(extent);
	if (!r->error && !s.filled)
		return -EIO;
	req->nextents = s.filled;
	if (s.filled > 1 && (req->flags & ENGINE_REQ_ONE))
		req->nextents = 1;
	return r->error;
}

int step_status(struct request *r)
{
	struct engine_request *req = request_front(r);
	struct store_extent *extent;

	if (r->phase)
		return answer(r, req);
	if (!r->loop)
		return -EAGAIN;
	extent = calloc(STORE_EXTENTS, sizeof(*extent));
	if (!extent)
		return -ENOMEM;
	r->phase = 1;
	return request_store_status(
		r, req->offset, req->length, extent, STORE_EXTENTS);
}
