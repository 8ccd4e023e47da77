/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-medium.c: what a simulated medium does, and who waits for it.
 *
 * 1. It does one access at a time, from `free_ns` on, a moment that may be
 *    past: sim_advance() catches up when somebody looks. So the cache is
 *    drained with no timer running, and a live timer that comes late shifts
 *    an answer but never slows the medium.
 * 2. While a command waits whose answer's time is not known yet, one of these
 *    is the keeper: its timer is set to the end of the present access and
 *    takes the next. Commands that nothing can overtake need none: they are
 *    booked when they come (`in_order`).
 * 3. Demand goes before the drain. When a flush or a write waits for the
 *    drain, they take turns.
 * 4. A flush waits for what was cached when it came. A battery makes that
 *    needless. FUA and what is larger than the cache are written past it.
 *
 * Everything here is called under the lock.
 */
#include "sim-impl.h"

/* The device is through with it at `at`. */
static void sim_answer(
	struct sim *s, struct sim_io *sio, uint64_t at, const struct reactor *r)
{
	sio->due_ns = at + sim_model_latency(&s->model, sio->outer->op);
	if (s->keeper == sio)
		s->keeper = NULL;
	sim_notify(sio, r);
}

/* --- the medium ----------------------------------------------------------- */

static void sim_queue_io(
	struct sim *s, struct sim_queue *q, struct sim_io *sio, uint64_t at)
{
	bool by_offset = s->model.elevator && sim_model_moves(&s->model);

	sio->arrival = s->arrivals++;
	sio->arrival_ns = at;
	sim_queue_push(
		q, by_offset ? sio->offset : sio->arrival, sio->arrival, sio);
}

/* Take a write into the cache, and answer it. */
static void sim_absorb(
	struct sim *s, struct sim_io *sio, uint64_t at, const struct reactor *r)
{
	s->cached += sio->length;
	s->ncached++;
	sio->cached = true;
	sim_queue_io(s, &s->drain, sio, at);
	sim_answer(s, sio, at, r);
}

static bool sim_has_room(const struct sim *s, const struct sim_io *sio)
{
	return s->cached + sio->length <= s->model.cache;
}

/* A cached write is on the medium: who waited for that? */
static void sim_drained(struct sim *s, const struct reactor *r)
{
	struct sim_io *sio = s->draining;

	s->draining = NULL;
	s->cached -= sio->length;
	s->ncached--;
	sio->cached = false;
	list_for_each_safe (node, &s->flushes) {
		struct sim_io *flush = list_entry(node, struct sim_io, link);

		if (sio->arrival < flush->arrival && !--flush->before) {
			list_remove(node);
			sim_answer(s, flush, s->free_ns, r);
		}
	}
	if (!sio->outer)
		list_push_head(&s->unused, &sio->link);
	while (!list_empty(&s->full)) {
		sio = list_entry(s->full.next, struct sim_io, link);
		if (!sim_has_room(s, sio))
			break;
		list_remove(&sio->link);
		sim_absorb(s, sio, s->free_ns, r);
	}
}

static struct sim_io *sim_pick(struct sim *s)
{
	bool urgent = !list_empty(&s->full) || !list_empty(&s->flushes);
	struct sim_io *sio = NULL;

	if (!urgent || !s->drain_turn)
		sio = sim_queue_pop(&s->demand);
	s->drain_turn = !!sio;
	if (!sio)
		sio = sim_queue_pop(&s->drain);
	if (!sio)
		sio = sim_queue_pop(&s->demand);
	return sio;
}

/* Begin an access. */
static void sim_access(
	struct sim *s, struct sim_io *sio, const struct reactor *r)
{
	bool write = sio->cached || sio->outer->op == STORE_WRITE;

	if (s->free_ns < sio->arrival_ns)
		s->free_ns = sio->arrival_ns;
	s->free_ns += sim_model_access(
		&s->model, &s->head, write, sio->offset, sio->length);
	if (sio->cached)
		s->draining = sio;
	else
		sim_answer(s, sio, s->free_ns, r);
}

void sim_advance(struct sim *s, uint64_t now, const struct reactor *r)
{
	while (s->in_order || s->free_ns <= now) {
		struct sim_io *sio;

		if (s->draining)
			sim_drained(s, r);
		sio = sim_pick(s);
		if (!sio)
			break;
		sim_access(s, sio, r);
	}
}

void sim_keep(struct sim *s, const struct reactor *r)
{
	struct list *node = NULL;

	if (s->keeper)
		return;
	s->keeper = sim_queue_first(&s->demand);
	if (!list_empty(&s->full))
		node = s->full.next;
	else if (!list_empty(&s->flushes))
		node = s->flushes.next;
	if (!s->keeper && node)
		s->keeper = list_entry(node, struct sim_io, link);
	if (s->keeper)
		sim_notify(s->keeper, r);
}

/* --- into the device ------------------------------------------------------ */

void sim_admit(struct sim *s, struct sim_io *sio, uint64_t now,
	const struct reactor *r)
{
	const struct store_io *io = sio->outer;
	bool past = io->flags & STORE_FUA && !s->model.battery;

	if (io->op == STORE_FLUSH && s->ncached && !s->model.battery) {
		sio->before = s->ncached;
		sio->arrival = s->arrivals;
		list_push_tail(&s->flushes, &sio->link);
	} else if (io->op != STORE_READ && io->op != STORE_WRITE) {
		sim_answer(s, sio, now, r);
	} else if (io->op == STORE_READ || past ||
		io->length > s->model.cache) {
		sim_queue_io(s, &s->demand, sio, now);
	} else if (list_empty(&s->full) && sim_has_room(s, sio)) {
		sim_absorb(s, sio, now, r);
	} else {
		list_push_tail(&s->full, &sio->link);
	}
}
