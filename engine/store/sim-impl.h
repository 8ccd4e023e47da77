/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-impl.h: the insides of the sim store, for sim.c and sim-medium.c only.
 */
#ifndef WEIR_STORE_SIM_IMPL_H
#define WEIR_STORE_SIM_IMPL_H

#include <pthread.h>

#include "../base/list.h"
#include "kind.h"
#include "sim-model.h"
#include "sim-queue.h"

struct sim {
	struct store base;
	struct store *inner;
	struct sim_model model;
	bool in_order;

	pthread_mutex_t lock;
	struct list waiting;     /* for a slot */
	uint64_t active;         /* commands in the device */
	struct sim_queue demand; /* reads, and writes not cached */
	struct sim_queue drain;  /* cached writes */
	bool drain_turn;
	struct sim_head head;
	uint64_t free_ns;          /* when the present access ends */
	struct sim_io *draining;   /* the cached write it is, if it is one */
	uint64_t cached, ncached;  /* bytes, writes; the one draining too */
	uint64_t arrivals;         /* accesses so far */
	struct list full, flushes; /* wait for the drain, in their order */
	struct sim_io *keeper;     /* NULL: none */
	struct list unused;
	struct list all;
};

/* A command; or what is left of it in the cache once it is answered. */
struct sim_io {
	struct sim *sim;
	struct store_io *outer; /* NULL: answered */
	struct store_io inner;
	struct reactor_timer timer;
	struct reactor_task task;
	struct list link; /* in waiting, full, flushes or unused */
	struct list all;
	uint64_t offset, length;
	uint64_t arrival; /* FLUSH: the accesses before it have lower ones */
	uint64_t arrival_ns;
	uint64_t due_ns; /* the answer's time; 0: not known yet */
	uint64_t before; /* FLUSH: cached writes it waits for */
	bool cached;     /* in the cache, or being drained */
	bool posted;
};

/* --- sim-medium.c; under the lock, on loop `r` ---------------------------- */

/* A command that has a slot comes in. */
void sim_admit(struct sim *s, struct sim_io *sio, uint64_t now,
	const struct reactor *r);

/* All that the medium has done and begun by `now`. */
void sim_advance(struct sim *s, uint64_t now, const struct reactor *r);

/* If somebody waits for the medium, let one of them keep its time. */
void sim_keep(struct sim *s, const struct reactor *r);

/* --- sim.c ---------------------------------------------------------------- */

/* Under the lock, from loop `r`: what its timer is for has changed. */
void sim_notify(struct sim_io *sio, const struct reactor *r);

#endif
