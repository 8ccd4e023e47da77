/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.c: a store that goes wrong on request; see fault.h.
 *
 *   submit ─> judge ─┬─> delay (timer) ─┐
 *                    └──────────────────┴─> hang (until released) ─> act
 *   act ─┬─> inner store ─────────────────────────────────────────────> done
 *        ├─> the first part to the inner store ─> done, with the error
 *        └─> done, with the error
 *
 * 1. The rules, the log and the list of hanging commands are under `lock`;
 *    a command's own fields belong to its loop.
 * 2. A command runs its steps on the loop of its io, whatever they wait for.
 * 3. After a power cut nothing more reaches the inner store.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cleanup.h"
#include "../base/iov.h"
#include "../base/random.h"
#include "../base/size.h"
#include "fault-rule.h"
#include "kind.h"
#include "volatile.h"

struct fault {
	struct store base;
	struct store *inner;

	pthread_mutex_t lock;
	char *name; /* NULL: none */
	struct fault_rules rules;
	struct list hanging; /* struct command */
	unsigned nhanging;
	uint64_t random;
	bool off;

	bool recording;
	struct store_fault_record *log;
	size_t used, room;
	uint64_t sequence, generation; /* of events; of the log */
};

/* An io on its way. */
struct command {
	struct fault *fault;
	struct store_io *outer;
	struct store_io inner;
	struct fault_verdict verdict;
	struct reactor_timer timer;
	struct reactor_task task;
	struct list link;    /* in fault->hanging */
	struct iovec *iov;   /* of the first part */
	size_t record;       /* its number in the log, from 1; 0: none */
	uint64_t generation; /* of the log */
	uint64_t sum;        /* of the data, if recorded */
};

static struct fault *to_fault(struct store *s)
{
	return container_of(s, struct fault, base);
}

/* --- the log ------------------------------------------------------------- */

/* A checksum of the payload, to see whether it changes in flight (FNV-1a). */
static uint64_t payload_sum(const struct store_io *io)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (int i = 0; io->op == STORE_WRITE && i < io->niov; i++) {
		const unsigned char *p = io->iov[i].iov_base;

		for (size_t n = 0; n < io->iov[i].iov_len; n++)
			sum = (sum ^ p[n]) * UINT64_C(0x100000001b3);
	}
	return sum;
}

static void log_start_locked(struct fault *f, struct command *cmd)
{
	const struct store_io *io = cmd->outer;

	if (!f->recording)
		return;
	if (f->used == f->room) {
		size_t room = f->room ? f->room * 2 : 64;
		void *log = reallocarray(f->log, room, sizeof *f->log);

		if (!log)
			return;
		f->log = log;
		f->room = room;
	}
	f->log[f->used++] = (struct store_fault_record){
		.op = io->op,
		.flags = io->flags,
		.offset = io->offset,
		.length = io->length,
		.submitted = ++f->sequence,
	};
	cmd->record = f->used;
	cmd->generation = f->generation;
	cmd->sum = payload_sum(io);
}

static void log_end(struct command *cmd, int error)
{
	struct fault *f = cmd->fault;
	struct store_fault_record *r;
	uint64_t sum = cmd->record ? payload_sum(cmd->outer) : 0;
	SCOPED_LOCK(&f->lock);

	if (!cmd->record || cmd->generation != f->generation)
		return;
	r = &f->log[cmd->record - 1];
	r->done = true;
	r->error = error;
	r->changed = sum != cmd->sum;
	r->completed = ++f->sequence;
}

void store_fault_record(struct store *s, bool on)
{
	struct fault *f = to_fault(s);
	SCOPED_LOCK(&f->lock);

	f->recording = on;
	if (on) {
		f->used = 0;
		f->sequence = 0;
		f->generation++;
	}
}

size_t store_fault_log(
	struct store *s, struct store_fault_record *records, size_t max)
{
	struct fault *f = to_fault(s);
	SCOPED_LOCK(&f->lock);

	if (max > f->used)
		max = f->used;
	if (max)
		memcpy(records, f->log, max * sizeof *records);
	return f->used;
}

/* --- the way of a command ------------------------------------------------- */

static bool fault_is_off(struct fault *f)
{
	SCOPED_LOCK(&f->lock);

	return f->off;
}

