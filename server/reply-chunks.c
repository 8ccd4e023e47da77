/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply-chunks.c: answers of more than one chunk.
 */
#include <errno.h>
#include <stdlib.h>

#include "request.h"

/* --- READ with holes ------------------------------------------------------ */

/* A chunk's head, the offset and, of a hole, its length. */
#define HOLE_HEAD (NBD_EXTENDED_CHUNK_SIZE + 12)

static const unsigned char zeroes[64U << 10];

static void piece(struct request *rq, const void *base, size_t length)
{
	rq->pieces[rq->npieces++] = (struct iovec){(void *)base, length};
	rq->ndata += length;
}

/* All of it as data. */
static void put_flat(struct request *rq)
{
	for (unsigned i = 0; i < rq->er.niov; i++) {
		struct iovec v = rq->er.iov[i];

		if (v.iov_base)
			piece(rq, v.iov_base, v.iov_len);
		for (size_t n; !v.iov_base && v.iov_len; v.iov_len -= n) {
			n = v.iov_len < sizeof(zeroes) ? v.iov_len
						       : sizeof(zeroes);
			piece(rq, zeroes, n);
		}
	}
}

/* The run of data, or the hole, from iov[i] on, at the device's offset `at`;
 * its head goes to `p`. Returns where the next begins. */
static unsigned put_chunk(
	struct request *rq, unsigned i, uint64_t *at, unsigned char **p)
{
	const struct iovec *iov = rq->er.iov;
	bool hole = !iov[i].iov_base;
	unsigned char *head = *p;
	unsigned end = i;
	size_t length = 0;

	do
		length += iov[end++].iov_len;
	while (end < rq->er.niov && !hole && iov[end].iov_base);
	*p = reply_chunk(rq, head, end == rq->er.niov,
		hole ? NBD_REPLY_TYPE_OFFSET_HOLE : NBD_REPLY_TYPE_OFFSET_DATA,
		hole ? 12 : 8 + length);
	*p = nbd_put64(*p, *at);
	if (hole)
		*p = nbd_put32(*p, (uint32_t)length);
	piece(rq, head, (size_t)(*p - head));
	for (; !hole && i < end; i++)
		piece(rq, iov[i].iov_base, iov[i].iov_len);
	*at += length;
	return end;
}

int reply_holes(struct request *rq)
{
	unsigned niov = rq->er.niov;
	bool split = rq->conn->structured &&
		(!(rq->flags & NBD_CMD_FLAG_DF) || niov == 1);
	uint64_t at = rq->offset;
	unsigned char *p;

	rq->pieces = malloc(
		(2 * niov + rq->length / sizeof(zeroes)) * sizeof(*rq->pieces));
	if (split)
		rq->tail = malloc(niov * HOLE_HEAD);
	if (!rq->pieces || (split && !rq->tail)) {
		free(rq->tail);
		rq->tail = NULL;
		return -ENOMEM;
	}
	rq->npieces = 0;
	rq->ndata = 0;
	p = rq->tail;
	if (!split)
		put_flat(rq);
	for (unsigned i = 0; split && i < niov;)
		i = put_chunk(rq, i, &at, &p);
	return 0;
}

/* --- BLOCK_STATUS --------------------------------------------------------- */

/* A chunk's head, the context's id and the number of extents. */
#define STATUS_HEAD (NBD_EXTENDED_CHUNK_SIZE + 8)
#define STATUS_EXTENT 16U /* bytes on the wire, extended */

/* What one context says. */
struct answer {
	uint32_t id;
	const struct engine_extent *extents;
	unsigned n;
};

/* One may be longer than was asked for, and than 32 bits say: it is cut, and
 * then the last. */
static unsigned char *put_extents(const struct request *rq, unsigned char *p,
	const struct answer *a, uint32_t *count)
{
	uint64_t left = rq->length;

	*count = 0;
	for (; *count < a->n && left; ++*count) {
		struct engine_extent e = a->extents[*count];
		uint64_t length = e.length < left ? e.length : left;

		if (rq->conn->extended) {
			p = nbd_put64(p, length);
			p = nbd_put64(p, e.flags);
		} else {
			p = nbd_put32(p, (uint32_t)length);
			p = nbd_put32(p, e.flags);
		}
		left -= length;
	}
	return p;
}

static unsigned char *put_status(const struct request *rq, unsigned char *p,
	const struct answer *a, bool last)
{
	bool extended = rq->conn->extended;
	unsigned char *head = p;
	uint32_t count;
	size_t size;

	/* The head goes in when it is known how long what follows is. */
	p += extended ? STATUS_HEAD : NBD_CHUNK_SIZE + 4;
	p = put_extents(rq, p, a, &count);
	size = (size_t)(p - head) -
		(extended ? NBD_EXTENDED_CHUNK_SIZE : NBD_CHUNK_SIZE);
	head = reply_chunk(rq, head, last,
		extended ? NBD_REPLY_TYPE_BLOCK_STATUS_EXT
			 : NBD_REPLY_TYPE_BLOCK_STATUS,
		size);
	head = nbd_put32(head, a->id);
	if (extended)
		nbd_put32(head, count);
	return p;
}

/* The contexts that were chosen, in the order of their ids. */
static unsigned gather(
	const struct request *rq, struct answer *a, struct engine_extent *room)
{
	const struct conn *c = rq->conn;
	unsigned n = 0;

	if (c->contexts & 1U << NBD_CONTEXT_ALLOCATION)
		a[n++] = (struct answer){NBD_CONTEXT_ALLOCATION, rq->er.extents,
			rq->er.nextents};
	if (c->contexts & 1U << NBD_CONTEXT_CACHE)
		a[n++] = (struct answer){NBD_CONTEXT_CACHE, room,
			engine_cache_status(c->export->export, rq->offset,
				rq->length, room, request_extents(rq))};
	return n;
}

int reply_status(struct request *rq)
{
	struct answer answers[NBD_CONTEXTS];
	struct engine_extent *room = calloc(request_extents(rq), sizeof(*room));
	unsigned char *p = NULL;
	size_t size = 0;
	unsigned n;

	if (!room)
		return -ENOMEM;
	n = gather(rq, answers, room);
	for (unsigned i = 0; i < n; i++)
		size += STATUS_HEAD + (size_t)answers[i].n * STATUS_EXTENT;
	p = rq->tail = malloc(size);
	for (unsigned i = 0; p && i < n; i++)
		p = put_status(rq, p, &answers[i], i == n - 1);
	if (p)
		rq->ntail = (size_t)(p - rq->tail);
	free(room);
	return p ? 0 : -ENOMEM;
}
