/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxbuf.c: receive buffers, shared by the connections of one loop.
 */
#include <stdlib.h>

#include "rxbuf.h"

/* Spare buffers kept; a burst of pinned ones beyond that is given back. */
#define RXPOOL_SPARE 8U

/* Buffers in use, from which on nothing more is kept in them: 8 MiB. */
#define RXPOOL_CROWD 32U

void rxpool_init(struct rxpool *pool)
{
	*pool = (struct rxpool){0};
}

static struct rxbuf *rxbuf_new(struct rxpool *pool)
{
	struct rxbuf *b = pool->free;

	if (b) {
		pool->free = b->next_free;
		pool->nfree--;
	} else {
		b = aligned_alloc(alignof(struct rxbuf), sizeof(*b));
		if (!b)
			return NULL;
		b->pool = pool;
	}
	pool->nlive++;
	b->refs = 1;
	b->pos = 0;
	return b;
}

void rxbuf_put(struct rxbuf *b)
{
	struct rxpool *pool;

	if (!b || --b->refs)
		return;
	pool = b->pool;
	pool->nlive--;
	if (pool->nfree >= RXPOOL_SPARE) {
		free(b);
		return;
	}
	b->next_free = pool->free;
	pool->free = b;
	pool->nfree++;
}

struct rxbuf *rxpool_room(struct rxpool *pool, size_t min)
{
	struct rxbuf *b = pool->current;

	if (b && b->refs == 1)
		b->pos = 0;
	if (b && RXBUF_SIZE - b->pos >= min)
		return b;
	b = rxbuf_new(pool);
	if (!b)
		return NULL;
	rxbuf_put(pool->current);
	pool->current = b;
	return b;
}

bool rxpool_crowded(const struct rxpool *pool)
{
	return pool->nlive >= RXPOOL_CROWD;
}

void rxpool_destroy(struct rxpool *pool)
{
	rxbuf_put(pool->current);
	pool->current = NULL;
	while (pool->free) {
		struct rxbuf *b = pool->free;

		pool->free = b->next_free;
		free(b);
	}
	pool->nfree = 0;
}
