/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rxbuf.h: receive buffers, shared by the connections of one loop.
 *
 * A loop reads every socket into one buffer, so that a connection that is
 * silent owns no memory. What has to stay after the batch that brought it
 * - the payload of a write the engine has not finished, requests not parsed
 * yet - holds a reference, and the loop goes on behind it in the same buffer,
 * or in a new one when that is used up.
 *
 *    data          used .. pinned or consumed ..      free
 *    |----------------------------------------|----------------|
 *    0                                       pos           RXBUF_SIZE
 *
 * Rules:
 *  1. Bytes below `pos` are never overwritten while anyone but the loop holds
 *     a reference; when only the loop does, it starts again at 0.
 *  2. One small thing that has to stay keeps all of a buffer. When the loop is
 *     rxpool_crowded(), what stays is copied out instead.
 *  3. Loop thread only: the counts are plain integers.
 */
#ifndef WEIR_SERVER_RXBUF_H
#define WEIR_SERVER_RXBUF_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

#define RXBUF_SIZE (256U << 10) /* bytes */

struct rxpool;

struct rxbuf {
	unsigned refs;
	size_t pos;
	struct rxpool *pool;
	struct rxbuf *next_free;
	alignas(64) unsigned char data[RXBUF_SIZE];
};

/* The buffers of a loop: the one being filled, and some spare ones. */
struct rxpool {
	struct rxbuf *current;
	struct rxbuf *free;
	unsigned nfree;
	unsigned nlive; /* buffers that are not free */
};

void rxpool_init(struct rxpool *pool);
void rxpool_destroy(struct rxpool *pool);

/*
 * Make sure that at least `min` bytes are free behind `pos` of the current
 * buffer, and return it without a new reference; NULL: no memory.
 */
struct rxbuf *rxpool_room(struct rxpool *pool, size_t min);

/* Are more buffers held than a loop should need? */
bool rxpool_crowded(const struct rxpool *pool);

static inline struct rxbuf *rxbuf_get(struct rxbuf *b)
{
	b->refs++;
	return b;
}

/* Drop a reference. Accepts NULL. */
void rxbuf_put(struct rxbuf *b);

#endif
