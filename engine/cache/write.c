/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write.c: writing into the cache.
 *
 * One lookup, one lock and one state update per run of pages. Frames of the
 * payload that cover a frame of the page take its place; what is shorter is
 * copied. Memory that others hold is never touched (state rule 6), so a
 * writer does not wait for writeback. A block that is covered in part must
 * be uptodate first (state rule 4): then, and only then, a write waits.
 */
#include <errno.h>
#include <string.h>

#include "cache-impl.h"

/* Does the write cover the block at `at` (rounded down) in whole? */
static bool covers_block(
	const struct cache *c, const struct cache_io *io, uint64_t at)
{
	uint64_t from = round_down(at, block_size(c));
	uint64_t to = min_u64(from + block_size(c), c->size);

	return io->pos <= from && to <= io->end;
}

/* Is the block at `at` one that must be filled before it is written? */
static bool missing_edge(const struct cache *c, const struct page *p,
	const struct cache_io *io, uint64_t at)
{
	return !covers_block(c, io, at) &&
		!bitmap_test(page_map(c, p, MAP_UPTODATE), block_of(c, at));
}

/* Must a block be filled before [pos, end), in one page, is written? */
static bool needs_fill(const struct cache *c, const struct page *p,
	const struct cache_io *io, uint64_t end)
{
	if (!((io->pos | end) & (block_size(c) - 1)))
		return false;
	return missing_edge(c, p, io, io->pos) ||
		missing_edge(c, p, io, end - 1);
}

/* Move on through the source by n bytes. */
static void consume(struct cache_io *io, size_t n)
{
	io->pos += n;
	if (io->source == CACHE_FLAT)
		io->buf += n;
	if (io->source != CACHE_PAYLOAD)
		return;
	io->iov_skip += n;
	while (io->niov && io->iov_skip >= io->iov->iov_len) {
		io->iov_skip -= io->iov->iov_len;
		io->iov++;
		io->niov--;
	}
}

static unsigned char *source(const struct cache_io *io)
{
	if (io->source == CACHE_FLAT)
		return io->buf;
	return (unsigned char *)io->iov->iov_base + io->iov_skip;
}

/* Do whole frames of the payload take the place of the page's? */
static bool swaps(const struct cache_io *io)
{
	return io->source == CACHE_PAYLOAD && !io->copy;
}

/* Get the memory that [at, stop), in one page, will be copied to. Lock held. */
static int prepare_part(struct cache *c, struct page *p, uint64_t at,
	uint64_t stop, struct delta *d)
{
	while (at < stop) {
		uint64_t next = round_down(at, FRAME_SIZE) + FRAME_SIZE;
		unsigned i = frame_of(c, at);
		int err;

		if (!page_frames(c, p)[i])
			err = frames_new(c, p, i, frames_touched(at, stop), d);
		else
			err = frame_writable(c, p, i,
				!(at & (FRAME_SIZE - 1)) && next <= stop, d);
		if (err)
			return err;
		at = next;
	}
	return 0;
}

/* Get all memory that [pos, stop), in one page, will be copied to, before any
 * of it is changed. Lock held. */
static int prepare(struct cache *c, struct page *p, const struct cache_io *io,
	uint64_t stop, struct delta *d)
{
	uint64_t from = round_up(io->pos, FRAME_SIZE);
	uint64_t to = round_down(stop, FRAME_SIZE);
	frame_t first = page_frames(c, p)[frame_of(c, io->pos)];
	int err;

	/* Most often it is one frame, and nobody else's. */
	if (!((io->pos ^ (stop - 1)) >> FRAME_SHIFT) && first &&
		!arena_shared(&c->arena, first))
		return 0;
	if (!swaps(io) || from >= to)
		return prepare_part(c, p, io->pos, stop, d);
	err = prepare_part(c, p, io->pos, from, d);
	return err ? err : prepare_part(c, p, to, stop, d);
}

/* How many whole frames lie at the source in one piece, up to `stop`? */
static unsigned swap_run(const struct cache_io *io, uint64_t stop)
{
	if (!swaps(io) || io->pos & (FRAME_SIZE - 1))
		return 0;
	return (unsigned)(min_u64(io->iov->iov_len - io->iov_skip,
				  stop - io->pos) >>
		FRAME_SHIFT);
}

/* Put n frames of the payload in the places from slot on. Lock held. */
static void swap_in(struct cache *c, frame_t *slot, struct cache_io *io,
	unsigned n, struct delta *d)
{
	frame_t f = arena_frame(&c->arena, source(io));

	if (!io->give)
		arena_get(&c->arena, f, n);
	for (unsigned i = 0, run; i < n; i += run) {
		run = 1;
		if (slot[i]) {
			run = frames_in_a_row(slot + i, n - i);
			arena_put(&c->arena, slot[i], run);
		} else {
			d->used += FRAME_SIZE;
		}
	}
	for (unsigned i = 0; i < n; i++)
		slot[i] = f + i;
	consume(io, (size_t)n << FRAME_SHIFT);
}

/* Just the whole frames that are behind pos were swapped in. */
void cache_release_rest(struct cache *c, const struct cache_io *io,
	uint64_t offset, const struct iovec *iov, unsigned niov)
{
	uint64_t at = offset >> FRAME_SHIFT; /* in frames, as all here */
	uint64_t from = round_up(offset, FRAME_SIZE) >> FRAME_SHIFT;
	uint64_t to = swaps(io) ? max_u64(io->pos >> FRAME_SHIFT, from) : from;

	for (unsigned i = 0; i < niov; i++) {
		frame_t f = arena_frame(&c->arena, iov[i].iov_base);
		uint64_t end = at + arena_span(iov[i].iov_base, iov[i].iov_len);

		if (at < from)
			arena_put(&c->arena, f,
				(unsigned)(min_u64(from, end) - at));
		if (to < end)
			arena_put(&c->arena,
				f + (frame_t)(max_u64(to, at) - at),
				(unsigned)(end - max_u64(to, at)));
		at = end;
	}
}

