/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.c: the life of a connection; conn.h has the states.
 *
 * Loop thread of the connection, but for conn_new().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/tcp.h"
#include "request.h"
#include "tls.h"

/* A client has that long to say what it wants. */
#define HANDSHAKE_NS (10 * NSEC_PER_SEC)

/* Bytes, as far as the system lets us: room for an answer of 1M, which then
 * goes in one piece. TCP sizes its buffers itself. */
#define UNIX_SNDBUF (1 << 20)

/* A TCP peer that has gone without a word: probed when it is silent, and given
 * up when it has acknowledged nothing for USER_TIMEOUT_MS, be it a probe or an
 * answer; that is also who takes no answer for so long. */
#define KEEP_IDLE_S 30
#define KEEP_INTERVAL_S 10
#define USER_TIMEOUT_MS 120000

/* --- who it is ------------------------------------------------------------ */

static void identify_inet(
	struct conn *c, int family, const void *addr, unsigned port)
{
	inet_ntop(family, addr, c->identity, sizeof(c->identity));
	snprintf(c->peer, sizeof(c->peer),
		family == AF_INET6 ? "[%s]:%u" : "%s:%u", c->identity, port);
}

static void identify_inet6(struct conn *c, const struct sockaddr_in6 *sin6)
{
	unsigned port = ntohs(sin6->sin6_port);

	if (IN6_IS_ADDR_V4MAPPED(&sin6->sin6_addr))
		identify_inet(c, AF_INET, &sin6->sin6_addr.s6_addr[12], port);
	else
		identify_inet(c, AF_INET6, &sin6->sin6_addr, port);
}

static void identify_unix(struct conn *c, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int size = UNIX_SNDBUF;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		cred.pid = 0;
	snprintf(c->identity, sizeof(c->identity), "pid %d", (int)cred.pid);
	snprintf(c->peer, sizeof(c->peer), "%s", c->identity);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static void set_up_tcp(int fd)
{
	static const struct tcp_watch watch = {
		.idle_s = KEEP_IDLE_S,
		.interval_s = KEEP_INTERVAL_S,
		.unacked_ms = USER_TIMEOUT_MS,
	};

	tcp_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	tcp_watch(fd, &watch);
}

/* Fill in peer and identity, and set what its kind of socket needs. */
static void identify(struct conn *c, int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);

	if (getpeername(fd, (struct sockaddr *)&ss, &len))
		ss.ss_family = AF_UNSPEC;
	switch (ss.ss_family) {
	case AF_INET: {
		const struct sockaddr_in *sin = (const void *)&ss;

		identify_inet(c, AF_INET, &sin->sin_addr, ntohs(sin->sin_port));
		break;
	}
	case AF_INET6:
		identify_inet6(c, (const void *)&ss);
		break;
	default:
		identify_unix(c, fd);
		return;
	}
	set_up_tcp(fd);
}

/* --- turns ---------------------------------------------------------------- */

/* False when it waits for its turn. */
static bool begin_turn(struct conn *c)
{
	if (!list_empty(&c->later_link))
		return false;
	c->turn = CONN_TURN;
	return true;
}

void conn_turn(struct conn *c)
{
	if (begin_turn(c))
		conn_run(c);
}

/* Is there more to do that waits for nothing but a turn? */
static bool has_more(const struct conn *c)
{
	if (!list_empty(&c->replies) && !c->tx_blocked)
		return true;
	if (c->state != CONN_OPEN)
		return false;
	return (c->in.stash.buf && !conn_full(c)) ||
		(c->transport.more && transmit_wants_input(c));
}

static void end_turn(struct conn *c)
{
	if (conn_turn_over(c) && list_empty(&c->later_link) && has_more(c))
		list_push_tail(&c->worker->later, &c->later_link);
}

/* --- events --------------------------------------------------------------- */

static void conn_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct conn *c = container_of(io, struct conn, rd);

	(void)loop;
	(void)events;
	if (!begin_turn(c))
		return;
	if (c->state == CONN_HANDSHAKE)
		handshake_input(c);
	else
		transmit_input(c);
	conn_run(c);
}

static void conn_writable(struct ev_loop *loop, ev_io *io, int events)
{
	struct conn *c = container_of(io, struct conn, wr);

	(void)loop;
	(void)events;
	c->tx_blocked = false;
	if (transport_flush(&c->transport))
		conn_kill(c);
	conn_turn(c);
}

static void conn_late(struct reactor_timer *timer)
{
	struct conn *c = container_of(timer, struct conn, deadline);

	if (c->transport.tls && !tls_is_up(&c->transport))
		log_warning("%s: TLS refused: the handshake takes too long",
			c->peer);
	else
		log_debug("%s: no export chosen in time", c->peer);
	conn_kill(c);
	conn_run(c);
}

static void conn_start(struct reactor_task *task)
{
	struct conn *c = container_of(task, struct conn, start_task);
	struct worker *w = c->worker;

	list_push_tail(&w->conns, &c->link);
	log_debug("%s: connected", c->peer);
	reactor_timer_arm(w->reactor, &c->deadline, HANDSHAKE_NS);
	if (w->stopping || handshake_start(c))
		conn_kill(c);
	conn_run(c);
}

