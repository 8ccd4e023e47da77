/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request-through.c: requests whose whole blocks go to the placement past
 * the cache: trims, write-zeroes, and the writes of a direct export.
 *
 * While that is under way the range is kept from everybody; then the cache
 * forgets it: nothing becomes dirty, and the next flush covers it. What is
 * left at the edges goes through the cache.
 *
 *   BEGIN -> LOCK -> IDLE -> STORE (in pieces) -> HEAD -> TAIL
 *     -> SYNC_HEAD -> SYNC_TAIL -> SYNC_STORE
 *
 * A write of zeroes (request-zeroes.c) whose zeroing fails starts over as a
 * plain write: it may not fail where that would not.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine-impl.h"

#define STORE_PIECE (UINT64_C(1) << 30) /* bytes of one trim or zero */

enum through_phase {
	THROUGH_BEGIN,
	THROUGH_LOCK,
	THROUGH_IDLE,
	THROUGH_STORE,
	THROUGH_HEAD,
	THROUGH_TAIL,
	THROUGH_SYNC_HEAD,
	THROUGH_SYNC_TAIL,
	THROUGH_SYNC_STORE,
};

static uint64_t end_of(const struct engine_request *req)
{
	return req->offset + req->length;
}

void request_whole_blocks(struct request *r, uint64_t *a, uint64_t *b)
{
	const struct engine_request *req = request_front(r);
	uint64_t block = r->e->config.block_size;
	uint64_t end = end_of(req);

	*a = (req->offset + block - 1) / block * block;
	*b = end == r->e->placement->info.size ? end : end / block * block;
}

/* --- the middle ---------------------------------------------------------- */

/* Does the middle take data to the store? */
static bool writes_data(
	const struct request *r, const struct engine_request *req)
{
	return req->op == ENGINE_WRITE && !r->zeroes;
}

static unsigned zero_flags(
	const struct request *r, const struct engine_request *req)
{
	if (r->zeroes)
		return atomic_load(&r->e->detect_zeroes) == ENGINE_DETECT_UNMAP
			? 0
			: STORE_NO_HOLE;
	return (req->flags & ENGINE_NO_HOLE ? STORE_NO_HOLE : 0) |
		(req->flags & ENGINE_FAST_ZERO ? STORE_FAST : 0);
}

static int submit_zero(
	struct request *r, const struct engine_request *req, uint64_t n)
{
	if (n > STORE_PIECE)
		n = STORE_PIECE;
	return request_store(r,
		req->op == ENGINE_TRIM ? STORE_TRIM : STORE_ZERO,
		req->op == ENGINE_TRIM ? 0 : zero_flags(r, req), r->io.pos, n,
		NULL, 0);
}

/* Stand the cache io at device offset `pos` of the payload. */
static void payload_seek(
	struct request *r, const struct engine_request *req, uint64_t pos)
{
	uint64_t skip = pos - req->offset;

	r->io.iov = req->iov;
	r->io.niov = req->niov;
	while (r->io.niov && skip >= r->io.iov->iov_len) {
		skip -= r->io.iov->iov_len;
		r->io.iov++;
		r->io.niov--;
	}
	r->io.iov_skip = skip;
}

/* The payload's part [io.pos, io.pos + n) as an iovec of its own. */
static int cut_payload(
	struct request *r, const struct engine_request *req, uint64_t n)
{
	struct iovec *cut;
	unsigned k = 0;

	payload_seek(r, req, r->io.pos);
	cut = realloc(r->cut, (r->io.niov + 1) * sizeof(*cut));
	if (!cut)
		return -ENOMEM;
	r->cut = cut;
	for (; n; k++) {
		size_t here = r->io.iov[k].iov_len - r->io.iov_skip;

		cut[k].iov_base =
			(char *)r->io.iov[k].iov_base + r->io.iov_skip;
		cut[k].iov_len = here < n ? here : n;
		n -= cut[k].iov_len;
		r->io.iov_skip = 0;
	}
	return (int)k;
}

static int submit_write(
	struct request *r, const struct engine_request *req, uint64_t n)
{
	const struct store_info *info = &r->e->placement->info;
	int niov;

	if (n > info->max_io)
		n = info->max_io / info->align * info->align;
	niov = cut_payload(r, req, n);
	if (niov < 0)
		return niov;
	return request_store(r, STORE_WRITE, r->durable ? STORE_FUA : 0,
		r->io.pos, n, r->cut, niov);
}

/* The middle is over, maybe before its end: let the range go. */
static int middle_done(struct request *r, int error)
{
	if (r->io.pos > r->a) {
		writeback_note_through(r->e->writeback, r->u.store.op,
			r->u.store.flags, r->a, r->io.pos);
		cache_invalidate(r->e->cache, r->a, r->io.pos);
		if (r->u.store.op != STORE_WRITE)
			placement_unreserve(
				r->e->placement, r->a, r->io.pos - r->a);
	}
	cache_range_unlock(r->e->cache, &r->lock);
	free(r->cut);
	r->cut = NULL;
	return error;
}

