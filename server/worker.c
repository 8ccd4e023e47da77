/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c: a loop on a thread, with the connections it was given.
 *
 * Answers to requests that completed later than they were read are sent
 * together: the connections wait in `ready` until the loop has run all that
 * was due, and are served by a prepare watcher, just before it would wait. So
 * are those whose turn was over: one turn each, and sockets are looked at
 * before the next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "request.h"

static void worker_prepare(struct ev_loop *loop, ev_prepare *p, int events)
{
	struct worker *w = container_of(p, struct worker, prepare);
	struct list later, *node;

	(void)events;
	list_init(&later);
	list_splice_tail(&later, &w->later);
	while ((node = list_pop_head(&later)))
		conn_turn(list_entry(node, struct conn, later_link));
	while ((node = list_pop_head(&w->ready)))
		conn_turn(list_entry(node, struct conn, ready_link));
	if (list_empty(&w->later))
		ev_idle_stop(loop, &w->again);
	else
		ev_idle_start(loop, &w->again);
	reactor_live_met(w->reactor, w->met);
	w->met = 0;
}

/* That it is active is all it is for. */
static void worker_again(struct ev_loop *loop, ev_idle *idle, int events)
{
	(void)loop;
	(void)idle;
	(void)events;
}

/* --- the end -------------------------------------------------------------- */

static void worker_is_idle(struct reactor_task *task)
{
	server_worker_idle(
		container_of(task, struct worker, idle_task)->server);
}

static void worker_drained(struct reactor_task *task)
{
	server_worker_drained(
		container_of(task, struct worker, drained_task)->server);
}

void worker_check_idle(struct worker *w)
{
	if (!w->stopping || w->idle || !list_empty(&w->conns))
		return;
	w->idle = true;
	reactor_post(w->server->workers[0].reactor, &w->idle_task);
}

static void worker_do_drain(struct reactor_task *task)
{
	struct worker *w = container_of(task, struct worker, drain_task);

	w->stopping = true;
	list_for_each_safe (node, &w->conns) {
		struct conn *c = list_entry(node, struct conn, link);

		conn_drain(c);
		conn_run(c);
	}
	reactor_post(w->server->workers[0].reactor, &w->drained_task);
	worker_check_idle(w);
}

static void worker_do_kill(struct reactor_task *task)
{
	struct worker *w = container_of(task, struct worker, kill_task);

	list_for_each_safe (node, &w->conns) {
		struct conn *c = list_entry(node, struct conn, link);

		conn_kill(c);
		conn_run(c);
	}
}

/* Connections of exports that are gone: read no more, or end. */
static void worker_do_sweep(struct reactor_task *task)
{
	struct worker *w = container_of(task, struct worker, sweep_task);

	atomic_store(&w->sweeping, false);
	list_for_each_safe (node, &w->conns) {
		struct conn *c = list_entry(node, struct conn, link);

		if (!c->export || !atomic_load(&c->export->ended))
			continue;
		if (atomic_load(&c->export->killed))
			conn_kill(c);
		else
			conn_drain(c);
		conn_run(c);
	}
}

void worker_sweep(struct worker *w)
{
	if (!atomic_exchange(&w->sweeping, true))
		reactor_post(w->reactor, &w->sweep_task);
}

void worker_drain(struct worker *w)
{
	reactor_post(w->reactor, &w->drain_task);
}

void worker_kill(struct worker *w)
{
	reactor_post(w->reactor, &w->kill_task);
}

/* --- the thread ----------------------------------------------------------- */

int worker_open(
	struct worker *w, struct server *s, unsigned id, struct error *error)
{
	int r = reactor_live_new(id, REACTOR_AUTO, &w->reactor, error);

	if (r)
		return r;
	w->server = s;
	w->loop = reactor_ev_loop(w->reactor);
	rxpool_init(&w->rx);
	list_init(&w->conns);
	list_init(&w->ready);
	list_init(&w->later);
	w->drain_task.fn = worker_do_drain;
	w->drained_task.fn = worker_drained;
	w->kill_task.fn = worker_do_kill;
	w->sweep_task.fn = worker_do_sweep;
	w->idle_task.fn = worker_is_idle;
	ev_idle_init(&w->again, worker_again);
	ev_prepare_init(&w->prepare, worker_prepare);
	ev_prepare_start(w->loop, &w->prepare);
	return 0;
}

static void *worker_main(void *arg)
{
	reactor_run(((struct worker *)arg)->reactor);
	return NULL;
}

int worker_start(struct worker *w)
{
	SCOPED_NO_SIGNALS; /* they are the first loop's */
	int r = pthread_create(&w->thread, NULL, worker_main, w);

	w->started = !r;
	return -r;
}

void worker_join(struct worker *w)
{
	if (w->started)
		pthread_join(w->thread, NULL);
	w->started = false;
}

void worker_close(struct worker *w)
{
	if (!w->reactor)
		return;
	ev_idle_stop(w->loop, &w->again);
	ev_prepare_stop(w->loop, &w->prepare);
	rxpool_destroy(&w->rx);
	while (w->free_requests) {
		struct request *rq = w->free_requests;

		w->free_requests = rq->next_free;
		free(rq);
	}
	reactor_free(w->reactor);
	w->reactor = NULL;
}
