/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pace.c: throttle=ioless: writers pause, and write nothing back themselves.
 *
 *   quota used --balance--> at or below freerun: a new quota, go on
 *                        |
 *                        +> dirtied / (R * P) is still to come: held for
 *                           that long, at most 200 ms
 *
 * What a writer is about to dirty counts as dirty: with the limit hard that is
 * how too much shows. The timer is on the flusher's loop, one for all.
 *
 * After balance_dirty_pages() of Linux 3.2 and later; the arithmetic is in
 * control.h.
 */
#include "throttle-impl.h"

/* --- the timer ----------------------------------------------------------- */

/* On the loop; lock held. */
static void arm(struct throttle *t)
{
	const struct heap_entry *first = heap_first(&t->held);
	uint64_t now = reactor_now(t->loop);

	if (first)
		reactor_timer_arm(t->loop, &t->timer,
			first->due > now ? first->due - now : 0);
}

static void arm_posted(struct reactor_task *task)
{
	struct throttle *t = container_of(task, struct throttle, arm);
	SCOPED_LOCK(&t->lock);

	t->arming = false;
	arm(t);
}

/* The first pause to end may be another one now. Lock held. */
static void arm_later(struct throttle *t)
{
	if (reactor_is_current(t->loop)) {
		arm(t);
	} else if (!t->arming) {
		t->arming = true;
		reactor_post(t->loop, &t->arm);
	}
}

static void pauses_end(struct reactor_timer *timer)
{
	struct throttle *t = container_of(timer, struct throttle, timer);
	uint64_t now = reactor_now(t->loop);
	bool press;

	{
		SCOPED_LOCK(&t->lock);

		while (heap_first(&t->held) && heap_first(&t->held)->due <= now)
			throttle_release(t, heap_remove(&t->held, 1).item);
		press = throttle_admit_all(t);
		arm(t);
	}
	if (press)
		writeback_press(t->writeback);
}

static void hold_until(
	struct throttle *t, struct throttle_client *c, uint64_t due)
{
	const struct heap_entry *first = heap_first(&t->held);
	bool sooner = !first || due < first->due;

	throttle_hold(c);
	heap_push(&t->held,
		(struct heap_entry){.due = due, .tie = t->holds++, .item = c});
	if (sooner)
		arm_later(t);
}

void pace_init(struct throttle *t)
{
	ratelimit_init(&t->ratelimit, reactor_now(t->loop));
	t->timer.fn = pauses_end;
	t->arm.fn = arm_posted;
}

void pace_free(struct throttle *t)
{
	heap_free(&t->held);
}

/* --- the policy ---------------------------------------------------------- */

/*
 * At the limit P is 0, and R comes down until it is met no more; but while many
 * wait there in turn it stays met. So R stops where it would be if all clients
 * there are were writing.
 */
static void stop_at_share(struct throttle *t)
{
	uint64_t share = t->bandwidth.average / t->nclients;

	if (t->ratelimit.rate.ratelimit < share)
		t->ratelimit.rate.ratelimit = share;
}

/* The pause of a client that is paced, ns. */
static uint64_t pause_of(struct throttle *t, struct control_writer *w,
	const struct control_limits *l, uint64_t dirty, uint64_t now)
{
	uint64_t bandwidth = t->bandwidth.average, pause;
	uint64_t rate = ratelimit_update(&t->ratelimit, now, l, dirty,
		atomic_load(&t->dirtied), bandwidth);
	struct control_pause p;

	control_pause(dirty, bandwidth, t->ratelimit.rate.ratelimit, rate, &p);
	pause = control_writer_pause(w, &p, rate, now);
	if (dirty > l->limit) {
		stop_at_share(t);
		return 0; /* it waits for its turn instead */
	}
	/* When others wait for their turn it does so too, after the pause. */
	if (atomic_load(&t->waiting) && pause > p.max_ns / 4)
		pause = p.max_ns / 4;
	return pause;
}

bool pace_balance(struct throttle *t, struct throttle_client *c,
	uint64_t offset, uint64_t bytes)
{
	struct control_limits l = throttle_limits(t);
	uint64_t dirty =
		(cache_charged(t->cache) + bytes) >> CONTROL_PAGE_SHIFT;
	uint64_t now = reactor_now(t->loop), pause = 0;
	struct control_writer w = {
		.dirtied = atomic_exchange(&c->dirtied, 0),
		.quota = atomic_load(&c->quota) >> CONTROL_PAGE_SHIFT,
		.paused_ns = c->paused_ns,
	};

	(void)offset;
	if (control_paced(&l, dirty)) {
		pause = pause_of(t, &w, &l, dirty, now);
	} else {
		ratelimit_rest(&t->ratelimit, now, &l, dirty,
			atomic_load(&t->dirtied));
		control_writer_free(&w, &l, dirty, now);
	}
	c->paused_ns = w.paused_ns;
	atomic_fetch_add(&c->dirtied, w.dirtied);
	atomic_store(&c->quota, w.quota << CONTROL_PAGE_SHIFT);
	if (pause)
		hold_until(t, c, now + pause);
	return pause;
}
