/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * throttle.c: admission at the hard limit, and parking.
 *
 *   writer --admit--> charge fits, memory there, nobody waits? --> admitted
 *                        | no
 *                        v
 *                     parked in its client's queue; the client is in the
 *                     ring; the flusher is pressed
 *   charge falls --> wake: while it fits, the next client in the ring has
 *                    its first writer admitted, and goes to the ring's end
 *
 * What must hold, under the lock:
 *  1. A client is in the ring exactly while it has a parked writer.
 *  2. While somebody is parked, the cache has been asked for a wake since the
 *     last time the charge was looked at: no wake is lost.
 *  3. A writer is admitted even without room in memory if nothing at all is
 *     charged: then nothing could ever make room.
 *  4. The limit changes only under the lock, and nobody is parked for more
 *     than a piece of it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cleanup.h"
#include "bandwidth.h"
#include "throttle.h"

#define PIECE_MAX (4U << 20) /* bytes */

struct throttle_client {
	struct list link;   /* in clients */
	struct list ring;   /* in the ring while somebody is parked */
	struct list parked; /* writers, in order */
	struct throttle *throttle;
	unsigned refs;
	char identity[];
};

struct throttle {
	struct cache *cache;
	struct writeback *writeback;
	_Atomic(uint64_t) limit; /* in force */
	_Atomic(uint64_t) checks;
	_Atomic(unsigned) parked;
	pthread_mutex_t lock; /* the rest */
	struct throttle_config config;
	struct bandwidth bandwidth;
	struct list clients, ring;
	struct throttle_client *shared;
	uint64_t pauses, pause_ns_total, pause_ns_max;
};

static void progressed(void *throttle);

/* The limit to be in force. Lock held. */
static uint64_t limit_of(const struct throttle *t)
{
	return bandwidth_limit(
		&t->bandwidth, t->config.dirty_limit, t->config.dirty_time_ns);
}

int throttle_new(struct cache *c, struct writeback *wb,
	const struct throttle_config *config, struct throttle **out)
{
	struct throttle *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cache = c;
	t->writeback = wb;
	t->config = *config;
	bandwidth_init(&t->bandwidth, 0, 0);
	atomic_init(&t->limit, limit_of(t));
	pthread_mutex_init(&t->lock, NULL);
	list_init(&t->clients);
	list_init(&t->ring);
	t->shared = throttle_client_get(t, "");
	if (!t->shared) {
		throttle_free(t);
		return -ENOMEM;
	}
	writeback_set_limit(wb, limit_of(t));
	writeback_set_progress(wb, progressed, t);
	*out = t;
	return 0;
}

