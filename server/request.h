/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h: an NBD request from its header to the last byte of its answer.
 *
 *   request_new -> [payload arrives] -> dispatch -> engine -> reply_queue
 *      -> sent -> request_free
 *
 * Loop thread of the connection only. Requests come from a free list of the
 * loop: no memory is allocated for a read or write that hits.
 */
#ifndef WEIR_SERVER_REQUEST_H
#define WEIR_SERVER_REQUEST_H

#include "conn.h"

/* What a request costs besides its payload, in bytes in flight. */
#define REQUEST_COST 1024U

/* Extents of one answer to BLOCK_STATUS. */
#define REQUEST_EXTENTS 1024U

struct request {
	struct conn *conn;
	struct list link; /* conn->replies */
	struct request *next_free;
	uint64_t cookie;
	uint64_t offset; /* bytes, as asked */
	uint64_t cost;   /* bytes, in conn->inflight */
	uint64_t mark;   /* FLUSH: conn->changes when it began */
	uint64_t length; /* bytes */
	uint16_t type, flags;
	bool own;         /* the server's own flush: no answer */
	bool holds_data;  /* engine_release() is due */
	struct rxbuf *rx; /* where the payload lies */
	void *copy;       /* or here; owned */
	/* The answer: header, the engine's iov or `pieces`, then `tail`. */
	unsigned nheader;
	unsigned char header[NBD_EXTENDED_CHUNK_SIZE + 14];
	struct iovec *pieces; /* instead of the engine's iov; owned */
	unsigned npieces;
	size_t ndata;        /* bytes in the engine's iov, or the pieces */
	unsigned char *tail; /* what is made for the answer; owned */
	size_t ntail;        /* bytes of it, behind the rest */
	struct engine_extent *extents; /* BLOCK_STATUS; owned */
	struct engine_request er;
};

/* How many extents of a context BLOCK_STATUS is answered with at most. */
static inline unsigned request_extents(const struct request *rq)
{
	return rq->flags & NBD_CMD_FLAG_REQ_ONE ? 1 : REQUEST_EXTENTS;
}

/* NULL: no memory. */
struct request *request_new(struct conn *c);

/* The engine has done with the payload. */
void request_drop_payload(struct request *rq);

/* Let go of all it holds. */
void request_free(struct request *rq);

/* --- dispatch.c ----------------------------------------------------------- */

/* 0, or the negative errno to answer without asking the engine. */
int dispatch_check(const struct request *rq);

/* Fill in the engine's request. */
void dispatch_prepare(struct request *rq);

/* Hand to the engine; the answer is queued, now or later. */
void dispatch_submit(struct request *rq);

/* Answer with an error without asking the engine. */
void dispatch_fail(struct request *rq, int error);

/* Submit the flush of a connection that ends. -ENOMEM. */
int dispatch_own_flush(struct conn *c);

/* --- reply.c -------------------------------------------------------------- */

/* Make the answer from rq->er and put it in the queue. */
void reply_queue(struct request *rq);

/* Put the head of a chunk, the last one or not, in front of `length` bytes;
 * returns where those go. Room: NBD_EXTENDED_CHUNK_SIZE. */
unsigned char *reply_chunk(const struct request *rq, unsigned char *p,
	bool last, uint16_t type, size_t length);

/* --- reply-chunks.c ------------------------------------------------------- */

/* The pieces of a READ that has holes: chunks, each with its head, or, without
 * structured replies or with DF, the data and zeroes that follow a header that
 * is still to be made. 0 or -ENOMEM. */
int reply_holes(struct request *rq);

/* The answer to BLOCK_STATUS: a chunk for each context. 0 or -ENOMEM. */
int reply_status(struct request *rq);

#endif
