/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h: the time of who waits outside of a reactor: it never goes back.
 * Inside, it is reactor_now(). Any thread; never blocks.
 */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment in the past. */
static inline uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) +
		(uint64_t)ts.tv_nsec;
}

/* The same in milliseconds. */
static inline uint64_t clock_ms(void)
{
	return clock_ns() / 1000000;
}

#endif