int conn_new(struct worker *w, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->worker = w;
	c->server = w->server;
	c->state = CONN_HANDSHAKE;
	c->slot = true;
	transport_init_socket(&c->transport, fd);
	identify(c, fd);
	list_init(&c->ready_link);
	list_init(&c->later_link);
	c->turn = CONN_TURN;
	list_init(&c->replies);
	ev_io_init(&c->rd, conn_readable, fd, EV_READ);
	ev_io_init(&c->wr, conn_writable, fd, EV_WRITE);
	c->deadline.fn = conn_late;
	c->start_task.fn = conn_start;
	pthread_mutex_lock(&w->server->lock);
	list_push_tail(&w->server->all, &c->all_link);
	pthread_mutex_unlock(&w->server->lock);
	reactor_post(w->reactor, &c->start_task);
	return 0;
}

void conn_wake(struct conn *c)
{
	if (list_empty(&c->ready_link))
		list_push_tail(&c->worker->ready, &c->ready_link);
}

/* --- the end -------------------------------------------------------------- */

void conn_input_drop(struct conn *c)
{
	if (c->in.cur)
		request_free(c->in.cur);
	rxbuf_put(c->in.stash.buf);
	c->in.cur = NULL;
	c->in.skip = 0;
	c->in.nhead = 0;
	c->in.stash = (struct cursor){0};
}

void conn_drain(struct conn *c)
{
	if (c->state == CONN_HANDSHAKE)
		conn_kill(c);
	if (c->state != CONN_OPEN)
		return;
	c->state = CONN_DRAIN;
	conn_input_drop(c);
}

static void close_socket(struct conn *c)
{
	ev_io_stop(c->worker->loop, &c->rd);
	ev_io_stop(c->worker->loop, &c->wr);
	transport_close(&c->transport);
}

void conn_kill(struct conn *c)
{
	if (c->state == CONN_DEAD)
		return;
	c->state = CONN_DEAD;
	c->tx_blocked = false;
	close_socket(c);
	reactor_timer_cancel(c->worker->reactor, &c->deadline);
	handshake_free(c);
	conn_input_drop(c);
	while (!list_empty(&c->replies))
		request_free(list_entry(
			list_pop_head(&c->replies), struct request, link));
}

static void release_slot(struct conn *c)
{
	if (!c->slot)
		return;
	c->slot = false;
	atomic_fetch_sub(&c->worker->nconns, 1);
	if (c->export)
		atomic_fetch_sub(&c->export->connections, 1);
	listen_slot_free(c->server);
}

/* Start the last flush if it is due; true while it runs. One only: if it
 * fails, the store's error stays with the store, for the next client. */
static bool flush_due(struct conn *c)
{
	if (!c->last_flush && c->changes != c->flushed) {
		c->last_flush = true;
		if (dispatch_own_flush(c))
			log_warning("%s: no memory for a last flush", c->peer);
	}
	return c->flushing;
}

static void conn_free(struct conn *c)
{
	struct server *s = c->server;
	struct worker *w = c->worker;

	log_debug("%s: gone", c->peer);
	close_socket(c);
	conn_input_drop(c);
	handshake_free(c);
	release_slot(c);
	if (c->client)
		engine_client_put(c->client);
	export_put(c->export);
	list_remove(&c->link);
	list_remove(&c->ready_link);
	list_remove(&c->later_link);
	pthread_mutex_lock(&s->lock);
	list_remove(&c->all_link);
	pthread_mutex_unlock(&s->lock);
	free(c);
	worker_check_idle(w);
}

/* Move on to the next state if it is time; true if the connection is gone. */
static bool conn_settle(struct conn *c)
{
	if (c->pending || !list_empty(&c->replies) || c->transport.unsent)
		return false;
	switch (c->state) {
	case CONN_DRAIN:
		c->state = CONN_FLUSH;
		break;
	case CONN_DEAD:
		release_slot(c);
		break;
	case CONN_FLUSH:
		break;
	default:
		return false;
	}
	if (flush_due(c))
		return false;
	conn_free(c);
	return true;
}

/* --- what to wait for ----------------------------------------------------- */

static bool wants_input(const struct conn *c)
{
	if (c->state == CONN_HANDSHAKE)
		return handshake_wants_input(c);
	return transmit_wants_input(c);
}

static void watch(struct ev_loop *loop, ev_io *io, bool on)
{
	if (on == (bool)ev_is_active(io))
		return;
	if (on)
		ev_io_start(loop, io);
	else
		ev_io_stop(loop, io);
}

/* Take what has come already and no readiness will tell of; the socket, which
 * others wait for too, is not read. False if there is nothing. */
static bool take_more(struct conn *c)
{
	if (!c->transport.more || c->state > CONN_OPEN || conn_turn_over(c) ||
		!wants_input(c))
		return false;
	c->transport.hold = true;
	if (c->state == CONN_HANDSHAKE)
		handshake_input(c);
	else
		transmit_input(c);
	c->transport.hold = false;
	return true;
}

void conn_run(struct conn *c)
{
	do {
		if (c->state == CONN_HANDSHAKE)
			handshake_run(c);
		if (c->state == CONN_OPEN || c->state == CONN_DRAIN)
			reply_send(c);
	} while (transmit_resume(c) || take_more(c));
	atomic_store_explicit(
		&c->stats.inflight_bytes, c->inflight, memory_order_relaxed);
	if (conn_settle(c))
		return;
	end_turn(c);
	watch(c->worker->loop, &c->rd, wants_input(c));
	watch(c->worker->loop, &c->wr, c->tx_blocked || c->transport.unsent);
}
