/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply.c: answers into the stream, many in one system call.
 *
 * Answers wait in a queue until the batch of requests that was read has been
 * parsed. Then one sendmsg takes up to 1024 pieces: runs of headers, copied
 * together into the loop's scratch, and the cache's own memory between them.
 * The scratch is made anew for each call, so nothing of it has to survive one;
 * all that is remembered is how many bytes of the first answer have gone.
 */
#include <errno.h>
#include <limits.h>

#include "request.h"

/* --- making one ----------------------------------------------------------- */

static uint32_t wire_error(int error)
{
	switch (-error) {
	case 0:
		return 0;
	case EPERM:
	case EROFS:
	case EACCES:
		return NBD_EPERM;
	case ENOMEM:
		return NBD_ENOMEM;
	case EINVAL:
		return NBD_EINVAL;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return NBD_ENOSPC;
	case EOVERFLOW:
		return NBD_EOVERFLOW;
	case EOPNOTSUPP:
		return NBD_ENOTSUP;
	case ESHUTDOWN:
		return NBD_ESHUTDOWN;
	default:
		return NBD_EIO;
	}
}

static void simple_reply(struct request *rq)
{
	unsigned char *p = rq->header;

	p = nbd_put32(p, NBD_SIMPLE_REPLY_MAGIC);
	p = nbd_put32(p, wire_error(rq->er.error));
	nbd_put64(p, rq->cookie);
	rq->nheader = NBD_SIMPLE_REPLY_SIZE;
}

unsigned char *reply_chunk(const struct request *rq, unsigned char *p,
	bool last, uint16_t type, size_t length)
{
	bool extended = rq->conn->extended;

	p = nbd_put32(p,
		extended ? NBD_EXTENDED_REPLY_MAGIC
			 : NBD_STRUCTURED_REPLY_MAGIC);
	p = nbd_put16(p, last ? NBD_REPLY_FLAG_DONE : 0);
	p = nbd_put16(p, type);
	p = nbd_put64(p, rq->cookie);
	if (!extended)
		return nbd_put32(p, (uint32_t)length);
	p = nbd_put64(p, rq->offset);
	return nbd_put64(p, length);
}

/* The head of the one and last chunk. */
static unsigned char *chunk(struct request *rq, uint16_t type, size_t length)
{
	return reply_chunk(rq, rq->header, true, type, length);
}

static void finish_chunk(struct request *rq, const unsigned char *end)
{
	rq->nheader = (unsigned)(end - rq->header);
}

static void empty_chunk(struct request *rq)
{
	finish_chunk(rq, chunk(rq, NBD_REPLY_TYPE_NONE, 0));
}

static void error_chunk(struct request *rq)
{
	bool where = rq->er.has_error_at;
	unsigned char *p = chunk(rq,
		where ? NBD_REPLY_TYPE_ERROR_OFFSET : NBD_REPLY_TYPE_ERROR,
		where ? 14 : 6);

	p = nbd_put32(p, wire_error(rq->er.error));
	p = nbd_put16(p, 0); /* no message */
	if (where)
		p = nbd_put64(p, rq->er.error_at);
	finish_chunk(rq, p);
}

static void data_chunk(struct request *rq)
{
	unsigned char *p;

	if (!rq->ndata) {
		empty_chunk(rq);
		return;
	}
	p = chunk(rq, NBD_REPLY_TYPE_OFFSET_DATA, 8 + rq->ndata);
	finish_chunk(rq, nbd_put64(p, rq->offset));
}

/* What is made piece by piece. 0 or -ENOMEM. */
static int make_pieces(struct request *rq)
{
	if (rq->type == NBD_CMD_BLOCK_STATUS)
		return reply_status(rq);
	if (rq->type != NBD_CMD_READ)
		return 0;
	rq->ndata = rq->length;
	return rq->er.holes ? reply_holes(rq) : 0;
}

