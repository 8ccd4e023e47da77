/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-offset.c: the order in which a job visits the blocks of its region.
 *
 * Random order is a permutation, as fio's random map is: no block comes twice
 * in a pass, none is left out, and no map is kept. A Feistel network over
 * the next even power of two permutes that range whatever its round function
 * is; numbers past the end are walked on (the cycle returns to the range).
 */
#include "bench.h"

#define ROUNDS 3

uint64_t bench_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

void bench_offset_init(
	struct bench_offset *o, bool random, uint64_t blocks, uint64_t seed)
{
	*o = (struct bench_offset){
		.random = random, .blocks = blocks, .seed = seed};
	o->half_bits = 1;
	while (o->half_bits < 32 && blocks > 1ULL << (2 * o->half_bits))
		o->half_bits++;
}

bool bench_offset_at_end(const struct bench_offset *o)
{
	return o->next == o->blocks;
}

static uint64_t permute(const struct bench_offset *o, uint64_t x)
{
	uint64_t mask = (1ULL << o->half_bits) - 1;
	uint64_t left = x >> o->half_bits, right = x & mask;
	uint64_t key = o->seed + o->pass * 0x632be59bd9b4e019;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t swap = right;

		right = left ^ (bench_mix(right ^ bench_mix(key + i)) & mask);
		left = swap;
	}
	return left << o->half_bits | right;
}

uint64_t bench_offset_next(struct bench_offset *o)
{
	uint64_t x;

	if (bench_offset_at_end(o)) {
		o->next = 0;
		o->pass++;
	}
	x = o->next++;
	if (!o->random)
		return x;
	do
		x = permute(o, x);
	while (x >= o->blocks);
	return x;
}
