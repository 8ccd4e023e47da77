/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-fault.c: the store goes wrong, and gets well again.
 */
#include <errno.h>
#include <stdio.h>

#include "model.h"
#include "store/fault.h"

#define WRITES                                                                 \
	(STORE_FAULT_OP(STORE_WRITE) | STORE_FAULT_OP(STORE_TRIM) |            \
		STORE_FAULT_OP(STORE_ZERO))

static const struct {
	enum model_fault fault;
	enum store_fault_action action;
	unsigned ops;
} kinds[MODEL_RULES] = {
	{FAULT_READ, STORE_FAULT_ERROR, STORE_FAULT_OP(STORE_READ)},
	{FAULT_WRITE, STORE_FAULT_ERROR, WRITES},
	{FAULT_FLUSH, STORE_FAULT_ERROR, STORE_FAULT_OP(STORE_FLUSH)},
	{FAULT_SHORT, STORE_FAULT_SHORT, WRITES},
	{FAULT_DELAY, STORE_FAULT_DELAY, 0},
	{FAULT_HANG, STORE_FAULT_HANG, 0},
};

static struct store_fault_rule random_rule(struct run *run, unsigned kind)
{
	struct store_fault_rule r = {
		.action = kinds[kind].action,
		.ops = kinds[kind].ops,
		.every = 1 + pick(run, 4),
		.skip = pick(run, 3),
	};

	if (chance(run, 50) || r.action == STORE_FAULT_HANG)
		r.count = 1 + pick(run, 3);
	if (chance(run, 30) && kinds[kind].fault != FAULT_FLUSH) {
		r.offset = pick(run, run->store_size);
		r.length = 1 + pick(run, run->store_size);
	}
	if (chance(run, 15) && kinds[kind].fault == FAULT_WRITE)
		r.error = -ENOSPC;
	/* Forgetful for ever it would be written to for ever. */
	if (chance(run, 40) && kinds[kind].fault == FAULT_FLUSH) {
		r.error = -ESTALE;
		r.count = 1 + pick(run, 3);
	}
	if (r.action == STORE_FAULT_DELAY) {
		r.delay_ns = 1 + pick(run, 100 * NSEC_PER_MSEC);
		r.count = 0;
	}
	return r;
}

void fault_change(struct run *run)
{
	struct store *s = engine_store(run->engine);
	struct store_fault_rule rules[MODEL_RULES];
	unsigned n = 0;

	run->active = 0;
	for (unsigned i = 0; i < MODEL_RULES; i++) {
		if (!(run->plan.faults & kinds[i].fault) || chance(run, 50))
			continue;
		rules[n++] = random_rule(run, i);
		run->active |= kinds[i].fault;
	}
	if (!(run->suffered & FAULT_ERRORS))
		run->suffered_ns = reactor_now(run->reactor);
	run->suffered |= run->active;
	run->quiet_ns = reactor_now(run->reactor);
	store_fault_set(s, rules, n);
	store_fault_release(s);
	if (run->verbose)
		printf("# faults %#x\n", run->active);
}

void fault_clear(struct run *run)
{
	struct store *s = engine_store(run->engine);

	run->active = 0;
	run->quiet_ns = reactor_now(run->reactor);
	store_fault_set(s, NULL, 0);
	store_fault_release(s);
	if (run->verbose)
		printf("# faults end\n");
}
