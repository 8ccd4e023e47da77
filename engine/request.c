/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c: a request's life: checked, stepped until it is over, answered.
 *
 *   submit -> check -> step --0 or error--> answered in the call (a hit)
 *                       |  ^
 *          -EINPROGRESS |  | a fill, an admission, a sync, the store
 *                       v  |
 *                      waits, then steps on its loop --> done()
 *
 * A step keeps everything in struct request and starts over where it stopped.
 * Every request steps first with no loop; when it would have to wait
 * (-EAGAIN) it goes on on its own loop, or, if it came from a foreign thread,
 * is handed to any.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "engine-impl.h"

void engine_request_init(struct engine_request *req)
{
	memset(req, 0, offsetof(struct engine_request, inline_iov));
	req->iov = req->inline_iov;
}

int request_grow_iov(struct engine_request *req, uint64_t length)
{
	unsigned max = cache_max_iov(length);
	struct iovec *iov;

	if (req->iov != req->inline_iov)
		return -E2BIG;
	iov = malloc(max * sizeof(*iov));
	if (!iov)
		return -ENOMEM;
	memcpy(iov, req->inline_iov, sizeof(req->inline_iov));
	req->iov = iov;
	return 0;
}

int request_payload(
	struct engine_request *req, uint64_t offset, uint64_t length)
{
	struct cache *c = req->export->engine->cache;
	bool direct = req->export->cache == ENGINE_NONE;
	int n = (direct ? cache_direct_payload : cache_payload)(
		c, offset, length, req->iov, ENGINE_INLINE_IOV);

	if (n == -E2BIG) {
		n = request_grow_iov(req, length);
		if (!n)
			n = cache_payload(c, offset, length, req->iov,
				cache_max_iov(length));
	}
	if (n < 0)
		return n;
	req->niov = (unsigned)n;
	return 0;
}

int engine_payload(struct engine_request *req)
{
	int err;

	if (req->length > ENGINE_MAX_REQUEST)
		return -EOVERFLOW;
	err = request_payload(req, req->offset, req->length);
	if (err)
		engine_release(req); /* the room for it */
	return err;
}

int engine_payload_share(
	struct engine_request *req, const struct engine_request *other)
{
	uint64_t left = req->length;
	int err = other->niov > ENGINE_INLINE_IOV
		? request_grow_iov(req, other->length)
		: 0;

	if (err)
		return err;
	req->niov = 0;
	for (unsigned i = 0; i < other->niov && left; i++) {
		struct iovec *v = &req->iov[req->niov++];

		*v = other->iov[i];
		if (v->iov_len > left)
			v->iov_len = left;
		left -= v->iov_len;
	}
	cache_hold(req->export->engine->cache, req->iov, req->niov);
	return 0;
}

static void drop_iov(struct engine_request *req)
{
	req->niov = 0;
	if (req->iov != req->inline_iov) {
		free(req->iov);
		req->iov = req->inline_iov;
	}
}

void engine_release(struct engine_request *req)
{
	cache_release(req->export->engine->cache, req->iov, req->niov);
	drop_iov(req);
}

/* --- the end ------------------------------------------------------------- */

/*
 * The cache is over its size. Fills take what they need; when that is used,
 * the budget holds again. What is dirty pins its page: it is written.
 */
static void relieve(struct request *r, const struct engine_request *req)
{
	uint64_t end = req->offset;

	if (req->op == ENGINE_READ || req->op == ENGINE_WRITE ||
		req->op == ENGINE_CACHE)
		end += req->length;
	if (!cache_shrink(r->e->cache, req->offset, end))
		writeback_press(r->e->writeback);
}

/* A loop that counts alone needs no atomic addition. */
static void count(
	const struct request *r, _Atomic(uint64_t) *counter, uint64_t n)
{
	if (r->own_stripe)
		atomic_store_explicit(counter,
			atomic_load_explicit(counter, memory_order_relaxed) + n,
			memory_order_release);
	else
		atomic_fetch_add_explicit(counter, n, memory_order_release);
}

