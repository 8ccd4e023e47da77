/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-life.c: watching the connections, losing the server, finding it again.
 *
 *          +------------- lost ---------------+
 *          v                                  |
 *   CONNECTING ---- a link, of that size ---> UP
 *      ^    |
 *      |    | none
 *      +-- RESTING (delay doubles)
 *
 * The time without a server is counted until one has answered a command: one
 * that takes connections and drops them does not count. After
 * reconnect-timeout of it what waits fails, and what comes fails at once; we
 * go on trying.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "nbd.h"

#define DELAY_FIRST_NS (100 * NSEC_PER_MSEC)
#define DELAY_MAX_NS (5 * NSEC_PER_SEC)
#define REPLIES_AT_ONCE 64

static struct reactor *home_of(struct remote *r)
{
	return atomic_load_explicit(&r->home, memory_order_relaxed);
}

static struct ev_loop *ev_of(struct remote *r)
{
	return reactor_ev_loop(home_of(r));
}

/* --- watching ------------------------------------------------------------- */

static void conn_unwatch(struct remote_conn *c)
{
	if (c->events)
		ev_io_stop(ev_of(c->remote), &c->watcher);
	c->events = 0;
}

static void conn_watch(struct remote_conn *c)
{
	int direction = (int)nbd_aio_get_direction(c->nbd);
	int events = (direction & LIBNBD_AIO_DIRECTION_READ ? EV_READ : 0) |
		(direction & LIBNBD_AIO_DIRECTION_WRITE ? EV_WRITE : 0);

	if (events == c->events)
		return;
	conn_unwatch(c);
	if (!events)
		return;
	ev_io_set(&c->watcher, nbd_aio_get_fd(c->nbd), events);
	ev_io_start(ev_of(c->remote), &c->watcher);
	c->events = events;
}

static bool conn_gone(struct remote_conn *c)
{
	return nbd_aio_is_dead(c->nbd) > 0 || nbd_aio_is_closed(c->nbd) > 0;
}

