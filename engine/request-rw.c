/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request-rw.c: reads, writes and prefetches through the cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine-impl.h"

/* A flat buffer longer than this is copied before any lock is taken, to
 * memory that then becomes the pages'. */
#define FLAT_IN_PLACE (32U << 10)
#define CACHE_PIECE (4U << 20) /* bytes of a prefetch at once */

/* --- holes --------------------------------------------------------------- */

/*
 * What is missing and may be a hole is asked of the store, and not read if it
 * is (cache_read()):
 *
 *   NONE -> LOCK -> IDLE -> STORE -> NONE
 *
 * The lock is shared and keeps everybody from writing to the store there
 * meanwhile, so that what it says of a block is true of one moment. For the
 * same reason a hole is whole blocks, but for the ends of the request. Who
 * has asked READ_ASKS times reads the rest as data.
 */
enum read_ask {
	ASK_NONE,
	ASK_LOCK,
	ASK_IDLE,
	ASK_STORE,
};

#define READ_ASKS 16U
#define HOLE_MIN UINT64_C(4096) /* bytes */

bool read_takes_holes(const struct engine_request *req)
{
	if (req->op == ENGINE_READ)
		return req->buf || req->flags & ENGINE_HOLES;
	return req->op == ENGINE_CACHE;
}

static void ask_begin(struct request *r)
{
	r->ask = ASK_LOCK;
	r->lock.offset = r->io.pos;
	r->lock.end = r->io.missing;
	r->lock.shared = true;
}

/* What a hole begins and ends at a multiple of; bytes. */
static uint64_t hole_align(const struct request *r)
{
	uint64_t block = r->e->config.block_size;

	return block > HOLE_MIN ? block : HOLE_MIN;
}

static uint64_t aligned_down(const struct request *r, uint64_t n)
{
	return n & ~(hole_align(r) - 1);
}

/* The extent of the answer that io.pos lies in, and where it ends; NULL: none,
 * or the store did not answer. */
static const struct store_extent *extent_here(
	const struct request *r, uint64_t *end)
{
	*end = r->u.store.offset;
	for (int i = 0; i < r->u.store.nextents; i++) {
		*end += r->look[i].length;
		if (*end > r->io.pos)
			return &r->look[i];
	}
	return NULL;
}

/*
 * Take the holes that the store has told of, up to the first data. What it
 * said holds for all of the read, which may come to it later. 0, or -E2BIG:
 * call again.
 */
static int take_holes(struct request *r)
{
	struct cache_io *io = &r->io;
	const struct store_extent *e;
	uint64_t end, stop;
	int err;

	while ((e = extent_here(r, &end))) {
		stop = end < io->end ? aligned_down(r, end) : io->end;
		if (!(e->flags & STORE_ZEROES) || stop <= io->pos) {
			io->known = aligned_down(r, end - 1) + hole_align(r);
			return 0;
		}
		err = cache_read_hole(io, stop);
		if (err)
			return err;
		request_front(r)->holes = io->iov;
	}
	return 0;
}

/* Have all the data brought in that the store has told of: the reader comes
 * to it piece by piece. */
static void fill_data(struct request *r)
{
	uint64_t at = r->u.store.offset;

	for (int i = 0; i < r->u.store.nextents && !r->io.exact; i++) {
		if (!(r->look[i].flags & STORE_ZEROES))
			cache_fill(r->e->cache, at, at + r->look[i].length,
				r->loop);
		at += r->look[i].length;
	}
}

static void ask_end(struct request *r)
{
	r->ask = ASK_NONE;
	r->asked = true;
	if (r->error) { /* whoever reads it will meet it */
		r->u.store.nextents = 0;
		r->io.known = r->io.missing;
	}
	r->error = 0;
	if (++r->asks == READ_ASKS)
		r->io.holes = false;
	cache_range_unlock(r->e->cache, &r->lock);
	fill_data(r);
}

/* Like a step, from wherever it stands; 0: the read goes on. */
static int ask_store(struct request *r)
{
	int err = 0;

	if (r->ask == ASK_LOCK) {
		err = cache_range_lock(r->e->cache, &r->lock);
		if (!err)
			r->ask = ASK_IDLE;
	}
	if (!err && r->ask == ASK_IDLE) {
		err = cache_range_idle(r->e->cache, &r->lock);
		if (err)
			return err;
		r->ask = ASK_STORE;
		return request_store_status(r, r->io.pos,
			r->io.missing - r->io.pos, r->look, READ_EXTENTS);
	}
	if (!err)
		ask_end(r);
	return err ? err : take_holes(r);
}

