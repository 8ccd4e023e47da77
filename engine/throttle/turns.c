/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turns.c: who is next at the limit, and for how much.
 *
 *   lap 7:  client 1  client 2  client 3 ...     in the order of where on the
 *           |<turn->| |<turn->|                  device they write
 *
 * The flusher goes the same way. What it has written makes room, and that goes
 * to the client whose turn it is: who writes in order goes on just ahead of
 * the flusher, which then writes a whole turn without a seek. So turns are as
 * long as they may be:
 *
 *  1. A client has one turn in a lap. Who comes behind the place that the lap
 *     has come to has his in the next one; who was interrupted in his turn,
 *     because he asks for one request after the other, goes on with it. The
 *     room there is is kept for him for AWAIT_NS, unless less than half of the
 *     limit is used: the store has enough to do meanwhile.
 *  2. A client waits for its turn for WAIT_NS at most, and for as long as one
 *     request of each takes. So a turn is what was written in WAIT_NS of the
 *     last lap, divided by the others that had one, and a request; half of that
 *     comes by itself, because the last request is let through whole.
 *     When even shares of the limit are longer than that, a turn is one request:
 *     runs are twice such a share then, whatever the turns are.
 *  3. Long turns are of equal bytes, but for the last request's, however large the
 *     requests are.
 *
 * Until 3.1 a turn was a request (legacy), and so it stays for that.
 */
#include "throttle-impl.h"

#define WAIT_NS (185 * NSEC_PER_MSEC)
#define AWAIT_NS NSEC_PER_MSEC
#define STEP (64U << 10) /* bytes */

static uint64_t next_offset(const struct throttle_client *c)
{
	return list_entry(c->parked.next, struct throttle_waiter, link)->offset;
}

static bool is_before(
	const struct throttle_client *a, const struct throttle_client *b)
{
	if (a->lap != b->lap)
		return a->lap < b->lap;
	return next_offset(a) < next_offset(b);
}

static void next_lap(struct throttle_client *c)
{
	c->lap++;
	c->taken = 0;
}

void ring_add(struct throttle *t, struct throttle_client *c)
{
	struct list *at = t->ring.prev;

	if (c->lap < t->turns.lap) {
		c->lap = t->turns.lap;
		c->taken = 0;
	}
	if (c->lap == t->turns.lap && !c->taken &&
		next_offset(c) < t->turns.offset)
		next_lap(c);
	while (at != &t->ring &&
		is_before(c, list_entry(at, struct throttle_client, ring)))
		at = at->prev;
	list_insert(&c->ring, at);
	atomic_fetch_add(&t->waiting, 1);
}

void ring_remove(struct throttle *t, struct throttle_client *c)
{
	list_remove(&c->ring);
	atomic_fetch_sub(&t->waiting, 1);
}

/* A lap is over. */
static void set_quantum(struct throttle *t, uint64_t now)
{
	struct turns *u = &t->turns;
	uint64_t took = now - u->since_ns, quantum;

	if (t->config.mode == THROTTLE_LEGACY) {
		u->quantum = 0;
	} else if (took && u->clients) {
		unsigned others = u->clients > 1 ? u->clients - 1 : 1;

		quantum = (uint64_t)((double)u->bytes * WAIT_NS / (double)took /
				  others) +
			u->bytes / u->requests / 2;
		/* Not much more at once: it changes the speed. */
		if (quantum < 2 * atomic_load(&t->limit) / u->clients)
			quantum = 0;
		u->quantum = 2 * u->quantum + STEP < quantum
			? 2 * u->quantum + STEP
			: quantum;
	}
	u->since_ns = now;
	u->bytes = 0;
	u->clients = u->requests = 0;
}

void turns_count(struct throttle *t, struct throttle_client *c, uint64_t offset,
	uint64_t bytes)
{
	struct turns *u = &t->turns;

	if (c->lap != u->lap)
		set_quantum(t, reactor_now(t->loop));
	u->lap = c->lap;
	u->offset = offset;
	u->bytes += bytes;
	u->requests++;
	if (!c->taken)
		u->clients++;
	c->taken += bytes;
	if (c->taken >= u->quantum)
		next_lap(c);
	u->awaited = c->taken ? c : NULL;
	u->await_ns = reactor_now(t->loop) + AWAIT_NS;
}

/* --- waiting for who goes on ---------------------------------------------- */

static void arm(struct throttle *t)
{
	uint64_t now = reactor_now(t->loop), due = t->turns.await_ns;

	if (!reactor_timer_armed(&t->turns.timer))
		reactor_timer_arm(
			t->loop, &t->turns.timer, due > now ? due - now : 0);
}

static void arm_posted(struct reactor_task *task)
{
	struct throttle *t = container_of(task, struct throttle, turns.arm);
	SCOPED_LOCK(&t->lock);

	t->turns.arming = false;
	arm(t);
}

static void arm_later(struct throttle *t)
{
	if (reactor_is_current(t->loop)) {
		arm(t);
	} else if (!t->turns.arming) {
		t->turns.arming = true;
		reactor_post(t->loop, &t->turns.arm);
	}
}

static void timed_out(struct reactor_timer *timer)
{
	throttle_wake(container_of(timer, struct throttle, turns.timer));
}

bool turns_keep(struct throttle *t)
{
	struct turns *u = &t->turns;

	if (!u->awaited || u->awaited->held || !list_empty(&u->awaited->parked))
		return false;
	if (reactor_now(t->loop) >= u->await_ns ||
		cache_charged(t->cache) < atomic_load(&t->limit) / 2) {
		u->awaited = NULL;
		return false;
	}
	arm_later(t);
	return true;
}

void turns_forget(struct throttle *t, const struct throttle_client *c)
{
	if (t->turns.awaited == c)
		t->turns.awaited = NULL;
}

void turns_init(struct throttle *t)
{
	t->turns.timer.fn = timed_out;
	t->turns.arm.fn = arm_posted;
}