static void settle(struct request *r, int error)
{
	struct engine_request *req = request_front(r);
	struct stripe *s = r->stripe;

	req->error = error;
	if (r->io.give) {
		cache_release_rest(
			r->e->cache, &r->io, req->offset, req->iov, req->niov);
		drop_iov(req);
	} else if (error || req->op != ENGINE_READ || req->buf) {
		engine_release(req);
	}
	if (cache_pressed(r->e->cache))
		relieve(r, req);
	if (!error) {
		count(r, &s->op[req->op].ops, 1);
		count(r, &s->op[req->op].bytes, req->length);
	}
	if (r->start_ns)
		stats_latency(s, req->op,
			reactor_now(r->e->loops[0]) - r->start_ns, r->weight);
	count(r, &s->left, 1);
}

void request_run(struct request *r)
{
	struct engine_request *req = request_front(r);
	int err = r->step(r);

	if (err == -EINPROGRESS)
		return;
	settle(r, err);
	req->done(req);
}

/* --- waiting ------------------------------------------------------------- */

static void woken(struct cache_waiter *w)
{
	request_run(container_of(w, struct request, io.waiter));
}

static void lock_woken(struct cache_waiter *w)
{
	request_run(container_of(w, struct request, lock.waiter));
}

static void synced(struct writeback_sync *s)
{
	struct request *r = container_of(s, struct request, u.sync);

	r->error = s->error;
	request_run(r);
}

int request_sync(struct request *r, uint64_t offset, uint64_t end, bool stable)
{
	uint64_t block = r->e->config.block_size;

	r->u.sync = (struct writeback_sync){
		.reactor = r->loop,
		.done = synced,
		.offset = offset / block * block,
		.end = (end + block - 1) / block * block,
		.stable = stable,
	};
	writeback_range(r->e->writeback, &r->u.sync);
	return -EINPROGRESS;
}

int request_sync_through(struct request *r)
{
	r->u.sync = (struct writeback_sync){
		.reactor = r->loop,
		.done = synced,
		.stable = true, /* of no range of its own */
	};
	writeback_range(r->e->writeback, &r->u.sync);
	return -EINPROGRESS;
}

int request_sync_all(struct request *r)
{
	r->u.sync = (struct writeback_sync){.reactor = r->loop, .done = synced};
	writeback_flush(r->e->writeback, &r->u.sync);
	return -EINPROGRESS;
}

static void store_answered(struct store_io *io)
{
	struct request *r = container_of(io, struct request, u.store);

	r->error = io->error;
	request_run(r);
}

static int to_store(struct request *r)
{
	r->u.store.reactor = r->loop;
	r->u.store.done = store_answered;
	placement_submit(r->e->placement, &r->u.store);
	return -EINPROGRESS;
}

int request_store(struct request *r, enum store_op op, unsigned flags,
	uint64_t offset, uint64_t length, const struct iovec *iov, int niov)
{
	r->u.store = (struct store_io){
		.op = op,
		.flags = flags,
		.offset = offset,
		.length = length,
		.iov = iov,
		.niov = niov,
	};
	return to_store(r);
}

int request_store_status(struct request *r, uint64_t offset, uint64_t length,
	struct store_extent *extents, int nextents)
{
	r->u.store = (struct store_io){
		.op = STORE_STATUS,
		.offset = offset,
		.length = length,
		.extents = extents,
		.nextents = nextents,
	};
	return to_store(r);
}

/* --- the start ----------------------------------------------------------- */

static int step_flush(struct request *r)
{
	if (r->phase)
		return r->error;
	if (!r->loop)
		return -EAGAIN;
	r->phase = 1;
	return request_sync_all(r);
}

static bool writes(enum engine_op op)
{
	return op == ENGINE_WRITE || op == ENGINE_TRIM || op == ENGINE_ZERO;
}

static int check(const struct engine_request *req)
{
	uint64_t size = req->export->engine->placement->info.size;
	bool past = req->offset > size || req->length > size - req->offset;

	if (writes(req->op) && req->export->readonly)
		return -EROFS;
	if (req->op == ENGINE_FLUSH)
		return 0;
	if (past) /* as the NBD protocol has it */
		return req->op == ENGINE_WRITE || req->op == ENGINE_ZERO
			? -ENOSPC
			: -EINVAL;
	if ((req->op == ENGINE_READ || req->op == ENGINE_WRITE) &&
		req->length > ENGINE_MAX_REQUEST)
		return -EOVERFLOW;
	if (req->op == ENGINE_STATUS && (!req->nextents || !req->length))
		return -EINVAL;
	return 0;
}

