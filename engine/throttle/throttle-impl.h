/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * throttle-impl.h: the throttle's own structures. Included only in this
 * folder.
 *
 * A policy says when a client is held: kept out of the ring for a while,
 * though there may be room. What must hold, under the lock:
 *  1. A client is in the ring exactly while it has a parked writer and is
 *     not held. `waiting` counts these.
 *  2. A held client has one reference more; what ends it is under way.
 *  3. `busy` says that a client is held or has a parked writer: then a new
 *     writer of it queues up behind.
 */
#ifndef WEIR_THROTTLE_IMPL_H
#define WEIR_THROTTLE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../base/cleanup.h"
#include "../base/heap.h"
#include "bandwidth.h"
#include "ratelimit.h"
#include "throttle.h"

/* A client that writes back itself (legacy.c). */
struct legacy {
	struct writeback_some some;
	struct reactor_task begin;
	struct reactor_timer timer;
	uint64_t delay_ns; /* of its next sleep */
	uint64_t recent;   /* bytes dirtied, of throttle.recent */
	bool placed;
};

struct throttle_client {
	struct list link;   /* in clients */
	struct list ring;   /* in the ring while its first writer may go on */
	struct list parked; /* writers, in order */
	struct throttle *throttle;
	unsigned refs;
	bool held;
	uint64_t lap;   /* of its turn: the present one, or the next */
	uint64_t taken; /* bytes of that turn */
	/* any thread */
	_Atomic(bool) busy;
	_Atomic(uint64_t) dirtied; /* bytes since the policy looked last */
	_Atomic(uint64_t) quota;   /* bytes; the policy looks again after */
	/* ioless (pace.c) */
	uint64_t paused_ns;
	struct legacy legacy;
	char identity[];
};

/* How far the ring has come, and how long turns are (turns.c). */
struct turns {
	uint64_t lap, offset;
	uint64_t quantum; /* bytes of a turn; one request at least */
	/* of the present lap */
	uint64_t since_ns, bytes;
	unsigned clients, requests;
	/* The client that is expected to go on with its turn, until when. */
	struct throttle_client *awaited;
	uint64_t await_ns;
	struct reactor_timer timer;
	struct reactor_task arm;
	bool arming;
};

struct throttle {
	struct cache *cache;
	struct writeback *writeback;
	struct reactor *loop;
	_Atomic(uint64_t) limit; /* in force */
	_Atomic(uint64_t) checks;
	_Atomic(uint64_t) dirtied; /* bytes admitted */
	_Atomic(unsigned) waiting;
	pthread_mutex_t lock; /* the rest */
	struct throttle_config config;
	struct bandwidth bandwidth;
	struct list clients, ring;
	unsigned nclients;
	struct turns turns;
	struct throttle_client *shared;
	unsigned parked;
	uint64_t pauses, pause_ns_total, pause_ns_max;

	/* ioless (pace.c) */
	struct ratelimit ratelimit;
	struct heap held; /* clients, by the end of their pause */
	uint64_t holds;
	struct reactor_timer timer;
	struct reactor_task arm;
	bool arming;
	/* legacy */
	uint64_t recent; /* bytes dirtied lately */
	bool exceeded;
};

/* throttle.c. Lock held. */
void throttle_hold(struct throttle_client *c);
void throttle_release(struct throttle *t, struct throttle_client *c);
/* Admit all that fit; is anybody left? Then the flusher has to be pressed. */
bool throttle_admit_all(struct throttle *t);

/* turns.c. Lock held. */
/* The client has a parked writer that may go on: where is it in the ring? */
void ring_add(struct throttle *t, struct throttle_client *c);
void ring_remove(struct throttle *t, struct throttle_client *c);
/* The ring's client was admitted `bytes` at `offset`. */
void turns_count(struct throttle *t, struct throttle_client *c, uint64_t offset,
	uint64_t bytes);
/* Is the room there is kept for somebody else than the ring's first? */
bool turns_keep(struct throttle *t);
/* The client is no more. */
void turns_forget(struct throttle *t, const struct throttle_client *c);
void turns_init(struct throttle *t);

/* client.c. Lock held. */
void client_put(struct throttle_client *c);

/*
 * The client has used up its quota and wants to dirty [offset, offset +
 * bytes) next. Sets a new quota; true: it is held. Lock held.
 */
bool pace_balance(struct throttle *t, struct throttle_client *c,
	uint64_t offset, uint64_t bytes);
bool legacy_balance(struct throttle *t, struct throttle_client *c,
	uint64_t offset, uint64_t bytes);

void pace_init(struct throttle *t);
/* Nobody may be held. */
void pace_free(struct throttle *t);

static inline struct control_limits throttle_limits(const struct throttle *t)
{
	struct control_limits l;

	control_limits(atomic_load(&t->limit) >> CONTROL_PAGE_SHIFT,
		t->config.dirty_background >> CONTROL_PAGE_SHIFT,
		t->ratelimit.smoothed, t->bandwidth.average, &l);
	return l;
}

#endif
