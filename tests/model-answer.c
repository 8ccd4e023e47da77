/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-answer.c: is an answer allowed?
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

void run_fail(struct run *run, const char *fmt, ...)
{
	va_list args;

	if (run->failure[0])
		return;
	va_start(args, fmt);
	vsnprintf(run->failure, sizeof(run->failure), fmt, args);
	va_end(args);
	if (run->verbose)
		printf("# FAILED: %s\n", run->failure);
}

static void op_fail(struct op *op, const char *why)
{
	run_fail(op->run, "#%" PRIu64 ": %s", op->number, why);
}

/* --- errors -------------------------------------------------------------- */

bool op_is_change(const struct op *op)
{
	return op->req.op == ENGINE_WRITE || op->req.op == ENGINE_TRIM ||
		op->req.op == ENGINE_ZERO;
}

bool op_zeroes(const struct op *op)
{
	return op->req.op == ENGINE_ZERO ||
		(op->req.op == ENGINE_WRITE && !op->change.id &&
			op->run->plan.detect != ENGINE_DETECT_OFF);
}

static bool out_of_range(const struct op *op)
{
	uint64_t size = op->run->plan.size;

	return op->req.offset > size || op->req.length > size - op->req.offset;
}

bool op_refused(const struct op *op)
{
	return op->late || out_of_range(op) ||
		(op_is_change(op) && op->run->plan.readonly[op->export]);
}

/* Past the end these lack space, the others are no valid request. */
static bool extends(const struct op *op)
{
	return op->req.op == ENGINE_WRITE || op->req.op == ENGINE_ZERO;
}

static bool refusal_fits(const struct op *op)
{
	switch (op->req.error) {
	case -ESHUTDOWN:
		return op->late;
	case -EINVAL:
		return out_of_range(op) && !extends(op);
	case -ENOSPC:
		return out_of_range(op) && extends(op);
	case -EROFS:
		return op->run->plan.readonly[op->export] && op_is_change(op);
	default:
		return false;
	}
}

/* Direct writes are nowhere but on the store: if a flush failed after them
 * they may be lost, and no flush may then succeed. */
static bool may_be_lost(const struct run *run)
{
	/* A flush of a pool writes the map, too. */
	unsigned how =
		FAULT_FLUSH | (run->plan.pool ? FAULT_WRITE | FAULT_SHORT : 0);

	for (unsigned i = 0; i < run->plan.exports; i++) {
		if (run->plan.mode[i] == ENGINE_NONE)
			return run->suffered & how;
	}
	return false;
}

/* May the store's trouble have come through to this request? */
static bool eio_fits(const struct op *op)
{
	const struct run *run = op->run;
	enum engine_cache_mode mode = run->plan.mode[op->export];
	unsigned how = run->suffered;

	if (run->power_off)
		return true;
	if (run->must_flush)
		return may_be_lost(run);
	switch (op->req.op) {
	case ENGINE_READ:
	case ENGINE_CACHE:
	case ENGINE_STATUS:
		if (mode != ENGINE_NONE)
			how &= FAULT_READ;
		break;
	case ENGINE_WRITE:
		if (mode != ENGINE_WRITEBACK || op->req.flags & ENGINE_FUA ||
			reactor_now(run->reactor) - run->suffered_ns >=
				run->plan.error_timeout_ns)
			break;
		how &= FAULT_READ; /* of the rest of a block */
		break;
	default:
		break;
	}
	return how & FAULT_ERRORS;
}

static bool error_fits(const struct op *op)
{
	switch (op->req.error) {
	case 0:
		return true;
	case -EIO:
		return eio_fits(op);
	case -ENOSPC: /* of the pool */
		if (op->run->plan.tight && op_is_change(op))
			return true;
		/* of the store, where it is asked in the call */
		return eio_fits(op) && op_is_change(op) &&
			(op->req.op != ENGINE_WRITE ||
				op->run->plan.mode[op->export] == ENGINE_NONE);
	case -ENOTSUP:
		return op->req.flags & ENGINE_FAST_ZERO;
	case -ESHUTDOWN:
		return op->run->shut_down && op->run->shutdown_error;
	default:
		return false;
	}
}

/* --- reads --------------------------------------------------------------- */

/* The data of a read, in one piece. */
static unsigned char *gather(struct op *op)
{
	unsigned char *data = malloc(op->req.length);
	uint64_t at = 0;

	assert(data);
	if (op->buf) {
		memcpy(data, op->buf, op->req.length);
		return data;
	}
	for (unsigned i = 0; i < op->req.niov; i++) {
		const struct iovec *v = &op->req.iov[i];

		if (v->iov_len > op->req.length - at) {
			op_fail(op, "a read's iov is too long");
			break;
		}
		memcpy(data + at, v->iov_base, v->iov_len);
		at += v->iov_len;
	}
	if (at < op->req.length)
		op_fail(op, "a read's iov is too short");
	return data;
}