static int (*plain_step(const struct engine_request *req))(struct request *)
{
	bool direct = req->export->cache == ENGINE_NONE;

	switch (req->op) {
	case ENGINE_READ:
		return direct ? step_direct_read : step_read;
	case ENGINE_WRITE:
		return direct ? step_direct_write : step_write;
	case ENGINE_TRIM:
	case ENGINE_ZERO:
		return step_through;
	case ENGINE_CACHE:
		return step_cache;
	case ENGINE_STATUS:
		return step_status;
	case ENGINE_FLUSH:
		break;
	}
	return step_flush;
}

/* Foreign threads: by the CPU they are on, so that few share one. */
static void find_stripe(struct request *r, const struct reactor *loop)
{
	unsigned n = loop ? loop->id % LOOP_STRIPES
			  : LOOP_STRIPES +
			(unsigned)sched_getcpu() % (STRIPES - LOOP_STRIPES);

	r->stripe = &r->e->stripe[n];
	r->own_stripe = loop && r->stripe->owner == loop;
}

void request_rewind(struct request *r)
{
	struct engine_request *req = request_front(r);

	r->step = plain_step(req);
	r->error = 0;
	r->phase = 0;
	r->synced = r->zeroes = r->durable = r->settles = false;
	r->ask = 0;
	r->asked = false;
	r->admitted = req->offset;
	r->lock.link.next = NULL;
	r->lock.shared = false;
	r->io.pos = req->offset;
	r->io.end = req->offset + req->length;
	r->io.buf = req->buf;
	r->io.iov_skip = 0;
}

static void prepare(struct request *r, struct engine_request *req)
{
	r->loop = NULL;
	r->cut = NULL;
	r->flat_payload = false;
	r->lock.waiter.wake = lock_woken;
	r->io = (struct cache_io){.waiter.wake = woken};
	request_rewind(r);
	if (req->op == ENGINE_WRITE &&
		atomic_load(&r->e->detect_zeroes) != ENGINE_DETECT_OFF &&
		request_is_zeroes(r)) {
		r->zeroes = true;
		r->step = step_through;
	}
}

static void run_task(struct reactor_task *task)
{
	request_run(container_of(task, struct request, u.task));
}

static struct reactor *next_loop(struct engine *e)
{
	unsigned n = atomic_fetch_add_explicit(
		&e->next_loop, 1, memory_order_relaxed);

	return e->loops[n % e->nloops];
}

/*
 * It has to wait: from here on it belongs to a loop, the caller's own or any.
 * It is timed by itself now. Returns like a step.
 */
static int go_on_loop(struct request *r, struct reactor *own)
{
	r->weight = 1;
	if (!r->start_ns)
		r->start_ns = reactor_now(r->e->loops[0]);
	r->io.holes = read_takes_holes(request_front(r));
	r->asks = 0;
	r->loop = own ? own : next_loop(r->e);
	r->io.reactor = r->loop;
	r->lock.waiter.reactor = r->loop;
	if (own)
		return r->step(r);
	r->u.task.fn = run_task;
	reactor_post(r->loop, &r->u.task);
	return -EINPROGRESS;
}

bool engine_submit(struct engine_request *req)
{
	struct request *r = request_of(req);
	struct engine *e = req->export->engine;
	uint64_t nth;
	int err;

	r->e = e;
	r->io.give = false;
	find_stripe(r, req->reactor);
	nth = atomic_fetch_add(&r->stripe->entered, 1);
	/* Of those that need not wait one in so many is timed for all. */
	r->weight = LATENCY_SAMPLE;
	r->start_ns = nth % LATENCY_SAMPLE ? 0 : reactor_now(e->loops[0]);
	err = atomic_load(&e->closing) ? -ESHUTDOWN : check(req);
	if (!err) {
		prepare(r, req);
		err = r->step(r);
	}
	if (err == -EAGAIN)
		err = go_on_loop(r, req->reactor);
	if (err == -EINPROGRESS) /* it may be over by now: hands off */
		return false;
	settle(r, err);
	return true;
}
