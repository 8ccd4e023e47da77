/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fill.c: bringing missing blocks in from the placement.
 *
 * A fill claims missing blocks (MAP_FILLING: one filler per block), reads
 * them into memory of its own and installs what is still missing when it
 * ends: a block that was written meanwhile is uptodate and is left alone
 * (state rule 5). A page that is being filled is held (refs).
 *
 * A fill may span pages but lies in one piece on the device. Between missing
 * blocks it may claim some that are there, and reads them for nothing: one
 * read of 12K costs less than two of 4K.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache-impl.h"

#define FILL_MAX (1U << 20)  /* bytes of one store read */
#define FILL_GAP (16U << 10) /* that a read goes on over, sooner than in two */

struct fill {
	struct cache *cache;
	uint64_t offset, end; /* whole blocks; end may be past the device */
	struct store_io io;
	unsigned niov, max_iov;
	struct iovec iov[];
};

static struct fill *fill_of(struct store_io *io)
{
	return container_of(io, struct fill, io);
}

/* --- claiming ------------------------------------------------------------ */

enum presence {
	MISSING, /* and nobody brings it in */
	THERE,
	NOT_OURS, /* on its way, or locked */
};

/* What the block at `at` is, and up to where, in its page and before `stop`,
 * the others are the same. Lock held. */
static enum presence look(struct cache *c, const struct shard *sh, uint64_t at,
	uint64_t stop, uint64_t *end)
{
	uint64_t base = round_down(at, page_size(c));
	const struct page *p = index_find(c, sh, at);
	unsigned first = block_of(c, at), last;
	bool there, coming;

	/* Who sent us looked for locks before it let the shard's go. */
	*end = range_free(c, at, min_u64(base + page_size(c), stop), false);
	if (*end == at) {
		*end = round_down(at, block_size(c)) + block_size(c);
		return NOT_OURS;
	}
	if (!p)
		return MISSING;
	there = bitmap_test(page_map(c, p, MAP_UPTODATE), first);
	coming = bitmap_test(page_map(c, p, MAP_FILLING), first);
	last = bitmap_find(page_map(c, p, MAP_UPTODATE), first,
		first + blocks_touched(c, at, *end), !there);
	last = bitmap_find(page_map(c, p, MAP_FILLING), first, last, !coming);
	*end = base + ((uint64_t)last << c->block_shift);
	return coming ? NOT_OURS : there ? THERE : MISSING;
}

/*
 * Find the first run of missing blocks in [at, stop), up to FILL_MAX: sets
 * [*from, *to). It goes on over blocks that are there, up to `gap` bytes of
 * them in a row. Lock held.
 */
static bool find_run(struct cache *c, const struct shard *sh, uint64_t at,
	uint64_t stop, uint64_t gap, uint64_t *from, uint64_t *to)
{
	uint64_t end;

	while (at < stop && look(c, sh, at, stop, &end) != MISSING)
		at = end;
	if (at >= stop)
		return false;
	*from = *to = at;
	stop = min_u64(stop, round_down(at + FILL_MAX, page_size(c)));
	for (; at < stop; at = end) {
		enum presence is = look(c, sh, at, stop, &end);

		if (is == NOT_OURS || (is == THERE && end - *to > gap))
			break;
		if (is == MISSING)
			*to = end;
	}
	return true;
}

/* The run is ours to fill; returns how far there was memory for it. Lock
 * held. */
static uint64_t mark(
	struct cache *c, struct shard *sh, uint64_t from, uint64_t to)
{
	for (uint64_t stop; from < to; from = stop) {
		struct page *p = index_get(c, sh, from);

		if (!p)
			break;
		stop = min_u64(
			round_down(from, page_size(c)) + page_size(c), to);
		bitmap_set(page_map(c, p, MAP_FILLING), block_of(c, from),
			blocks_touched(c, from, stop));
		p->refs++;
		page_settle(sh, p);
	}
	return from;
}

/* Claim the first missing run at or after `at`, in one shard, up to `stop`.
 * 0, -ENOENT or -ENOMEM. */
static int claim(struct cache *c, uint64_t at, uint64_t stop, uint64_t gap,
	uint64_t *from, uint64_t *to)
{
	struct shard *sh = shard_of(c, at);
	SCOPED_LOCK(&sh->lock);

	if (!find_run(c, sh, at, stop, gap, from, to))
		return -ENOENT;
	*to = mark(c, sh, *from, *to);
	return *to > *from ? 0 : -ENOMEM;
}

