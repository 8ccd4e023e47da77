/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor-live.c: a libev loop. One iteration:
 *
 *   run      timers that are due, then tasks, completed I/O and works
 *   (the front end's own prepare watchers)
 *   sleep    submit the file I/O that was asked for, set the timer, wait
 *   libev    sockets, completions, wake-ups; their callbacks
 *
 * 1. File I/O asked for in an iteration goes to the kernel in one system
 *    call at its end.
 * 2. A post from the loop's own thread takes no lock and no system call; a
 *    post from elsewhere wakes the loop unless a wake-up is on its way.
 * 3. What callbacks post runs in the same iteration, LIVE_ROUNDS deep, so
 *    that tasks which post each other cannot starve the sockets.
 * 4. Timers are exact: libev's have the grain of epoll_wait(), a
 *    millisecond, so a timerfd is watched instead.
 * 5. A loop that polls (poll.h) makes iterations that do not sleep until
 *    there is something; whoever else wants the processor gets it in between.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "reactor-live.h"

#define LIVE_ROUNDS 8
#define TIMER_FIRED UINT64_MAX /* timer_set: readable until set again */

static struct live *to_live(const struct reactor *r)
{
	return container_of((struct reactor *)(uintptr_t)r, struct live, base);
}

static uint64_t live_now(struct reactor *r)
{
	(void)r;
	return clock_ns();
}

static bool live_is_current(struct reactor *r)
{
	return atomic_load_explicit(&to_live(r)->thread,
		       memory_order_relaxed) == pthread_self();
}

/* --- what is ready ------------------------------------------------------- */

static void ready_init(struct live_ready *q)
{
	list_init(&q->tasks);
	list_init(&q->ios);
	list_init(&q->works);
}

static bool ready_empty(const struct live_ready *q)
{
	return list_empty(&q->tasks) && list_empty(&q->ios) &&
		list_empty(&q->works);
}

static void ready_move(struct live_ready *to, struct live_ready *from)
{
	list_splice_tail(&to->tasks, &from->tasks);
	list_splice_tail(&to->ios, &from->ios);
	list_splice_tail(&to->works, &from->works);
}

static void ready_call(struct live_ready *q)
{
	struct list *node;

	while ((node = list_pop_head(&q->ios))) {
		struct reactor_io *io =
			list_entry(node, struct reactor_io, link);

		io->done(io);
	}
	while ((node = list_pop_head(&q->works))) {
		struct reactor_work *w =
			list_entry(node, struct reactor_work, link);

		w->done(w);
	}
	while ((node = list_pop_head(&q->tasks))) {
		struct reactor_task *t =
			list_entry(node, struct reactor_task, link);

		t->fn(t);
	}
}

/* Put a node in the inbox and see that the loop looks there. */
static void inbox_add(struct live *l, struct list *queue, struct list *node)
{
	bool wake;

	pthread_mutex_lock(&l->lock);
	list_push_tail(queue, node);
	wake = !l->woken;
	l->woken = true;
	/* Under the lock, so that reactor_free() cannot come in between. */
	if (wake)
		ev_async_send(l->loop, &l->wake);
	pthread_mutex_unlock(&l->lock);
}

void live_io_done(struct live *l, struct reactor_io *io)
{
	inbox_add(l, &l->inbox.ios, &io->link);
}

void live_work_done(struct live *l, struct reactor_work *work)
{
	inbox_add(l, &l->inbox.works, &work->link);
}

static void live_post(struct reactor *r, struct reactor_task *task)
{
	struct live *l = to_live(r);

	if (live_is_current(r))
		list_push_tail(&l->ready.tasks, &task->link);
	else
		inbox_add(l, &l->inbox.tasks, &task->link);
}

static void live_woken(struct ev_loop *loop, ev_async *w, int events)
{
	struct live *l = w->data;
	SCOPED_LOCK(&l->lock);

	(void)loop;
	(void)events;
	l->woken = false;
	ready_move(&l->ready, &l->inbox);
}

/* --- timers -------------------------------------------------------------- */

static void live_cancel(struct reactor *r, struct reactor_timer *t)
{
	if (t->heap_pos)
		heap_remove(&to_live(r)->timers, t->heap_pos);
}

static void live_arm(struct reactor *r, struct reactor_timer *t, uint64_t due)
{
	struct live *l = to_live(r);

	live_cancel(r, t);
	t->due_ns = due;
	heap_push(&l->timers,
		(struct heap_entry){
			.due = due,
			.tie = l->timer_order++,
			.item = t,
			.pos = &t->heap_pos,
		});
}

static void timers_call(struct live *l)
{
	uint64_t now;

	if (!heap_first(&l->timers))
		return;
	now = live_now(&l->base);
	while (heap_first(&l->timers) && heap_first(&l->timers)->due <= now) {
		struct reactor_timer *t = heap_remove(&l->timers, 1).item;

		t->fn(t);
	}
}

/* Set the timerfd to the first timer, if it is not. */
static void timers_set(struct live *l)
{
	const struct heap_entry *first = heap_first(&l->timers);
	uint64_t due = first ? first->due : 0;
	struct itimerspec when = {0};

	if (due == l->timer_set)
		return;
	when.it_value.tv_sec = (time_t)(due / NSEC_PER_SEC);
	when.it_value.tv_nsec = (long)(due % NSEC_PER_SEC);
	timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	l->timer_set = due;
}

static void live_timer_ready(struct ev_loop *loop, ev_io *w, int events)
{
	struct live *l = w->data;

	(void)loop;
	(void)events;
	l->timer_set = TIMER_FIRED;
}

/* --- the loop ------------------------------------------------------------ */

static void live_run_ready(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct live *l = w->data;
	struct live_ready now;

	(void)loop;
	(void)events;
	timers_call(l);
	ready_init(&now);
	for (int i = 0; i < LIVE_ROUNDS && !ready_empty(&l->ready); i++) {
		ready_move(&now, &l->ready);
		ready_call(&now);
	}
}

static void live_sleep(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct live *l = w->data;
	bool busy = !ready_empty(&l->ready);

	(void)events;
	if (l->uring && !uring_submit(l->uring))
		busy = true;
	timers_set(l);
	if (busy)
		ev_idle_start(loop, &l->busy);
	else
		ev_idle_stop(loop, &l->busy);
	if (atomic_load_explicit(&l->stop, memory_order_relaxed))
		ev_break(loop, EVBREAK_ALL);
}

static void live_busy(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
}

/* First after the wait: what is to be called now besides ourselves? */
static void live_woke(struct ev_loop *loop, ev_check *w, int events)
{
	struct live *l = w->data;

	(void)events;
	l->nevents = ev_pending_count(loop);
	l->woke_ns = live_now(&l->base);
}

static bool live_stopping(struct live *l)
{
	return atomic_load_explicit(&l->stop, memory_order_relaxed);
}

/* Wait for something and handle it; look for it for a while first. */
static void live_poll(struct live *l)
{
	uint64_t start = live_now(&l->base);
	uint64_t end = start + poll_window(&l->poll);
	bool found = false;

	for (uint64_t now = start; !found && now < end;
		now = live_now(&l->base)) {
		ev_run(l->loop, EVRUN_NOWAIT);
		found = l->nevents || live_stopping(l);
		if (!found)
			sched_yield();
	}
	if (!found)
		ev_run(l->loop, EVRUN_ONCE);
	poll_waited(&l->poll, l->woke_ns - start);
}

static void live_run(struct reactor *r)
{
	struct live *l = to_live(r);

	atomic_store_explicit(&l->thread, pthread_self(), memory_order_relaxed);
	if (l->poll.most_ns) {
		ev_check_start(l->loop, &l->woke);
		while (!live_stopping(l))
			live_poll(l);
		ev_check_stop(l->loop, &l->woke);
	} else {
		ev_run(l->loop, 0);
	}
	atomic_store_explicit(&l->thread, 0, memory_order_relaxed);
	atomic_store(&l->stop, false);
}

static void live_stop(struct reactor *r)
{
	struct live *l = to_live(r);
	/* As inbox_add(): reactor_free() must not come in between. */
	SCOPED_LOCK(&l->lock);

	atomic_store(&l->stop, true);
	ev_async_send(l->loop, &l->wake);
}

static void live_io(struct reactor *r, struct reactor_io *io)
{
	struct live *l = to_live(r);

	if (l->uring)
		uring_io(l->uring, io);
	else
		pool_io(l->pool, io);
}

static void live_work(struct reactor *r, struct reactor_work *work)
{
	pool_work(to_live(r)->pool, work);
}

/* --- make and free ------------------------------------------------------- */

static void live_free(struct reactor *r)
{
	struct live *l = to_live(r);

	pool_free(l->pool);
	if (l->uring)
		uring_free(l->uring);
	/* A thread whose post is being answered may still be in inbox_add(). */
	pthread_mutex_lock(&l->lock);
	pthread_mutex_unlock(&l->lock);
	if (l->loop)
		ev_loop_destroy(l->loop);
	if (l->timer_fd >= 0)
		close(l->timer_fd);
	pthread_mutex_destroy(&l->lock);
	heap_free(&l->timers);
	free(l);
}

static const struct reactor_ops live_ops = {
	.now = live_now,
	.is_current = live_is_current,
	.post = live_post,
	.arm = live_arm,
	.cancel = live_cancel,
	.io = live_io,
	.work = live_work,
	.fix = live_fix,
	.unfix = live_unfix,
	.run = live_run,
	.stop = live_stop,
	.free = live_free,
};

static void live_watch(struct live *l)
{
	ev_async_init(&l->wake, live_woken);
	ev_io_init(&l->timer_io, live_timer_ready, l->timer_fd, EV_READ);
	ev_prepare_init(&l->run, live_run_ready);
	ev_prepare_init(&l->sleep, live_sleep);
	ev_check_init(&l->woke, live_woke);
	ev_idle_init(&l->busy, live_busy);
	ev_set_priority(&l->woke, EV_MAXPRI);
	ev_set_priority(&l->run, EV_MAXPRI);
	ev_set_priority(&l->sleep, EV_MINPRI);
	l->wake.data = l->timer_io.data = l->run.data = l->sleep.data = l;
	l->woke.data = l;
	ev_async_start(l->loop, &l->wake);
	ev_io_start(l->loop, &l->timer_io);
	ev_prepare_start(l->loop, &l->run);
	ev_prepare_start(l->loop, &l->sleep);
}

static struct live *live_alloc(unsigned id)
{
	struct live *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->base.ops = &live_ops;
	l->base.id = id;
	pthread_mutex_init(&l->lock, NULL);
	ready_init(&l->ready);
	ready_init(&l->inbox);
	l->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	l->loop = ev_loop_new(EVFLAG_AUTO);
	l->pool = pool_new(l);
	if (l->timer_fd < 0 || !l->loop || !l->pool) {
		live_free(&l->base);
		return NULL;
	}
	live_watch(l);
	return l;
}

int reactor_live_new(unsigned id, enum reactor_backend backend,
	struct reactor **out, struct error *error)
{
	struct live *l = live_alloc(id);
	int err = 0;

	if (!l)
		return error_set(error, -ENOMEM, "cannot make an event loop");
	if (backend != REACTOR_THREADS)
		err = uring_new(l, &l->uring);
	if (err && backend == REACTOR_URING) {
		live_free(&l->base);
		return error_set(error, err, "io_uring is not to be had: %s",
			strerror(-err));
	}
	if (err)
		log_debug("no io_uring (%s): file I/O goes through threads",
			strerror(-err));
	l->backend = l->uring ? REACTOR_URING : REACTOR_THREADS;
	*out = &l->base;
	return 0;
}

void reactor_live_after_fork(struct reactor *r)
{
	struct live *l = to_live(r);
	struct list queued = LIST_INIT(queued), *node;

	if (l->uring) {
		uring_take(l->uring, &queued);
		uring_free(l->uring);
		l->uring = NULL;
		if (uring_new(l, &l->uring))
			l->backend = REACTOR_THREADS;
		live_fix_again(l);
	}
	while ((node = list_pop_head(&queued)))
		live_io(r, list_entry(node, struct reactor_io, link));
	ev_loop_fork(l->loop);
}

void reactor_live_poll(struct reactor *r, uint64_t most_ns)
{
	to_live(r)->poll = (struct poll){.most_ns = most_ns};
}

void reactor_live_met(struct reactor *r, unsigned n)
{
	poll_met(&to_live(r)->poll, n);
}

enum reactor_backend reactor_live_backend(const struct reactor *r)
{
	return to_live(r)->backend;
}

struct ev_loop *reactor_ev_loop(struct reactor *r)
{
	return r->ops == &live_ops ? to_live(r)->loop : NULL;
}