/* The bytes from pos on that are copied to one piece of memory, up to `stop`
 * or a frame that is swapped. */
static size_t copy_run(
	const frame_t *slot, const struct cache_io *io, uint64_t stop)
{
	unsigned run = swaps(io)
		? 1
		: frames_in_a_row(slot, frames_touched(io->pos, stop));

	return min_u64(
		((uint64_t)run << FRAME_SHIFT) - (io->pos & (FRAME_SIZE - 1)),
		stop - io->pos);
}

static void copy_in(
	struct cache *c, frame_t slot, struct cache_io *io, size_t n)
{
	unsigned char *to =
		arena_data(&c->arena, slot) + (io->pos & (FRAME_SIZE - 1));

	while (n) {
		size_t part = n;

		if (io->source == CACHE_ZEROES) {
			memset(to, 0, part);
		} else {
			if (io->source == CACHE_PAYLOAD)
				part = min_u64(
					part, io->iov->iov_len - io->iov_skip);
			memcpy(to, source(io), part);
		}
		consume(io, part);
		to += part;
		n -= part;
	}
}

/* Write [pos, stop), in one page, and its state. Lock held. */
static int write_page(struct cache *c, struct shard *sh, struct page *p,
	struct cache_io *io, uint64_t stop, struct delta *d)
{
	unsigned first = block_of(c, io->pos);
	unsigned count = blocks_touched(c, io->pos, stop);
	int err = prepare(c, p, io, stop, d);

	if (err)
		return err;
	while (io->pos < stop) {
		frame_t *slot = page_frames(c, p) + frame_of(c, io->pos);
		unsigned run = swap_run(io, stop);

		if (run)
			swap_in(c, slot, io, run, d);
		else
			copy_in(c, *slot, io, copy_run(slot, io, stop));
	}
	bitmap_set(page_map(c, p, MAP_UPTODATE), first, count);
	io->charge -= page_dirty(c, sh, p, first, count, d);
	page_touch(p, first, count);
	page_settle(sh, p);
	page_assert(c, sh, p);
	return 0;
}

/* Write what can be of [pos, stop), in one shard. -ENODATA at an edge that
 * must be filled. Lock held. */
static int write_locked(struct cache *c, struct shard *sh, struct cache_io *io,
	uint64_t stop, struct delta *d)
{
	while (io->pos < stop) {
		uint64_t end = min_u64(page_end(c, io->pos), stop);
		struct page *p = index_get(c, sh, io->pos);
		int err;

		if (!p)
			return -ENOMEM;
		if (needs_fill(c, p, io, end))
			return -ENODATA;
		err = write_page(c, sh, p, io, end, d);
		if (err)
			return err;
	}
	return 0;
}

/* A flat copy gives the lock away after each page. */
static uint64_t segment_end(const struct cache *c, const struct cache_io *io)
{
	uint64_t stop = min_u64(shard_end(c, io->pos), io->end);

	return io->source == CACHE_PAYLOAD
		? stop
		: min_u64(stop, page_end(c, io->pos));
}

static int write_segment(struct cache *c, struct cache_io *io)
{
	uint64_t stop = segment_end(c, io);
	struct shard *sh = shard_of(c, io->pos);
	struct delta d = {0};
	int err;

	{
		SCOPED_LOCK(&sh->lock);

		if (range_locked(
			    c, io->pos, stop, io->reactor ? &io->waiter : NULL))
			return io->reactor ? -EINPROGRESS : -EAGAIN;
		err = write_locked(c, sh, io, stop, &d);
	}
	delta_apply(c, &d);
	return err;
}

/* Ask for the block at `at` if the write covers only part of it. */
static int fill_edge(struct cache *c, const struct cache_io *io, uint64_t at)
{
	uint64_t from = round_down(at, block_size(c));

	if (covers_block(c, io, at))
		return 0;
	return fill_start(c, from, min_u64(from + block_size(c), c->size), true,
		io->reactor);
}

/* Wait for the edges in pos's page. */
static int wait_edges(struct cache *c, struct cache_io *io)
{
	uint64_t last = min_u64(page_end(c, io->pos), io->end) - 1;
	int err = 0;

	if (!covers_block(c, io, io->pos))
		err = fill_wait(c, io->pos, io->pos + 1, &io->waiter);
	if (!err && !covers_block(c, io, last))
		err = fill_wait(c, last, last + 1, &io->waiter);
	return err;
}

/* Bring in both edges; what is on its way is waited for first (read.c). */
static int fill_edges(struct cache *c, struct cache_io *io)
{
	int err = 0;

	if (!io->reactor)
		return -EAGAIN;
	if (io->missed)
		err = wait_edges(c, io);
	io->missed = true;
	if (!err)
		err = fill_edge(c, io, io->pos);
	if (!err)
		err = fill_edge(c, io, io->end - 1);
	return err ? err : wait_edges(c, io);
}

int cache_write(struct cache *c, struct cache_io *io)
{
	int err = io->waiter.error;

	io->waiter.error = 0;
	/* It may be that of a reader's fill, of more than an edge. */
	if (err && !io->exact) {
		io->exact = true;
		err = 0;
	}
	while (!err && io->pos < io->end) {
		io->waiter.reactor = io->reactor;
		err = write_segment(c, io);
		if (err == -ENODATA)
			err = fill_edges(c, io);
	}
	return err;
}