static int next_piece(struct request *r, const struct engine_request *req)
{
	uint64_t n = r->b - r->io.pos;
	/* What the store has forgotten before it could know it: again. */
	int err = r->error == -ESTALE ? 0 : r->error;

	if (!err && n)
		err = writes_data(r, req) ? submit_write(r, req, n)
					  : submit_zero(r, req, n);
	return err == -EINPROGRESS ? err : middle_done(r, err);
}

static int middle(struct request *r, const struct engine_request *req)
{
	int err;

	if (r->phase == THROUGH_LOCK) {
		err = cache_range_lock(r->e->cache, &r->lock);
		if (err)
			return err;
		r->phase = THROUGH_IDLE;
	}
	if (r->phase == THROUGH_IDLE) {
		err = cache_range_idle(r->e->cache, &r->lock);
		if (err)
			return err;
		r->phase = THROUGH_STORE;
		r->io.pos = r->a;
		return next_piece(r, req);
	}
	if (!r->error)
		r->io.pos += r->u.store.length;
	return next_piece(r, req);
}

/* --- the edges ----------------------------------------------------------- */

static void edge_begin(struct request *r, const struct engine_request *req,
	uint64_t from, enum through_phase phase)
{
	r->phase = (unsigned char)phase;
	r->io.pos = from;
	r->admitted = from;
	if (req->op != ENGINE_WRITE) {
		r->io.source = CACHE_ZEROES;
	} else if (req->buf && !r->flat_payload) {
		r->io.source = CACHE_FLAT;
		r->io.buf = (unsigned char *)req->buf + (from - req->offset);
	} else {
		r->io.source = CACHE_PAYLOAD;
		payload_seek(r, req, from);
	}
}

/* --- all of it ----------------------------------------------------------- */

/* Will a zero, or a trim that may have to be done again, find room to be
 * remembered until it is durable? */
static int begin_zero(struct request *r)
{
	int err = writeback_zero_room(r->e->writeback);

	r->settles = err == -EAGAIN;
	return r->settles ? 0 : err;
}

static int begin(struct request *r, const struct engine_request *req)
{
	int err = 0;

	if (!r->zeroes)
		request_whole_blocks(r, &r->a, &r->b);
	if (r->a >= r->b) { /* all of it is edge */
		r->a = r->b = end_of(req);
		if (req->flags & ENGINE_FAST_ZERO)
			return -ENOTSUP;
		edge_begin(r, req, req->offset, THROUGH_HEAD);
		return 0;
	}
	if (writes_data(r, req))
		r->durable = (req->flags & ENGINE_FUA) &&
			r->e->placement->info.can_fua;
	else if (req->op != ENGINE_TRIM ||
		writeback_redoes_trims(r->e->writeback))
		err = begin_zero(r);
	r->lock.offset = r->a;
	r->lock.end = r->b;
	r->phase = THROUGH_LOCK;
	return err;
}

/*
 * Both edges are written, or made durable for FUA; then, for FUA, what went
 * past the cache. The middle may be the whole device: it is not looked
 * through.
 */
static int finish(struct request *r, const struct engine_request *req)
{
	bool fua = req->flags & ENGINE_FUA;
	bool edges = fua || req->export->cache != ENGINE_WRITEBACK;

	while (!r->error && r->phase < THROUGH_SYNC_STORE) {
		switch (++r->phase) {
		case THROUGH_SYNC_HEAD:
			if (edges && r->a > req->offset)
				return request_sync(r, req->offset, r->a, fua);
			break;
		case THROUGH_SYNC_TAIL:
			if (edges && r->b < end_of(req))
				return request_sync(r, r->b, end_of(req), fua);
			break;
		default:
			if ((fua || r->settles) && r->a < r->b && !r->durable)
				return request_sync_through(r);
		}
	}
	return r->error;
}

int step_through(struct request *r)
{
	const struct engine_request *req = request_front(r);
	int err = 0;

	if (!r->loop)
		return -EAGAIN;
	if (r->phase > THROUGH_TAIL)
		return finish(r, req);
	if (r->phase == THROUGH_BEGIN)
		err = begin(r, req);
	if (!err && r->phase < THROUGH_HEAD) {
		err = middle(r, req);
		if (!err)
			edge_begin(r, req, req->offset, THROUGH_HEAD);
	}
	if (err && err != -EINPROGRESS && r->zeroes &&
		r->phase < THROUGH_HEAD) {
		request_rewind(r);
		return r->step(r);
	}
	if (!err && r->phase == THROUGH_HEAD) {
		err = write_admitted(r, r->a);
		if (!err)
			edge_begin(r, req, r->b, THROUGH_TAIL);
	}
	if (!err && r->phase == THROUGH_TAIL)
		err = write_admitted(r, end_of(req));
	return err ? err : finish(r, req);
}