/* The end of it, from a callback on its loop. */
static void command_end(struct command *cmd, int error)
{
	struct store_io *outer = cmd->outer;

	if (fault_is_off(cmd->fault))
		error = -EIO;
	log_end(cmd, error);
	free(cmd->iov);
	free(cmd);
	store_io_done(outer, error);
}

static void command_inner_done(struct store_io *inner)
{
	struct command *cmd = container_of(inner, struct command, inner);
	int error = inner->error;

	cmd->outer->nextents = inner->nextents;
	if (cmd->verdict.error)
		error = cmd->verdict.error;
	command_end(cmd, error);
}

/* Make the inner io the first part, of a length the seed says; maybe none. */
static int command_cut(struct command *cmd)
{
	struct store_io *io = &cmd->inner;
	uint64_t unit = io->length >= 1024 ? 512 : 1;
	struct iov_cursor c = {.iov = io->iov};
	size_t bytes;

	pthread_mutex_lock(&cmd->fault->lock);
	io->length = unit *
		random_below(
			&cmd->fault->random, (io->length + unit - 1) / unit);
	pthread_mutex_unlock(&cmd->fault->lock);
	io->length -= io->length % cmd->fault->base.info.align;
	if (io->op != STORE_WRITE || !io->length)
		return 0;
	cmd->iov = calloc((size_t)io->niov, sizeof *cmd->iov);
	if (!cmd->iov)
		return -ENOMEM;
	io->niov = iov_slice(&c, io->length, cmd->iov, io->niov, &bytes);
	io->iov = cmd->iov;
	return 0;
}

static void command_flush_failed(struct fault *f)
{
	uint64_t seed;

	pthread_mutex_lock(&f->lock);
	seed = random_next(&f->random);
	pthread_mutex_unlock(&f->lock);
	if (volatile_is(f->inner))
		volatile_flush_failed(f->inner, seed);
}

/* All waiting is over. From a callback on its loop. */
static void command_act(struct reactor_task *task)
{
	struct command *cmd = container_of(task, struct command, task);
	struct fault *f = cmd->fault;
	int error = cmd->verdict.error;

	if (fault_is_off(f))
		error = -EIO;
	else if (error && cmd->outer->op == STORE_FLUSH)
		command_flush_failed(f);
	else if (error && cmd->verdict.part && !command_cut(cmd) &&
		cmd->inner.length)
		error = 0;
	if (error)
		command_end(cmd, error);
	else
		store_submit(f->inner, &cmd->inner);
}

/* Join those that hang; false: this one is not to. */
static bool command_hang(struct command *cmd)
{
	struct fault *f = cmd->fault;
	SCOPED_LOCK(&f->lock);

	if (!cmd->verdict.hang || f->off)
		return false;
	list_push_tail(&f->hanging, &cmd->link);
	f->nhanging++;
	return true;
}

static void command_delayed(struct reactor_timer *timer)
{
	struct command *cmd = container_of(timer, struct command, timer);

	if (!command_hang(cmd))
		command_act(&cmd->task);
}

/* Inside submit: nothing may end here. */
static void command_start(struct command *cmd)
{
	struct reactor *r = cmd->outer->reactor;

	if (cmd->verdict.delay_ns)
		reactor_timer_arm(r, &cmd->timer, cmd->verdict.delay_ns);
	else if (command_hang(cmd))
		return;
	else if (cmd->verdict.error)
		reactor_post(r, &cmd->task);
	else
		store_submit(cmd->fault->inner, &cmd->inner);
}

static void fault_submit(struct store *s, struct store_io *io)
{
	struct fault *f = to_fault(s);
	struct command *cmd = calloc(1, sizeof *cmd);

	if (!cmd) {
		store_io_post(io, -ENOMEM);
		return;
	}
	cmd->fault = f;
	cmd->outer = io;
	cmd->inner = *io;
	cmd->inner.done = command_inner_done;
	cmd->timer.fn = command_delayed;
	cmd->task.fn = command_act;
	pthread_mutex_lock(&f->lock);
	if (f->off)
		cmd->verdict.error = -EIO;
	else if (io->op != STORE_STATUS)
		cmd->verdict = fault_rules_judge(&f->rules, io, &f->random);
	log_start_locked(f, cmd);
	pthread_mutex_unlock(&f->lock);
	command_start(cmd);
}

