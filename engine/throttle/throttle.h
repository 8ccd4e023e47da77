/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * throttle.h: who may make how much dirty, and when.
 *
 * A writer asks for admission of some bytes before it makes them dirty. It
 * is admitted at once, or parked: called back when it is its turn. At the
 * limit clients are admitted round robin, each client's writers in the order
 * they came.
 *
 * No admission makes the charge (cache.h) exceed the limit in force, not
 * once: the last one that was set when the admission ends. A limit set below
 * the present charge only lets that fall.
 *
 * The limit in force is the one given, or what the store writes in a given
 * time if that is less; how fast the store is, is measured (bandwidth.h).
 */
#ifndef WEIR_THROTTLE_THROTTLE_H
#define WEIR_THROTTLE_THROTTLE_H

#include "../base/list.h"
#include "../base/reactor.h"
#include "../cache/cache.h"
#include "../writeback/writeback.h"

struct throttle;
struct throttle_client;

enum throttle_mode {
	THROTTLE_IOLESS, /* writers pause below the limit (pace.c) */
	THROTTLE_LEGACY, /* writers write back themselves (legacy.c) */
	THROTTLE_OFF,    /* writers wait at the limit, and only there */
};

struct throttle_config {
	enum throttle_mode mode;
	uint64_t dirty_limit;      /* bytes */
	uint64_t dirty_background; /* bytes */
	uint64_t dirty_time_ns;    /* 0: off */
};

/* `loop` is the flusher's. 0 or -ENOMEM. Before the flusher has begun
 * anything. */
int throttle_new(struct cache *c, struct writeback *wb, struct reactor *loop,
	const struct throttle_config *config, struct throttle **out);
/* Forget the pauses that have not ended yet, of clients that wait for nothing.
 * On the loop; nothing is asked of it any more. */
void throttle_rest(struct throttle *t);
/* Nobody may be parked. Accepts NULL. */
void throttle_free(struct throttle *t);

/* The client of that identity; counted references. NULL: no memory. */
struct throttle_client *throttle_client_get(
	struct throttle *t, const char *identity);
void throttle_client_put(struct throttle_client *c);

struct throttle_waiter {
	struct list link;
	uint64_t offset, bytes;
	struct throttle_client *client; /* NULL: the shared one */
	struct reactor *reactor;
	void (*admitted)(struct throttle_waiter *w); /* on reactor */
	/* Ask for less: make `bytes` at most `piece`. While it is parked and the
	 * limit is lowered; any thread, under the throttle's lock. */
	void (*shrink)(struct throttle_waiter *w, uint64_t piece);
	struct reactor_task task;
	uint64_t parked_ns;
};

/* Admit now, without waiting, or not at all; NULL is the shared client. Any
 * thread. */
bool throttle_try(struct throttle *t, struct throttle_client *c,
	uint64_t offset, uint64_t bytes);

/*
 * Admit `w->bytes` (at most throttle_piece()): true, or park: `admitted` is
 * called later. Either way the bytes are charged by then. Any thread; never
 * blocks.
 */
bool throttle_admit(struct throttle *t, struct throttle_waiter *w);

/* The most bytes one admission may be for: a power of two, and a multiple of
 * the block size. */
uint64_t throttle_piece(const struct throttle *t);

/* The charge fell: admit who can be. The cache's wake callback. */
void throttle_wake(void *throttle);

/* Take over another configuration. Who is parked for more than the new piece
 * asks for less and keeps its turn. Any thread. */
void throttle_set(struct throttle *t, const struct throttle_config *config);

struct throttle_counts {
	uint64_t limit;     /* in force, bytes */
	uint64_t bandwidth; /* of the store, bytes per second */
	uint64_t checks, pauses, pause_us_total, pause_us_max;
	unsigned parked;
	uint64_t freerun, setpoint; /* bytes */
	uint64_t ratelimit;         /* of a writer, bytes per second */
	double position;
};
void throttle_counts(struct throttle *t, struct throttle_counts *out);
void throttle_reset_peaks(struct throttle *t);

#endif
