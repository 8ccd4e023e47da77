/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ratelimit.h: the dirty rate limit of one store, kept up to date: when the
 * control law (control.h) takes its samples, and of what.
 *
 * A sample is due every 200 ms, and sooner when the writers have dirtied half
 * of the band between freerun and the limit, but not within 20 ms: in a narrow
 * band 200 ms are a long time. A sample over more than a second says nothing:
 * somebody was idle.
 *
 * Numbers in, numbers out; the caller locks.
 */
#ifndef WEIR_THROTTLE_RATELIMIT_H
#define WEIR_THROTTLE_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"

struct ratelimit {
	struct control_rate rate;
	uint64_t smoothed; /* the limit that follows a lowered one; pages */
	double position;   /* P at the last look */
	uint64_t stamp_ns; /* of the last sample */
	uint64_t smooth_ns;
	uint64_t dirtied; /* bytes, then */
};

void ratelimit_init(struct ratelimit *r, uint64_t now_ns);

/*
 * `dirtied` bytes have been dirtied in all, `dirty` pages are; the store
 * writes `bandwidth` pages a second. Returns R * P, pages a second.
 */
uint64_t ratelimit_update(struct ratelimit *r, uint64_t now_ns,
	const struct control_limits *l, uint64_t dirty, uint64_t dirtied,
	uint64_t bandwidth);

/* The same without taking a sample: nobody is paced. */
void ratelimit_rest(struct ratelimit *r, uint64_t now_ns,
	const struct control_limits *l, uint64_t dirty, uint64_t dirtied);

#endif
