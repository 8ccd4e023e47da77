/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-queue.c: see sim-queue.h.
 */
#include "sim-queue.h"

#define JOIN_FACTOR 4

void sim_queue_free(struct sim_queue *q)
{
	heap_free(&q->sweep);
	heap_free(&q->next);
}

void sim_queue_push(struct sim_queue *q, uint64_t key, uint64_t tie, void *item)
{
	struct heap *to = &q->next;

	if (q->places && key >= q->at) {
		q->places--;
		to = &q->sweep;
	}
	heap_push(
		to, (struct heap_entry){.due = key, .tie = tie, .item = item});
}

/* Begin the next sweep if this one is over. */
static void sim_queue_turn(struct sim_queue *q)
{
	struct heap over = q->sweep;

	if (heap_first(&over) || !heap_first(&q->next))
		return;
	q->sweep = q->next;
	q->next = over;
	q->places = JOIN_FACTOR * q->sweep.used;
	q->at = heap_first(&q->sweep)->due;
}

void *sim_queue_first(struct sim_queue *q)
{
	sim_queue_turn(q);
	return heap_first(&q->sweep) ? heap_first(&q->sweep)->item : NULL;
}

void *sim_queue_pop(struct sim_queue *q)
{
	struct heap_entry entry;

	if (!sim_queue_first(q))
		return NULL;
	entry = heap_remove(&q->sweep, 1);
	q->at = entry.due;
	return entry.item;
}
