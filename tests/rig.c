/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.c: see rig.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig.h"

#define PATIENCE (300 * NSEC_PER_SEC) /* simulated */

/* --- life ---------------------------------------------------------------- */

struct rig *rig_new(uint64_t size)
{
	struct rig *r = calloc(1, sizeof(*r));
	char spec[96];

	assert_non_null(r);
	r->size = size;
	r->fd = memfd_create("weir-rig", 0);
	assert_true(r->fd >= 0);
	assert_int_equal(ftruncate(r->fd, (off_t)size), 0);
	r->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	assert_ptr_not_equal(r->map, MAP_FAILED);
	data_fill(r->map, 1, 0, size);
	engine_config_init(&r->config);
	snprintf(spec, sizeof(spec),
		"fault:record=on,volatile:/proc/self/fd/%d", r->fd);
	r->config.store = strdup(spec);
	r->config.cache_size = MIB;
	r->config.dirty_expire_ns = 3600 * NSEC_PER_SEC;
	return r;
}

void rig_open(struct rig *r)
{
	struct error error = {""};

	r->loop = reactor_sim_new(r->size);
	assert_non_null(r->loop);
	if (engine_config_check(&r->config, &error) != 0)
		fail_msg("%s", error.text);
	if (engine_open(&r->config, &r->loop, 1, &r->engine, &error) != 0)
		fail_msg("%s", error.text);
	r->export = engine_export_new(r->engine, false, ENGINE_WRITEBACK);
	assert_non_null(r->export);
	r->store = engine_store(r->engine);
}

static void down(struct engine *e, int error, void *arg)
{
	struct rig *r = arg;

	assert_ptr_equal(e, r->engine);
	r->down = true;
	r->down_error = error;
}

void rig_close(struct rig *r)
{
	engine_close(r->engine);
	reactor_free(r->loop);
	engine_config_free(&r->config);
	munmap(r->map, r->size);
	close(r->fd);
	free(r);
}

void rig_free(struct rig *r)
{
	rig_mend(r);
	assert_int_equal(rig_shutdown(r, 0), 0);
	rig_close(r);
}

static void step_until(struct rig *r, const bool *flag)
{
	uint64_t end = reactor_now(r->loop) + PATIENCE;

	while (!*flag) {
		if (reactor_now(r->loop) > end)
			fail_msg("not answered in time");
		if (!reactor_sim_step(r->loop))
			fail_msg("never answered");
	}
}

int rig_shutdown(struct rig *r, uint64_t timeout_ns)
{
	r->down = false;
	engine_shutdown(r->engine, timeout_ns, down, r);
	assert_false(r->down); /* no callback inside the call */
	step_until(r, &r->down);
	return r->down_error;
}

void rig_run(struct rig *r, uint64_t ns)
{
	reactor_sim_run_until(r->loop, reactor_now(r->loop) + ns);
}

/* --- asking -------------------------------------------------------------- */

static void answered(struct engine_request *req)
{
	struct ask *a = container_of(req, struct ask, req);

	assert_false(a->answered);
	a->answered = true;
}

struct ask *ask_with(struct rig *r, struct engine_export *x, enum engine_op op,
	unsigned flags, uint64_t offset, uint64_t length, unsigned char *buf)
{
	struct ask *a = calloc(1, sizeof(*a));

	assert_non_null(a);
	engine_request_init(&a->req);
	a->req.op = op;
	a->req.flags = flags;
	a->req.offset = offset;
	a->req.length = length;
	a->req.export = x;
	a->req.reactor = r->loop;
	a->req.done = answered;
	a->req.buf = a->buf = buf;
	if (engine_submit(&a->req)) {
		assert_false(a->answered);
		a->answered = a->inline_hit = true;
	}
	return a;
}