/* io.pos is missing, and may be a hole: is it known to be one? */
static int hole_or_ask(struct request *r)
{
	uint64_t at = r->io.pos, known = r->io.known;
	int err = r->asked ? take_holes(r) : 0;

	if (!err && r->io.pos == at && r->io.known == known)
		ask_begin(r);
	return err;
}

/* From the cache, as far as it goes; what is missing may be a hole. As
 * cache_read(), which has more to do if this is 0. */
static int read_on(struct request *r)
{
	int err = r->ask ? ask_store(r) : cache_read(r->e->cache, &r->io);

	return err == -ENODATA ? hole_or_ask(r) : err;
}

/* --- reads --------------------------------------------------------------- */

static int grow(struct request *r, struct engine_request *req)
{
	int err = request_grow_iov(req, req->length);

	r->io.iov = req->iov;
	r->io.max_iov = cache_max_iov(req->length);
	return err;
}

int step_read(struct request *r)
{
	struct engine_request *req = request_front(r);
	int err;

	if (!req->buf && !r->io.iov) {
		r->io.iov = req->iov;
		r->io.max_iov = ENGINE_INLINE_IOV;
	}
	do {
		err = read_on(r);
		if (err == -E2BIG)
			err = grow(r, req);
		req->niov = r->io.niov;
	} while (!err && r->io.pos < r->io.end);
	if (err && err != -EINPROGRESS && err != -EAGAIN) {
		req->has_error_at = true;
		req->error_at = r->io.pos;
	}
	return err;
}

/*
 * A prefetch may be for the whole device. It never takes the place of what is
 * in use: all that are under way together bring in half of the memory that is
 * idle when they begin, and each ends early when there is not so much any more.
 * The client is told of neither: a prefetch promises nothing.
 */
static void prefetch_begin(struct request *r)
{
	const struct engine_request *req = request_front(r);
	uint64_t want = req->offset + req->length - r->io.pos;
	uint64_t most = cache_idle(r->e->cache) / 2;
	uint64_t others = atomic_fetch_add(&r->e->prefetching, want);
	uint64_t may = most > others ? most - others : 0;

	if (want > may) {
		atomic_fetch_sub(&r->e->prefetching, want - may);
		want = may;
	}
	r->a = want;
	r->b = r->io.pos + want;
	r->phase = 1;
}

/* As far as `end`, a piece of it on its way at a time. */
static int prefetch(struct request *r, uint64_t end)
{
	int err = 0;

	while (!err && r->io.pos < end) {
		uint64_t stop =
			r->io.pos / CACHE_PIECE * CACHE_PIECE + CACHE_PIECE;

		r->io.end = stop < end ? stop : end;
		if (r->loop && !r->ask &&
			cache_idle(r->e->cache) < r->io.end - r->io.pos)
			break;
		err = read_on(r);
	}
	return err;
}

int step_cache(struct request *r)
{
	const struct engine_request *req = request_front(r);
	int err;

	if (req->export->cache == ENGINE_NONE)
		return 0;
	r->io.buf = NULL;
	if (!r->loop) /* what is there already */
		return prefetch(r, req->offset + req->length);
	if (!r->phase)
		prefetch_begin(r);
	err = prefetch(r, r->b);
	if (err != -EINPROGRESS)
		atomic_fetch_sub(&r->e->prefetching, r->a);
	return err;
}

/* --- writes -------------------------------------------------------------- */

/* The end of the piece, a power of two, that `pos` lies in, or `end`. */
static uint64_t cut_piece(uint64_t pos, uint64_t piece, uint64_t end)
{
	uint64_t stop = (pos & ~(piece - 1)) + piece;

	return stop < end ? stop : end;
}

/* With multipage off each block is admitted, looked up, copied and noted by
 * itself. */
static uint64_t piece_end(const struct request *r, uint64_t end)
{
	uint64_t piece = atomic_load(&r->e->multipage)
		? throttle_piece(r->e->throttle)
		: r->e->config.block_size;

	return cut_piece(r->io.pos, piece, end);
}

/* What [from, to) can make dirty at most, bytes. */
static uint64_t dirtied(const struct request *r, uint64_t from, uint64_t to)
{
	uint64_t in = r->e->config.block_size - 1; /* a power of two's */

	return ((to + in) & ~in) - (from & ~in);
}

static void admitted(struct throttle_waiter *w)
{
	struct request *r = container_of(w, struct request, u.throttle);

	r->io.charge = w->bytes;
	r->admitted = r->io.end;
	request_run(r);
}

