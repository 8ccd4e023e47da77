/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * legacy.c: throttle=legacy: what Linux did until 3.1, to measure against.
 *
 *   quota used --balance--> at or below freerun, or below its threshold: on
 *                        |
 *                        +> held: writes back itself, half as much again as
 *                           it dirtied; on, when so much is in the store's
 *                           queue. When there is not enough to be written:
 *                           sleeps, a tick and then ever longer, and looks
 *                           again
 *
 * Differs where the engine does: the limit is hard, so what goes on may still
 * have to wait for room. A client's threshold is lower by its share of what
 * was dirtied lately, an eighth of the limit at most, so that light writers
 * get through while heavy ones wait.
 *
 * After balance_dirty_pages() of Linux 3.0. Left as it is: it is the measure.
 */
#include "throttle-impl.h"

#define POLL_PAGES 1024U       /* look again after so many */
#define POLL_PAGES_EXCEEDED 8U /* while somebody is over the threshold */
#define TICK_NS NSEC_PER_MSEC
#define SLEEP_MAX_NS (100 * NSEC_PER_MSEC)

static void look_again(struct reactor_timer *timer);

/* --- is it over? --------------------------------------------------------- */

/* Count what it dirtied, and forget the old: halve when it is a limit's. */
static void note_dirtied(
	struct throttle *t, struct throttle_client *c, uint64_t bytes)
{
	c->legacy.recent += bytes;
	t->recent += bytes;
	if (t->recent <= atomic_load(&t->limit))
		return;
	t->recent = 0;
	list_for_each (at, &t->clients) {
		struct throttle_client *other =
			list_entry(at, struct throttle_client, link);

		other->legacy.recent /= 2;
		t->recent += other->legacy.recent;
	}
}

static uint64_t threshold_of(
	const struct throttle *t, const struct throttle_client *c)
{
	uint64_t limit = atomic_load(&t->limit);
	double share =
		t->recent ? (double)c->legacy.recent / (double)t->recent : 0;

	return limit - (uint64_t)((double)limit / 8 * share);
}

static bool over(struct throttle *t, const struct throttle_client *c)
{
	uint64_t charged = cache_charged(t->cache);
	uint64_t background = t->config.dirty_background;

	t->exceeded = charged > (atomic_load(&t->limit) + background) / 2 &&
		charged > threshold_of(t, c);
	return t->exceeded;
}

/* --- waiting ------------------------------------------------------------- */

static void sleep_a_while(struct throttle *t, struct throttle_client *c)
{
	struct legacy *g = &c->legacy;

	g->timer.fn = look_again;
	reactor_timer_arm(t->loop, &g->timer, g->delay_ns);
	g->delay_ns =
		2 * g->delay_ns < SLEEP_MAX_NS ? 2 * g->delay_ns : SLEEP_MAX_NS;
}

/* Write some; if most of it is under way already, only wait. On the loop. */
static void write_or_sleep(struct throttle *t, struct throttle_client *c)
{
	uint64_t reclaimable = cache_dirty(t->cache) + cache_unstable(t->cache);

	if (reclaimable > threshold_of(t, c))
		writeback_some(t->writeback, &c->legacy.some);
	else
		sleep_a_while(t, c);
}

static void go_on(struct throttle_client *c, bool slept)
{
	struct throttle *t = c->throttle;
	bool press = false;

	{
		SCOPED_LOCK(&t->lock);

		if (!c->legacy.some.bytes || !over(t, c)) {
			throttle_release(t, c);
			press = throttle_admit_all(t);
		} else if (slept) {
			write_or_sleep(t, c);
		} else {
			sleep_a_while(t, c);
		}
	}
	if (press)
		writeback_press(t->writeback);
}

static void written(struct writeback_some *s)
{
	go_on(container_of(s, struct throttle_client, legacy.some), false);
}

static void look_again(struct reactor_timer *timer)
{
	go_on(container_of(timer, struct throttle_client, legacy.timer), true);
}

static void begin(struct reactor_task *task)
{
	go_on(container_of(task, struct throttle_client, legacy.begin), true);
}

/* --- the policy ---------------------------------------------------------- */

bool legacy_balance(struct throttle *t, struct throttle_client *c,
	uint64_t offset, uint64_t bytes)
{
	struct legacy *g = &c->legacy;
	uint64_t poll = (uint64_t)POLL_PAGES << CONTROL_PAGE_SHIFT;
	uint64_t dirtied = atomic_exchange(&c->dirtied, 0);
	bool hold;

	(void)bytes;
	note_dirtied(t, c, dirtied);
	hold = over(t, c);
	atomic_store(&c->quota,
		t->exceeded
			? (uint64_t)POLL_PAGES_EXCEEDED << CONTROL_PAGE_SHIFT
			: poll);
	if (!hold)
		return false;
	if (!g->placed)
		g->some.place = offset;
	g->placed = true;
	g->some.bytes = (dirtied > poll ? dirtied : poll) * 3 / 2;
	g->some.done = written;
	g->delay_ns = TICK_NS;
	throttle_hold(c);
	g->begin.fn = begin;
	reactor_post(t->loop, &g->begin);
	return true;
}