struct ask *ask_of(struct rig *r, struct engine_export *x, enum engine_op op,
	uint32_t id, unsigned flags, uint64_t offset, uint64_t length)
{
	unsigned char *buf = NULL;

	if (op == ENGINE_WRITE || op == ENGINE_READ) {
		buf = calloc(1, length);
		assert_non_null(buf);
	}
	if (op == ENGINE_WRITE)
		data_fill(buf, id, offset, length);
	return ask_with(r, x, op, flags, offset, length, buf);
}

struct ask *ask(struct rig *r, enum engine_op op, uint32_t id, unsigned flags,
	uint64_t offset, uint64_t length)
{
	return ask_of(r, r->export, op, id, flags, offset, length);
}

int ask_end(struct rig *r, struct ask *a)
{
	int error;

	step_until(r, &a->answered);
	error = a->req.error;
	free(a->buf);
	free(a);
	return error;
}

int rig_write(struct rig *r, uint32_t id, uint64_t offset, uint64_t length)
{
	return ask_end(r, ask(r, ENGINE_WRITE, id, 0, offset, length));
}

int rig_do(struct rig *r, enum engine_op op, unsigned flags, uint64_t offset,
	uint64_t length)
{
	return ask_end(r, ask(r, op, 0, flags, offset, length));
}

int rig_flush(struct rig *r)
{
	return rig_do(r, ENGINE_FLUSH, 0, 0, 0);
}

bool rig_sees_through(struct rig *r, struct engine_export *x, uint32_t id,
	uint64_t offset, uint64_t length)
{
	struct ask *a = ask_of(r, x, ENGINE_READ, 0, 0, offset, length);
	bool same;

	step_until(r, &a->answered);
	assert_int_equal(a->req.error, 0);
	same = data_is(a->buf, id, offset, length);
	ask_end(r, a);
	return same;
}

bool rig_sees(struct rig *r, uint32_t id, uint64_t offset, uint64_t length)
{
	return rig_sees_through(r, r->export, id, offset, length);
}

bool rig_durable(struct rig *r, uint32_t id, uint64_t offset, uint64_t length)
{
	return data_is(r->map + offset, id, offset, length);
}

/* --- the store ----------------------------------------------------------- */

void rig_record(struct rig *r)
{
	store_fault_record(r->store, true);
}

static void read_log(struct rig *r)
{
	r->nlog = store_fault_log(r->store, r->log, RIG_RECORDS);
	assert_true(r->nlog <= RIG_RECORDS);
}

unsigned rig_count(struct rig *r, enum store_op op)
{
	unsigned n = 0;

	read_log(r);
	for (size_t i = 0; i < r->nlog; i++)
		n += r->log[i].op == op;
	return n;
}

uint64_t rig_bytes(struct rig *r, enum store_op op)
{
	uint64_t n = 0;

	read_log(r);
	for (size_t i = 0; i < r->nlog; i++) {
		if (r->log[i].op == op)
			n += r->log[i].length;
	}
	return n;
}

bool rig_within(
	struct rig *r, enum store_op op, uint64_t offset, uint64_t length)
{
	read_log(r);
	for (size_t i = 0; i < r->nlog; i++) {
		const struct store_fault_record *c = &r->log[i];

		if (c->op == op &&
			(c->offset < offset ||
				c->offset + c->length > offset + length))
			return false;
	}
	return true;
}

void rig_break(struct rig *r, enum store_op op, uint64_t count)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(op),
		.count = count,
	};

	store_fault_set(r->store, &rule, 1);
}

void rig_break_range(
	struct rig *r, enum store_op op, uint64_t offset, uint64_t length)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(op),
		.offset = offset,
		.length = length,
	};

	store_fault_set(r->store, &rule, 1);
}

void rig_hang(struct rig *r, enum store_op op)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_HANG,
		.ops = STORE_FAULT_OP(op),
	};

	store_fault_set(r->store, &rule, 1);
}

void rig_mend(struct rig *r)
{
	store_fault_set(r->store, NULL, 0);
	store_fault_release(r->store);
}
