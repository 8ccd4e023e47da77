/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.c: requests, from a free list of the loop.
 */
#include <stdlib.h>

#include "request.h"

/* Kept for reuse; a burst beyond that is given back. */
#define FREE_REQUESTS 512U

struct request *request_new(struct conn *c)
{
	struct worker *w = c->worker;
	struct request *rq = w->free_requests;

	if (rq) {
		w->free_requests = rq->next_free;
		w->nfree_requests--;
	} else {
		rq = malloc(sizeof(*rq));
		if (!rq)
			return NULL;
	}
	rq->conn = c;
	list_init(&rq->link);
	rq->cost = 0;
	rq->mark = 0;
	rq->own = false;
	rq->holds_data = false;
	rq->rx = NULL;
	rq->copy = NULL;
	rq->nheader = 0;
	rq->pieces = NULL;
	rq->tail = NULL;
	rq->ntail = 0;
	rq->ndata = 0;
	rq->extents = NULL;
	return rq;
}

void request_drop_payload(struct request *rq)
{
	rxbuf_put(rq->rx);
	free(rq->copy);
	rq->rx = NULL;
	rq->copy = NULL;
}

void request_free(struct request *rq)
{
	struct conn *c = rq->conn;
	struct worker *w = c->worker;

	if (rq->holds_data)
		engine_release(&rq->er);
	request_drop_payload(rq);
	free(rq->pieces);
	free(rq->tail);
	free(rq->extents);
	c->inflight -= rq->cost;
	if (w->nfree_requests >= FREE_REQUESTS) {
		free(rq);
		return;
	}
	rq->next_free = w->free_requests;
	w->free_requests = rq;
	w->nfree_requests++;
}
