/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request-direct.c: the reads and writes of an export with cache=none: no
 * page is kept. What other exports left dirty in the range is written first.
 *
 * A write's whole blocks go to the placement (request-through.c); a read
 * goes there with its ends rounded out to what the store can address:
 *
 *   DIRTY (written back) -> LOCK -> IDLE -> STORE
 *
 * The lock is shared: reads run side by side, but nothing is written to the
 * store meanwhile, so that each block is seen as it was or as it will be. It
 * comes after the writing back, which it would keep off. What becomes dirty
 * in between was written by somebody who had no answer when we began; but if
 * a write of that to the store fails, it leaves there what nobody wrote, and
 * we begin again.
 */
#include <errno.h>
#include <string.h>

#include "engine-impl.h"

enum direct_phase {
	DIRECT_DIRTY,
	DIRECT_LOCK,
	DIRECT_IDLE,
	DIRECT_STORE,
};

static uint64_t align_of(const struct request *r)
{
	return r->e->placement->info.align;
}

/* Read [a, b) into memory of the arena. */
static int direct_submit(struct request *r, struct engine_request *req)
{
	uint64_t size = r->e->placement->info.size;
	uint64_t end = req->offset + req->length, align = align_of(r);
	int err;

	r->a = req->offset / align * align;
	r->b = (end + align - 1) / align * align;
	if (r->b > size)
		r->b = size;
	err = request_payload(req, r->a, r->b - r->a);
	if (err)
		return err;
	return request_store(
		r, STORE_READ, 0, r->a, r->b - r->a, req->iov, (int)req->niov);
}

/* Cut off what was only read for the alignment. */
static void direct_trim(struct request *r, struct engine_request *req)
{
	size_t head = req->offset - r->a;
	size_t tail = r->b - (req->offset + req->length);

	req->iov[0].iov_base = (char *)req->iov[0].iov_base + head;
	req->iov[0].iov_len -= head;
	req->iov[req->niov - 1].iov_len -= tail;
}

static void copy_out(const struct engine_request *req)
{
	unsigned char *to = req->buf;

	for (unsigned i = 0; i < req->niov; i++) {
		memcpy(to, req->iov[i].iov_base, req->iov[i].iov_len);
		to += req->iov[i].iov_len;
	}
}

static int direct_end(struct request *r, struct engine_request *req, int error)
{
	cache_range_unlock(r->e->cache, &r->lock);
	if (error)
		return error;
	direct_trim(r, req);
	if (req->buf)
		copy_out(req);
	return 0;
}

static int direct_begin(struct request *r, const struct engine_request *req)
{
	uint64_t end = req->offset + req->length;
	unsigned unsafe = CACHE_HAS_DIRTY | CACHE_HAS_WRITEBACK;
	/* Then what is not flushed may be gone when the store is asked. */
	bool forgets = r->e->placement->info.forgets;

	r->lock.offset = req->offset;
	r->lock.end = end;
	r->lock.shared = true;
	r->phase = DIRECT_LOCK;
	if (forgets)
		unsafe |= CACHE_HAS_UNSTABLE;
	if (cache_range_state(r->e->cache, req->offset, end, UINT64_MAX) &
		unsafe)
		return request_sync(r, req->offset, end, forgets);
	return 0;
}

/* Nobody writes there now: ask the store. */
static int direct_read(struct request *r, struct engine_request *req)
{
	int err;

	r->phase = DIRECT_STORE;
	err = direct_submit(r, req);
	return err == -EINPROGRESS ? err : direct_end(r, req, err);
}

/* Is part of the range on the store as a failed write left it? Locked. */
static bool torn(const struct request *r)
{
	uint64_t offset = r->lock.offset, end = r->lock.end;

	return writeback_torn(r->e->writeback, offset, end) &&
		(cache_range_state(r->e->cache, offset, end, UINT64_MAX) &
			CACHE_HAS_DIRTY);
}

/* From DIRTY to where the range is locked and idle. */
static int direct_settle(struct request *r, const struct engine_request *req)
{
	int err = 0;

	if (r->phase == DIRECT_DIRTY)
		err = direct_begin(r, req);
	if (!err)
		err = r->error; /* of the writing back */
	if (!err && r->phase == DIRECT_LOCK) {
		err = cache_range_lock(r->e->cache, &r->lock);
		if (!err)
			r->phase = DIRECT_IDLE;
	}
	return err ? err : cache_range_idle(r->e->cache, &r->lock);
}

int step_direct_read(struct request *r)
{
	struct engine_request *req = request_front(r);
	int err;

	if (!req->length)
		return 0;
	if (!r->loop)
		return -EAGAIN;
	if (r->phase == DIRECT_STORE)
		return direct_end(r, req, r->error);
	while (!(err = direct_settle(r, req)) && torn(r)) {
		cache_range_unlock(r->e->cache, &r->lock);
		r->phase = DIRECT_DIRTY;
	}
	return err ? err : direct_read(r, req);
}

int step_direct_write(struct request *r)
{
	struct engine_request *req = request_front(r);
	int err = 0;

	if (!req->length)
		return 0;
	if (!r->loop)
		return -EAGAIN;
	if (req->buf && !r->flat_payload)
		err = flat_to_payload(r);
	return err ? err : step_through(r);
}
