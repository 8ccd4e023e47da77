/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress.h: one engine, real loops, real threads, for the race detectors.
 *
 *   foreign threads ──┐
 *                     ├─> engine on `STRESS_LOOPS` live loops ─> store
 *   actors on loops ──┘
 *
 * Each actor owns some sectors and knows what is in them; all actors read
 * everybody's, and can tell from the data (model-shadow.h) whether it is
 * whole and in its place.
 */
#ifndef WEIR_TESTS_STRESS_H
#define WEIR_TESTS_STRESS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "base/random.h"
#include "model-shadow.h"

#define STRESS_LOOPS 3U
#define STRESS_THREADS 3U /* foreign */
#define STRESS_PER_LOOP 2U
#define STRESS_ACTORS (STRESS_THREADS + STRESS_LOOPS * STRESS_PER_LOOP)
#define STRESS_EXPORTS 4U
#define STRESS_SIZE (UINT64_C(4) << 20) /* of the device, bytes */
#define STRESS_SECTORS (STRESS_SIZE / SECTOR)
#define STRESS_NS (600 * NSEC_PER_MSEC) /* of one round */

struct stress {
	struct reactor *loop[STRESS_LOOPS];
	pthread_t thread[STRESS_LOOPS];
	struct engine *engine;
	struct engine_export *export[STRESS_EXPORTS]; /* 2: through, 3: none */
	sem_t down;
	int down_error;
	uint64_t end_ns;
	pthread_barrier_t barrier; /* of the foreign threads */
	bool changing;             /* its settings are, while it runs */
	_Atomic bool failed;
	pthread_mutex_t lock;
	char why[256]; /* under lock: the first failure */
};

struct actor {
	struct stress *stress;
	unsigned number;
	struct reactor *loop; /* NULL: a foreign thread */
	sem_t answered;
	struct reactor_task start;
	uint64_t random;
	uint32_t count; /* of its writes; part of their ids */
	/* What to do next: fill in req, or return false at the end. */
	bool (*next)(struct actor *a);
	void (*check)(struct actor *a); /* the answer */
	uint32_t *now; /* a sector's id, where it is this actor's */
	uint32_t id;   /* of the write under way */
	struct engine_request req;
	unsigned char *buf;
};

__attribute__((format(printf, 2, 3))) void stress_fail(
	struct stress *s, const char *fmt, ...);

/* Build it all on `spec`, run, take it down. `plain`: subpage and multipage
 * are off. */
void stress_open(struct stress *s, enum reactor_backend backend,
	const char *spec, bool plain);
void stress_close(struct stress *s);

/* Let every actor act until the round is over: on its loop or a thread of
 * its own. `foreign_only`: those with threads. */
void stress_run(struct stress *s, struct actor *actors, bool foreign_only,
	bool (*next)(struct actor *a), void (*check)(struct actor *a));

/* Ask from this thread and wait. */
int stress_ask(struct stress *s, enum engine_op op, uint64_t offset,
	uint64_t length, void *buf);

/* A request of the actor, payload included. */
void actor_ask(
	struct actor *a, enum engine_op op, uint64_t offset, uint64_t length);

/* The rounds. */
void stress_pieces(struct stress *s);
void stress_overlap(struct stress *s);
void stress_mix(struct stress *s);
void stress_mix_changing(struct stress *s);

#endif
