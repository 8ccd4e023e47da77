/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random.h: repeatable random numbers: splitmix64 (Steele, Lea and Flood,
 * "Fast splittable pseudorandom number generators", 2014). Not for secrets.
 *
 * The state is the caller's: one uint64_t, any value, the seed.
 */
#ifndef WEIR_BASE_RANDOM_H
#define WEIR_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Uniform in [0, limit); 0 if limit is 0. */
static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return (uint64_t)((unsigned __int128)random_next(state) * limit >> 64);
}

#endif
