/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.c: "sim:OPTIONS,INNER", a model of a device in front of a store.
 *
 *   submit ─> waiting ──(a slot of `depth` is free)──> in the device
 *                                                         │ latency from
 *   done <── inner store <──(timer on the io's loop)──────┘ the end of its
 *                                                           transfer
 *
 * 1. Transfers share one bus: each starts when the one before has ended and
 *    takes length / bandwidth. Flushes, trims and zeroes transfer nothing.
 * 2. Every command takes `latency` on top, up to `depth` of them at once.
 * 3. A STATUS costs nothing: it asks the model, not the device.
 * 4. The inner store does the work when the time is up, so data of a command
 *    still in the device is not there yet.
 *
 * Any loops at once, on one clock: `lock` guards the queue and the bus; each
 * io's timer and its inner io stay on its own loop.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cleanup.h"
#include "../base/size.h"
#include "kind.h"

struct sim {
	struct store base;
	struct store *inner;
	uint64_t bandwidth; /* bytes a second; 0: without limit */
	uint64_t latency_ns;
	uint64_t depth;

	pthread_mutex_t lock;
	struct list waiting; /* struct sim_io */
	uint64_t active;     /* commands in the device */
	uint64_t bus_free_ns;
};

/* An io on its way. */
struct sim_io {
	struct sim *sim;
	struct store_io *outer;
	struct store_io inner;
	struct reactor_timer timer;
	struct reactor_task task;
	struct list link; /* in sim->waiting */
};

static void sim_inner_done(struct store_io *inner);

/* Hand it to the inner store. */
static void sim_apply(struct reactor_timer *timer)
{
	struct sim_io *sio = container_of(timer, struct sim_io, timer);

	sio->inner = *sio->outer;
	sio->inner.done = sim_inner_done;
	store_submit(sio->sim->inner, &sio->inner);
}

/* Book the bus; returns when the command will be through. */
static uint64_t sim_book(struct sim *s, const struct store_io *io, uint64_t now)
{
	uint64_t length = 0;
	SCOPED_LOCK(&s->lock);

	if (io->op == STORE_READ || io->op == STORE_WRITE)
		length = io->length;
	if (!length || !s->bandwidth)
		return now + s->latency_ns;
	if (s->bus_free_ns < now)
		s->bus_free_ns = now;
	s->bus_free_ns += (uint64_t)((unsigned __int128)length * NSEC_PER_SEC /
		s->bandwidth);
	return s->bus_free_ns + s->latency_ns;
}

/* Enter the device: the io's loop, a slot taken. */
static void sim_start(struct reactor_task *task)
{
	struct sim_io *sio = container_of(task, struct sim_io, task);
	struct reactor *r = sio->outer->reactor;
	uint64_t now = reactor_now(r);
	uint64_t due = sim_book(sio->sim, sio->outer, now);

	sio->timer.fn = sim_apply;
	reactor_timer_arm(r, &sio->timer, due - now);
}

/* Leave the device: the slot goes to the io that has waited longest. */
static void sim_release(struct sim *s)
{
	struct sim_io *next = NULL;
	struct list *node;

	pthread_mutex_lock(&s->lock);
	node = list_pop_head(&s->waiting);
	if (node)
		next = list_entry(node, struct sim_io, link);
	else
		s->active--;
	pthread_mutex_unlock(&s->lock);
	if (next)
		reactor_post(next->outer->reactor, &next->task);
}

static void sim_inner_done(struct store_io *inner)
{
	struct sim_io *sio = container_of(inner, struct sim_io, inner);
	struct store_io *outer = sio->outer;
	int error = inner->error;

	outer->nextents = inner->nextents;
	if (inner->op != STORE_STATUS)
		sim_release(sio->sim);
	free(sio);
	store_io_done(outer, error);
}

/* Take a slot; false: it waits for one. */
static bool sim_enter(struct sim *s, struct sim_io *sio)
{
	SCOPED_LOCK(&s->lock);

	if (s->active < s->depth) {
		s->active++;
		return true;
	}
	list_push_tail(&s->waiting, &sio->link);
	return false;
}

static void sim_submit(struct store *store, struct store_io *io)
{
	struct sim *s = container_of(store, struct sim, base);
	struct sim_io *sio = calloc(1, sizeof *sio);

	if (!sio) {
		store_io_post(io, -ENOMEM);
		return;
	}
	sio->sim = s;
	sio->outer = io;
	sio->task.fn = sim_start;
	if (io->op == STORE_STATUS)
		sim_apply(&sio->timer);
	else if (sim_enter(s, sio))
		sim_start(&sio->task);
}

static void sim_close(struct store *store)
{
	struct sim *s = container_of(store, struct sim, base);

	store_close(s->inner);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static const struct store_ops sim_ops = {"sim", sim_submit, sim_close};

static int sim_option(struct sim *s, char *part, struct error *error)
{
	char *value;
	int err = spec_option(part, &value, error);

	if (err)
		return err;
	if (!strcmp(part, "bandwidth"))
		err = size_parse(value, &s->bandwidth);
	else if (!strcmp(part, "latency"))
		err = time_parse(value, &s->latency_ns);
	else if (!strcmp(part, "depth"))
		err = size_parse(value, &s->depth) || !s->depth;
	else
		return error_set(error, -EINVAL,
			"unknown option \"%s\" (bandwidth, latency, depth)",
			part);
	if (err)
		return error_set(error, -EINVAL, "bad %s \"%s\"", part, value);
	return 0;
}

static int sim_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	struct sim *s = calloc(1, sizeof *s);

	if (!s)
		return error_set(error, -ENOMEM, "out of memory");
	s->depth = 32;
	for (unsigned i = 0; i < args->parts.count; i++) {
		int err = sim_option(s, args->parts.part[i], error);

		if (err) {
			free(s);
			return err;
		}
	}
	s->inner = args->inner;
	s->base.ops = &sim_ops;
	s->base.info = s->inner->info;
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->waiting);
	*out = &s->base;
	return 0;
}

const struct store_kind store_kind_sim = {
	.name = "sim",
	.wraps = true,
	.open = sim_open,
};
