/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll.h: how long a loop looks for events before it sleeps.
 *
 * Going to sleep and being woken costs more than a small request does, most
 * of all where the processor is a guest's. A client that waits for each
 * answer pays it every time. So a loop whose last waits were short looks
 * again and again for a while first, and one whose waits are long does not:
 *
 *   wait <= window          as it is
 *   window < wait <= most   twice as long next time, from POLL_FIRST_NS
 *   most < wait             not at all next time
 *
 * A loop that mostly meets several requests at once sleeps at once: they keep
 * coming whether it looks or not, and come in larger batches when it sleeps.
 *
 * Numbers in, numbers out. The growing window is that of QEMU's event loops
 * (poll-max-ns, poll-grow, poll-shrink in qemu(1)).
 */
#ifndef WEIR_BASE_POLL_H
#define WEIR_BASE_POLL_H

#include <stdint.h>

#define POLL_FIRST_NS UINT64_C(4000)
#define POLL_BATCH_MAX 80U /* 1.25 requests */

struct poll {
	uint64_t most_ns;   /* the longest window; 0: never */
	uint64_t window_ns; /* the present one */
	unsigned batch;     /* 64ths of a request, of the last 16 batches */
};

/* An iteration met `n` requests; one that met none says nothing. */
static inline void poll_met(struct poll *p, unsigned n)
{
	if (n)
		p->batch += 4 * n - p->batch / 16;
}

/* How long to look for something now. */
static inline uint64_t poll_window(const struct poll *p)
{
	return p->batch < POLL_BATCH_MAX ? p->window_ns : 0;
}

/* A wait took `wait_ns` in all, asleep or not. */
static inline void poll_waited(struct poll *p, uint64_t wait_ns)
{
	uint64_t next = p->window_ns ? 2 * p->window_ns : POLL_FIRST_NS;

	if (wait_ns > p->most_ns)
		p->window_ns = 0;
	else if (wait_ns > p->window_ns)
		p->window_ns = next < p->most_ns ? next : p->most_ns;
}

#endif
