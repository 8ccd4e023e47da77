/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor.h: everything that waits, waits here.
 *
 * A reactor is one event loop on one thread. The engine never sleeps and
 * owns no clock: it submits I/O, arms timers and posts tasks to a reactor,
 * which calls back on its own thread. Two implementations share this face:
 *
 *   live  a libev loop; file I/O through io_uring, or through a small thread
 *         pool where io_uring is refused; real time.
 *   sim   a virtual clock and an event queue, single-threaded; events due at
 *         the same time run in an order drawn from a seed, so a run can be
 *         repeated exactly.
 *
 * Rules:
 *  1. A callback runs on the reactor's thread, never inside the call that
 *     asked for it (no callback re-enters its submitter).
 *  2. Only reactor_post(), reactor_stop(), reactor_now() and
 *     reactor_is_current() may be called from another thread, the rest on
 *     the loop's own or before the loop runs.
 *  3. Tasks, timers, I/Os and works are embedded in the caller's objects and
 *     stay valid until their callback has begun; the callback may free them.
 *  4. Callbacks never block.
 */
#ifndef WEIR_BASE_REACTOR_H
#define WEIR_BASE_REACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "list.h"
#include "log.h"

#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC UINT64_C(1000000000)

struct reactor;
struct ev_loop;

/* A function to run on the loop, as soon as it gets there. */
struct reactor_task {
	void (*fn)(struct reactor_task *task);
	struct list link; /* the reactor's */
};

/* A function to run on the loop at a time. Zero-initialise before use. */
struct reactor_timer {
	void (*fn)(struct reactor_timer *timer);
	uint64_t due_ns; /* on the reactor's clock; the reactor's to set */
	size_t heap_pos; /* the reactor's; 0: not armed */
};

enum reactor_io_op {
	REACTOR_READ,  /* preadv */
	REACTOR_WRITE, /* pwritev */
	REACTOR_FSYNC, /* fdatasync */
	REACTOR_PUNCH, /* fallocate PUNCH_HOLE | KEEP_SIZE */
	REACTOR_ZERO,  /* fallocate ZERO_RANGE | KEEP_SIZE */
};

#define REACTOR_IO_DSYNC 1U /* WRITE: RWF_DSYNC */

/* One file operation. The iovec array must outlive it. */
struct reactor_io {
	enum reactor_io_op op;
	unsigned flags;
	int fd;
	int niov;
	const struct iovec *iov;
	uint64_t offset; /* bytes */
	uint64_t length; /* PUNCH, ZERO: bytes */
	void (*done)(struct reactor_io *io);
	int64_t result;          /* bytes moved (may be short), or -errno */
	struct list link;        /* the reactor's */
	struct reactor *reactor; /* the reactor's */
};

/* A function that may block, run on a helper thread (sim: at once). */
struct reactor_work {
	void (*run)(struct reactor_work *work);  /* on a helper thread */
	void (*done)(struct reactor_work *work); /* on the loop */
	struct list link;                        /* the reactor's */
	struct reactor *reactor;                 /* the reactor's */
};

struct reactor_ops {
	uint64_t (*now)(struct reactor *r);
	bool (*is_current)(struct reactor *r);
	void (*post)(struct reactor *r, struct reactor_task *task);
	void (*arm)(struct reactor *r, struct reactor_timer *t, uint64_t due);
	void (*cancel)(struct reactor *r, struct reactor_timer *t);
	void (*io)(struct reactor *r, struct reactor_io *io);
	void (*work)(struct reactor *r, struct reactor_work *work);
	int (*fix)(struct reactor *r, const struct iovec *memory); /* or NULL */
	void (*unfix)(struct reactor *r, const struct iovec *memory);
	void (*run)(struct reactor *r);
	void (*stop)(struct reactor *r);
	void (*free)(struct reactor *r);
};

struct reactor {
	const struct reactor_ops *ops;
	unsigned id; /* 0.. among the loops of one process; set by the maker */
};

/* Nanoseconds on a clock that never goes back (live: CLOCK_MONOTONIC). Any
 * thread. */
static inline uint64_t reactor_now(struct reactor *r)
{
	return r->ops->now(r);
}

/* Is the caller on this loop's thread? Any thread. */
static inline bool reactor_is_current(struct reactor *r)
{
	return r->ops->is_current(r);
}

/* Run a task on the loop soon. Any thread; never blocks or fails. Tasks
 * posted from one thread to a live loop run in the order they were posted. */
