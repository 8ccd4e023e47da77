/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-pattern.c: blocks that say what they are.
 *
 * A written block starts with a header, host byte order:
 *
 *   0  magic     "weirblk1"
 *   8  offset    where it was written
 *  16  seed      of the run
 *  24  version   the how-many-eth write of this block, from 1
 *  32  checksum  of the rest of the block, mixed with the header; 0 when it
 *                was written without --verify
 *
 * so that a wrong block can be told apart: never written, of another place,
 * of another run, an older write (a lost one), or damaged.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"

#define MAGIC 0x316b6c6272696577 /* "weirblk1", little-endian */

struct header {
	uint64_t magic, offset, seed, version, checksum;
};

void bench_pattern_noise(void *buf, size_t n, uint64_t seed)
{
	unsigned char *p = buf;

	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t word = bench_mix(seed + i);
		size_t left = n - i;

		memcpy(p + i, &word, left < sizeof(word) ? left : sizeof(word));
	}
}

void bench_pattern_stamp(void *buf, size_t n, const struct bench_pattern *p)
{
	struct header h = {.magic = MAGIC,
		.offset = p->offset,
		.seed = p->seed,
		.version = p->version};

	if (n >= sizeof(h))
		memcpy(buf, &h, sizeof(h));
}

static uint64_t checksum(const void *buf, size_t n, const struct header *h)
{
	const unsigned char *p = buf;
	uint64_t sum = h->offset ^ bench_mix(h->seed ^ bench_mix(h->version));

	for (size_t i = sizeof(*h); i + sizeof(uint64_t) <= n;
		i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, p + i, sizeof(word));
		sum = (sum ^ word) * 0x9fb21c651e98df25;
		sum ^= sum >> 32;
	}
	return sum ? sum : 1;
}

void bench_pattern_fill(void *buf, size_t n, const struct bench_pattern *p)
{
	struct header h = {.magic = MAGIC,
		.offset = p->offset,
		.seed = p->seed,
		.version = p->version};

	bench_pattern_noise(
		buf, n, bench_mix(p->seed ^ bench_mix(p->offset + p->version)));
	h.checksum = checksum(buf, n, &h);
	memcpy(buf, &h, sizeof(h));
}

static bool all_zero(const unsigned char *p, size_t n)
{
	return !n || (!p[0] && !memcmp(p, p + 1, n - 1));
}

const char *bench_pattern_check(const void *buf, size_t n,
	const struct bench_pattern *p, char text[160])
{
	struct header h;

	memcpy(&h, buf, sizeof(h));
	if (h.magic != MAGIC)
		return all_zero(buf, n) ? "the block is all zeroes"
					: "not a block written by weir bench";
	if (h.offset != p->offset) {
		snprintf(text, 160, "found the block of offset %llu there",
			(unsigned long long)h.offset);
		return text;
	}
	if (h.seed != p->seed) {
		snprintf(text, 160, "found a block of seed %llu, not %llu",
			(unsigned long long)h.seed,
			(unsigned long long)p->seed);
		return text;
	}
	if (p->version && h.version != p->version) {
		snprintf(text, 160, "found its write number %llu, not %llu",
			(unsigned long long)h.version,
			(unsigned long long)p->version);
		return text;
	}
	if (h.checksum != checksum(buf, n, &h))
		return h.checksum ? "the checksum is wrong"
				  : "written without --verify";
	return NULL;
}

bool bench_pattern_is_ours(const void *buf, size_t n)
{
	struct header h;

	if (n < sizeof(h))
		return false;
	memcpy(&h, buf, sizeof(h));
	return h.magic == MAGIC;
}
