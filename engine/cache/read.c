/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read.c: reading through the cache.
 *
 * Goes page by page while blocks are uptodate (state rule 3). At the first
 * that is not, everything missing in the pages of the rest of the request is
 * asked for at once, and the reader waits for its page; woken, it goes on from
 * there. After a failure it wants only what it was asked for. What may be a
 * hole is not asked for: see cache_read() in cache.h.
 */
#include <errno.h>
#include <string.h>

#include "cache-impl.h"

#define MARKED 1 /* no error: read ahead and go on */

/* Append memory to the result; what follows on extends the last entry. */
static int push(struct cache_io *io, unsigned char *data, size_t length)
{
	struct iovec *last = io->niov ? &io->iov[io->niov - 1] : NULL;

	if (last && last->iov_base &&
		(unsigned char *)last->iov_base + last->iov_len == data) {
		last->iov_len += length;
		return 0;
	}
	if (io->niov == io->max_iov)
		return -E2BIG;
	io->iov[io->niov].iov_base = data;
	io->iov[io->niov++].iov_len = length;
	return 0;
}

/* Give [pos, stop), uptodate and in one page, to the reader. Lock held. */
static int give(
	struct cache *c, struct page *p, struct cache_io *io, uint64_t stop)
{
	const frame_t *frame = page_frames(c, p) + frame_of(c, io->pos);

	while (io->pos < stop) {
		uint64_t in = io->pos & (FRAME_SIZE - 1);
		unsigned run =
			frames_in_a_row(frame, frames_touched(io->pos, stop));
		size_t n = min_u64(
			((uint64_t)run << FRAME_SHIFT) - in, stop - io->pos);
		unsigned char *data = arena_data(&c->arena, *frame) + in;

		if (io->buf) {
			memcpy(io->buf, data, n);
			io->buf += n;
		} else if (io->iov) {
			if (push(io, data, n))
				return -E2BIG;
			arena_get(&c->arena, *frame, run);
		}
		io->pos += n;
		frame += run;
	}
	return 0;
}

/* Is some of it there, or on its way before we asked for it? */
static bool partly_there(const struct cache *c, const struct page *p,
	unsigned first, unsigned count)
{
	return bitmap_any(page_map(c, p, MAP_UPTODATE), first, count) ||
		(p->flags & PAGE_AHEAD &&
			bitmap_any(page_map(c, p, MAP_FILLING), first, count));
}

/* Must the whole page be there, for a part of it to be read? */
static bool whole_page(const struct cache *c, const struct cache_io *io)
{
	return !io->exact &&
		!atomic_load_explicit(&c->subpage, memory_order_relaxed);
}

/* Are the blocks there that a read of [pos, end), in one page, needs? */
static bool readable(const struct cache *c, struct shard *sh,
	const struct page *p, const struct cache_io *io, uint64_t end)
{
	const uint64_t *uptodate = page_map(c, p, MAP_UPTODATE);
	uint64_t from = io->pos;
	unsigned first, count;

	if (whole_page(c, io)) {
		from = page_offset(c, p);
		end = page_end(c, from);
	}
	first = block_of(c, from);
	count = blocks_touched(c, from, end);
	if (bitmap_all(uptodate, first, count))
		return true;
	if (!io->missed && io->reactor)
		sh->partial_hits += partly_there(c, p, first, count);
	return false;
}

/* Does the reader take the data? A prefetch does not: what it brings in is
 * used first by who reads it. */
static bool keeps(const struct cache_io *io)
{
	return io->buf || io->iov;
}

static int at_mark(struct page *p)
{
	p->flags &= (uint16_t)~PAGE_MARK;
	return MARKED;
}

/* Read what is there of [pos, stop), in one shard. -ENODATA at the first
 * byte that is missing; MARKED at a page that had a mark. Lock held. */
static int read_locked(
	struct cache *c, struct shard *sh, struct cache_io *io, uint64_t stop)
{
	while (io->pos < stop) {
		uint64_t end = min_u64(page_end(c, io->pos), stop);
		struct page *p = index_find(c, sh, io->pos);
		int err;

		if (!p || !readable(c, sh, p, io, end))
			return -ENODATA;
		if (keeps(io)) {
			if (p->flags & PAGE_MARK)
				return io->reactor ? at_mark(p) : -EAGAIN;
			page_touch(p, block_of(c, io->pos),
				blocks_touched(c, io->pos, end));
		}
		err = give(c, p, io, end);
		if (err)
			return err;
	}
	return 0;
}

/* A flat copy gives the lock away after each page. */
static uint64_t segment_end(const struct cache *c, const struct cache_io *io)
{
	uint64_t stop = min_u64(shard_end(c, io->pos), io->end);

	return io->buf ? min_u64(stop, page_end(c, io->pos)) : stop;
}

/* Is what a read of [pos, stop) needs locked? Then it waits. Lock held. */
static bool locked(struct cache *c, struct cache_io *io, uint64_t stop)
{
	uint64_t from = io->pos;

	if (whole_page(c, io)) {
		from = round_down(from, page_size(c));
		stop = round_up(stop, page_size(c));
	}
	return range_locked(c, from, stop, io->reactor ? &io->waiter : NULL);
}

