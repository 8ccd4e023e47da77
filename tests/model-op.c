/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-op.c: random requests: which, where, how long, from whom.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static const char *const op_names[] = {
	"read", "write", "flush", "trim", "zero", "cache", "status"};

void op_print(const struct op *op, const char *what)
{
	const struct engine_request *r = &op->req;

	printf("# %" PRIu64 ".%03" PRIu64 "ms %s #%" PRIu64 " %s %" PRIu64
	       "+%" PRIu64 " export %u flags %u",
		(reactor_now(op->run->reactor) / 1000000) - 1000,
		reactor_now(op->run->reactor) / 1000 % 1000, what, op->number,
		op_names[r->op], r->offset, r->length, op->export, r->flags);
	if (r->op == ENGINE_WRITE)
		printf(" id %" PRIu32, op->change.id);
	if (strcmp(what, "answer") == 0)
		printf(" -> %d", r->error);
	printf("\n");
	fflush(stdout);
}

/* --- sending ------------------------------------------------------------- */

static void op_done(struct engine_request *req)
{
	struct op *op = container_of(req, struct op, req);

	if (op->submitting)
		run_fail(op->run, "#%" PRIu64 ": done ran in engine_submit()",
			op->number);
	op_answered(op);
}

static void op_send(struct op *op)
{
	struct run *run = op->run;

	op->begun_ns = reactor_now(run->reactor);
	op->late = run->shutting_down;
	op->change.fragile = run->plan.faults & (FAULT_SHORT | FAULT_WRITE) &&
		(op->req.op != ENGINE_WRITE || op_zeroes(op) ||
			run->plan.mode[op->export] == ENGINE_NONE);
	if (op_is_change(op) && !op_refused(op)) {
		shadow_begin(run->shadow, &op->change);
		op->begun = op->change.begun;
	} else {
		op->begun = shadow_tick(run->shadow);
	}
	list_push_tail(&run->inflight, &op->link);
	run->ninflight++;
	if (run->verbose)
		op_print(op, "submit");
	op->submitting = true;
	if (engine_submit(&op->req))
		op_answered(op);
	else
		op->submitting = false;
}

static struct op *op_new(
	struct run *run, enum engine_op type, uint64_t offset, uint64_t length)
{
	struct op *op = calloc(1, sizeof(*op));

	assert(op);
	op->run = run;
	op->number = ++run->op_number;
	list_init(&op->link);
	engine_request_init(&op->req);
	op->req.op = type;
	op->req.offset = offset;
	op->req.length = length;
	op->req.export = run->export[0];
	op->req.reactor = run->reactor;
	op->req.done = op_done;
	op->req.extents = op->extents;
	op->req.nextents = sizeof(op->extents) / sizeof(op->extents[0]);
	op->change.offset = offset;
	op->change.length = length;
	op->change.trim = type == ENGINE_TRIM;
	if (type == ENGINE_WRITE)
		op->change.id = ++run->last_id;
	return op;
}

/* --- payloads ------------------------------------------------------------ */

static void fill_iov(struct op *op)
{
	uint64_t at = op->req.offset, end = at + op->req.length;

	for (unsigned i = 0; i < op->req.niov; i++) {
		const struct iovec *v = &op->req.iov[i];

		data_fill(v->iov_base, op->change.id, at, v->iov_len);
		at += v->iov_len;
	}
	if (at != end)
		run_fail(op->run,
			"#%" PRIu64 ": payload of %" PRIu64
			" bytes instead of %" PRIu64,
			op->number, at - op->req.offset, op->req.length);
}

static void own_buffer(struct op *op)
{
	op->buf = malloc(op->req.length);
	assert(op->buf);
	op->req.buf = op->buf;
	if (op->req.op == ENGINE_WRITE)
		data_fill(
			op->buf, op->change.id, op->req.offset, op->req.length);
	else
		memset(op->buf, 0xee, op->req.length);
}

/* Give the request memory: its own, or the engine's. */
static void give_memory(struct op *op, bool engines)
{
	if (op->req.op == ENGINE_READ && !engines) {
		own_buffer(op);
	} else if (op->req.op == ENGINE_WRITE) {
		op->payload = engines && !op_refused(op) &&
			engine_payload(&op->req) == 0;
		if (op->payload)
			fill_iov(op);
		else
			own_buffer(op);
	}
}

/* --- random -------------------------------------------------------------- */

static enum engine_op random_type(struct run *run)
{
	const unsigned *w = run->plan.weight;
	unsigned sum = 0, type = 0;
	uint64_t n;

