/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * throttle.c: admission at the hard limit, and parking.
 *
 *   writer --admit--> charge fits, memory there, nobody waits? --> admitted
 *                        | no
 *                        v
 *                     parked in its client's queue; the client is held for a
 *                     while (pace.c, legacy.c), then in the ring; the flusher
 *                     is pressed
 *   charge falls --> wake: while it fits, the next client in the ring has
 *                    its first writer admitted (turns.c)
 *
 * What must hold, under the lock (and what throttle-impl.h says):
 *  1. A client has one turn in a lap, in the order of where it writes.
 *  2. While somebody is in the ring, the cache has been asked for a wake since the
 *     last time the charge was looked at: no wake is lost.
 *  3. A writer is admitted even without room in memory if nothing at all is
 *     charged: then nothing could ever make room.
 *  4. The limit changes only under the lock, and nobody is parked for more
 *     than a piece of it.
 */
#include <errno.h>
#include <stdlib.h>

#include "throttle-impl.h"

#define PIECE_MAX (4U << 20) /* bytes */

static void progressed(void *throttle);

static void set_pace(struct throttle *t);

/* The limit to be in force. Lock held. */
static uint64_t limit_of(const struct throttle *t)
{
	return bandwidth_limit(
		&t->bandwidth, t->config.dirty_limit, t->config.dirty_time_ns);
}

int throttle_new(struct cache *c, struct writeback *wb, struct reactor *loop,
	const struct throttle_config *config, struct throttle **out)
{
	struct throttle *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cache = c;
	t->writeback = wb;
	t->loop = loop;
	t->config = *config;
	bandwidth_init(&t->bandwidth, 0, 0);
	atomic_init(&t->limit, limit_of(t));
	pthread_mutex_init(&t->lock, NULL);
	list_init(&t->clients);
	list_init(&t->ring);
	pace_init(t);
	turns_init(t);
	t->shared = throttle_client_get(t, "");
	if (!t->shared) {
		throttle_free(t);
		return -ENOMEM;
	}
	/* The limit wakes the flusher, on a loop that may run: it comes last. */
	writeback_set_progress(wb, progressed, t);
	set_pace(t);
	writeback_set_limit(wb, limit_of(t));
	*out = t;
	return 0;
}

void throttle_rest(struct throttle *t)
{
	reactor_timer_cancel(t->loop, &t->timer);
}

