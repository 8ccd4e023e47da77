/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.c: "sim:[PROFILE,]OPTIONS,INNER", a model of a device in front of a
 * store. How long things take is in sim-model.h, in what order they are taken
 * in sim-queue.h, the options in sim-profile.h. Here is the life of a command:
 *
 *  submit ─> waiting ─(a slot of `depth`)─┬─> demand ─┐
 *                                         │           ├─> medium, one at a time
 *   write, cache on ─> full ─(room)─> cached ─> drain ┘      │
 *                                         │                  │ demand: then
 *   flush ─> flushes ─(all that was       │ at once          │ its answer
 *            cached before is drained)─┐  │                  │
 *                                      v  v                  v
 *   done <── inner store <──(timer on its loop)─────────── latency
 *
 * 1. The medium, the cache and the queues are sim-medium.c's.
 * 2. Flushes, trims and zeroes transfer nothing. A STATUS costs nothing at
 *    all: it asks the model, not the device.
 * 3. The inner store does the work when the answer is due, so data of a
 *    command still in the device is not there yet, and cached data is. A read
 *    of cached data goes to the medium all the same.
 *
 * Any loops at once, on one clock. `lock` guards everything but each command's
 * timer and inner io, which stay on its own loop; to set another loop's timer
 * a task is posted there (`posted`: it is on its way, leave the timer to it).
 */
#include <errno.h>
#include <stdlib.h>

#include "../base/cleanup.h"
#include "sim-impl.h"
#include "sim-profile.h"

/* --- its own loop's timer ------------------------------------------------- */

static void sim_timer(struct reactor_timer *timer);

/* On its loop: its answer, or it is the keeper. */
static void sim_arm(struct sim_io *sio)
{
	struct reactor *r = sio->outer->reactor;
	uint64_t at = sio->due_ns ? sio->due_ns : sio->sim->free_ns;
	uint64_t now = reactor_now(r);

	sio->timer.fn = sim_timer;
	reactor_timer_arm(r, &sio->timer, at > now ? at - now : 0);
}

static void sim_arm_posted(struct reactor_task *task)
{
	struct sim_io *sio = container_of(task, struct sim_io, task);
	SCOPED_LOCK(&sio->sim->lock);

	sio->posted = false;
	sim_arm(sio);
}

void sim_notify(struct sim_io *sio, const struct reactor *r)
{
	if (sio->posted)
		return;
	if (sio->outer->reactor == r) {
		sim_arm(sio);
		return;
	}
	sio->posted = true;
	sio->task.fn = sim_arm_posted;
	reactor_post(sio->outer->reactor, &sio->task);
}

/* --- into the device ------------------------------------------------------ */

/* On its loop, with a slot. */
static void sim_begin(struct sim_io *sio)
{
	struct reactor *r = sio->outer->reactor;
	struct sim *s = sio->sim;
	uint64_t now = reactor_now(r);
	SCOPED_LOCK(&s->lock);

	sim_advance(s, now, r);
	sim_admit(s, sio, now, r);
	sim_advance(s, now, r);
	sim_keep(s, r);
}

static void sim_begin_posted(struct reactor_task *task)
{
	sim_begin(container_of(task, struct sim_io, task));
}

/* Take a slot; false: it waits for one. */
static bool sim_enter(struct sim *s, struct sim_io *sio)
{
	SCOPED_LOCK(&s->lock);

	if (s->active < s->model.depth) {
		s->active++;
		return true;
	}
	list_push_tail(&s->waiting, &sio->link);
	return false;
}

static struct sim_io *sim_io_get(struct sim *s)
{
	struct list *node;
	struct sim_io *sio;
	SCOPED_LOCK(&s->lock);

	node = list_pop_head(&s->unused);
	if (node)
		return list_entry(node, struct sim_io, link);
	sio = calloc(1, sizeof *sio);
	if (!sio)
		return NULL;
	sio->sim = s;
	list_push_tail(&s->all, &sio->all);
	return sio;
}

/* --- out of it ------------------------------------------------------------ */

/* Leave the device: the slot goes to the command that has waited longest. */
static void sim_leave(struct sim *s, struct sim_io *sio)
{
	struct reactor *r = sio->outer->reactor;
	struct sim_io *next = NULL;
	struct list *node;

	pthread_mutex_lock(&s->lock);
	sio->outer = NULL;
	if (!sio->cached)
		list_push_head(&s->unused, &sio->link);
	node = list_pop_head(&s->waiting);
	if (node)
		next = list_entry(node, struct sim_io, link);
	else
		s->active--;
	pthread_mutex_unlock(&s->lock);
	if (!next)
		return;
	if (next->outer->reactor == r) {
		sim_begin(next);
	} else {
		next->task.fn = sim_begin_posted;
		reactor_post(next->outer->reactor, &next->task);
	}
}

