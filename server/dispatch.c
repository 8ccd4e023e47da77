/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dispatch.c: an NBD request becomes an engine request, and is answered.
 *
 * What is wrong with a request by itself is found here, before its payload is
 * received: flags that mean nothing for the command, a range outside the
 * export. The engine is asked only what it can be asked.
 */
#include <errno.h>
#include <stdlib.h>

#include "request.h"

/* FUA is valid for every command, be it only to be ignored. */
static const uint16_t flags_of[] = {
	[NBD_CMD_READ] = NBD_CMD_FLAG_FUA | NBD_CMD_FLAG_DF,
	[NBD_CMD_WRITE] = NBD_CMD_FLAG_FUA,
	[NBD_CMD_FLUSH] = NBD_CMD_FLAG_FUA,
	[NBD_CMD_TRIM] = NBD_CMD_FLAG_FUA,
	[NBD_CMD_CACHE] = NBD_CMD_FLAG_FUA,
	[NBD_CMD_WRITE_ZEROES] = NBD_CMD_FLAG_FUA | NBD_CMD_FLAG_NO_HOLE |
		NBD_CMD_FLAG_FAST_ZERO,
	[NBD_CMD_BLOCK_STATUS] = NBD_CMD_FLAG_FUA | NBD_CMD_FLAG_REQ_ONE,
};

static const enum engine_op op_of[] = {
	[NBD_CMD_READ] = ENGINE_READ,
	[NBD_CMD_WRITE] = ENGINE_WRITE,
	[NBD_CMD_FLUSH] = ENGINE_FLUSH,
	[NBD_CMD_TRIM] = ENGINE_TRIM,
	[NBD_CMD_CACHE] = ENGINE_CACHE,
	[NBD_CMD_WRITE_ZEROES] = ENGINE_ZERO,
	[NBD_CMD_BLOCK_STATUS] = ENGINE_STATUS,
};

static bool is_change(uint16_t type)
{
	return type == NBD_CMD_WRITE || type == NBD_CMD_TRIM ||
		type == NBD_CMD_WRITE_ZEROES;
}

static int check_range(const struct request *rq)
{
	uint64_t size = rq->conn->export->info.size;

	if (rq->er.offset <= size && rq->length <= size - rq->er.offset)
		return 0;
	if (rq->type == NBD_CMD_WRITE || rq->type == NBD_CMD_WRITE_ZEROES)
		return -ENOSPC;
	return -EINVAL;
}

/* With extended headers a client says where a payload follows. */
static unsigned may_have_payload(const struct request *rq)
{
	return rq->conn->extended && rq->type == NBD_CMD_WRITE
		? NBD_CMD_FLAG_PAYLOAD_LEN
		: 0;
}

int dispatch_check(const struct request *rq)
{
	const struct conn *c = rq->conn;

	if (rq->type > NBD_CMD_BLOCK_STATUS || rq->type == NBD_CMD_DISC)
		return -EINVAL;
	if (rq->flags & ~(flags_of[rq->type] | may_have_payload(rq)))
		return -EINVAL;
	if ((rq->flags & NBD_CMD_FLAG_DF) && !c->structured)
		return -EINVAL;
	if ((rq->flags & NBD_CMD_FLAG_FAST_ZERO) &&
		!c->export->info.can_fast_zero)
		return -EINVAL;
	if (rq->type == NBD_CMD_FLUSH)
		return 0;
	if (is_change(rq->type) && c->export->info.readonly)
		return -EROFS;
	if ((rq->type == NBD_CMD_READ || rq->type == NBD_CMD_WRITE) &&
		rq->length > ENGINE_MAX_REQUEST)
		return -EINVAL;
	if (rq->type == NBD_CMD_BLOCK_STATUS && (!c->contexts || !rq->length))
		return -EINVAL;
	return check_range(rq);
}