void throttle_free(struct throttle *t)
{
	if (!t)
		return;
	list_for_each_safe (at, &t->clients)
		free(list_entry(at, struct throttle_client, link));
	pace_free(t);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

uint64_t throttle_piece(const struct throttle *t)
{
	uint64_t quarter = atomic_load(&t->limit) / 4;
	uint64_t piece = quarter < PIECE_MAX ? quarter : PIECE_MAX;
	uint64_t block = cache_block_size(t->cache);

	/* A power of two, so that pieces end at pages or blocks. */
	if (piece < block)
		return block;
	return UINT64_C(1) << (63 - __builtin_clzll(piece | 1));
}

/*
 * Does it fit, in memory and in the charge? Then it is charged. What fails is
 * not charged in between: giving it back would wake us.
 */
static bool fits(struct throttle *t, uint64_t bytes)
{
	uint64_t limit = atomic_load(&t->limit);
	uint64_t charged = cache_charged(t->cache);

	if (charged + bytes > limit)
		return false;
	if (!cache_make_room(t->cache, bytes) && charged)
		return false;
	return cache_charge(t->cache, bytes, limit);
}

/* --- holding ------------------------------------------------------------- */

void throttle_hold(struct throttle_client *c)
{
	c->held = true;
	c->refs++;
	atomic_store(&c->busy, true);
}

static void settle_busy(struct throttle_client *c)
{
	atomic_store(&c->busy, c->held || !list_empty(&c->parked));
}

void throttle_release(struct throttle *t, struct throttle_client *c)
{
	c->held = false;
	if (!list_empty(&c->parked))
		ring_add(t, c);
	settle_busy(c);
	client_put(c);
}

/* Has the client used its quota, and is it held for that? Lock held. */
static bool balance(struct throttle *t, struct throttle_client *c,
	uint64_t offset, uint64_t bytes)
{
	if (c->held)
		return true;
	if (atomic_load(&c->dirtied) < atomic_load(&c->quota))
		return false;
	switch (t->config.mode) {
	case THROTTLE_IOLESS:
		return pace_balance(t, c, offset, bytes);
	case THROTTLE_LEGACY:
		return legacy_balance(t, c, offset, bytes);
	case THROTTLE_OFF:
		break;
	}
	atomic_store(&c->quota, UINT64_MAX);
	return false;
}

/* --- admission ----------------------------------------------------------- */

/* Without the lock the limit may be lowered between looking at it and
 * charging: then the charge is given back. */
static bool charge(struct throttle *t, uint64_t bytes)
{
	uint64_t limit = atomic_load(&t->limit);

	if (!fits(t, bytes))
		return false;
	if (atomic_load(&t->limit) >= limit ||
		cache_charged(t->cache) <= atomic_load(&t->limit))
		return true;
	cache_uncharge(t->cache, bytes);
	return false;
}

static void account(
	struct throttle *t, struct throttle_client *c, uint64_t bytes)
{
	atomic_fetch_add_explicit(&c->dirtied, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&t->dirtied, bytes, memory_order_relaxed);
}

static bool balance_unlocked(struct throttle *t, struct throttle_client *c,
	uint64_t offset, uint64_t bytes)
{
	if (atomic_load(&c->dirtied) < atomic_load(&c->quota))
		return false;

	SCOPED_LOCK(&t->lock);

	return balance(t, c, offset, bytes);
}

bool throttle_try(struct throttle *t, struct throttle_client *c,
	uint64_t offset, uint64_t bytes)
{
	if (!c)
		c = t->shared;
	atomic_fetch_add_explicit(&t->checks, 1, memory_order_relaxed);
	if (atomic_load(&t->waiting) || atomic_load(&c->busy) ||
		balance_unlocked(t, c, offset, bytes) || !charge(t, bytes))
		return false;
	account(t, c, bytes);
	return true;
}

static void run_admitted(struct reactor_task *task)
{
	struct throttle_waiter *w =
		container_of(task, struct throttle_waiter, task);

	w->admitted(w);
}

/* The writer's wait is over. Lock held. */
static void unpark(struct throttle *t, struct throttle_waiter *w)
{
	uint64_t waited = reactor_now(w->reactor) - w->parked_ns;

	t->parked--;
	t->pauses++;
	t->pause_ns_total += waited;
	if (waited > t->pause_ns_max)
		t->pause_ns_max = waited;
	w->task.fn = run_admitted;
	reactor_post(w->reactor, &w->task);
}

/* The client has a parked writer that is next: to the ring, or held first.
 * Before it queues up, not when it is its turn, or who is held would wait for
 * two turns. Lock held. */
static void queue_up(struct throttle *t, struct throttle_client *c)
{
	const struct throttle_waiter *w =
		list_entry(c->parked.next, struct throttle_waiter, link);

	if (!balance(t, c, w->offset, w->bytes))
		ring_add(t, c);
}

/* Admit the first writer of the ring's first client. False: it does not fit,
 * or there is none. Lock held. */
static bool admit_next(struct throttle *t)
{
	struct throttle_client *c;
	struct throttle_waiter *w;

	if (list_empty(&t->ring) || turns_keep(t))
		return false;
	c = list_entry(t->ring.next, struct throttle_client, ring);
	w = list_entry(c->parked.next, struct throttle_waiter, link);
	if (!fits(t, w->bytes))
		return false;
	account(t, c, w->bytes);
	turns_count(t, c, w->offset, w->bytes);
	list_remove(&w->link);
	ring_remove(t, c);
	if (!list_empty(&c->parked))
		queue_up(t, c);
	settle_busy(c);
	unpark(t, w);
	return true;
}

/* Asking for the wake comes before looking, so that a charge that falls in
 * between wakes us. */
bool throttle_admit_all(struct throttle *t)
{
	do
		cache_want_wake(t->cache);
	while (admit_next(t));
	return !list_empty(&t->ring);
}

/* The limit was lowered since it asked. Lock held. */
static void shrink(struct throttle_waiter *w, uint64_t piece)
{
	if (w->bytes > piece)
		w->shrink(w, piece);
}

bool throttle_admit(struct throttle *t, struct throttle_waiter *w)
{
	struct throttle_client *c = w->client ? w->client : t->shared;
	bool press;

	if (throttle_try(t, c, w->offset, w->bytes))
		return true;
	w->parked_ns = reactor_now(w->reactor);
	{
		SCOPED_LOCK(&t->lock);

		list_push_tail(&c->parked, &w->link);
		t->parked++;
		shrink(w, throttle_piece(t));
		if (c->parked.next == &w->link && !c->held)
			queue_up(t, c);
		settle_busy(c);
		press = throttle_admit_all(t);
	}
	if (press)
		writeback_press(t->writeback);
	return false;
}

void throttle_wake(void *throttle)
{
	struct throttle *t = throttle;
	bool press = false;

	{
		SCOPED_LOCK(&t->lock);

		if (!list_empty(&t->ring))
			press = throttle_admit_all(t);
	}
	if (press)
		writeback_press(t->writeback);
}

static void shrink_parked(struct throttle *t)
{
	uint64_t piece = throttle_piece(t);

	list_for_each (at, &t->clients) {
		struct throttle_client *c =
			list_entry(at, struct throttle_client, link);

		list_for_each (w, &c->parked)
			shrink(list_entry(w, struct throttle_waiter, link),
				piece);
	}
}

/* How much of a stream is written at once: legacy kernels had 4 MiB. */
static uint64_t chunk_of(const struct throttle *t)
{
	return t->config.mode == THROTTLE_LEGACY
		? CONTROL_CHUNK_LEGACY << CONTROL_PAGE_SHIFT
		: control_chunk(atomic_load(&t->limit) >> CONTROL_PAGE_SHIFT)
			<< CONTROL_PAGE_SHIFT;
}

/*
 * An eighth of a second is on its way to the store: enough for it to choose
 * from, and a flush does not wait for long behind it. Writers that are paced
 * leave it work for two pauses.
 */
static void set_pace(struct throttle *t)
{
	uint64_t rate = t->bandwidth.average << CONTROL_PAGE_SHIFT;

	writeback_set_pace(t->writeback, chunk_of(t), rate / 8,
		t->config.mode == THROTTLE_IOLESS ? rate / 5 * 2 : 0);
}

/* Put the limit in force that ought to be. Lock held. */
static void renew_limit(struct throttle *t)
{
	uint64_t limit = limit_of(t);

	set_pace(t);
	if (limit == atomic_load(&t->limit))
		return;
	atomic_store(&t->limit, limit);
	shrink_parked(t);
	writeback_set_limit(t->writeback, limit);
	throttle_admit_all(t);
}

void throttle_set(struct throttle *t, const struct throttle_config *config)
{
	SCOPED_LOCK(&t->lock);

	t->config = *config;
	list_for_each (at, &t->clients) /* the mode may be another */
		atomic_store(
			&list_entry(at, struct throttle_client, link)->quota,
			0);
	renew_limit(t);
}

/* The store wrote something. The flusher's callback, on its loop. */
static void progressed(void *throttle)
{
	struct throttle *t = throttle;
	struct writeback_progress p;
	SCOPED_LOCK(&t->lock);

	writeback_progress(t->writeback, &p);
	if (bandwidth_update(&t->bandwidth, p.busy_ns,
		    p.written >> BANDWIDTH_PAGE_SHIFT))
		renew_limit(t);
}

void throttle_counts(struct throttle *t, struct throttle_counts *out)
{
	SCOPED_LOCK(&t->lock);
	struct control_limits l = throttle_limits(t);

	*out = (struct throttle_counts){
		.freerun = l.freerun << CONTROL_PAGE_SHIFT,
		.setpoint = l.setpoint << CONTROL_PAGE_SHIFT,
		.ratelimit = t->ratelimit.rate.ratelimit << CONTROL_PAGE_SHIFT,
		.position = t->ratelimit.position,
		.limit = atomic_load(&t->limit),
		.bandwidth = t->bandwidth.average << BANDWIDTH_PAGE_SHIFT,
		.checks = atomic_load(&t->checks),
		.pauses = t->pauses,
		.pause_us_total = t->pause_ns_total / NSEC_PER_USEC,
		.pause_us_max = t->pause_ns_max / NSEC_PER_USEC,
		.parked = t->parked,
	};
}

void throttle_reset_peaks(struct throttle *t)
{
	SCOPED_LOCK(&t->lock);

	t->pause_ns_max = 0;
}