static void sim_inner_done(struct store_io *inner)
{
	struct sim_io *sio = container_of(inner, struct sim_io, inner);
	struct store_io *outer = sio->outer;
	int error = inner->error;

	outer->nextents = inner->nextents;
	sim_leave(sio->sim, sio);
	store_io_done(outer, error);
}

/* A STATUS had no slot to give back. */
static void sim_status_done(struct store_io *inner)
{
	struct sim_io *sio = container_of(inner, struct sim_io, inner);
	struct store_io *outer = sio->outer;
	int error = inner->error;

	outer->nextents = inner->nextents;
	pthread_mutex_lock(&sio->sim->lock);
	list_push_head(&sio->sim->unused, &sio->link);
	pthread_mutex_unlock(&sio->sim->lock);
	store_io_done(outer, error);
}

static void sim_apply(struct sim_io *sio, void (*done)(struct store_io *inner))
{
	sio->inner = *sio->outer;
	sio->inner.done = done;
	store_submit(sio->sim->inner, &sio->inner);
}

/* Its time has come; or it keeps the medium's. */
static void sim_timer(struct reactor_timer *timer)
{
	struct sim_io *sio = container_of(timer, struct sim_io, timer);
	struct reactor *r = sio->outer->reactor;
	struct sim *s = sio->sim;
	uint64_t now = reactor_now(r);
	bool due;

	pthread_mutex_lock(&s->lock);
	due = sio->due_ns && !sio->posted;
	if (!sio->due_ns) {
		s->keeper = NULL;
		sim_advance(s, now, r);
		sim_keep(s, r);
	} else if (due && sio->due_ns > now) {
		sim_arm(sio);
		due = false;
	}
	pthread_mutex_unlock(&s->lock);
	if (due)
		sim_apply(sio, sim_inner_done);
}

static void sim_submit(struct store *store, struct store_io *io)
{
	struct sim *s = container_of(store, struct sim, base);
	struct sim_io *sio = sim_io_get(s);

	if (!sio) {
		store_io_post(io, -ENOMEM);
		return;
	}
	sio->outer = io;
	sio->offset = io->offset;
	sio->length = io->length;
	sio->due_ns = 0;
	if (io->op == STORE_STATUS)
		sim_apply(sio, sim_status_done);
	else if (sim_enter(s, sio))
		sim_begin(sio);
}

/* --- open and close ------------------------------------------------------- */

static void sim_close(struct store *store)
{
	struct sim *s = container_of(store, struct sim, base);

	store_close(s->inner);
	sim_queue_free(&s->demand);
	sim_queue_free(&s->drain);
	list_for_each_safe (node, &s->all)
		free(list_entry(node, struct sim_io, all));
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct store *sim_inner(struct store *store, unsigned i)
{
	return i ? NULL : container_of(store, struct sim, base)->inner;
}

static const struct store_ops sim_ops = {
	.kind = "sim",
	.submit = sim_submit,
	.close = sim_close,
	.member = sim_inner,
};

static int sim_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	struct sim *s = calloc(1, sizeof *s);
	int err;

	if (!s)
		return error_set(error, -ENOMEM, "out of memory");
	err = sim_profile_parse(
		&s->model, &args->parts, args->member[0]->info.size, error);
	if (err) {
		free(s);
		return err;
	}
	s->in_order = !s->model.cache &&
		!(s->model.elevator && sim_model_moves(&s->model));
	s->inner = args->member[0];
	s->base.ops = &sim_ops;
	s->base.info = s->inner->info;
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->waiting);
	list_init(&s->full);
	list_init(&s->flushes);
	list_init(&s->unused);
	list_init(&s->all);
	*out = &s->base;
	return 0;
}

uint64_t store_model_time(const struct store *s, const struct store_pattern *p)
{
	if (s->ops != &sim_ops)
		return 0;
	return sim_model_time(
		&container_of((struct store *)(uintptr_t)s, struct sim, base)
			 ->model,
		p);
}

const struct store_kind store_kind_sim = {
	.name = "sim",
	.wraps = STORE_WRAPS_ONE,
	.knows = sim_profile_knows,
	.open = sim_open,
};
