/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ratelimit.c: see ratelimit.h.
 */
#include "../base/reactor.h"
#include "ratelimit.h"

#define SAMPLE_NS (200 * NSEC_PER_MSEC)
#define SAMPLE_MIN_NS (20 * NSEC_PER_MSEC)
#define SAMPLE_MAX_NS NSEC_PER_SEC

void ratelimit_init(struct ratelimit *r, uint64_t now_ns)
{
	*r = (struct ratelimit){
		.rate = CONTROL_RATE_INIT,
		.position = 1,
		.stamp_ns = now_ns,
		.smooth_ns = now_ns,
	};
}

static void smooth(struct ratelimit *r, uint64_t now,
	const struct control_limits *l, uint64_t dirty)
{
	if (now - r->smooth_ns < SAMPLE_NS)
		return;
	r->smooth_ns = now;
	r->smoothed = control_smooth(r->smoothed, l->thresh, dirty);
}

static bool due(const struct ratelimit *r, uint64_t elapsed,
	const struct control_limits *l, uint64_t dirtied)
{
	uint64_t band = (l->limit - l->freerun) << CONTROL_PAGE_SHIFT;

	if (elapsed >= SAMPLE_NS)
		return true;
	return elapsed >= SAMPLE_MIN_NS && dirtied - r->dirtied >= band / 2;
}

static void restart(struct ratelimit *r, uint64_t now, uint64_t dirtied)
{
	r->stamp_ns = now;
	r->dirtied = dirtied;
}

uint64_t ratelimit_update(struct ratelimit *r, uint64_t now,
	const struct control_limits *l, uint64_t dirty, uint64_t dirtied,
	uint64_t bandwidth)
{
	uint64_t elapsed = now - r->stamp_ns;

	smooth(r, now, l, dirty);
	r->position = control_position(l, dirty);
	if (elapsed > SAMPLE_MAX_NS) {
		restart(r, now, dirtied);
	} else if (due(r, elapsed, l, dirtied)) {
		double pages = (double)(dirtied - r->dirtied) /
			(1 << CONTROL_PAGE_SHIFT);

		control_rate_step(&r->rate, r->position,
			(uint64_t)(pages * 1e9 / (double)elapsed), bandwidth,
			dirty < l->setpoint);
		restart(r, now, dirtied);
	}
	return (uint64_t)((double)r->rate.ratelimit * r->position);
}

void ratelimit_rest(struct ratelimit *r, uint64_t now,
	const struct control_limits *l, uint64_t dirty, uint64_t dirtied)
{
	smooth(r, now, l, dirty);
	r->position = control_position(l, dirty);
	if (now - r->stamp_ns >= SAMPLE_NS)
		restart(r, now, dirtied);
}