/* Is there more to read already? Replies come one for each notification. */
static bool readable(struct remote_conn *c)
{
	struct pollfd p = {.fd = nbd_aio_get_fd(c->nbd), .events = POLLIN};

	return p.fd >= 0 &&
		nbd_aio_get_direction(c->nbd) & LIBNBD_AIO_DIRECTION_READ &&
		poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

static void conn_event(struct ev_loop *loop, ev_io *w, int events)
{
	struct remote_conn *c = w->data;
	unsigned most = REPLIES_AT_ONCE;

	(void)loop;
	if (events & EV_READ) {
		do
			nbd_aio_notify_read(c->nbd);
		while (--most && !conn_gone(c) && readable(c));
	} else if (events & EV_WRITE) {
		nbd_aio_notify_write(c->nbd);
	}
	remote_settle(c->remote, false);
}

static void errors_event(struct ev_loop *loop, ev_io *w, int events)
{
	struct remote *r = w->data;

	(void)events;
	if (!exec_log(r))
		ev_io_stop(loop, w);
}

static void watch_child(struct remote *r)
{
	if (!r->target.argv || r->child.errors < 0)
		return;
	ev_io_init(&r->errors, errors_event, r->child.errors, EV_READ);
	r->errors.data = r;
	ev_io_start(ev_of(r), &r->errors);
}

/* --- losing it ------------------------------------------------------------ */

/* Without its connections nothing is heard from them any more. */
static void close_all(struct remote *r)
{
	for (unsigned i = 0; i < r->nconn; i++) {
		conn_unwatch(&r->conn[i]);
		nbd_close(r->conn[i].nbd);
		r->conn[i].nbd = NULL;
	}
	r->nconn = 0;
	if (r->attached && r->target.argv)
		ev_io_stop(ev_of(r), &r->errors);
}

static void try_connect(struct remote *r)
{
	r->state = REMOTE_CONNECTING;
	if (connector_ask(r)) {
		r->state = REMOTE_RESTING;
		reactor_timer_arm(home_of(r), &r->retry, DELAY_MAX_NS);
	}
}

static void rest(struct remote *r)
{
	r->state = REMOTE_RESTING;
	reactor_timer_arm(home_of(r), &r->retry, r->delay_ns);
	r->delay_ns *= 2;
	if (r->delay_ns > DELAY_MAX_NS)
		r->delay_ns = DELAY_MAX_NS;
}

static void retry(struct reactor_timer *t)
{
	try_connect(container_of(t, struct remote, retry));
}

static void expire(struct reactor_timer *t)
{
	struct remote *r = container_of(t, struct remote, expire);

	r->expired = true;
	if (r->state == REMOTE_UP)
		return;
	log_error("store %s: no connection for %llu seconds: reads and writes "
		  "fail until there is one",
		r->target.name,
		(unsigned long long)(r->target.timeout_ns / NSEC_PER_SEC));
	commands_expire(r);
}

/* Begin to look for a server. A link that lived for a while was no bad one. */
static void reconnect(struct remote *r)
{
	uint64_t now = reactor_now(home_of(r));

	if (!r->down_ns) {
		r->down_ns = now;
		r->said.text[0] = '\0';
		reactor_timer_arm(home_of(r), &r->expire, r->target.timeout_ns);
	}
	if (now - r->up_ns <= DELAY_MAX_NS) {
		rest(r);
		return;
	}
	r->delay_ns = DELAY_FIRST_NS;
	try_connect(r);
}

static void lost(struct remote *r)
{
	log_warning("store %s: the connection is lost: %s; connecting again",
		r->target.name, r->why);
	close_all(r);
	r->state = REMOTE_RESTING;
	commands_lost(r);
	r->broken = false;
	if (r->attached)
		reconnect(r);
}

/* A connection that is closed or dead is as good as all of them lost. */
static void note_broken(struct remote *r)
{
	const char *why = "the server shuts down";

	for (unsigned i = 0; i < r->nconn; i++) {
		if (nbd_aio_is_dead(r->conn[i].nbd) > 0)
			why = link_error();
		else if (nbd_aio_is_closed(r->conn[i].nbd) > 0)
			why = "the server closed it";
		else
			continue;
		r->broken = true;
		break;
	}
	if (r->broken && !r->why[0])
		snprintf(r->why, sizeof r->why, "%s", why);
}

void remote_settle(struct remote *r, bool inside)
{
	r->why[0] = '\0';
	note_broken(r);
	commands_finish(r, inside);
	note_broken(r); /* what ended may have begun more */
	if (r->broken) {
		lost(r);
		commands_finish(r, inside);
	}
	for (unsigned i = 0; i < r->nconn && r->attached; i++)
		conn_watch(&r->conn[i]);
}

/* --- finding it ----------------------------------------------------------- */

void remote_adopt(struct remote *r, struct remote_link *l)
{
	r->caps = l->caps;
	r->nconn = l->n;
	for (unsigned i = 0; i < l->n; i++) {
		struct remote_conn *c = &r->conn[i];

		c->remote = r;
		c->nbd = l->nbd[i];
		c->events = 0;
		ev_io_init(&c->watcher, conn_event, -1, 0);
		c->watcher.data = c;
	}
	l->n = 0;
	r->state = REMOTE_UP;
}

static void say_failure(struct remote *r, const char *text)
{
	if (!strcmp(r->said.text, text))
		return;
	log_warning("store %s: %s; will try again", r->target.name, text);
	error_set(&r->said, 0, "%s", text);
}

void remote_connected(struct remote *r)
{
	struct connector *c = &r->connector;
	struct remote_link link;
	struct error error;
	uint64_t now = reactor_now(home_of(r));

	pthread_mutex_lock(&c->lock);
	if (!c->answered || r->state != REMOTE_CONNECTING) {
		pthread_mutex_unlock(&c->lock);
		return;
	}
	link = c->link;
	error = c->error;
	c->link.n = 0;
	c->answered = false;
	pthread_mutex_unlock(&c->lock);
	if (!link.n) {
		say_failure(r, error.text);
		rest(r);
		return;
	}
	remote_adopt(r, &link);
	r->up_ns = now;
	log_info("store %s: connected again after %llu ms", r->target.name,
		(unsigned long long)((now - r->down_ns) / NSEC_PER_MSEC));
	watch_child(r);
	commands_restart(r);
	remote_settle(r, false);
}

void remote_proven(struct remote *r)
{
	if (!r->down_ns)
		return;
	r->down_ns = 0;
	r->expired = false;
	reactor_timer_cancel(home_of(r), &r->expire);
}

/* --- the home loop --------------------------------------------------------- */

void remote_attach(struct remote *r)
{
	r->attached = true;
	r->retry.fn = retry;
	r->expire.fn = expire;
	r->delay_ns = DELAY_FIRST_NS;
	if (r->state != REMOTE_UP) {
		reconnect(r);
		return;
	}
	watch_child(r);
	remote_settle(r, true);
}

static void unwatch(struct remote *r)
{
	if (!r->attached)
		return;
	r->attached = false;
	connector_unwatch(r);
	reactor_timer_cancel(home_of(r), &r->retry);
	reactor_timer_cancel(home_of(r), &r->expire);
	if (r->target.argv)
		ev_io_stop(ev_of(r), &r->errors);
	for (unsigned i = 0; i < r->nconn; i++)
		conn_unwatch(&r->conn[i]);
}

/* What was watched is closed here: libev may look at a descriptor once more
 * after it was told to forget it. */
void remote_leave(struct remote *r)
{
	if (!r->attached)
		return;
	for (unsigned i = 0; i < r->nconn; i++)
		if (nbd_aio_is_ready(r->conn[i].nbd) > 0)
			nbd_aio_disconnect(r->conn[i].nbd, 0);
	close_all(r);
	unwatch(r);
	exec_reopen(r);
}

void remote_detach(struct remote *r)
{
	struct remote_link l = {.n = r->nconn};

	unwatch(r);
	connector_stop(r);
	for (unsigned i = 0; i < r->nconn; i++)
		l.nbd[i] = r->conn[i].nbd;
	link_close(&l);
}