static int read_segment(struct cache *c, struct cache_io *io)
{
	uint64_t stop = segment_end(c, io);
	struct shard *sh = shard_of(c, io->pos);
	SCOPED_LOCK(&sh->lock);
	int err;

	if (locked(c, io, stop))
		return io->reactor ? -EINPROGRESS : -EAGAIN;
	err = read_locked(c, sh, io, stop);
	if (err == -ENODATA) {
		/* Without a loop it is tried again on one, and counted there. */
		if (!io->missed && io->reactor)
			sh->misses++;
	} else if (io->pos == io->end && !io->missed) {
		sh->hits++;
	}
	return err;
}

/* --- holes --------------------------------------------------------------- */

/* Up to where is nothing of [from, stop), in one page, there or on its way? */
static uint64_t missing_in_page(struct cache *c, uint64_t from, uint64_t stop)
{
	struct shard *sh = shard_of(c, from);
	SCOPED_LOCK(&sh->lock);
	const struct page *p = index_find(c, sh, from);
	unsigned first = block_of(c, from), last;

	stop = max_u64(from, range_free(c, from, stop, false));
	if (!p || stop == from)
		return stop;
	last = first + blocks_touched(c, from, stop);
	last = bitmap_find(page_map(c, p, MAP_UPTODATE), first, last, true);
	last = bitmap_find(page_map(c, p, MAP_FILLING), first, last, true);
	stop = min_u64(
		stop, page_offset(c, p) + ((uint64_t)last << c->block_shift));
	return max_u64(from, stop);
}

static uint64_t missing_end(struct cache *c, uint64_t from, uint64_t end)
{
	uint64_t stop, at;

	for (; from < end; from = stop) {
		stop = min_u64(page_end(c, from), end);
		at = missing_in_page(c, from, stop);
		if (at < stop)
			return at;
	}
	return end;
}

/* pos is missing: is it worth asking whether it has to be read? */
static bool may_be_hole(struct cache *c, struct cache_io *io)
{
	if (!io->holes || io->pos < io->known)
		return false;
	if (whole_page(c, io) ||
		!placement_sparse(c->placement, io->pos, io->end)) {
		io->known = io->end;
		return false;
	}
	io->missing = missing_end(c, io->pos, io->end);
	io->missed |= io->missing > io->pos;
	return io->missing > io->pos;
}

int cache_read_hole(struct cache_io *io, uint64_t stop)
{
	struct iovec *last = io->niov ? &io->iov[io->niov - 1] : NULL;
	size_t n = stop - io->pos;

	if (io->buf) {
		memset(io->buf, 0, n);
		io->buf += n;
	} else if (io->iov && last && !last->iov_base) {
		last->iov_len += n;
	} else if (io->iov) {
		if (io->niov == io->max_iov)
			return -E2BIG;
		io->iov[io->niov++] = (struct iovec){NULL, n};
	}
	io->pos = stop;
	return 0;
}

/* --- reads --------------------------------------------------------------- */

/*
 * Ask for what is missing from pos on; wait for pos's page. Once woken, what
 * is still on its way there is waited for before anything is asked for again:
 * else a part that fails at once is read for ever while another is slow.
 */
static int miss(struct cache *c, struct cache_io *io)
{
	uint64_t unit = io->exact ? block_size(c) : page_size(c);
	uint64_t from = whole_page(c, io) ? round_down(io->pos, unit) : io->pos;
	uint64_t stop = page_end(c, io->pos);
	uint64_t end = io->end;
	int err = 0;

	if (!io->reactor)
		return -EAGAIN;
	if (io->holes) /* what of the page is wanted is read as one */
		end = min_u64(end, max_u64(io->known, stop));
	if (!whole_page(c, io))
		stop = min_u64(stop, io->end);
	if (io->filled)
		err = fill_wait(c, from, stop, &io->waiter);
	if (!err)
		err = fill_start(c, round_down(io->pos, unit),
			min_u64(round_up(end, unit), c->size), io->exact,
			io->reactor);
	if (!err && !io->filled && keeps(io))
		readahead_missed(c, io->pos, io->end, io->reactor);
	io->missed = io->filled = true;
	return err ? err : fill_wait(c, from, stop, &io->waiter);
}

int cache_read(struct cache *c, struct cache_io *io)
{
	int err = io->waiter.error;

	io->waiter.error = 0;
	if (err) {
		/* Maybe what failed was asked for beyond our need. */
		if (io->exact)
			return err;
		io->exact = true;
	}
	while (io->pos < io->end) {
		io->waiter.reactor = io->reactor;
		err = read_segment(c, io);
		if (err == -ENODATA) {
			if (io->reactor && may_be_hole(c, io))
				return err;
			err = miss(c, io);
		} else if (err == MARKED) {
			readahead_reached(c, io->pos, io->reactor);
			err = 0;
		}
		if (err)
			return err;
	}
	return 0;
}