/* --- switching ------------------------------------------------------------ */

void store_fault_set(
	struct store *s, const struct store_fault_rule *rules, unsigned n)
{
	struct fault *f = to_fault(s);
	SCOPED_LOCK(&f->lock);

	memset(&f->rules, 0, sizeof f->rules);
	f->rules.count = n < STORE_FAULT_RULES ? n : STORE_FAULT_RULES;
	for (unsigned i = 0; i < f->rules.count; i++)
		f->rules.at[i].rule = rules[i];
}

unsigned store_fault_release(struct store *s)
{
	struct fault *f = to_fault(s);
	struct list *node;
	unsigned n = 0;
	SCOPED_LOCK(&f->lock);

	while ((node = list_pop_head(&f->hanging))) {
		struct command *cmd = list_entry(node, struct command, link);

		reactor_post(cmd->outer->reactor, &cmd->task);
		n++;
	}
	f->nhanging = 0;
	return n;
}

unsigned store_fault_hanging(struct store *s)
{
	struct fault *f = to_fault(s);
	SCOPED_LOCK(&f->lock);

	return f->nhanging;
}

void store_fault_power_cut(struct store *s, uint64_t seed)
{
	struct fault *f = to_fault(s);

	pthread_mutex_lock(&f->lock);
	f->off = true;
	pthread_mutex_unlock(&f->lock);
	if (volatile_is(f->inner))
		volatile_power_cut(f->inner, seed);
	store_fault_release(s);
}

void store_fault_snapshot(struct store *s, uint64_t seed, void *image)
{
	volatile_snapshot(to_fault(s)->inner, seed, image);
}

/* --- open and close -------------------------------------------------------- */

static void fault_close(struct store *s)
{
	struct fault *f = to_fault(s);

	store_close(f->inner);
	pthread_mutex_destroy(&f->lock);
	free(f->log);
	free(f->name);
	free(f);
}

static struct store *fault_inner(struct store *s, unsigned i)
{
	return i ? NULL : to_fault(s)->inner;
}

static bool fault_sparse(struct store *s, uint64_t offset, uint64_t end)
{
	return store_sparse(to_fault(s)->inner, offset, end);
}

static const struct store_ops fault_ops = {
	.kind = "fault",
	.submit = fault_submit,
	.close = fault_close,
	.member = fault_inner,
	.sparse = fault_sparse,
};

bool store_fault_is(const struct store *s, const char *name)
{
	const struct fault *f;

	if (s->ops != &fault_ops)
		return false;
	f = to_fault((struct store *)(uintptr_t)s);
	return !*name || (f->name && !strcmp(f->name, name));
}

static int fault_option(struct fault *f, char *part, struct error *error)
{
	char *value;
	int err = spec_option(part, &value, error);

	if (err)
		return err;
	err = fault_rules_option(&f->rules, part, value, error);
	if (err != -ENOENT)
		return err;
	if (!strcmp(part, "record"))
		err = !(f->recording = !strcmp(value, "on")) &&
			strcmp(value, "off");
	else if (!strcmp(part, "seed"))
		err = size_parse(value, &f->random);
	else if (!strcmp(part, "name"))
		err = f->name || !*value || !(f->name = strdup(value));
	else
		return error_set(error, -EINVAL, "unknown option \"%s\"", part);
	if (err)
		return error_set(error, -EINVAL, "bad %s \"%s\"", part, value);
	return 0;
}

static int fault_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	struct fault *f = calloc(1, sizeof *f);

	if (!f)
		return error_set(error, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < args->parts.count; i++) {
		int err = fault_option(f, args->parts.part[i], error);

		if (err) {
			free(f->name);
			free(f);
			return err;
		}
	}
	f->inner = args->member[0];
	f->base.ops = &fault_ops;
	f->base.info = f->inner->info;
	pthread_mutex_init(&f->lock, NULL);
	list_init(&f->hanging);
	*out = &f->base;
	return 0;
}

const struct store_kind store_kind_fault = {
	.name = "fault",
	.wraps = STORE_WRAPS_ONE,
	.open = fault_open,
};
