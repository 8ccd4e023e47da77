/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transmit.c: requests out of the stream, many from one read.
 *
 *   socket --readv--> [ rest of a payload | the loop's receive buffer ]
 *                        page memory          |
 *                                             v parse
 *                       head      payload      head  head  pay|
 *                       whole payload here: the engine copies from here
 *                       a large one, part here: that part is copied into
 *                         page memory, the rest is read straight into it
 *                       a small one, part here: the rest is read behind it
 *
 *  1. The stream stays in step whatever a request says: a payload nobody
 *     wants is read and dropped before the error is answered.
 *  2. The next request is parsed only while less than inflight_limit is in
 *     flight; what was read beyond stays where it is (`stash`), and the
 *     socket is not read. Requests behind a parked write are served till then.
 *     The same when its turn is over, until the next.
 *  3. A request that is not whole keeps no receive buffer: a part of a header
 *     moves to the connection.
 */
#include <errno.h>
#include <stdlib.h>

#include "request.h"

/* From this size a payload is received in place. Bytes. */
#define DIRECT_MIN (64U << 10)

/* Room asked for one read. Bytes; at least DIRECT_MIN and a header. */
#define READ_ROOM (96U << 10)

/* Read behind a large payload, where another may follow: what comes here is
 * copied once more than what is received in place. Bytes. */
#define READ_TAIL (4U << 10)

/* Reads of one connection in a row, before its answers are sent and others
 * have their turn. */
#define READS_AT_ONCE 8U

/* --- reading -------------------------------------------------------------- */

/* The pieces of memory that the payload still has to fill. */
static int payload_iov(const struct conn *c, struct iovec *iov, int max)
{
	const struct conn_input *in = &c->in;
	const struct engine_request *er;
	size_t off = in->iov_off;
	int n = 0;

	if (!in->cur || in->skip)
		return 0;
	er = &in->cur->er;
	if (er->buf) {
		iov[0].iov_base = (char *)er->buf + in->cur->length - in->rest;
		iov[0].iov_len = in->rest;
		return 1;
	}
	for (unsigned i = in->iov_at; i < er->niov && n < max; i++, off = 0) {
		iov[n].iov_base = (char *)er->iov[i].iov_base + off;
		iov[n++].iov_len = er->iov[i].iov_len - off;
	}
	return n;
}

/* `n` bytes of the payload have come. */
static void payload_advance(struct conn *c, size_t n)
{
	struct conn_input *in = &c->in;
	const struct engine_request *er = &in->cur->er;

	in->rest -= n;
	if (er->buf)
		return;
	in->iov_off += n;
	while (in->iov_at < er->niov &&
		in->iov_off >= er->iov[in->iov_at].iov_len)
		in->iov_off -= er->iov[in->iov_at++].iov_len;
}

/* Copy what is there of the payload into the memory it goes to. */
static void payload_copy(struct conn *c, const unsigned char *p, size_t n)
{
	struct iovec iov;

	while (n && payload_iov(c, &iov, 1)) {
		size_t part = iov.iov_len < n ? iov.iov_len : n;

		memcpy(iov.iov_base, p, part);
		payload_advance(c, part);
		p += part;
		n -= part;
	}
}

/* The payload is whole. */
static void payload_done(struct conn *c)
{
	struct request *rq = c->in.cur;

	c->in.cur = NULL;
	rq->holds_data = false;
	dispatch_submit(rq);
}

/* Cut the pieces down to that many bytes; how many there are. */
static size_t clip(struct iovec *iov, int *n, size_t max)
{
	size_t sum = 0;

	for (int i = 0; i < *n; i++) {
		if (iov[i].iov_len >= max - sum) {
			iov[i].iov_len = max - sum;
			*n = i + 1;
			return max;
		}
		sum += iov[i].iov_len;
	}
	return sum;
}

/*
 * One read: first the rest of a payload, then behind the loop's data. `at` is
 * set to what came there, `more` if there was room for no more. Bytes read, 0
 * at the end, or a negative errno.
 */
static ssize_t receive(struct conn *c, struct cursor *at, bool *more)
{
	struct conn_input *in = &c->in;
	struct iovec *iov = c->worker->iov;
	struct rxbuf *b = rxpool_room(&c->worker->rx, READ_ROOM);
	size_t room, want, part;
	ssize_t got;
	int n;

	if (!b)
		return -ENOMEM;
	at->buf = b;
	at->p = at->end = b->data + b->pos;
	n = payload_iov(c, iov, WORKER_IOV - 1);
	want = clip(iov, &n, CONN_TURN);
	room = in->large ? READ_TAIL : RXBUF_SIZE - b->pos - in->nhead;
	if (n && want < in->rest) /* what follows is payload still */
		room = 0;
	iov[n].iov_base = at->p + in->nhead;
	iov[n].iov_len = room;
	got = transport_readv(&c->transport, iov, n + 1);
	if (got <= 0)
		return got;
	part = 0;
	c->turn -= got;
	*more = (size_t)got == room + want;
	if (n) {
		part = (size_t)got < in->rest ? (size_t)got : in->rest;
		payload_advance(c, part);
	}
	if ((size_t)got > part) {
		memcpy(at->p, in->head, in->nhead);
		at->end = at->p + in->nhead + ((size_t)got - part);
		in->nhead = 0;
		b->pos += (size_t)(at->end - at->p);
	}
	return got;
}

/* --- writes --------------------------------------------------------------- */

static void payload_begin(struct conn *c, struct request *rq)
{
	c->in.cur = rq;
	c->in.iov_at = 0;
	c->in.iov_off = 0;
	c->in.rest = rq->length;
}

/* Receive in place: the part that is there is copied. */
static int write_direct(struct conn *c, struct request *rq, struct cursor *at)
{
	int r = engine_payload(&rq->er);

	if (r)
		return r;
	rq->holds_data = true;
	payload_begin(c, rq);
	payload_copy(c, at->p, (size_t)(at->end - at->p));
	return 0;
}

/* Where many buffers are held, memory of its own for a payload, of which
 * `have` bytes are here. False: it stays where it is. */
static bool copy_out(struct request *rq, const struct cursor *at, size_t have)
{
	if (!rxpool_crowded(&rq->conn->worker->rx))
		return false;
	rq->copy = malloc(rq->length);
	if (!rq->copy)
		return false;
	rq->er.buf = memcpy(rq->copy, at->p, have);
	return true;
}

/* Keep room for the rest right behind the part that is there; if others have
 * read there since, or the buffer ends, move to where there is room. */
static int write_behind(struct conn *c, struct request *rq, struct cursor *at)
{
	size_t have = (size_t)(at->end - at->p);
	struct rxbuf *b = at->buf;

	if (copy_out(rq, at, have)) {
		payload_begin(c, rq);
		c->in.rest -= have;
		return 0;
	}
	if (at->end == b->data + b->pos &&
		RXBUF_SIZE - b->pos >= rq->length - have) {
		rq->er.buf = at->p;
		b->pos += rq->length - have;
	} else {
		b = rxpool_room(&c->worker->rx, rq->length);
		if (!b)
			return -ENOMEM;
		rq->er.buf = memcpy(b->data + b->pos, at->p, have);
		b->pos += rq->length;
	}
	rq->rx = rxbuf_get(b);
	payload_begin(c, rq);
	c->in.rest -= have;
	return 0;
}

/* All of it is here: the engine takes it from the receive buffer, which stays
 * as long as the engine needs it. */
static void write_whole(struct request *rq, struct cursor *at)
{
	if (!copy_out(rq, at, rq->length)) {
		rq->er.buf = at->p;
		rq->rx = rxbuf_get(at->buf);
	}
	at->p += rq->length;
	dispatch_submit(rq);
}

/* Read its payload and drop it, then answer. */
static void write_skip(struct conn *c, struct request *rq, int error)
{
	rq->er.error = error;
	c->in.cur = rq;
	c->in.skip = rq->length;
	c->in.large = false;
}

/* Bytes more in flight. */
static void charge(struct request *rq, uint64_t bytes)
{
	rq->cost += bytes;
	rq->conn->inflight += bytes;
}

static void take_write(struct conn *c, struct request *rq, struct cursor *at)
{
	bool direct = rq->length >= DIRECT_MIN;
	int r;

	c->in.large = direct;
	charge(rq, rq->length);
	if (rq->length <= (size_t)(at->end - at->p)) {
		write_whole(rq, at);
		return;
	}
	if (direct)
		r = write_direct(c, rq, at);
	else
		r = write_behind(c, rq, at);
	if (r)
		write_skip(c, rq, r);
	else
		at->p = at->end;
}

/* --- parsing -------------------------------------------------------------- */

/* Drop unwanted payload; true when the stream is at a request again. */
static bool skip_payload(struct conn *c, struct cursor *at)
{
	struct conn_input *in = &c->in;
	uint64_t have = (uint64_t)(at->end - at->p);
	uint64_t n = have < in->skip ? have : in->skip;
	struct request *rq = in->cur;

	at->p += n;
	in->skip -= n;
	if (in->skip)
		return false;
	in->cur = NULL;
	dispatch_fail(rq, rq->er.error);
	return true;
}

/* Memory that the answer needs. */
static uint64_t request_room(const struct request *rq)
{
	const struct conn *c = rq->conn;

	if (rq->type == NBD_CMD_READ)
		return rq->length;
	if (rq->type == NBD_CMD_BLOCK_STATUS)
		return request_extents(rq) * sizeof(*rq->extents) *
			(1 + (uint64_t)__builtin_popcount(c->contexts));
	return 0;
}

static void take_other(struct conn *c, struct request *rq)
{
	charge(rq, request_room(rq));
	if (rq->type == NBD_CMD_READ)
		c->turn -= (int64_t)rq->length;
	dispatch_submit(rq);
}

static unsigned header_size(const struct conn *c)
{
	return c->extended ? NBD_EXTENDED_REQUEST_SIZE : NBD_REQUEST_SIZE;
}

static uint32_t header_magic(const struct conn *c)
{
	return c->extended ? NBD_EXTENDED_REQUEST_MAGIC : NBD_REQUEST_MAGIC;
}

static void decode(struct request *rq, const unsigned char *p)
{
	engine_request_init(&rq->er);
	rq->flags = nbd_get16(p + 4);
	rq->type = nbd_get16(p + 6);
	rq->cookie = nbd_get64(p + 8);
	rq->offset = nbd_get64(p + 16);
	rq->er.offset = rq->offset;
	rq->er.error = 0;
	rq->length = rq->conn->extended ? nbd_get64(p + 24) : nbd_get32(p + 24);
}

/* Do as many bytes as its length says follow it? */
static bool has_payload(const struct request *rq)
{
	return rq->length &&
		(rq->type == NBD_CMD_WRITE ||
			(rq->conn->extended &&
				rq->flags & NBD_CMD_FLAG_PAYLOAD_LEN));
}

static void take_request(struct conn *c, struct cursor *at)
{
	struct request *rq;
	int error;

	if (nbd_get32(at->p) != header_magic(c)) {
		log_debug("%s: not a request: bad magic", c->peer);
		conn_kill(c);
		return;
	}
	if (nbd_get16(at->p + 6) == NBD_CMD_DISC) {
		conn_drain(c);
		return;
	}
	rq = request_new(c);
	if (!rq) {
		conn_kill(c);
		return;
	}
	decode(rq, at->p);
	at->p += header_size(c);
	rq->cost = REQUEST_COST;
	c->worker->met++;
	c->inflight += REQUEST_COST;
	c->turn -= REQUEST_COST;
	error = dispatch_check(rq);
	if (!error)
		dispatch_prepare(rq);
	if (error && has_payload(rq))
		write_skip(c, rq, error);
	else if (error)
		dispatch_fail(rq, error);
	else if (rq->type == NBD_CMD_WRITE)
		take_write(c, rq, at);
	else
		take_other(c, rq);
}

/* Put by what is not parsed, in place. */
static void put_by(struct conn *c, const struct cursor *at)
{
	c->in.stash = *at;
	rxbuf_get(at->buf);
}

static void keep_head(struct conn *c, const struct cursor *at)
{
	c->in.nhead = (unsigned)(at->end - at->p);
	memcpy(c->in.head, at->p, c->in.nhead);
}

static void parse(struct conn *c, struct cursor *at)
{
	while (c->state == CONN_OPEN && at->p < at->end) {
		if (c->in.skip && !skip_payload(c, at))
			return;
		if (at->end - at->p < header_size(c)) {
			keep_head(c, at);
			return;
		}
		if (conn_full(c) || conn_turn_over(c)) {
			put_by(c, at);
			return;
		}
		take_request(c, at);
	}
}

/* --- entry ---------------------------------------------------------------- */

bool transmit_wants_input(const struct conn *c)
{
	if (c->state != CONN_OPEN || c->in.stash.buf || c->transport.stalled)
		return false;
	return c->in.cur || !conn_full(c);
}

/* One read, and what it brought; true if there is probably more. */
static bool input_once(struct conn *c)
{
	struct cursor at;
	bool more = false;
	ssize_t got = receive(c, &at, &more);

	if (got == -EAGAIN)
		return false;
	if (got == 0) {
		conn_drain(c);
		return false;
	}
	if (got < 0) {
		conn_kill(c);
		return false;
	}
	if (c->in.cur && !c->in.skip && !c->in.rest)
		payload_done(c);
	parse(c, &at);
	return more && !conn_turn_over(c) && transmit_wants_input(c);
}

void transmit_input(struct conn *c)
{
	unsigned left = READS_AT_ONCE;

	while (input_once(c) && --left)
		;
	if (c->in.cur) /* a payload comes in pieces: sleep between them */
		c->worker->met += 2;
}

void transmit_feed(struct conn *c, const unsigned char *p, size_t n)
{
	struct cursor at;

	if (!n)
		return;
	at.buf = rxpool_room(&c->worker->rx, n);
	if (!at.buf) {
		conn_kill(c);
		return;
	}
	at.p = memcpy(at.buf->data + at.buf->pos, p, n);
	at.end = at.p + n;
	at.buf->pos += n;
	parse(c, &at);
}

bool transmit_resume(struct conn *c)
{
	struct cursor at = c->in.stash;

	if (c->state != CONN_OPEN || !at.buf || conn_full(c) ||
		conn_turn_over(c))
		return false;
	c->in.stash = (struct cursor){0};
	parse(c, &at);
	rxbuf_put(at.buf);
	return true;
}
