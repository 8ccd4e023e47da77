/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn.h: a client's connection.
 *
 *              GO, EXPORT_NAME
 *   HANDSHAKE ---------------> OPEN
 *       |                       | DISC, end of stream, server stops
 *       |                       v
 *       |                     DRAIN  all that was asked is answered
 *       | ABORT, time limit     |
 *       | end of stream         v
 *       |                     FLUSH  what was written is made durable
 *       v                       v
 *     DEAD <------- error ---- (any)   socket closed; freed when the engine
 *                                      has let go of every request
 *
 * Rules:
 *  1. Only conn_run() frees a connection; whoever calls it does not touch the
 *     connection after. What may end one on the way only changes its state.
 *  2. `pending` counts requests inside the engine, `inflight` the bytes of
 *     every request from its header to the last byte of its answer.
 *  3. A connection that wrote and is not known to be flushed submits a flush
 *     before it is freed; one that only read ends at once.
 *  4. The slot (--max-connections) is kept until the engine holds no memory of
 *     a request of the connection any more, and no longer.
 *  5. A connection is served in turns. When CONN_TURN bytes of it are parsed
 *     and sent, it waits in worker->later until the loop has looked at the
 *     others; so one that keeps the loop busy costs the others a turn, and
 *     not all it can ask for.
 */
#ifndef WEIR_SERVER_CONN_H
#define WEIR_SERVER_CONN_H

#include <ev.h>
#include <stdatomic.h>

#include "nbd.h"
#include "server.h"
#include "transport.h"

/* Bytes of requests and answers in one turn; an answer that has begun may take
 * it over that once. */
#define CONN_TURN (2 << 20)

enum conn_state {
	CONN_HANDSHAKE,
	CONN_OPEN,
	CONN_DRAIN,
	CONN_FLUSH,
	CONN_DEAD,
};

/* A piece of the stream, to be parsed. */
struct cursor {
	struct rxbuf *buf;
	unsigned char *p, *end;
};

/* Where the parser stands between two reads. */
struct conn_input {
	/* Of a request, not whole yet. */
	unsigned char head[NBD_EXTENDED_REQUEST_SIZE];
	unsigned nhead;
	struct request *cur; /* whose payload is arriving */
	uint64_t skip;       /* bytes of a payload that nobody wants */
	/* How far the payload of `cur` has come. */
	unsigned iov_at;
	size_t iov_off;
	uint64_t rest; /* bytes */
	/* Read, but not parsed for too much in flight; holds a reference. */
	struct cursor stash;
	bool large; /* the last write was received in place */
};

/* Written by the connection's loop, read by the control socket. */
struct conn_stats {
	_Atomic uint64_t requests, read_bytes, write_bytes, errors;
	_Atomic uint64_t inflight_bytes;
};

struct conn {
	struct worker *worker;
	struct server *server;
	struct transport transport;
	enum conn_state state;
	struct list link;       /* worker->conns */
	struct list ready_link; /* worker->ready */
	struct list later_link; /* worker->later */
	struct list all_link;   /* server->all */
	ev_io rd, wr;
	struct reactor_timer deadline;
	struct reactor_task start_task;
	struct handshake *handshake;

	/* Negotiated. */
	struct server_export *export;
	bool structured;
	bool extended;     /* headers: 64-bit lengths; structured as well */
	uint32_t contexts; /* BLOCK_STATUS: a bit, 1 << id, for each */

	struct engine_client *client;
	char identity[128];
	char peer[144];

	struct conn_input in;
	struct list replies; /* of struct request, in the order to send */
	size_t tx_off;       /* bytes of the first one that are sent */
	bool tx_blocked;     /* the socket takes no more */

	int64_t turn; /* bytes left of it */
	unsigned pending;
	uint64_t inflight, inflight_limit;
	uint64_t changes, flushed; /* answered; of these, known durable */
	bool flushing;             /* the connection's own flush */
	bool last_flush;           /* it has been asked for */
	bool slot;
	struct conn_stats stats;
};

/* For counters with one writer. */
static inline void conn_count(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t v = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, v + n, memory_order_relaxed);
}

/* Too much in flight to parse another request? */
static inline bool conn_full(const struct conn *c)
{
	return c->inflight >= c->inflight_limit;
}

static inline bool conn_turn_over(const struct conn *c)
{
	return c->turn <= 0;
}

/* --- conn.c --------------------------------------------------------------- */

/* Take over an accepted socket and its slot, and start it on its loop. Loop
 * 0. -ENOMEM: the socket is the caller's still. */
int conn_new(struct worker *w, int fd);

/* Do all that can be done in this turn: parse, send, move on, perhaps free. */
void conn_run(struct conn *c);

/* The same in a new turn, unless it waits for one. */
void conn_turn(struct conn *c);

/* Have conn_run() called once before the loop waits again. */
void conn_wake(struct conn *c);

/* Read no more; answer what was asked. */
void conn_drain(struct conn *c);

/* Close the socket now. */
void conn_kill(struct conn *c);

/* Drop the half-received request and what was not parsed. */
void conn_input_drop(struct conn *c);

/* --- handshake.c ---------------------------------------------------------- */

/* Greet. -ENOMEM. */
int handshake_start(struct conn *c);
void handshake_input(struct conn *c);
void handshake_run(struct conn *c);
bool handshake_wants_input(const struct conn *c);
void handshake_free(struct conn *c);

/* --- transmit.c ----------------------------------------------------------- */

/* Read what there is, or a good part of it, and parse it. */
void transmit_input(struct conn *c);

/* May the next bytes be read? */
bool transmit_wants_input(const struct conn *c);

/* Bytes that were read before transmission began. */
void transmit_feed(struct conn *c, const unsigned char *p, size_t n);

/* Parse what was put by; false if there is nothing to do. */
bool transmit_resume(struct conn *c);

/* --- reply.c -------------------------------------------------------------- */

/* Send what the socket takes. */
void reply_send(struct conn *c);

#endif