static unsigned engine_flags(const struct request *rq)
{
	unsigned flags = rq->type == NBD_CMD_READ ? ENGINE_HOLES : 0;

	if ((rq->flags & NBD_CMD_FLAG_FUA) && is_change(rq->type))
		flags |= ENGINE_FUA;
	if (rq->flags & NBD_CMD_FLAG_NO_HOLE)
		flags |= ENGINE_NO_HOLE;
	if (rq->flags & NBD_CMD_FLAG_FAST_ZERO)
		flags |= ENGINE_FAST_ZERO;
	if (rq->flags & NBD_CMD_FLAG_REQ_ONE)
		flags |= ENGINE_REQ_ONE;
	return flags;
}

/* The request has left the engine, or never was there. */
static void finish(struct request *rq)
{
	struct conn *c = rq->conn;

	request_drop_payload(rq);
	rq->holds_data = rq->type == NBD_CMD_READ && !rq->er.error;
	if (rq->er.error)
		conn_count(&c->stats.errors, 1);
	else if (is_change(rq->type))
		c->changes++;
	else if (rq->type == NBD_CMD_FLUSH && rq->mark > c->flushed)
		c->flushed = rq->mark;
	if (rq->own)
		c->flushing = false;
	if (rq->own || c->state == CONN_DEAD)
		request_free(rq);
	else
		reply_queue(rq);
}

static void dispatch_done(struct engine_request *er)
{
	struct request *rq = container_of(er, struct request, er);
	struct conn *c = rq->conn;

	c->pending--;
	finish(rq);
	conn_wake(c);
}

void dispatch_prepare(struct request *rq)
{
	struct conn *c = rq->conn;

	rq->er.op = op_of[rq->type];
	rq->er.flags = engine_flags(rq);
	rq->er.length = rq->length;
	rq->er.export = c->export->export;
	rq->er.client = c->client;
	rq->er.reactor = c->worker->reactor;
	rq->er.done = dispatch_done;
	rq->er.buf = NULL;
	rq->er.extents = NULL;
	rq->er.nextents = 0;
	if (rq->type == NBD_CMD_FLUSH) {
		rq->er.offset = 0;
		rq->er.length = 0;
		rq->mark = c->changes;
	}
}

static int status_room(struct request *rq)
{
	rq->extents = calloc(request_extents(rq), sizeof(*rq->extents));
	if (!rq->extents)
		return -ENOMEM;
	rq->er.extents = rq->extents;
	rq->er.nextents = request_extents(rq);
	return 0;
}

/* Is there nothing the engine would have to wait for? What the cache holds is
 * seen when the answer is made. */
static bool needs_no_engine(const struct request *rq)
{
	return rq->type == NBD_CMD_BLOCK_STATUS &&
		!(rq->conn->contexts & 1U << NBD_CONTEXT_ALLOCATION);
}

static void count(struct conn *c, const struct request *rq)
{
	conn_count(&c->stats.requests, 1);
	if (rq->type == NBD_CMD_READ)
		conn_count(&c->stats.read_bytes, rq->length);
	else if (rq->type == NBD_CMD_WRITE)
		conn_count(&c->stats.write_bytes, rq->length);
}

void dispatch_submit(struct request *rq)
{
	struct conn *c = rq->conn;

	if (rq->type == NBD_CMD_BLOCK_STATUS && status_room(rq)) {
		dispatch_fail(rq, -ENOMEM);
		return;
	}
	count(c, rq);
	if (needs_no_engine(rq)) {
		finish(rq);
		return;
	}
	c->pending++;
	if (!engine_submit(&rq->er))
		return;
	c->pending--;
	finish(rq);
}

void dispatch_fail(struct request *rq, int error)
{
	rq->er.error = error;
	finish(rq);
}

int dispatch_own_flush(struct conn *c)
{
	struct request *rq = request_new(c);

	if (!rq)
		return -ENOMEM;
	rq->type = NBD_CMD_FLUSH;
	rq->flags = 0;
	rq->length = 0;
	rq->own = true;
	engine_request_init(&rq->er);
	dispatch_prepare(rq);
	c->flushing = true;
	dispatch_submit(rq);
	return 0;
}