/* The limit was lowered while the piece was parked: a smaller one. */
static void shrink(struct throttle_waiter *w, uint64_t piece)
{
	struct request *r = container_of(w, struct request, u.throttle);

	r->io.end = cut_piece(r->io.pos, piece, r->io.end);
	w->bytes = dirtied(r, r->io.pos, r->io.end);
}

/* Have the next piece admitted: 0, -EAGAIN or -EINPROGRESS. */
static int admit(struct request *r, uint64_t end)
{
	struct throttle_client *client =
		(struct throttle_client *)request_front(r)->client;
	uint64_t stop = piece_end(r, end);
	uint64_t bytes = dirtied(r, r->io.pos, stop);

	if (writeback_failing(r->e->writeback, r->io.pos, stop))
		return -EIO;
	r->io.end = stop;
	if (!r->loop) {
		if (!throttle_try(r->e->throttle, client, r->io.pos, bytes))
			return -EAGAIN;
	} else {
		r->u.throttle = (struct throttle_waiter){
			.offset = r->io.pos,
			.bytes = bytes,
			.client = client,
			.reactor = r->loop,
			.admitted = admitted,
			.shrink = shrink,
		};
		if (!throttle_admit(r->e->throttle, &r->u.throttle))
			return -EINPROGRESS;
	}
	r->io.charge = bytes;
	r->admitted = stop;
	return 0;
}

static void refund(struct request *r)
{
	cache_uncharge(r->e->cache, r->io.charge);
	r->io.charge = 0;
}

static void reserved(struct placement_waiter *w)
{
	struct request *r = container_of(w, struct request, u.space);

	r->error = w->error;
	request_run(r);
}

/*
 * Space for the blocks of the admitted piece, so that writing them back
 * cannot fail for want of it. Each time before the cache is tried: a trim may
 * have given up what there was while we waited. Like admit(), or -ENOSPC.
 */
static int reserve(struct request *r)
{
	uint64_t in = r->e->config.block_size - 1; /* a power of two's */
	uint64_t from = r->io.pos & ~in;
	uint64_t length = dirtied(r, r->io.pos, r->io.end);
	int err = r->error;

	r->error = 0;
	if (!err)
		err = placement_reserve(r->e->placement, from, length);
	if (err != -EAGAIN || !r->loop)
		return err;
	r->u.space = (struct placement_waiter){
		.reactor = r->loop,
		.done = reserved,
		.offset = from,
		.length = length,
	};
	placement_reserve_wait(r->e->placement, &r->u.space);
	return -EINPROGRESS;
}

int write_admitted(struct request *r, uint64_t end)
{
	int err = 0;

	while (!err && r->io.pos < end) {
		if (r->admitted <= r->io.pos)
			err = admit(r, end);
		if (err)
			break;
		err = reserve(r);
		if (!err)
			err = cache_write(r->e->cache, &r->io);
		if (err != -EINPROGRESS && err != -EAGAIN)
			refund(r);
	}
	/* Also after an error: what was written before it is dirty. */
	if (err != -EINPROGRESS && err != -EAGAIN)
		writeback_kick(r->e->writeback);
	return err;
}

int flat_to_payload(struct request *r)
{
	struct engine_request *req = request_front(r);
	const unsigned char *from = req->buf;
	int err = engine_payload(req);

	if (err)
		return err;
	for (unsigned i = 0; i < req->niov; i++) {
		memcpy(req->iov[i].iov_base, from, req->iov[i].iov_len);
		from += req->iov[i].iov_len;
	}
	r->flat_payload = true;
	return 0;
}

static int write_begin(struct request *r)
{
	struct engine_request *req = request_front(r);
	int err = 0;

	r->io.copy = !atomic_load(&r->e->multipage);
	if (req->buf && req->length > FLAT_IN_PLACE && !r->io.copy)
		err = flat_to_payload(r);
	if (err)
		return err;
	if (req->buf && !r->flat_payload) {
		r->io.source = CACHE_FLAT;
		return 0;
	}
	r->io.source = CACHE_PAYLOAD;
	r->io.give = true;
	r->io.iov = req->iov;
	r->io.niov = req->niov;
	return 0;
}

int step_write(struct request *r)
{
	struct engine_request *req = request_front(r);
	bool fua = req->flags & ENGINE_FUA;
	int err = 0;

	if (r->phase == 0)
		err = write_begin(r);
	r->phase = 1;
	if (!err && !r->synced)
		err = write_admitted(r, req->offset + req->length);
	if (err || !(fua || req->export->cache == ENGINE_WRITETHROUGH))
		return err;
	if (r->synced)
		return r->error;
	if (!r->loop)
		return -EAGAIN;
	r->synced = true;
	return request_sync(r, req->offset, req->offset + req->length, fua);
}
