/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flusher.c: when to write back on our own, and the flusher's life.
 *
 * Everything that happens (a kick, a write or flush that ended, the tick)
 * ends in wb_advance(), which looks at all there is to do:
 *
 *   syncs that came in -> the flush pass -> the ranges -> the background
 *   -> the store flush -> the tick
 *
 * The background writes while more is dirty than the background threshold;
 * when writers are parked (pressed), until the charge is half of what it was;
 * and what is older than dirty-expire. Unstable bytes are flushed when they
 * are a quarter of the limit, as often as is cheap while writers are slowed, at
 * each tick, and when nothing else is left
 * that would let a parked writer go on.
 */
#include <errno.h>
#include <stdlib.h>

#include "writeback-impl.h"

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* --- the background ------------------------------------------------------ */

static void take_press(struct writeback *wb)
{
	uint64_t charged = cache_charged(wb->cache);

	if (atomic_exchange(&wb->pressed, false)) {
		wb->pressing = true;
		wb->press_goal = charged / 2;
	}
	if (charged <= wb->press_goal)
		wb->pressing = false;
}

static bool wanted(struct writeback *wb)
{
	return wb->back_expired || wb->pressing || wb_over_background(wb);
}

/* In the background no stretch is written for longer than a chunk, nor cut
 * where the walk did not know of more. */
static void next_stretch(struct writeback *wb)
{
	wb->back.follow = true;
	if (wb->back.streak >= atomic_load(&wb->chunk))
		walk_skip(wb, &wb->back);
}

/*
 * A walk that took nothing met only blocks under writeback, locked or
 * failing. The end of a write comes back here and the tick knows when a
 * failing one is due; nobody tells when a range is unlocked.
 */
static void background(struct writeback *wb)
{
	if (wb->phase == PASS_WRITE || wb->quiet ||
		reactor_now(wb->loop) < wb->flush_retry_ns)
		return;
	while (wb_room_background(wb) && wanted(wb)) {
		bool took, busy;

		if (!wb->back.region &&
			(walk_begin(wb, &wb->back, UINT64_MAX, UINT64_MAX) ||
				!wb->back.region))
			return;
		wb->back.background = !wb->back_expired;
		if (walk_step(wb, &wb->back, true) == 0) {
			if (!wb->back_expired)
				next_stretch(wb);
			continue;
		}
		took = wb->back.took;
		busy = wb->back.busy;
		walk_end(&wb->back);
		wb->back_expired = false;
		if (took)
			continue;
		if (busy && !wb->ninflight)
			wb->retry_soon = true;
		return;
	}
}

/* Write all that was dirty before `before_ns`, unless we are at it. What the
 * background left of a walk when it had written enough does not stop us. */
static void write_through(struct writeback *wb, uint64_t before_ns)
{
	struct wb_walk walk = {0};

	if (wb->back_expired || wb->quiet ||
		walk_begin(wb, &walk, before_ns, UINT64_MAX) || !walk.count)
		return;
	walk_end(&wb->back);
	wb->back = walk;
	wb->back_expired = true;
}

/* Over the background threshold all that is dirty is on its way, in turn; to
 * begin again with the oldest would only cut the runs. */
static void expire(struct writeback *wb)
{
	uint64_t now = reactor_now(wb->loop);
	uint64_t old = atomic_load(&wb->expire_ns);
	bool ready = false;

	if (atomic_load(&wb->nfailing))
		failing_due(wb, &ready);
	if (ready)
		write_through(wb, UINT64_MAX);
	else if (now >= old && !wb_over_background(wb))
		write_through(wb, now - old);
}

/* --- the store flush ----------------------------------------------------- */

/* Writers are slowed by what is unstable too: from half way between background
 * and limit on it is flushed as often as does not cost much. */
static bool overdue(struct writeback *wb)
{
	uint64_t slowed =
		(atomic_load(&wb->limit) + atomic_load(&wb->background)) / 2;

	uint64_t apart = earlier(FLUSH_SHARE * wb->flush_ns, FLUSH_MOST_NS);

	return cache_charged(wb->cache) > slowed &&
		reactor_now(wb->loop) >= wb->flushed_ns + apart;
}

