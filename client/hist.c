/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist.c: see hist.h. Any thread, on its own histogram.
 */
#include "hist.h"

#define SUB (1U << HIST_SUB_BITS)

/* Values below SUB have a bucket each; above, the top SUB_BITS + 1 bits of
 * the value choose it. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < SUB)
		return (unsigned)ns;
	shift = 63U - (unsigned)__builtin_clzll(ns) - HIST_SUB_BITS;
	return (shift << HIST_SUB_BITS) + (unsigned)(ns >> shift);
}

/* The largest value that falls into the bucket. */
static uint64_t bucket_top(unsigned bucket)
{
	unsigned shift;

	if (bucket < SUB)
		return bucket;
	shift = (bucket >> HIST_SUB_BITS) - 1;
	return ((uint64_t)(SUB + (bucket & (SUB - 1)) + 1) << shift) - 1;
}

void hist_add(struct hist *h, uint64_t ns)
{
	if (!h->count || ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->count++;
	h->sum += ns;
	h->buckets[bucket_of(ns)]++;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	if (!from->count)
		return;
	if (!into->count || from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum += from->sum;
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->buckets[i] += from->buckets[i];
}

uint64_t hist_quantile(const struct hist *h, double q)
{
	double want = q * (double)h->count;
	uint64_t seen = 0, top;

	if (!h->count || q >= 1)
		return h->max;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += h->buckets[i];
		if (!h->buckets[i] || (double)seen < want)
			continue;
		top = bucket_top(i);
		return top < h->max ? top : h->max;
	}
	return h->max;
}

double hist_mean(const struct hist *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0;
}
