/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * some.c: writers that write back themselves (throttle/legacy.c).
 *
 * Each has a walk of its own, from its place on and round the end, and a
 * count of bytes to be written. They share the room in the store's queue with
 * the background and with each other: 4 MiB each, in turn, which is what a
 * writer gave to the device at a time.
 */
#include <stdlib.h>

#include "writeback-impl.h"

#define TURN (4U << 20) /* bytes; MAX_WRITEBACK_PAGES */

struct wb_some {
	struct list link;
	struct writeback_some *asked;
	struct wb_walk walk;
	size_t first; /* the region it began with */
	uint64_t
		turn; /* bytes it may still write before it is another's turn */
	bool wrapped;
};

void writeback_some(struct writeback *wb, struct writeback_some *s)
{
	{
		SCOPED_LOCK(&wb->incoming_lock);

		list_push_tail(&wb->some_incoming, &s->link);
	}
	if (!atomic_exchange(&wb->kicked, true))
		reactor_post(wb->loop, &wb->kick);
}

static void end(struct wb_some *x)
{
	struct writeback_some *s = x->asked;

	list_remove(&x->link);
	walk_end(&x->walk);
	free(x);
	s->done(s);
}

/* Where in the walk its place is. */
static void aim(struct writeback *wb, struct wb_some *x)
{
	struct wb_walk *w = &x->walk;
	uint64_t place = x->asked->place;

	while (w->next < w->count &&
		w->region[w->next] + cache_span(wb->cache) <= place)
		w->next++;
	x->first = w->next;
	w->pos = place;
}

static void begin(struct writeback *wb, struct writeback_some *s)
{
	struct wb_some *x = calloc(1, sizeof(*x));

	if (!x || walk_begin(wb, &x->walk, UINT64_MAX, UINT64_MAX)) {
		free(x);
		s->done(s); /* no memory: it waits, and tries again */
		return;
	}
	x->asked = s;
	x->turn = TURN;
	x->walk.background = true;
	aim(wb, x);
	list_push_tail(&wb->some, &x->link);
}

static void take_incoming(struct writeback *wb)
{
	struct list taken = LIST_INIT(taken), *at;

	{
		SCOPED_LOCK(&wb->incoming_lock);

		list_splice_tail(&taken, &wb->some_incoming);
	}
	while ((at = list_pop_head(&taken)))
		begin(wb, list_entry(at, struct writeback_some, link));
}

/* Go on at the device's start, up to where it began. */
static bool wrap(struct wb_some *x)
{
	if (x->wrapped)
		return false;
	x->wrapped = true;
	if (x->first < x->walk.count)
		x->first++; /* that region's part before its place */
	x->walk.count = x->first;
	x->walk.next = 0;
	x->walk.pos = 0;
	return true;
}

/* One run. False: there is no more. */
static bool one(struct writeback *wb, struct wb_some *x)
{
	uint64_t before = wb->inflight_bytes, took;

	while (walk_step(wb, &x->walk, true))
		if (!wrap(x))
			return false;
	took = wb->inflight_bytes - before;
	x->turn -= took < x->turn ? took : x->turn;
	x->asked->place = x->walk.pos;
	x->asked->bytes -= took < x->asked->bytes ? took : x->asked->bytes;
	return x->asked->bytes;
}

static void last(struct writeback *wb, struct wb_some *x)
{
	x->turn = TURN;
	list_remove(&x->link);
	list_push_tail(&wb->some, &x->link);
}

void some_advance(struct writeback *wb)
{
	bool held = wb->phase == PASS_WRITE ||
		reactor_now(wb->loop) < wb->flush_retry_ns;

	take_incoming(wb);
	while (!held && wb_room_background(wb) && !list_empty(&wb->some)) {
		struct wb_some *x =
			list_entry(wb->some.next, struct wb_some, link);

		if (!one(wb, x))
			end(x);
		else if (!x->turn)
			last(wb, x);
	}
}