/* The run that was claimed up to the end of a shard's stretch: claim what is
 * missing right behind it, up to `stop`. Returns the run's end. */
static uint64_t claim_on(
	struct cache *c, uint64_t at, uint64_t stop, uint64_t gap)
{
	struct shard *sh = shard_of(c, at);
	SCOPED_LOCK(&sh->lock);
	uint64_t from, to, end;

	if (look(c, sh, at, stop, &end) != MISSING)
		return at;
	find_run(c, sh, at, stop, gap, &from, &to);
	return mark(c, sh, at, to);
}

/* Claim the first missing run at or after `at`, up to `stop` and FILL_MAX. */
static int claim_run(struct cache *c, uint64_t at, uint64_t stop, uint64_t gap,
	uint64_t *from, uint64_t *to)
{
	uint64_t end = min_u64(stop, shard_end(c, at));
	int err = claim(c, at, end, gap, from, to);

	if (err == -ENOENT)
		*to = end;
	if (err)
		return err;
	stop = min_u64(stop, round_down(*from + FILL_MAX, page_size(c)));
	while (*to == end && end < stop) {
		end = min_u64(stop, shard_end(c, end));
		*to = claim_on(c, *to, end, gap);
	}
	return 0;
}

/* --- ending -------------------------------------------------------------- */

/* Copy or hand over the frame at `data` to blocks [first, last) of the page,
 * all in frame i; those not uptodate take it. Lock held. */
static int install_frame(struct cache *c, struct page *p, unsigned i,
	unsigned first, unsigned last, const unsigned char *data,
	struct delta *d)
{
	frame_t *slot = &page_frames(c, p)[i];
	size_t block = min_u64(block_size(c), FRAME_SIZE);
	int err;

	if (!*slot) {
		*slot = arena_frame(&c->arena, data);
		arena_get(&c->arena, *slot, 1);
		d->used += FRAME_SIZE;
		return 0;
	}
	err = frame_writable(c, p, i, false, d);
	for (unsigned b = first; b < last && !err; b++) {
		size_t at = ((size_t)b << c->block_shift) & (FRAME_SIZE - 1);

		if (bitmap_test(page_map(c, p, MAP_UPTODATE), b))
			continue;
		memcpy(arena_data(&c->arena, *slot) + at,
			data - ((size_t)data & (FRAME_SIZE - 1)) + at, block);
	}
	return err;
}

/* Install blocks [first, first + count), whose memory is at `data`, which
 * runs through the fill's iov. Lock held. */
static int install(struct cache *c, struct page *p, unsigned first,
	unsigned count, struct fill *f, uint64_t at, struct delta *d)
{
	unsigned end = first + count, step;
	unsigned v = 0;
	uint64_t v_at = f->offset;
	int err = 0;

	for (unsigned b = first; b < end && !err; b += step) {
		uint64_t base = page_offset(c, p);
		uint64_t pos =
			max_u64(base + ((uint64_t)b << c->block_shift), at);
		uint64_t stop = round_down(pos, FRAME_SIZE) + FRAME_SIZE;
		unsigned i = (unsigned)((pos - base) >> FRAME_SHIFT);

		step = (unsigned)max_u64(1, (stop - pos) >> c->block_shift);
		if (step > end - b)
			step = end - b;
		if (bitmap_all(page_map(c, p, MAP_UPTODATE), b, step))
			continue;
		/* A block longer than a frame goes in frame by frame. */
		do {
			while (pos >= v_at + f->iov[v].iov_len)
				v_at += f->iov[v++].iov_len;
			err = install_frame(c, p, i++, b, b + step,
				(unsigned char *)f->iov[v].iov_base +
					(pos - v_at),
				d);
			pos = round_down(pos, FRAME_SIZE) + FRAME_SIZE;
		} while (!err &&
			pos < base + ((uint64_t)(b + step) << c->block_shift));
		if (!err)
			bitmap_set(page_map(c, p, MAP_UPTODATE), b, step);
	}
	return err;
}

/* End the fill's part in one page. */
static void finish_page(struct fill *f, uint64_t at, uint64_t stop)
{
	struct cache *c = f->cache;
	struct shard *sh = shard_of(c, at);
	unsigned first = block_of(c, at);
	unsigned count = blocks_touched(c, at, stop);
	int err = f->io.error;
	struct delta d = {0};

	{
		SCOPED_LOCK(&sh->lock);
		struct page *p = index_find(c, sh, at);

		bitmap_clear(page_map(c, p, MAP_FILLING), first, count);
		if (!err)
			err = install(c, p, first, count, f, at, &d);
		p->refs--;
		page_settle(sh, p);
		page_assert(c, sh, p);
		page_wake(p, first, count, err);
	}
	delta_apply(c, &d);
}

