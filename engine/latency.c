/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * latency.c: how long requests took, by kind: histograms, and their JSON.
 *
 * A histogram has LATENCY_SUB steps in each doubling of the time, so a
 * percentile is off by an eighth at most. Each loop counts in a stripe of its
 * own; a reader adds them up.
 */
#include <jansson.h>

#include "engine-impl.h"

static unsigned bucket_of(uint64_t ns)
{
	unsigned log, sub;

	if (ns < LATENCY_SUB)
		return (unsigned)ns;
	log = 63 - (unsigned)__builtin_clzll(ns);
	sub = (unsigned)(ns >> (log - 3)) & (LATENCY_SUB - 1);
	log = (log - 2) * LATENCY_SUB + sub;
	return log < LATENCY_BUCKETS ? log : LATENCY_BUCKETS - 1;
}

/* The upper end of a bucket, ns. */
static uint64_t bucket_top(unsigned bucket)
{
	unsigned log = bucket / LATENCY_SUB + 2, sub = bucket % LATENCY_SUB;

	if (bucket < LATENCY_SUB)
		return bucket;
	return (UINT64_C(1) << log) + ((uint64_t)(sub + 1) << (log - 3)) - 1;
}

void stats_latency(
	struct stripe *s, enum engine_op op, uint64_t ns, uint64_t weight)
{
	struct histogram *h;
	uint64_t max;

	if (op == ENGINE_READ)
		h = &s->latency[LATENCY_READ];
	else if (op == ENGINE_WRITE)
		h = &s->latency[LATENCY_WRITE];
	else if (op == ENGINE_FLUSH)
		h = &s->latency[LATENCY_FLUSH];
	else
		return;
	atomic_fetch_add_explicit(
		&h->bucket[bucket_of(ns)], weight, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&h->sum_ns, ns * weight, memory_order_relaxed);
	max = atomic_load_explicit(&h->max_ns, memory_order_relaxed);
	while (ns > max && !atomic_compare_exchange_weak(&h->max_ns, &max, ns))
		;
}

/* --- the sum of the stripes ------------------------------------------------ */

struct total {
	uint64_t bucket[LATENCY_BUCKETS];
	uint64_t count, sum_ns, max_ns;
};

static void add_stripe(struct total *t, struct histogram *h)
{
	uint64_t max = atomic_load(&h->max_ns);

	t->max_ns = max > t->max_ns ? max : t->max_ns;
	t->sum_ns += atomic_load_explicit(&h->sum_ns, memory_order_relaxed);
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		uint64_t n = atomic_load_explicit(
			&h->bucket[i], memory_order_relaxed);

		t->bucket[i] += n;
		t->count += n;
	}
}

/* The upper end, ns, of what that share of them took at most. */
static uint64_t percentile(const struct total *t, double share)
{
	uint64_t want = (uint64_t)((double)t->count * share), seen = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		seen += t->bucket[i];
		if (t->bucket[i] && seen > want)
			return bucket_top(i);
	}
	return 0;
}

/* [[upper end in ns, how many], ...] of what is not empty. */
static json_t *buckets_json(const struct total *t)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		if (t->bucket[i])
			json_array_append_new(list,
				json_pack("[I,I]", (json_int_t)bucket_top(i),
					(json_int_t)t->bucket[i]));
	}
	return list;
}

static json_t *kind_json(struct engine *e, enum stats_latency which)
{
	struct total t = {0};

	for (unsigned s = 0; s < STRIPES; s++)
		add_stripe(&t, &e->stripe[s].latency[which]);
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "count",
		(json_int_t)t.count, "sum_us", (json_int_t)(t.sum_ns / 1000),
		"p50_us", (json_int_t)(percentile(&t, .5) / 1000), "p99_us",
		(json_int_t)(percentile(&t, .99) / 1000), "max_us",
		(json_int_t)(t.max_ns / 1000), "buckets_ns", buckets_json(&t));
}

json_t *latency_json(struct engine *e)
{
	return json_pack("{s:o, s:o, s:o}", "read", kind_json(e, LATENCY_READ),
		"write", kind_json(e, LATENCY_WRITE), "flush",
		kind_json(e, LATENCY_FLUSH));
}

void latency_reset(struct engine *e)
{
	for (unsigned s = 0; s < STRIPES; s++) {
		for (unsigned l = 0; l < LATENCIES; l++) {
			struct histogram *h = &e->stripe[s].latency[l];

			atomic_store(&h->max_ns, 0);
			atomic_store(&h->sum_ns, 0);
			for (unsigned i = 0; i < LATENCY_BUCKETS; i++)
				atomic_store(&h->bucket[i], 0);
		}
	}
}
