/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen.c: sockets, accepting, handing over to the loop with the fewest.
 *
 * 1. At --max-connections, clients wait in the backlog until one has gone.
 * 2. Without a descriptor or memory for one more, accepting pauses: the
 *    listening socket stays readable, and the loop must not spin on it.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"

#define ACCEPT_BATCH 16U
#define ACCEPT_PAUSE_NS (200 * NSEC_PER_MSEC)
#define UNIX_MODE 0777 /* less the umask */

/* --- accepting ------------------------------------------------------------ */

static void watch_all(struct server *s, bool on)
{
	struct ev_loop *loop = s->workers[0].loop;

	for (unsigned i = 0; i < s->nlisteners; i++) {
		if (on)
			ev_io_start(loop, &s->listeners[i].io);
		else
			ev_io_stop(loop, &s->listeners[i].io);
	}
}

static bool slots_taken(struct server *s)
{
	unsigned max = s->max_connections;

	return max && atomic_load(&s->connections) >= max;
}

/* Wait for a slot, unless one has come free meanwhile. */
static void wait_for_slot(struct server *s)
{
	watch_all(s, false);
	atomic_store(&s->accept_waits, true);
	if (!slots_taken(s) && atomic_exchange(&s->accept_waits, false))
		watch_all(s, true);
}

static void accept_again(struct server *s)
{
	if (!s->stopping)
		watch_all(s, true);
}

static void slot_is_free(struct reactor_task *task)
{
	accept_again(container_of(task, struct server, accept_task));
}

static void pause_is_over(struct reactor_timer *timer)
{
	accept_again(container_of(timer, struct server, accept_timer));
}

void listen_slot_free(struct server *s)
{
	atomic_fetch_sub(&s->connections, 1);
	if (atomic_exchange(&s->accept_waits, false))
		reactor_post(s->workers[0].reactor, &s->accept_task);
}

void listen_limit_changed(struct server *s)
{
	if (!slots_taken(s) && atomic_exchange(&s->accept_waits, false))
		accept_again(s);
}

/* The loop with the fewest; the first one, which has other work too, last. */
static struct worker *pick_worker(struct server *s)
{
	struct worker *best = NULL;

	for (unsigned i = 1; i <= s->nworkers; i++) {
		struct worker *w = &s->workers[i % s->nworkers];

		if (!best || w->nconns < best->nconns)
			best = w;
	}
	return best;
}

static void hand_over(struct server *s, int fd)
{
	struct worker *w = pick_worker(s);

	atomic_fetch_add(&s->connections, 1);
	atomic_fetch_add(&w->nconns, 1);
	if (!conn_new(w, fd))
		return;
	log_warning("no memory for one more connection");
	close(fd);
	atomic_fetch_sub(&w->nconns, 1);
	listen_slot_free(s);
}

/* accept() failed; true to try the next one. */
static bool accept_error(struct server *s, int error)
{
	switch (error) {
	case EAGAIN:
		return false;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		if (!s->accept_failed)
			log_warning("cannot accept: %s; trying again",
				strerror(error));
		s->accept_failed = true;
		watch_all(s, false);
		reactor_timer_arm(s->workers[0].reactor, &s->accept_timer,
			ACCEPT_PAUSE_NS);
		return false;
	default:
		/* Of that one client: it has hung up already. */
		return true;
	}
}

static void on_accept(struct ev_loop *loop, ev_io *io, int events)
{
	struct listener *l = container_of(io, struct listener, io);
	struct server *s = l->server;

	(void)loop;
	(void)events;
	for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
		int fd;

		if (slots_taken(s)) {
			wait_for_slot(s);
			return;
		}
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			s->accept_failed = false;
			hand_over(s, fd);
		} else if (!accept_error(s, errno)) {
			return;
		}
	}
}

void listen_start(struct server *s)
{
	s->accept_task.fn = slot_is_free;
	s->accept_timer.fn = pause_is_over;
	watch_all(s, true);
}

/* --- sockets -------------------------------------------------------------- */

static int add_listener(struct server *s, int fd)
{
	struct listener *l = &s->listeners[s->nlisteners++];

	l->server = s;
	l->fd = fd;
	ev_io_init(&l->io, on_accept, fd, EV_READ);
	return 0;
}

static int listen_addr(
	struct server *s, const struct addrinfo *ai, struct error *error)
{
	int on = 1, r;
	int fd = socket(ai->ai_family,
		ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		ai->ai_protocol);

	if (fd < 0)
		return error_set(error, -errno, "cannot make a socket: %s",
			strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, SOMAXCONN)) {
		r = -errno;
		close(fd);
		return error_set(error, r, "cannot listen on %s port %s: %s",
			s->options->ipaddr, s->options->port, strerror(-r));
	}
	return add_listener(s, fd);
}

static int listen_tcp(struct server *s, struct error *error)
{
	struct addrinfo hints = {
		.ai_flags = AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	struct addrinfo *list;
	int r = getaddrinfo(
		s->options->ipaddr, s->options->port, &hints, &list);

	if (r)
		return error_set(error, -EINVAL, "-i %s: %s",
			s->options->ipaddr, gai_strerror(r));
	for (struct addrinfo *ai = list;
		!r && ai && s->nlisteners < SERVER_MAX_LISTENERS;
		ai = ai->ai_next)
		r = listen_addr(s, ai, error);
	freeaddrinfo(list);
	return r;
}

int listen_open(struct server *s, struct error *error)
{
	int r;

	if (!s->options->unix_path)
		return listen_tcp(s, error);
	r = usock_listen(&s->usock, s->options->unix_path, UNIX_MODE, error);
	if (r)
		return r;
	return add_listener(s, s->usock.fd);
}

void listen_close(struct server *s)
{
	watch_all(s, false);
	reactor_timer_cancel(s->workers[0].reactor, &s->accept_timer);
	for (unsigned i = 0; i < s->nlisteners; i++) {
		if (s->listeners[i].fd != s->usock.fd)
			close(s->listeners[i].fd);
	}
	s->nlisteners = 0;
	usock_close(&s->usock);
}