static void fill_done(struct store_io *io)
{
	struct fill *f = fill_of(io);
	struct cache *c = f->cache;

	for (uint64_t at = f->offset, stop; at < f->end; at = stop) {
		stop = min_u64(
			round_down(at, page_size(c)) + page_size(c), f->end);
		finish_page(f, at, stop);
	}
	cache_release(c, f->iov, f->niov);
	free(f);
	atomic_fetch_sub(&c->filling, 1);
}

bool cache_filling(struct cache *c)
{
	return atomic_load(&c->filling);
}

/* --- starting ------------------------------------------------------------ */

static void refuse(struct cache *c, uint64_t from, uint64_t to)
{
	struct fill f = {
		.cache = c, .offset = from, .end = to, .io.error = -ENOMEM};

	for (uint64_t at = from, stop; at < to; at = stop) {
		stop = min_u64(round_down(at, page_size(c)) + page_size(c), to);
		finish_page(&f, at, stop);
	}
}

/* Cut the iov to `length`, for the end of the device. */
static int trim_iov(struct iovec *iov, int n, uint64_t length)
{
	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len >= length) {
			iov[i].iov_len = length;
			return i + 1;
		}
		length -= iov[i].iov_len;
	}
	return n;
}

static int submit(
	struct cache *c, uint64_t from, uint64_t to, struct reactor *r)
{
	unsigned max = cache_max_iov(to - from);
	struct fill *f = malloc(sizeof(*f) + 2 * max * sizeof(struct iovec));
	int n = -ENOMEM;

	cache_make_room(c, to - from);
	if (f)
		n = cache_payload(c, from, to - from, f->iov, max);
	if (n < 0) {
		free(f);
		refuse(c, from, to);
		return n;
	}
	f->cache = c;
	f->offset = from;
	f->end = to;
	f->niov = (unsigned)n;
	f->max_iov = max;
	f->io = (struct store_io){
		.op = STORE_READ,
		.offset = from,
		.length = min_u64(to, c->size) - from,
		.iov = f->iov + max,
		.reactor = r,
		.done = fill_done,
	};
	/* The store gets a copy cut at the device's end. */
	memcpy(f->iov + max, f->iov, (size_t)n * sizeof(struct iovec));
	f->io.niov = trim_iov(f->iov + max, n, f->io.length);
	atomic_fetch_add_explicit(&c->fill_reads, 1, memory_order_relaxed);
	atomic_fetch_add(&c->filling, 1);
	placement_submit(c->placement, &f->io);
	return 0;
}

int fill_start(struct cache *c, uint64_t offset, uint64_t end, bool exact,
	struct reactor *r)
{
	uint64_t gap = exact ? 0 : FILL_GAP;
	uint64_t from = 0, to = 0;
	int err;

	end = round_up(end, block_size(c));
	while (offset < end) {
		err = claim_run(c, offset, end, gap, &from, &to);
		if (!err)
			err = submit(c, from, to, r);
		if (err && err != -ENOENT)
			return err;
		offset = to;
	}
	return 0;
}

void cache_fill(
	struct cache *c, uint64_t offset, uint64_t end, struct reactor *r)
{
	end = min_u64(round_up(end, page_size(c)), c->size);
	/* No memory: whoever reads it will meet that. */
	fill_start(c, round_down(offset, page_size(c)), end, false, r);
}

/* Is any block of the range on its way, and not there? */
static bool awaited(
	const struct cache *c, const struct page *p, unsigned first, unsigned n)
{
	const uint64_t *uptodate = page_map(c, p, MAP_UPTODATE);
	const uint64_t *filling = page_map(c, p, MAP_FILLING);

	bitmap_for_each_part (part, first, n) {
		if (filling[part.word] & ~uptodate[part.word] & part.mask)
			return true;
	}
	return false;
}

int fill_wait(
	struct cache *c, uint64_t offset, uint64_t end, struct cache_waiter *w)
{
	struct shard *sh = shard_of(c, offset);
	SCOPED_LOCK(&sh->lock);
	struct page *p = index_find(c, sh, offset);

	w->first = block_of(c, offset);
	w->count = blocks_touched(c, offset, end);
	if (!p || !awaited(c, p, w->first, w->count))
		return 0;
	waiter_add(&p->waiters, w);
	return -EINPROGRESS;
}
