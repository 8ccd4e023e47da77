/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor-sim.c: a loop whose clock is a number.
 *
 *   post, io, work ──> event due now    ─┐
 *   arm ─────────────> event due later  ─┴─> heap ─> step: clock := due, call
 *
 * 1. The order of events due at the same time is drawn from the seed when
 *    each is queued; nothing else is random, so a seed repeats a run exactly.
 *    Posted tasks are no exception: what relies on their order fails here.
 * 2. The clock moves only when an event is taken, and never back.
 * 3. I/O and work run when their event is taken, on the caller's thread, and
 *    take no simulated time: devices are modelled by stores (store/sim.c).
 *
 * One thread only.
 */
#include <stdlib.h>

#include "heap.h"
#include "random.h"
#include "reactor.h"
#include "reactor-file.h"

enum event_kind {
	EVENT_TASK,
	EVENT_TIMER,
	EVENT_IO,
	EVENT_WORK
};

struct sim {
	struct reactor base;
	uint64_t now_ns;
	uint64_t random;
	struct heap events;
	bool stopped;
};

static struct sim *to_sim(struct reactor *r)
{
	return container_of(r, struct sim, base);
}

static void sim_queue(struct sim *s, enum event_kind kind, void *item,
	uint64_t due, size_t *pos)
{
	heap_push(&s->events,
		(struct heap_entry){
			.due = due,
			.tie = random_next(&s->random),
			.item = item,
			.kind = kind,
			.pos = pos,
		});
}

static uint64_t sim_now(struct reactor *r)
{
	return to_sim(r)->now_ns;
}

static bool sim_is_current(struct reactor *r)
{
	(void)r;
	return true;
}

static void sim_post(struct reactor *r, struct reactor_task *task)
{
	struct sim *s = to_sim(r);

	sim_queue(s, EVENT_TASK, task, s->now_ns, NULL);
}

static void sim_cancel(struct reactor *r, struct reactor_timer *t)
{
	if (t->heap_pos)
		heap_remove(&to_sim(r)->events, t->heap_pos);
}

static void sim_arm(struct reactor *r, struct reactor_timer *t, uint64_t due)
{
	sim_cancel(r, t);
	t->due_ns = due;
	sim_queue(to_sim(r), EVENT_TIMER, t, due, &t->heap_pos);
}

static void sim_io(struct reactor *r, struct reactor_io *io)
{
	struct sim *s = to_sim(r);

	sim_queue(s, EVENT_IO, io, s->now_ns, NULL);
}

static void sim_work(struct reactor *r, struct reactor_work *work)
{
	struct sim *s = to_sim(r);

	sim_queue(s, EVENT_WORK, work, s->now_ns, NULL);
}

static void sim_call(const struct heap_entry *event)
{
	struct reactor_task *task = event->item;
	struct reactor_timer *timer = event->item;
	struct reactor_io *io = event->item;
	struct reactor_work *work = event->item;

	switch ((enum event_kind)event->kind) {
	case EVENT_TASK:
		task->fn(task);
		break;
	case EVENT_TIMER:
		timer->fn(timer);
		break;
	case EVENT_IO:
		io->result = reactor_file_io(io);
		io->done(io);
		break;
	case EVENT_WORK:
		work->run(work);
		work->done(work);
		break;
	}
}

bool reactor_sim_step(struct reactor *r)
{
	struct sim *s = to_sim(r);
	struct heap_entry event;

	if (!heap_first(&s->events))
		return false;
	event = heap_remove(&s->events, 1);
	if (event.due > s->now_ns)
		s->now_ns = event.due;
	sim_call(&event);
	return true;
}

void reactor_sim_run_until(struct reactor *r, uint64_t until_ns)
{
	struct sim *s = to_sim(r);

	while (heap_first(&s->events) &&
		heap_first(&s->events)->due <= until_ns)
		reactor_sim_step(r);
	if (s->now_ns < until_ns)
		s->now_ns = until_ns;
}

static void sim_run(struct reactor *r)
{
	struct sim *s = to_sim(r);

	while (!s->stopped && reactor_sim_step(r))
		;
	s->stopped = false;
}

static void sim_stop(struct reactor *r)
{
	to_sim(r)->stopped = true;
}

static void sim_free(struct reactor *r)
{
	struct sim *s = to_sim(r);

	heap_free(&s->events);
	free(s);
}

static const struct reactor_ops sim_ops = {
	.now = sim_now,
	.is_current = sim_is_current,
	.post = sim_post,
	.arm = sim_arm,
	.cancel = sim_cancel,
	.io = sim_io,
	.work = sim_work,
	.run = sim_run,
	.stop = sim_stop,
	.free = sim_free,
};

struct reactor *reactor_sim_new(uint64_t seed)
{
	struct sim *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->base.ops = &sim_ops;
	s->now_ns = NSEC_PER_SEC;
	s->random = seed;
	return &s->base;
}

uint64_t reactor_sim_random(struct reactor *r, uint64_t limit)
{
	return random_below(&to_sim(r)->random, limit);
}