void throttle_free(struct throttle *t)
{
	if (!t)
		return;
	list_for_each_safe (at, &t->clients)
		free(list_entry(at, struct throttle_client, link));
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static struct throttle_client *find_client(
	struct throttle *t, const char *identity)
{
	list_for_each (at, &t->clients) {
		struct throttle_client *c =
			list_entry(at, struct throttle_client, link);

		if (!strcmp(c->identity, identity))
			return c;
	}
	return NULL;
}

struct throttle_client *throttle_client_get(
	struct throttle *t, const char *identity)
{
	size_t size = strlen(identity) + 1;
	SCOPED_LOCK(&t->lock);
	struct throttle_client *c = find_client(t, identity);

	if (!c) {
		c = calloc(1, sizeof(*c) + size);
		if (!c)
			return NULL;
		memcpy(c->identity, identity, size);
		c->throttle = t;
		list_init(&c->ring);
		list_init(&c->parked);
		list_push_tail(&t->clients, &c->link);
	}
	c->refs++;
	return c;
}

void throttle_client_put(struct throttle_client *c)
{
	if (!c)
		return;

	SCOPED_LOCK(&c->throttle->lock);

	if (--c->refs)
		return;
	list_remove(&c->link);
	free(c);
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

/* Without the lock the limit may be lowered between looking at it and
 * charging: then the charge is given back. */
bool throttle_try(struct throttle *t, uint64_t bytes)
{
	uint64_t limit = atomic_load(&t->limit);

	atomic_fetch_add_explicit(&t->checks, 1, memory_order_relaxed);
	if (atomic_load(&t->parked) || !fits(t, bytes))
		return false;
	if (atomic_load(&t->limit) >= limit ||
		cache_charged(t->cache) <= atomic_load(&t->limit))
		return true;
	cache_uncharge(t->cache, bytes);
	return false;
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

	atomic_fetch_sub(&t->parked, 1);
	t->pauses++;
	t->pause_ns_total += waited;
	if (waited > t->pause_ns_max)
		t->pause_ns_max = waited;
	w->task.fn = run_admitted;
	reactor_post(w->reactor, &w->task);
}

/* Admit the first writer of the ring's first client. False: it does not fit,
 * or there is none. Lock held. */
static bool admit_next(struct throttle *t)
{
	struct throttle_client *c;
	struct throttle_waiter *w;

	if (list_empty(&t->ring))
		return false;
	c = list_entry(t->ring.next, struct throttle_client, ring);
	w = list_entry(c->parked.next, struct throttle_waiter, link);
	if (!fits(t, w->bytes))
		return false;
	list_remove(&w->link);
	list_remove(&c->ring);
	if (!list_empty(&c->parked))
		list_push_tail(&t->ring, &c->ring);
	unpark(t, w);
	return true;
}

/* Admit all that fit. Asking for the wake comes before looking, so that a
 * charge that falls in between wakes us. Lock held. */
static void admit_all(struct throttle *t)
{
	do
		cache_want_wake(t->cache);
	while (admit_next(t));
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

	if (throttle_try(t, w->bytes))
		return true;
	w->parked_ns = reactor_now(w->reactor);
	{
		SCOPED_LOCK(&t->lock);

		if (list_empty(&c->parked))
			list_push_tail(&t->ring, &c->ring);
		list_push_tail(&c->parked, &w->link);
		atomic_fetch_add(&t->parked, 1);
		shrink(w, throttle_piece(t));
		admit_all(t);
	}
	writeback_press(t->writeback);
	return false;
}

void throttle_wake(void *throttle)
{
	struct throttle *t = throttle;
	bool parked;

	{
		SCOPED_LOCK(&t->lock);

		if (!list_empty(&t->ring))
			admit_all(t);
		parked = !list_empty(&t->ring);
	}
	if (parked)
		writeback_press(t->writeback);
}

static void shrink_parked(struct throttle *t)
{
	uint64_t piece = throttle_piece(t);

	list_for_each (at, &t->ring) {
		struct throttle_client *c =
			list_entry(at, struct throttle_client, ring);

		list_for_each (w, &c->parked)
			shrink(list_entry(w, struct throttle_waiter, link),
				piece);
	}
}

/* Put the limit in force that ought to be. Lock held. */
static void renew_limit(struct throttle *t)
{
	uint64_t limit = limit_of(t);

	if (limit == atomic_load(&t->limit))
		return;
	atomic_store(&t->limit, limit);
	shrink_parked(t);
	writeback_set_limit(t->writeback, limit);
	admit_all(t);
}

void throttle_set(struct throttle *t, const struct throttle_config *config)
{
	SCOPED_LOCK(&t->lock);

	t->config = *config;
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

	*out = (struct throttle_counts){
		.limit = atomic_load(&t->limit),
		.bandwidth = t->bandwidth.average << BANDWIDTH_PAGE_SHIFT,
		.checks = atomic_load(&t->checks),
		.pauses = t->pauses,
		.pause_us_total = t->pause_ns_total / NSEC_PER_USEC,
		.pause_us_max = t->pause_ns_max / NSEC_PER_USEC,
		.parked = atomic_load(&t->parked),
	};
}

void throttle_reset_peaks(struct throttle *t)
{
	SCOPED_LOCK(&t->lock);

	t->pause_ns_max = 0;
}
