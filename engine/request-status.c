/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request-status.c: what is allocated and what reads as zeroes: the store's
 * answer, with what the cache had not written yet laid over it.
 *
 *  1. The cache is looked at before the store is asked. The other way round,
 *     what is written between the two is in neither answer: the store did not
 *     have it yet, the cache has not got it any more.
 *  2. The answer may end early: a request looks at a bounded number of pages,
 *     and keeps a bounded number of ranges.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine-impl.h"

#define LOOK_PAGES 4096U
#define STORE_EXTENTS 64
#define BUSY_RANGES 64U

/* What the cache says, and room for what the store does. */
struct look {
	struct store_extent extent[STORE_EXTENTS];
	struct {
		uint64_t start, stop; /* bytes; not on the store as it is */
	} busy[BUSY_RANGES];
	unsigned nbusy;
	uint64_t end; /* bytes; looked at up to here */
};

struct status {
	struct engine_request *req;
	const struct look *look;
	unsigned next, filled;
	uint64_t pos;
};

/* --- before the store is asked ------------------------------------------- */

static void look_at_cache(struct look *l, struct cache *c, uint64_t at)
{
	uint64_t end = l->end, start, stop, seen;

	while (at < end && cache_charged(c)) {
		if (!cache_next_busy(
			    c, at, end, LOOK_PAGES, &start, &stop, &seen)) {
			l->end = seen;
			return;
		}
		if (l->nbusy == BUSY_RANGES) {
			l->end = start;
			return;
		}
		l->busy[l->nbusy].start = start;
		l->busy[l->nbusy++].stop = stop;
		at = stop;
	}
}

/* --- after --------------------------------------------------------------- */

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
static bool lay_over(struct status *s, uint64_t to, uint32_t flags)
{
	const struct look *l = s->look;

	for (; s->next < l->nbusy && l->busy[s->next].start < to; s->next++) {
		uint64_t start = l->busy[s->next].start;
		uint64_t stop = l->busy[s->next].stop;

		if (start > s->pos && !push(s, start, flags))
			return false;
		if (!push(s, stop < to ? stop : to, 0))
			return false;
		if (stop > to) /* and on in the next extent */
			return true;
	}
	return push(s, to, flags);
}

static int answer(struct request *r, struct engine_request *req)
{
	struct look *l = container_of(
		(struct store_extent(*)[STORE_EXTENTS])r->u.store.extents,
		struct look, extent);
	uint64_t to = req->offset;
	struct status s = {.req = req, .look = l, .pos = req->offset};

	for (int i = 0; i < r->u.store.nextents && !r->error; i++) {
		to += l->extent[i].length;
		if (!lay_over(&s, to < l->end ? to : l->end,
			    engine_flags(l->extent[i].flags)) ||
			to >= l->end)
			break;
	}
	free(l);
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
	struct look *l;

	if (r->phase)
		return answer(r, req);
	if (!r->loop)
		return -EAGAIN;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->end = req->offset + req->length;
	look_at_cache(l, r->e->cache, req->offset);
	r->phase = 1;
	return request_store_status(
		r, req->offset, l->end - req->offset, l->extent, STORE_EXTENTS);
}
