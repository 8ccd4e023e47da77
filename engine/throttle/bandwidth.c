/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth.c: the arithmetic of bandwidth.h.
 *
 * With e the time since the last update and d what was written in it:
 *
 *   rate'    = (d + rate (T - e)) / T     or d / e, if that was longer than T
 *   average' = average, an eighth nearer to rate, if rate' is on the far side
 *              of rate or level with it; else as it was
 *
 *  1. A constant speed is the fixed point of both, reached from either side.
 *  2. A counter that went back counts as nothing written.
 *  3. Neither is ever 0 for who divides by it: average is 1 at least.
 */
#include "../base/reactor.h"
#include "bandwidth.h"

#define PERIOD_NS (4 * NSEC_PER_SEC)
#define INTERVAL_NS (200 * NSEC_PER_MSEC)
#define LIMIT_FLOOR (UINT64_C(1) << 20) /* bytes; the largest block */

void bandwidth_init(struct bandwidth *b, uint64_t now_ns, uint64_t written)
{
	*b = (struct bandwidth){
		.rate = BANDWIDTH_START,
		.average = BANDWIDTH_START,
		.stamp_ns = now_ns,
		.written = written,
	};
}

/* a * b / c without overflow on the way. */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
	return (uint64_t)((unsigned __int128)a * b / c);
}

/* Rounded up, so that it gets there. */
static uint64_t eighth(uint64_t n)
{
	return (n + 7) / 8;
}

static uint64_t follow(uint64_t average, uint64_t old, uint64_t rate)
{
	if (average > old && old >= rate)
		average -= eighth(average - old);
	else if (average < old && old <= rate)
		average += eighth(old - average);
	return average;
}

bool bandwidth_update(struct bandwidth *b, uint64_t now_ns, uint64_t written)
{
	uint64_t e = now_ns - b->stamp_ns;
	uint64_t done = written > b->written ? written - b->written : 0;
	uint64_t old = b->rate;

	if (e < INTERVAL_NS)
		return false;
	if (e > PERIOD_NS) {
		b->rate = scale(done, NSEC_PER_SEC, e);
		b->average = b->rate;
	} else {
		b->rate = scale(done, NSEC_PER_SEC, PERIOD_NS) +
			scale(old, PERIOD_NS - e, PERIOD_NS);
		b->average = follow(b->average, old, b->rate);
	}
	if (!b->average)
		b->average = 1;
	b->stamp_ns = now_ns;
	b->written = written;
	return true;
}

uint64_t bandwidth_limit(
	const struct bandwidth *b, uint64_t limit, uint64_t time_ns)
{
	uint64_t room;

	if (!time_ns)
		return limit;
	room = scale(b->average << BANDWIDTH_PAGE_SHIFT, time_ns, NSEC_PER_SEC);
	if (room < LIMIT_FLOOR)
		room = LIMIT_FLOOR;
	return room < limit ? room : limit;
}