	for (unsigned i = 0; i < 7; i++)
		sum += w[i];
	n = pick(run, sum);
	while (n >= w[type])
		n -= w[type++];
	return (enum engine_op)type;
}

static uint64_t random_length(struct run *run)
{
	const struct plan *p = &run->plan;

	switch (pick(run, 8)) {
	case 0:
		return 1 + pick(run, 2 * SECTOR);
	case 1:
		return SECTOR * (1 + pick(run, 16));
	case 2:
	case 3:
		return p->block_size * (1 + pick(run, 4));
	case 4:
		return 1 + pick(run, 3 * p->block_size);
	case 5:
		return 1 + pick(run, 3 * (uint64_t)p->page_size);
	case 6:
		return p->dirty_limit + pick(run, p->dirty_limit);
	default:
		return p->page_size * (1 + pick(run, 2));
	}
}

/* Mostly near a few places, so that ranges overlap. */
static uint64_t random_offset(struct run *run)
{
	const struct plan *p = &run->plan;
	uint64_t offset = pick(run, p->size);

	if (chance(run, 50))
		offset = offset % 4 * p->page_size + pick(run, 4 * SECTOR);
	switch (pick(run, 4)) {
	case 0:
		return offset;
	case 1:
		return offset - offset % SECTOR;
	case 2:
		return offset - offset % p->block_size;
	default:
		return offset - offset % p->page_size;
	}
}

static void random_range(struct run *run, uint64_t *offset, uint64_t *length)
{
	uint64_t size = run->plan.size;

	*length = random_length(run);
	*offset = random_offset(run) % size;
	if (chance(run, run->plan.follow))
		*offset = run->last_end % size;
	if (*length > size)
		*length = size;
	if (chance(run, 5)) /* the end */
		*offset = size - *length;
	if (chance(run, 2)) /* and over it */
		*offset = chance(run, 50) ? size - pick(run, *length)
					  : UINT64_MAX - SECTOR + 1;
	else if (*length > size - *offset)
		*length = size - *offset;
	run->last_end = *offset + *length;
}

static unsigned random_flags(struct run *run, enum engine_op type)
{
	unsigned flags = 0;

	if (type == ENGINE_WRITE || type == ENGINE_TRIM || type == ENGINE_ZERO)
		flags |= chance(run, 12) ? ENGINE_FUA : 0;
	if (type == ENGINE_ZERO) {
		flags |= chance(run, 40) ? ENGINE_NO_HOLE : 0;
		flags |= chance(run, 10) ? ENGINE_FAST_ZERO : 0;
	}
	if (type == ENGINE_STATUS)
		flags |= chance(run, 30) ? ENGINE_REQ_ONE : 0;
	return flags;
}

void op_random(struct run *run)
{
	enum engine_op type = random_type(run);
	uint64_t offset = 0, length = 0;
	struct op *op;

	if (type != ENGINE_FLUSH)
		random_range(run, &offset, &length);
	op = op_new(run, type, offset, length);
	if (chance(run, 15))
		op->change.id = 0; /* also of a plain write */
	op->export = (unsigned)pick(run, run->plan.exports);
	op->req.export = run->export[op->export];
	op->req.flags = random_flags(run, type);
	if (chance(run, 80))
		op->req.client = run->client[pick(run, run->plan.clients)];
	if (chance(run, 30))
		op->req.reactor = NULL;
	if (op_is_change(op) && !op_refused(op) &&
		shadow_crowded(run->shadow, offset, length))
		op->req.op = ENGINE_READ;
	op->req.flags = random_flags(run, op->req.op);
	give_memory(op, chance(run, 50));
	if (op->payload && chance(run, 30))
		list_push_tail(&run->unsent, &op->link);
	else
		op_send(op);
}

void op_start(struct run *run, enum engine_op type, unsigned flags,
	uint64_t offset, uint64_t length)
{
	struct op *op = op_new(run, type, offset, length);

	op->req.flags = flags;
	give_memory(op, true);
	op_send(op);
}

void op_send_one(struct run *run, bool give_up)
{
	struct list *node = list_pop_head(&run->unsent);
	struct op *op = node ? list_entry(node, struct op, link) : NULL;

	if (!op)
		return;
	if (!give_up && !op_refused(op) &&
		shadow_crowded(run->shadow, op->req.offset, op->req.length)) {
		list_push_tail(&run->unsent, &op->link);
		return;
	}
	if (!give_up) {
		op_send(op);
		return;
	}
	if (run->verbose)
		op_print(op, "give up");
	engine_release(&op->req);
	free(op);
}
