/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist.h: a log-linear histogram of latencies.
 *
 * Each power of two is cut into 64 equal buckets, so a percentile is off by
 * less than 1.6% of itself, from a nanosecond to the centuries. Adding is a
 * shift and an increment. Not locked: one per thread, merged at the end.
 */
#ifndef WEIR_CLIENT_HIST_H
#define WEIR_CLIENT_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 6
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	uint64_t count;
	uint64_t sum; /* ns */
	uint64_t min, max;
	uint32_t buckets[HIST_BUCKETS];
};

void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *into, const struct hist *from);

/* The latency, in ns, that a share `q` (0..1) of the samples does not
 * exceed; 0 without samples. Exact for q = 1. */
uint64_t hist_quantile(const struct hist *h, double q);

/* In ns; 0 without samples. */
double hist_mean(const struct hist *h);

#endif
