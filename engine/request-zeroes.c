/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request-zeroes.c: detect-zeroes: a plain write of zeroes becomes what
 * write-zeroes is (request-through.c).
 *
 * The longest run of whole zero blocks is looked for, and taken
 *  1. if it is all the whole blocks of the request, however few: mkfs writes
 *     like that;
 *  2. or if it is RUN_MIN long: one call to the store and a range to remember
 *     cost more than a few blocks of zeroes in a longer run of dirty ones.
 *     Not on a direct export, where the rest would go through the cache.
 * What is before and after it is written as it would have been.
 *
 * Data costs a look at the first words of each of its blocks.
 */
#include "base/iov.h"
#include "base/zero.h"
#include "engine-impl.h"

#define RUN_MIN (64U << 10) /* bytes */

/* Are the next n bytes zeroes? Moves past them. */
static bool take_zeroes(struct iov_cursor *c, size_t n)
{
	bool zero = true;
	void *piece;

	for (size_t len; (len = iov_take(c, n, &piece)); n -= len)
		zero = zero && memory_is_zero(piece, len);
	return zero;
}

/* The longest run of zero blocks of [from, to), which `c` stands at: r->a and
 * r->b. */
static void find_run(
	struct request *r, struct iov_cursor *c, uint64_t from, uint64_t to)
{
	uint64_t block = r->e->config.block_size, start = from;

	r->a = r->b = from;
	for (uint64_t at = from, next; at < to; at = next) {
		next = to - at < block ? to : at + block;
		if (!take_zeroes(c, next - at))
			start = next;
		else if (next - start > r->b - r->a) {
			r->a = start;
			r->b = next;
		}
	}
}

/* Are there zeroes that are worth it? Then they are [r->a, r->b). */
static bool find_zeroes(struct request *r)
{
	struct engine_request *req = request_front(r);
	struct iovec flat = {req->buf, req->length};
	struct iov_cursor c = {.iov = req->buf ? &flat : req->iov};
	uint64_t from, to;

	request_whole_blocks(r, &from, &to);
	if (from >= to)
		return false;
	iov_skip(&c, from - req->offset);
	find_run(r, &c, from, to);
	if (r->a == from && r->b == to)
		return true;
	return r->b - r->a >= RUN_MIN && req->export->cache != ENGINE_NONE;
}

int step_detect(struct request *r)
{
	request_rewind(r);
	if (find_zeroes(r)) {
		r->zeroes = true;
		r->step = step_through;
	}
	return r->step(r);
}
