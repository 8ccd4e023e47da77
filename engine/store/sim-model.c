/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-model.c: see sim-model.h.
 *
 * Floating point is used for the square root and for means only; IEEE 754
 * rounds it alike everywhere, so a simulation repeats exactly.
 */
#include <math.h>

#include "sim-model.h"

#define MEAN_SQRT_PAIR (8.0 / 15) /* of |a - b|, a and b uniform in [0, 1) */
#define MEAN_SQRT_GAP 0.886227    /* of an exponential of mean 1: gamma(3/2) */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t transfer_ns(uint64_t length, uint64_t bandwidth)
{
	if (!bandwidth)
		return 0;
	return (uint64_t)((unsigned __int128)length * NSEC_PER_SEC / bandwidth);
}

static uint64_t copy_ns(const struct sim_model *m, uint64_t length)
{
	return transfer_ns(length, m->read_bandwidth) +
		transfer_ns(length, m->write_bandwidth);
}

static uint64_t bandwidth_of(const struct sim_model *m, bool write)
{
	return write ? m->write_bandwidth : m->read_bandwidth;
}

/* --- the arm ------------------------------------------------------------- */

static uint64_t settle_of(const struct sim_model *m)
{
	return m->settle_ns == SIM_SETTLE_AUTO ? m->seek_ns / 8 : m->settle_ns;
}

/* A seek whose root of the distance, as a share of the stroke, is `root`. */
static uint64_t seek_of_root(const struct sim_model *m, double root)
{
	double k = (double)(m->seek_ns - settle_of(m)) / MEAN_SQRT_PAIR;

	return settle_of(m) + (uint64_t)(k * root);
}

uint64_t sim_model_seek(const struct sim_model *m, uint64_t distance)
{
	if (!m->seek_ns || !m->size)
		return 0;
	return seek_of_root(m, sqrt((double)distance / (double)m->size));
}

/* To go `distance` on, or back. */
static uint64_t position_ns(
	const struct sim_model *m, bool write, uint64_t distance, bool forward)
{
	uint64_t bandwidth = bandwidth_of(m, write), ns;

	if (!distance || !sim_model_moves(m))
		return 0;
	ns = sim_model_seek(m, distance) + m->rotation_ns / 2;
	if (forward && bandwidth)
		ns = min_u64(ns, transfer_ns(distance, bandwidth));
	return ns;
}

/* --- erase blocks -------------------------------------------------------- */

/* Take out the i-th open block; what has to be copied to close it. */
static uint64_t block_close(
	const struct sim_model *m, struct sim_head *h, unsigned i)
{
	uint64_t rest = m->erase_block - h->open[i].end;

	h->nopen--;
	for (; i < h->nopen; i++)
		h->open[i] = h->open[i + 1];
	return rest;
}

/* Put a block first, written up to `end`. */
static void block_put(struct sim_head *h, uint64_t block, uint64_t end)
{
	for (unsigned i = h->nopen++; i; i--)
		h->open[i] = h->open[i - 1];
	h->open[0] = (struct sim_open_block){block, end};
}

/* Write [from, to) of a block; returns how much had to be copied. */
static uint64_t block_write(const struct sim_model *m, struct sim_head *h,
	uint64_t block, uint64_t from, uint64_t to)
{
	uint64_t copied = 0, start = 0;
	unsigned i = 0;

	while (i < h->nopen && h->open[i].block != block)
		i++;
	if (i < h->nopen && h->open[i].end <= from) {
		start = h->open[i].end;
		block_close(m, h, i); /* and open again: moved to the front */
	} else if (i < h->nopen) {
		copied += block_close(m, h, i);
	} else if (h->nopen == m->open_blocks) {
		copied += block_close(m, h, h->nopen - 1);
	}
	if (to < m->erase_block)
		block_put(h, block, to);
	return copied + from - start;
}

static uint64_t erase_ns(const struct sim_model *m, struct sim_head *h,
	uint64_t offset, uint64_t length)
{
	uint64_t copied = 0;

	while (length) {
		uint64_t from = offset % m->erase_block;
		uint64_t part = min_u64(length, m->erase_block - from);

		copied += block_write(
			m, h, offset / m->erase_block, from, from + part);
		offset += part;
		length -= part;
	}
	return copy_ns(m, copied);
}

/* --- an access ----------------------------------------------------------- */

uint64_t sim_model_access(const struct sim_model *m, struct sim_head *head,
	bool write, uint64_t offset, uint64_t length)
{
	bool forward = offset >= head->position;
	uint64_t distance =
		forward ? offset - head->position : head->position - offset;
	uint64_t ns = position_ns(m, write, distance, forward);

	if (write && m->erase_block)
		ns += erase_ns(m, head, offset, length);
	head->position = offset + length;
	return ns + transfer_ns(length, bandwidth_of(m, write));
}

uint64_t sim_model_latency(const struct sim_model *m, enum store_op op)
{
	return op == STORE_READ ? m->read_latency_ns : m->write_latency_ns;
}

/* --- a pattern ----------------------------------------------------------- */

/* How many runs the medium may choose among. */
static uint64_t pattern_choice(
	const struct sim_model *m, const struct store_pattern *p)
{
	uint64_t n = p->depth ? min_u64(p->depth, m->depth) : m->depth;

	if (p->write && p->length && p->length <= m->cache)
		n = max_u64(n, m->cache / p->length);
	return n;
}

/*
 * Among n at random places an elevator that takes newcomers along finds those
 * ahead twice as close as the average: nothing is left where it has just
 * been. So a gap is size / 2n, exponentially distributed, and one of 2n
 * accesses is the way back.
 */
static uint64_t random_ns(
	const struct sim_model *m, const struct store_pattern *p)
{
	double n = (double)pattern_choice(m, p);
	uint64_t seek = m->seek_ns;

	if (m->elevator && n >= 2 && seek) {
		double back = (double)sim_model_seek(m, m->size) / (2 * n);

		seek = seek_of_root(m, MEAN_SQRT_GAP / sqrt(2 * n)) +
			(uint64_t)back;
	}
	return min_u64(seek, m->seek_ns) + m->rotation_ns / 2;
}

static uint64_t pattern_copy_ns(
	const struct sim_model *m, const struct store_pattern *p)
{
	uint64_t rest;

	if (!p->write || !m->erase_block || !p->distance)
		return 0;
	rest = p->length % m->erase_block;
	rest = rest ? m->erase_block - rest : 0;
	return copy_ns(m, min_u64(rest, p->distance));
}

/* The medium's time for a run and the way to it. */
static uint64_t run_ns(const struct sim_model *m, const struct store_pattern *p)
{
	uint64_t ns = transfer_ns(p->length, bandwidth_of(m, p->write));

	if (p->distance == STORE_ANYWHERE)
		ns += random_ns(m, p);
	else
		ns += position_ns(m, p->write, p->distance, true);
	return ns + pattern_copy_ns(m, p);
}

uint64_t sim_model_time(
	const struct sim_model *m, const struct store_pattern *p)
{
	uint64_t command = p->command ? p->command : p->length;
	uint64_t commands = command ? (p->length + command - 1) / command : 0;
	uint64_t depth = p->depth ? min_u64(p->depth, m->depth) : m->depth;
	uint64_t medium = run_ns(m, p);
	uint64_t cycle = commands *
		sim_model_latency(m, p->write ? STORE_WRITE : STORE_READ);

	if (!p->write || !m->cache)
		cycle += medium;
	return p->runs * max_u64(medium, cycle / depth);
}
