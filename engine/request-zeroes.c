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
 * Data costs a look at the first words of one block in each 64K: a run that
 * long which begins in a stretch of 64K has the last block of it.
 */
#include "base/iov.h"
#include "base/zero.h"
#include "engine-impl.h"

#define RUN_MIN (64U << 10) /* bytes */

/* Are the next n bytes zeroes? If not, it may not have moved past them. */
static bool take_zeroes(struct iov_cursor *c, size_t n)
{
	void *piece;

	while (n) {
		size_t len = iov_take(c, n, &piece);

		if (!memory_is_zero(piece, len))
			return false;
		n -= len;
	}
	return true;
}

/* How many of the n bytes at `c`, whole blocks but for the last, are blocks
 * of zeroes in a row? Moves past them. */
static uint64_t take_run(struct iov_cursor *c, uint64_t n, uint64_t block)
{
	uint64_t run = 0;

	while (run < n) {
		uint64_t len = n - run < block ? n - run : block;
		struct iov_cursor next = *c;

		if (!take_zeroes(&next, len))
			break;
		*c = next;
		run += len;
	}
	return run;
}

/* The longest run of RUN_MIN or more in the blocks [from, to), which `c`
 * stands at: r->a and r->b. */
static bool find_run(
	struct request *r, struct iov_cursor c, uint64_t from, uint64_t to)
{
	uint64_t block = r->e->config.block_size, run, after;
	uint64_t least = block < RUN_MIN ? RUN_MIN : block;

	r->a = r->b = from;
	for (; to - from >= least; from += after) {
		struct iov_cursor last = c;

		iov_skip(&last, least - block);
		if (!take_zeroes(&last, block)) {
			after = least; /* no run begins in this stretch */
			iov_skip(&c, after);
			continue;
		}
		run = take_run(&c, to - from, block);
		if (run >= least && run > r->b - r->a) {
			r->a = from;
			r->b = from + run;
		}
		after = to - from - run < block ? 0 : block;
		iov_skip(&c, after);
		after += run;
	}
	return r->b > r->a;
}

bool request_is_zeroes(struct request *r)
{
	struct engine_request *req = request_front(r);
	struct iovec flat = {req->buf, req->length};
	struct iov_cursor c = {.iov = req->buf ? &flat : req->iov}, all;
	uint64_t block = r->e->config.block_size;

	request_whole_blocks(r, &r->a, &r->b);
	if (r->a >= r->b)
		return false;
	iov_skip(&c, r->a - req->offset);
	all = c;
	if (take_run(&all, r->b - r->a, block) == r->b - r->a)
		return true;
	return req->export->cache != ENGINE_NONE && find_run(r, c, r->a, r->b);
}
