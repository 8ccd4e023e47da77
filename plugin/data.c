/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.c: the requests; nbdkit's thread waits until its request is done.
 *
 *   engine_submit() ── true: a hit, done in this thread ───────────> answer
 *        └─ false: state 0 ── futex wait ──┐
 *              loop: done() ── state 1 ── wake ────────────────────> answer
 *
 *  1. A hit costs no allocation, no lock of ours and no other thread: the
 *     request lies on the caller's stack and nbdkit's buffer is the payload.
 *  2. The waiter may be gone as soon as done() stored DONE: after that only
 *     its address is used, for a wake that a stranger would take as spurious.
 *  3. A request longer than the engine takes goes in pieces, in order.
 *  4. Every error is set for nbdkit to send and said once; ENOTSUP is an
 *     answer, not a fault, and is not said.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin.h"

enum {
	WAITER_RUNNING,
	WAITER_ASLEEP,
	WAITER_DONE
};

struct waiter {
	atomic_uint state;
	struct engine_request req;
};

static void futex(atomic_uint *word, int op, unsigned value)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void waiter_done(struct engine_request *req)
{
	struct waiter *w = container_of(req, struct waiter, req);

	if (atomic_exchange(&w->state, WAITER_DONE) == WAITER_ASLEEP)
		futex(&w->state, FUTEX_WAKE, 1);
}

static void waiter_sleep(struct waiter *w)
{
	unsigned state = WAITER_RUNNING;

	atomic_compare_exchange_strong(&w->state, &state, WAITER_ASLEEP);
	while (atomic_load(&w->state) != WAITER_DONE)
		futex(&w->state, FUTEX_WAIT, WAITER_ASLEEP);
}

static void waiter_init(struct waiter *w, struct connection *c,
	enum engine_op op, unsigned flags)
{
	struct engine_request *req = &w->req;

	engine_request_init(req);
	atomic_init(&w->state, WAITER_RUNNING);
	req->op = op;
	req->flags = flags;
	req->export = c->export;
	req->client = c->client;
	req->reactor = NULL;
	req->done = waiter_done;
}

/* Submit and wait; 0 or a negative errno. */
static int waiter_run(struct waiter *w)
{
	if (!engine_submit(&w->req))
		waiter_sleep(w);
	return w->req.error;
}

static const char *op_name(enum engine_op op)
{
	static const char *const names[] = {
		[ENGINE_READ] = "read",
		[ENGINE_WRITE] = "write",
		[ENGINE_FLUSH] = "flush",
		[ENGINE_TRIM] = "trim",
		[ENGINE_ZERO] = "zero",
		[ENGINE_CACHE] = "cache",
		[ENGINE_STATUS] = "status",
	};

	return names[op];
}

/* Hand a negative errno to nbdkit. */
static int fail(enum engine_op op, uint64_t offset, uint64_t length, int err)
{
	if (err != -ENOTSUP && op == ENGINE_FLUSH)
		nbdkit_error("flush: %s", strerror(-err));
	else if (err != -ENOTSUP)
		nbdkit_error("%s of %" PRIu64 " bytes at %" PRIu64 ": %s",
			op_name(op), length, offset, strerror(-err));
	nbdkit_set_error(-err);
	return -1;
}

static int run(struct connection *c, enum engine_op op, unsigned flags,
	void *buf, uint64_t offset, uint64_t length)
{
	struct waiter w;
	int err;

	waiter_init(&w, c, op, flags);
	w.req.buf = buf;
	w.req.offset = offset;
	w.req.length = length;
	err = waiter_run(&w);
	return err ? fail(op, offset, length, err) : 0;
}

/* READ, WRITE and CACHE, which have a longest length. */
static int run_pieces(struct connection *c, enum engine_op op, unsigned flags,
	char *buf, uint64_t offset, uint64_t length)
{
	while (length > ENGINE_MAX_REQUEST) {
		if (run(c, op, flags, buf, offset, ENGINE_MAX_REQUEST) == -1)
			return -1;
		offset += ENGINE_MAX_REQUEST;
		length -= ENGINE_MAX_REQUEST;
		buf = buf ? buf + ENGINE_MAX_REQUEST : NULL;
	}
	return run(c, op, flags, buf, offset, length);
}

/*
 * After a change completed, before it is answered: a flush that clears the
 * mark then covers it. The line is shared by threads, so rarely stored to.
 */
static int changed(struct connection *c, int answer)
{
	if (!atomic_load_explicit(&c->wrote, memory_order_relaxed))
		atomic_store(&c->wrote, true);
	return answer;
}

static unsigned engine_flags(uint32_t flags)
{
	return (flags & NBDKIT_FLAG_FUA ? ENGINE_FUA : 0) |
		(flags & NBDKIT_FLAG_FAST_ZERO ? ENGINE_FAST_ZERO : 0) |
		(flags & NBDKIT_FLAG_REQ_ONE ? ENGINE_REQ_ONE : 0);
}

int data_pread(void *handle, void *buf, uint32_t count, uint64_t offset,
	uint32_t flags)
{
	return run_pieces(
		handle, ENGINE_READ, engine_flags(flags), buf, offset, count);
}

/* The engine only reads the payload of a WRITE. */
int data_pwrite(void *handle, const void *buf, uint32_t count, uint64_t offset,
	uint32_t flags)
{
	return changed(handle,
		run_pieces(handle, ENGINE_WRITE, engine_flags(flags),
			(void *)(uintptr_t)buf, offset, count));
}

int data_flush(void *handle, uint32_t flags)
{
	struct connection *c = handle;
	bool wrote = atomic_exchange(&c->wrote, false);
	int answer = run(c, ENGINE_FLUSH, engine_flags(flags), NULL, 0, 0);

	return answer == -1 && wrote ? changed(c, answer) : answer;
}

int data_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	return changed(handle,
		run(handle, ENGINE_TRIM, engine_flags(flags), NULL, offset,
			count));
}

/* nbdkit turns the wire's NO_HOLE round. */
int data_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	unsigned f = engine_flags(flags);

	if (!(flags & NBDKIT_FLAG_MAY_TRIM))
		f |= ENGINE_NO_HOLE;
	return changed(
		handle, run(handle, ENGINE_ZERO, f, NULL, offset, count));
}

int data_cache(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	return run_pieces(
		handle, ENGINE_CACHE, engine_flags(flags), NULL, offset, count);
}

/* The engine may stop short of the end: nbdkit takes that as an answer, the
 * client asks again. */
int data_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
	struct nbdkit_extents *extents)
{
	struct engine_extent found[64];
	struct waiter w;
	int err;

	waiter_init(&w, handle, ENGINE_STATUS, engine_flags(flags));
	w.req.buf = NULL;
	w.req.offset = offset;
	w.req.length = count;
	w.req.extents = found;
	w.req.nextents = sizeof(found) / sizeof(found[0]);
	err = waiter_run(&w);
	if (err)
		return fail(ENGINE_STATUS, offset, count, err);
	for (unsigned i = 0; i < w.req.nextents; i++) {
		if (nbdkit_add_extent(extents, offset, found[i].length,
			    found[i].flags) == -1)
			return -1;
		offset += found[i].length;
	}
	return 0;
}
