/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-queue.h: in what order a medium takes its work: an elevator that goes
 * one way (C-LOOK). For the sim store.
 *
 * 1. Work is taken in rising order of its key: a sweep. What comes in ahead of
 *    the sweep joins it, the rest waits for the next one.
 * 2. So that a stream just ahead cannot keep the sweep from ending, only so
 *    many may join: four times what it began with.
 *
 * Nothing here locks. O(log n), no memory but the heaps' own.
 */
#ifndef WEIR_STORE_SIM_QUEUE_H
#define WEIR_STORE_SIM_QUEUE_H

#include <stdint.h>

#include "../base/heap.h"

/* Zero-initialise. */
struct sim_queue {
	struct heap sweep, next;
	uint64_t at;     /* the key that was taken last */
	uint64_t places; /* how many more may join */
};

void sim_queue_free(struct sim_queue *q);

/* `tie` orders those of one key. */
void sim_queue_push(
	struct sim_queue *q, uint64_t key, uint64_t tie, void *item);

/* The next to be taken; NULL if there is none. */
void *sim_queue_first(struct sim_queue *q);
void *sim_queue_pop(struct sim_queue *q);

#endif
