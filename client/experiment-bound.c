/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-bound.c: what a case could come to at most, from the models of
 * its devices alone.
 */
#include <math.h>
#include <string.h>

#include "experiment.h"
#include "store/store.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define WAIT 0.2 /* s, that are promised */

static double pattern_rate(const struct store *s, uint64_t length, uint64_t gap)
{
	struct store_pattern p = {.write = true,
		.runs = 1000,
		.length = length,
		.command = length < MIB ? length : MIB,
		.distance = gap};

	return 1000.0 * (double)length * 1e9 / (double)store_model_time(s, &p);
}

/* Runs of N streams in turn, each in its part of the device. With more streams
 * than a stick has open erase blocks, a run begins and ends anywhere in one,
 * and one more is copied. */
static double runs_rate(const struct cell *c, const struct cell_device *d,
	const struct store *s, double bytes)
{
	uint64_t part = d->size / c->writers, run = (uint64_t)bytes;

	if (run < c->bs)
		run = c->bs;
	if (run > part)
		run = part;
	if (!strcmp(d->model, "usb"))
		run = run / MIB * MIB + 1;
	return pattern_rate(s, run, part > run ? part - run : 0);
}

/*
 * Runs as long as a client's turn may be: the others have theirs while he
 * waits, which is to be no longer than his request takes at the fair rate, and
 * WAIT. The faster that makes the device, the longer a turn may be; so the
 * rate is approached from above. Turns are whole requests.
 */
static double turns_bound(const struct cell *c, const struct cell_device *d,
	const struct store *s)
{
	double n = c->writers, rate = pattern_rate(s, GIB, 0);

	for (unsigned i = 0; i < 100; i++) {
		double turn = ((double)c->bs + WAIT * rate / n) * n / (n - 1);

		rate = runs_rate(
			c, d, s, floor(turn / (double)c->bs) * (double)c->bs);
	}
	return rate;
}

/*
 * N streams in turn, with so much to gather runs in. A stream that dirties
 * evenly has least just after it was written and most just before, so a run is
 * twice an Nth part. Or each may have all of the limit for a turn.
 */
static double streams_bound(const struct cell *c, const struct cell_device *d,
	const struct store *s, double room)
{
	if (c->writers == 1)
		return pattern_rate(s, GIB, 0);
	return fmax(runs_rate(c, d, s, 2 * room / c->writers),
		turns_bound(c, d, s));
}

/*
 * The share of blocks that are dirty where a sweep comes to, when `mean` of all
 * are: they have been dirtied at random since the last one, some more than
 * once, so 1 - exp(-x) of them after a part x / X of the sweep.
 */
static double share_ahead(double mean)
{
	double low = 0, high = 50;

	for (unsigned i = 0; i < 60; i++) {
		double x = (low + high) / 2;

		if (1 - (1 - exp(-x)) / x < mean)
			low = x;
		else
			high = x;
	}
	return 1 - exp(-low);
}

/*
 * Blocks at random, written in ascending order, over and over: each block ahead
 * is dirty with the same chance, so the gaps are geometric.
 */
static double random_bound(const struct cell *c, const struct cell_device *d,
	const struct store *s, double room)
{
	double span = (double)(d->pool ? d->pool : d->size);
	double chance = share_ahead(room / span);
	double ns = 0;

	for (unsigned i = 0; i < 1000; i++) {
		double others =
			floor(log(1 - (i + .5) / 1000) / log(1 - chance));

		ns += (double)c->bs * 1e9 /
			pattern_rate(s, c->bs, (uint64_t)others * c->bs);
	}
	return 1000.0 * (double)c->bs * 1e9 / ns;
}

static double pattern_bound(const struct cell *c, const struct cell_device *d,
	const struct store *s, double room)
{
	return c->random ? random_bound(c, d, s, room)
			 : streams_bound(c, d, s, room);
}

/*
 * What a pool was given counts in the limit until its map is committed: a way
 * to the journal and one back. The more is left for that, the less is left to
 * gather runs in; the best of all shares.
 */
static double pool_bound(const struct cell *c, const struct cell_device *d,
	const struct store *s)
{
	double limit = (double)d->limit, best = 0;
	double way = 4096 / pattern_rate(s, 4096, d->size / 3);

	for (unsigned i = 1; i <= 20; i++) {
		double unstable = limit * i / 20;
		double rate = pattern_bound(c, d, s, limit - unstable / 2);

		best = fmax(best, 1 / (1 / rate + 2 * way / unstable));
	}
	return best;
}

double cell_bound(const struct cell *c, const struct bed *b)
{
	double sum = 0;

	for (unsigned i = 0; i < CELL_DEVICES && c->device[i].model; i++) {
		const struct cell_device *d = &c->device[i];
		const struct store *s = engine_store(b[i].engine);

		sum += d->pool ? pool_bound(c, d, s)
			       : pattern_bound(c, d, s, (double)d->limit);
	}
	return sum;
}
