/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor-live.h: the parts of the live loop; for reactor-*.c only.
 *
 *   other threads ──> inbox (lock) ──> ready ──┐
 *   the loop ───────────────────────-> ready ──┴─> run once an iteration
 *   helper threads ─> inbox ───────────────────┘
 */
#ifndef WEIR_BASE_REACTOR_LIVE_H
#define WEIR_BASE_REACTOR_LIVE_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "heap.h"
#include "poll.h"
#include "reactor.h"

struct uring;
struct pool;

#define LIVE_FIXED 8 /* pieces of memory */

/* Memory that is fixed; a length of 0: none. Read by the loop, written by any
 * thread, under the lock. */
struct live_fixed {
	_Atomic(uintptr_t) base;
	_Atomic(size_t) length;
};

/* Callbacks that are due. */
struct live_ready {
	struct list tasks, ios, works;
};

struct live {
	struct reactor base;
	enum reactor_backend backend;
	struct ev_loop *loop;
	_Atomic(pthread_t) thread; /* that runs it; 0: none */
	atomic_bool stop;

	/* The loop's. */
	struct live_ready ready;
	struct heap timers;
	uint64_t timer_order; /* timers due at once fire as armed */
	uint64_t timer_set;   /* what timer_fd is set to; 0: nothing */
	int timer_fd;
	struct uring *uring; /* NULL: file I/O goes to the pool */
	struct pool *pool;
	ev_async wake;
	ev_io timer_io;
	ev_prepare run, sleep; /* first and last before the loop waits */
	ev_idle busy;          /* active: do not wait */
	struct poll poll;
	ev_check woke;    /* first after the wait, if the loop polls */
	unsigned nevents; /* found by the last wait */
	uint64_t woke_ns;

	/* Everyone's, under the lock. */
	pthread_mutex_t lock;
	struct live_ready inbox;
	bool woken; /* a wake-up is on its way */
	struct live_fixed fixed[LIVE_FIXED];
};

/* Hand back an I/O or a work that is done. Helper threads. */
void live_io_done(struct live *l, struct reactor_io *io);
void live_work_done(struct live *l, struct reactor_work *work);

/* --- reactor-fixed.c: memory that is fixed; any thread -------------------- */

int live_fix(struct reactor *r, const struct iovec *memory);
void live_unfix(struct reactor *r, const struct iovec *memory);
/* Tell a new ring of all that is fixed; what it refuses no longer is. */
void live_fix_again(struct live *l);

/* --- reactor-uring.c: io_uring; loop thread only ------------------------- */

/* -errno where the kernel refuses, -ENOSYS where it lacks an operation or
 * weir was built without liburing. */
int uring_new(struct live *l, struct uring **out);
void uring_free(struct uring *u);

/* Queue an I/O, to go with the next uring_submit(). */
void uring_io(struct uring *u, struct reactor_io *io);

/* Move what is queued, and was never submitted, to the end of a list. */
void uring_take(struct uring *u, struct list *to);

/* Give the kernel what is queued; false: try again soon. */
bool uring_submit(struct uring *u);

/* Register piece `slot` of l->fixed, or forget it if its length is 0. 0 or
 * -errno. Any thread. */
int uring_fix(struct uring *u, unsigned slot, const struct iovec *memory);

/* --- reactor-threads.c: helper threads; loop thread only ----------------- */

struct pool *pool_new(struct live *l);
void pool_free(struct pool *p); /* accepts NULL; joins the threads */
void pool_io(struct pool *p, struct reactor_io *io);
void pool_work(struct pool *p, struct reactor_work *work);

#endif