static void judge_read(struct op *op)
{
	struct run *run = op->run;
	unsigned char *data = gather(op);
	char why[1600];

	if (!shadow_read(run->shadow, op->begun, op->req.offset, op->req.length,
		    data, why, sizeof(why)))
		op_fail(op, why);
	if (op->buf) {
		free(data);
		return;
	}
	op->copy = data;
}

void op_let_go(struct run *run)
{
	struct list *node = list_pop_head(&run->held);
	struct op *op = node ? list_entry(node, struct op, link) : NULL;
	unsigned char *now;

	if (!op)
		return;
	now = gather(op);
	if (memcmp(now, op->copy, op->req.length) != 0)
		op_fail(op, "the data of an answered read changed");
	free(now);
	engine_release(&op->req);
	free(op->copy);
	free(op);
}

static void judge_status(struct op *op)
{
	uint64_t at = op->req.offset, end = at + op->req.length;

	if (!op->req.nextents)
		op_fail(op, "a status without extents");
	for (unsigned i = 0; i < op->req.nextents && at < end; i++) {
		uint64_t length = op->extents[i].length;

		if (!length)
			op_fail(op, "an empty extent");
		if (length > end - at)
			length = end - at;
		if (op->extents[i].flags & ENGINE_ZEROES &&
			!shadow_may_be_zero(
				op->run->shadow, op->begun, at, length))
			op_fail(op, "an extent of zeroes that is not");
		at += length;
	}
}

/* --- changes and flushes ------------------------------------------------- */

static enum change_end how_it_ended(const struct op *op)
{
	switch (op->req.error) {
	case 0:
		return op->req.flags & ENGINE_FUA ? CHANGE_DURABLE
						  : CHANGE_DONE;
	case -ENOTSUP:
	case -ESHUTDOWN:
		return CHANGE_NOT;
	default:
		if (op->run->plan.mode[op->export] == ENGINE_NONE ||
			op->req.op != ENGINE_WRITE || op_zeroes(op))
			return CHANGE_MIXED;
		return CHANGE_MAYBE;
	}
}

static void check_durable(struct op *op)
{
	struct run *run = op->run;
	char why[1600], line[1700];

	if (shadow_durable(run->shadow, image_cut(run), why, sizeof(why)))
		return;
	snprintf(line, sizeof(line), "not durable: %s", why);
	op_fail(op, line);
}

static void judge_change(struct op *op)
{
	if (op->req.op == ENGINE_WRITE && op->buf)
		memset(op->buf, 0xee, op->req.length);
	shadow_end(op->run->shadow, &op->change, how_it_ended(op));
	if (!op->req.error && op->req.flags & ENGINE_FUA)
		check_durable(op);
}

static void judge_flush(struct op *op)
{
	uint64_t oldest = op->begun;

	list_for_each (node, &op->run->inflight) {
		const struct op *other = list_entry(node, struct op, link);

		if (other->begun < oldest)
			oldest = other->begun;
	}
	shadow_flushed(op->run->shadow, op->begun, oldest);
	check_durable(op);
}

/* --- all together -------------------------------------------------------- */

static void judge(struct op *op)
{
	struct run *run = op->run;
	char line[80];

	if (op_refused(op)) {
		if (!refusal_fits(op)) {
			snprintf(line, sizeof(line), "refused with error %d",
				op->req.error);
			op_fail(op, line);
		}
		return;
	}
	if (!error_fits(op)) {
		snprintf(line, sizeof(line), "unexpected error %d",
			op->req.error);
		op_fail(op, line);
	}
	if (run->must_flush && op->req.error)
		run->lost = true;
	if (op_is_change(op))
		judge_change(op);
	else if (op->req.error)
		return;
	else if (op->req.op == ENGINE_READ)
		judge_read(op);
	else if (op->req.op == ENGINE_FLUSH)
		judge_flush(op);
	else if (op->req.op == ENGINE_STATUS)
		judge_status(op);
}

void op_answered(struct op *op)
{
	list_remove(&op->link);
	op->run->ninflight--;
	if (op->run->verbose)
		op_print(op, "answer");
	judge(op);
	if (op->copy) {
		list_push_tail(&op->run->held, &op->link);
		return;
	}
	free(op->buf);
	free(op);
}