static void consider_flush(struct writeback *wb)
{
	uint64_t unstable = cache_unstable(wb->cache);

	if (wb->quiet)
		return;
	if (writeback_zero_room(wb))
		wb->flush_wanted = true;
	if (!unstable)
		return;
	if (unstable >= atomic_load(&wb->limit) / 2 || overdue(wb) ||
		(wb->pressing && !wb->ninflight))
		wb->flush_wanted = true;
}

/* --- the tick ------------------------------------------------------------ */

/* How long until there may be something to do. */
static uint64_t tick_delay(struct writeback *wb)
{
	uint64_t now = reactor_now(wb->loop);
	uint64_t delay = earlier(
		TICK_NS, atomic_load(&wb->expire_ns) / 4 + NSEC_PER_MSEC);
	uint64_t due = UINT64_MAX;
	bool ready;

	if (atomic_load(&wb->nfailing))
		due = failing_due(wb, &ready);
	if (wb->flush_retry_ns > now)
		due = earlier(due, wb->flush_retry_ns);
	if (due != UINT64_MAX)
		delay = earlier(delay,
			due > now + NSEC_PER_MSEC ? due - now : NSEC_PER_MSEC);
	if (wb->retry_soon)
		delay = earlier(delay, LOCKED_RETRY_NS);
	return delay;
}

static bool anything(struct writeback *wb)
{
	return wb->retry_soon || cache_dirty(wb->cache) ||
		cache_unstable(wb->cache) || atomic_load(&wb->nzeroes);
}

/*
 * A writer that sees `ticking` relies on the tick to find its dirt; so it is
 * cleared first, and then we look once more. While somebody is parked new
 * dirt can't wait for the tick.
 */
static void set_tick(struct writeback *wb)
{
	uint64_t delay;

	if (wb->quiet)
		return;
	if (!anything(wb)) {
		atomic_store(&wb->ticking, false);
		if (!anything(wb)) {
			reactor_timer_cancel(wb->loop, &wb->tick);
			return;
		}
	}
	atomic_store(&wb->ticking, !wb->pressing);
	delay = tick_delay(wb);
	if (!reactor_timer_armed(&wb->tick) ||
		reactor_now(wb->loop) + delay < wb->tick.due_ns)
		reactor_timer_arm(wb->loop, &wb->tick, delay);
}

static void tick(struct reactor_timer *timer)
{
	struct writeback *wb = container_of(timer, struct writeback, tick);

	expire(wb);
	if ((cache_unstable(wb->cache) || atomic_load(&wb->nzeroes)) &&
		!wb->quiet)
		wb->flush_wanted = true;
	wb_advance(wb);
}

/* --- all of it ----------------------------------------------------------- */

static bool idle(const struct writeback *wb)
{
	return !atomic_load(&wb->kicked) && !wb->ninflight && !wb->flushing &&
		!wb->redoing && wb->phase == PASS_NONE &&
		list_empty(&wb->pass_queue) && list_empty(&wb->ranges) &&
		list_empty(&wb->flush_next);
}

void wb_advance(struct writeback *wb)
{
	void (*quiet)(void *arg) = wb->quiet;
	void *arg = wb->quiet_arg;

	wb->retry_soon = false;
	sync_take_incoming(wb);
	pass_advance(wb);
	ranges_advance(wb);
	take_press(wb);
	some_advance(wb);
	background(wb);
	consider_flush(wb);
	flush_advance(wb);
	wb_rest(wb);
	atomic_store(&wb->saturated, !wb_room_background(wb));
	set_tick(wb);
	if (quiet && !wb->was_quiet && idle(wb)) {
		reactor_timer_cancel(wb->loop, &wb->tick);
		wb->was_quiet = true;
		quiet(arg);
	}
}

static void kicked(struct reactor_task *task)
{
	struct writeback *wb = container_of(task, struct writeback, kick);

	atomic_store(&wb->kicked, false);
	wb_advance(wb);
}

void wb_wake(struct writeback *wb)
{
	if (!atomic_exchange(&wb->kicked, true))
		reactor_post(wb->loop, &wb->kick);
}

void writeback_kick(struct writeback *wb)
{
	if (atomic_load(&wb->saturated))
		return;
	if (atomic_load(&wb->ticking) && !wb_over_background(wb))
		return;
	wb_wake(wb);
}

void writeback_press(struct writeback *wb)
{
	atomic_store(&wb->pressed, true);
	wb_wake(wb);
}

void writeback_init_tasks(struct writeback *wb)
{
	wb->kick.fn = kicked;
	wb->tick.fn = tick;
}