static inline void reactor_post(struct reactor *r, struct reactor_task *task)
{
	r->ops->post(r, task);
}

/* Run the timer's function `delay_ns` from now; an armed timer is moved. */
static inline void reactor_timer_arm(
	struct reactor *r, struct reactor_timer *t, uint64_t delay_ns)
{
	r->ops->arm(r, t, r->ops->now(r) + delay_ns);
}

static inline bool reactor_timer_armed(const struct reactor_timer *t)
{
	return t->heap_pos != 0;
}

/* Forget a timer; harmless if it is not armed. */
static inline void reactor_timer_cancel(
	struct reactor *r, struct reactor_timer *t)
{
	r->ops->cancel(r, t);
}

static inline void reactor_io(struct reactor *r, struct reactor_io *io)
{
	r->ops->io(r, io);
}

static inline void reactor_work(struct reactor *r, struct reactor_work *work)
{
	r->ops->work(r, work);
}

/*
 * File I/O will often use this memory: have the kernel pin and map it once,
 * not for each I/O. Until reactor_unfix() it may be neither unmapped nor given
 * back (madvise). 0, also where there is nothing to gain; -ENOMEM: more than
 * the process may lock (RLIMIT_MEMLOCK), and others: then all works without.
 * Any thread; blocks for the time that pinning takes.
 */
static inline int reactor_fix(struct reactor *r, const struct iovec *memory)
{
	return r->ops->fix ? r->ops->fix(r, memory) : 0;
}

/* Of what was fixed, or was not. Nothing of it may be in flight. */
static inline void reactor_unfix(struct reactor *r, const struct iovec *memory)
{
	if (r->ops->unfix)
		r->ops->unfix(r, memory);
}

/* Run the loop on the calling thread until reactor_stop(). Blocks. */
static inline void reactor_run(struct reactor *r)
{
	r->ops->run(r);
}

/* Make reactor_run() return after the callbacks now due; the next one, if the
 * loop does not run yet. Any thread. */
static inline void reactor_stop(struct reactor *r)
{
	r->ops->stop(r);
}

/* Free a loop that is not running and has nothing in flight. */
static inline void reactor_free(struct reactor *r)
{
	if (r)
		r->ops->free(r);
}

/* --- live ---------------------------------------------------------------- */

enum reactor_backend {
	REACTOR_AUTO,    /* io_uring if the kernel lets us, else threads */
	REACTOR_URING,   /* io_uring or fail */
	REACTOR_THREADS, /* a pool of threads with preadv and pwritev */
};

/* Make a live loop. 0, or a negative errno with `error` filled. */
int reactor_live_new(unsigned id, enum reactor_backend backend,
	struct reactor **out, struct error *error);

/*
 * In the child of a fork(), for a loop that has not run yet: a ring and an
 * epoll set of its own, where the old ones are the parent's too. Without
 * io_uring left, AUTO comes to threads. Tasks, timers and I/O asked for before
 * are kept; a work must not have been.
 */
void reactor_live_after_fork(struct reactor *r);

/*
 * Before the loop runs: look for events for up to `most_ns` before it sleeps,
 * while its waits are that short (poll.h). 0, as it is at first: never.
 */
void reactor_live_poll(struct reactor *r, uint64_t most_ns);

/* The loop met `n` requests at once: polling is for few. Loop thread only. */
void reactor_live_met(struct reactor *r, unsigned n);

/* What AUTO came to: REACTOR_URING or REACTOR_THREADS. */
enum reactor_backend reactor_live_backend(const struct reactor *r);

/* The libev loop of a live reactor, for a front end's own watchers (sockets,
 * signals); NULL for sim. Loop thread only, or before it runs. */
struct ev_loop *reactor_ev_loop(struct reactor *r);

/* --- sim ----------------------------------------------------------------- */

/* Make a simulated loop; the clock starts at one second. */
struct reactor *reactor_sim_new(uint64_t seed);

/* Run one event, moving the clock to it; false if there is none. */
bool reactor_sim_step(struct reactor *r);

/* Run events until none is left or the next is later than `until_ns`, then
 * set the clock to `until_ns` unless that would move it back. */
void reactor_sim_run_until(struct reactor *r, uint64_t until_ns);

/* A number from the loop's seeded generator, uniform in [0, limit). */
uint64_t reactor_sim_random(struct reactor *r, uint64_t limit);

#endif
