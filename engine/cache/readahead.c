/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * readahead.c: reading in what a sequential reader will ask for next.
 *
 * stream.h says what and when. A hit pays a test of its page's flags for it:
 * the page where the next chunk is due has PAGE_MARK, so the table of streams
 * and its lock are met by misses and at marks only.
 *
 * 1. It never makes room at the cost of what is in use: the windows of all
 *    streams together stay within half of the memory that is free or holds
 *    pages not used again. With none left nothing is read ahead.
 * 2. A page read ahead has PAGE_AHEAD until it is first used. A stream whose
 *    reader left such a page behind is none.
 * 3. Where there may be holes, the placement is asked first, and they are left
 *    out: zeroes take no memory. A page that holds any data is read whole.
 * 4. A reader of neither buf nor iov (a prefetch) starts and moves no stream.
 *
 * Called with no lock held, on the loop that the store reads go to.
 */
#include <stdlib.h>

#include "cache-impl.h"

#define SURVEY_EXTENTS 16

void cache_set_readahead(struct cache *c, uint64_t bytes)
{
	atomic_store_explicit(&c->readahead, bytes, memory_order_relaxed);
}

/* What one stream may have ahead now: whole pairs of pages. Lock held. */
static uint64_t window_now(struct cache *c)
{
	uint64_t most =
		atomic_load_explicit(&c->readahead, memory_order_relaxed);
	uint64_t room = cache_idle(c) / 2 / streams_active(&c->streams);

	/* The size first: a huge value is rounded up after it. */
	most = round_up(min_u64(most, cache_budget(c)), 2 * page_size(c));
	return round_down(min_u64(most, room), 2 * page_size(c));
}

/* Was the page before `pos` read ahead and passed over? */
static bool passed_over(struct cache *c, uint64_t pos)
{
	struct shard *sh;
	const struct page *p;

	if (!pos)
		return false;
	sh = shard_of(c, pos - 1);
	SCOPED_LOCK(&sh->lock);
	p = index_find(c, sh, pos - 1);
	return p && !p->refs && (p->flags & PAGE_AHEAD);
}

/* Note on the pages of [from, to) that are not there what they are read for.
 * False: no memory. */
static bool mark_pages(struct cache *c, uint64_t from, uint64_t to)
{
	uint64_t pages = 0;
	bool room = true;

	for (uint64_t at = from; at < to && room; at += page_size(c)) {
		struct shard *sh = shard_of(c, at);
		SCOPED_LOCK(&sh->lock);
		struct page *p = index_get(c, sh, at);

		room = p;
		if (p && at == from)
			p->flags |= PAGE_MARK;
		if (!p ||
			bitmap_any(page_map(c, p, MAP_UPTODATE), 0,
				c->page_blocks) ||
			bitmap_any(
				page_map(c, p, MAP_FILLING), 0, c->page_blocks))
			continue;
		pages += !(p->flags & PAGE_AHEAD);
		p->flags |= PAGE_AHEAD;
	}
	atomic_fetch_add_explicit(
		&c->ahead_bytes, pages << c->page_shift, memory_order_relaxed);
	return room;
}

/* An error is met by who reads it. */
static void fill_ahead(
	struct cache *c, uint64_t from, uint64_t to, struct reactor *r)
{
	if (from < to && mark_pages(c, from, to))
		fill_start(c, from, to, false, r);
}

/* --- leaving out holes --------------------------------------------------- */

struct survey {
	struct cache *cache;
	struct store_io io;
	struct store_extent extents[SURVEY_EXTENTS];
};

static void survey_done(struct store_io *io)
{
	struct survey *s = container_of(io, struct survey, io);
	struct cache *c = s->cache;
	uint64_t at = io->offset, done = at, end;

	for (int i = 0; !io->error && i < io->nextents; i++, at = end) {
		end = at + io->extents[i].length;
		if (io->extents[i].flags & STORE_ZEROES)
			continue;
		fill_ahead(c, max_u64(done, round_down(at, page_size(c))),
			min_u64(round_up(end, page_size(c)), c->size),
			io->reactor);
		done = round_up(end, page_size(c));
	}
	free(s);
	atomic_fetch_sub(&c->filling, 1);
}

static void survey(
	struct cache *c, uint64_t from, uint64_t to, struct reactor *r)
{
	struct survey *s = malloc(sizeof(*s));

	if (!s)
		return;
	s->cache = c;
	s->io = (struct store_io){
		.op = STORE_STATUS,
		.offset = from,
		.length = to - from,
		.extents = s->extents,
		.nextents = SURVEY_EXTENTS,
		.reactor = r,
		.done = survey_done,
	};
	atomic_fetch_add(&c->filling, 1);
	placement_submit(c->placement, &s->io);
}

static void start(
	struct cache *c, uint64_t from, uint64_t bytes, struct reactor *r)
{
	uint64_t to = min_u64(from + bytes, c->size);

	if (from < to && placement_sparse(c->placement, from, to))
		survey(c, from, to, r);
	else
		fill_ahead(c, from, to, r);
}

void readahead_missed(
	struct cache *c, uint64_t pos, uint64_t end, struct reactor *r)
{
	uint64_t from, bytes;

	if (!atomic_load_explicit(&c->readahead, memory_order_relaxed))
		return;
	pos = round_down(pos, page_size(c));
	if (passed_over(c, pos))
		return;
	{
		SCOPED_LOCK(&c->streams_lock);

		bytes = streams_missed(&c->streams, pos,
			round_up(end, page_size(c)), window_now(c), &from);
	}
	if (bytes)
		start(c, from, bytes, r);
}

void readahead_reached(struct cache *c, uint64_t pos, struct reactor *r)
{
	uint64_t from, bytes;

	pos = round_down(pos, page_size(c));
	if (passed_over(c, pos))
		return;
	{
		SCOPED_LOCK(&c->streams_lock);

		bytes = streams_reached(&c->streams, pos, window_now(c), &from);
	}
	if (bytes)
		start(c, from, bytes, r);
}