/* The one chunk or reply, or the front of it. */
static void make_header(struct request *rq)
{
	const struct conn *c = rq->conn;
	bool read = rq->type == NBD_CMD_READ;

	if (rq->er.error &&
		(c->extended ||
			(c->structured &&
				(read || rq->type == NBD_CMD_BLOCK_STATUS))))
		error_chunk(rq);
	else if (c->structured && read)
		data_chunk(rq);
	else if (c->extended)
		empty_chunk(rq);
	else
		simple_reply(rq);
}

void reply_queue(struct request *rq)
{
	if (!rq->er.error)
		rq->er.error = make_pieces(rq);
	if (rq->er.error)
		rq->ndata = 0;
	if (!rq->tail) /* else that has all the chunks' heads */
		make_header(rq);
	list_push_tail(&rq->conn->replies, &rq->link);
}

/* --- sending -------------------------------------------------------------- */

/* Pieces for one sendmsg. */
struct batch {
	struct worker *worker;
	int niov;
	size_t nheaders;
	size_t bytes;
	size_t skip; /* bytes of the next answer that are sent already */
};

/* As much as one call, or one turn, may send? */
static bool pieces_full(const struct batch *b)
{
	return b->niov == WORKER_IOV || b->bytes >= CONN_TURN;
}

static bool batch_full(const struct batch *b)
{
	return pieces_full(b) ||
		WORKER_HEADER_BYTES - b->nheaders <
		sizeof(((struct request *)0)->header);
}

static void add(struct batch *b, const void *base, size_t length)
{
	struct iovec *next = b->worker->iov + b->niov;

	if (b->skip >= length) {
		b->skip -= length;
		return;
	}
	base = (const char *)base + b->skip;
	length -= b->skip;
	b->skip = 0;
	b->bytes += length;
	if (b->niov && (char *)next[-1].iov_base + next[-1].iov_len == base) {
		next[-1].iov_len += length;
		return;
	}
	*next = (struct iovec){(void *)base, length};
	b->niov++;
}

static void add_header(struct batch *b, const struct request *rq)
{
	unsigned char *to = b->worker->headers + b->nheaders;

	memcpy(to, rq->header, rq->nheader);
	b->nheaders += rq->nheader;
	add(b, to, rq->nheader);
}

/* False when it did not fit whole. */
static bool add_reply(struct batch *b, const struct request *rq)
{
	const struct iovec *iov = rq->pieces ? rq->pieces : rq->er.iov;
	unsigned n = rq->pieces ? rq->npieces : rq->er.niov;

	if (batch_full(b))
		return false;
	add_header(b, rq);
	for (unsigned i = 0; rq->ndata && i < n; i++) {
		if (pieces_full(b))
			return false;
		add(b, iov[i].iov_base, iov[i].iov_len);
	}
	if (rq->ntail) {
		if (pieces_full(b))
			return false;
		add(b, rq->tail, rq->ntail);
	}
	return true;
}

static void fill(struct batch *b, struct conn *c)
{
	*b = (struct batch){.worker = c->worker, .skip = c->tx_off};
	list_for_each (node, &c->replies) {
		if (!add_reply(b, list_entry(node, struct request, link)))
			return;
	}
}

/* `sent` more bytes have gone: free the answers that are complete. */
static void advance(struct conn *c, size_t sent)
{
	sent += c->tx_off;
	while (!list_empty(&c->replies)) {
		struct request *rq =
			list_entry(c->replies.next, struct request, link);
		size_t size = rq->nheader + rq->ndata + rq->ntail;

		if (sent < size)
			break;
		sent -= size;
		list_remove(&rq->link);
		request_free(rq);
	}
	c->tx_off = sent;
}

void reply_send(struct conn *c)
{
	struct batch b;
	ssize_t sent;

	while (!c->tx_blocked && !conn_turn_over(c) &&
		!list_empty(&c->replies)) {
		fill(&b, c);
		sent = transport_writev(&c->transport, c->worker->iov, b.niov);
		if (sent == -EAGAIN)
			sent = 0;
		if (sent < 0) {
			conn_kill(c);
			return;
		}
		advance(c, (size_t)sent);
		c->turn -= sent;
		/* Till the socket is writable again. */
		c->tx_blocked = (size_t)sent < b.bytes || c->transport.unsent;
	}
}
