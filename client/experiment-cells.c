/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-cells.c: the cases of `weir experiment throttle`, and what each
 * could come to at most.
 *
 * thresh=A:B is a limit of A and a background of B, half of A if not given;
 * Ndd are N sequential writers, 64K a request unless the name ends in the
 * size. UKEY is a USB stick; UKEY-HDD has writers on it and on a disk at once.
 */
#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "experiment.h"
#include "store/store.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)
#define CELLS_MAX 64
#define HDD_SIZE (64 * GIB)
#define HDD_SPAN (8 * GIB) /* of the file that is written at random */
#define UKEY_SIZE (16 * GIB)
#define NVME_SIZE (256 * GIB)

static const unsigned counts[] = {100, 10, 1};

__attribute__((format(printf, 2, 3))) static struct cell *add(
	struct experiment *e, const char *fmt, ...)
{
	struct cell *c = &e->cell[e->ncells++];
	va_list ap;

	*c = (struct cell){.writers = 1, .bs = 64 * KIB};
	va_start(ap, fmt);
	vsnprintf(c->name, sizeof(c->name), fmt, ap);
	va_end(ap);
	return c;
}

static void on(struct cell *c, const char *model, uint64_t size, uint64_t limit,
	uint64_t background)
{
	unsigned n = c->device[0].model ? 1 : 0;

	c->device[n] = (struct cell_device){model, size, limit, background};
}

static void add_ukey(struct experiment *e)
{
	for (unsigned i = 0; i < 3; i++) {
		struct cell *c = add(e, "UKEY-HDD/%udd", counts[i]);

		c->writers = counts[i];
		on(c, "usb", UKEY_SIZE, 100 * MIB, 0);
		on(c, "hdd", HDD_SIZE, 1000 * MIB, 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		struct cell *c = add(e, "UKEY-thresh=100M/%udd", counts[i]);

		c->writers = counts[i];
		on(c, "usb", UKEY_SIZE, 100 * MIB, 0);
	}
}

static void add_fio(struct experiment *e)
{
	struct cell *c;

	for (unsigned i = 0; i < 2; i++) {
		c = add(e, "fio/randwrite_%s", i ? "64k" : "4k");
		c->bs = i ? 64 * KIB : 4 * KIB;
		c->writers = 4;
		c->random = true;
		on(c, "hdd", HDD_SPAN, 1000 * MIB, 0);
	}
	c = add(e, "fio/rates");
	c->writers = 5;
	c->rated = true;
	on(c, "hdd", HDD_SIZE, 100 * MIB, 0);
}

static void add_limits(struct experiment *e, uint64_t bs, const char *suffix)
{
	static const struct {
		const char *name;
		unsigned limit, background;
	} limits[] = {{"1000M", 1000, 0}, {"1000M:990M", 1000, 990},
		{"1000M:999M", 1000, 999}, {"100M", 100, 0}, {"10M", 10, 0},
		{"1M", 1, 0}};

	for (unsigned l = 0; l < 6; l++) {
		for (unsigned i = 0; i < 3; i++) {
			struct cell *c = add(e, "thresh=%s/%udd%s",
				limits[l].name, counts[i], suffix);

			c->writers = counts[i];
			c->bs = bs;
			on(c, "hdd", HDD_SIZE, limits[l].limit * MIB,
				limits[l].background * MIB);
		}
	}
}

static void add_nvme(struct experiment *e)
{
	for (unsigned i = 0; i < 3; i++) {
		struct cell *c = add(e, "nvme/thresh=1000M/%udd", counts[i]);

		c->writers = counts[i];
		c->fast = true;
		on(c, "nvme", NVME_SIZE, 1000 * MIB, 0);
	}
}

static int only_matching(struct experiment *e)
{
	unsigned n = 0;
	regex_t re;

	if (!e->rows)
		return 0;
	if (regcomp(&re, e->rows, REG_EXTENDED | REG_NOSUB))
		return client_error(EXIT_USAGE, e->command,
			"--rows %s: not a regular expression", e->rows);
	for (unsigned i = 0; i < e->ncells; i++)
		if (!regexec(&re, e->cell[i].name, 0, NULL, 0))
			e->cell[n++] = e->cell[i];
	regfree(&re);
	e->ncells = n;
	if (!n)
		return client_error(EXIT_USAGE, e->command,
			"--rows %s: matches no case", e->rows);
	return 0;
}

int cells_make(struct experiment *e)
{
	int err;

	e->cell = calloc(CELLS_MAX, sizeof(*e->cell));
	if (!e->cell)
		return client_error(EXIT_IO, e->command, "out of memory");
	add_ukey(e);
	add_fio(e);
	add_limits(e, 64 * KIB, "");
	add_limits(e, 4 * KIB, "/4k");
	add_nvme(e);
	err = only_matching(e);
	if (err)
		cells_free(e);
	return err;
}

void cells_free(struct experiment *e)
{
	for (unsigned i = 0; i < e->ncells; i++)
		for (unsigned s = 0; s < SIDES; s++)
			json_decref(e->cell[i].detail[s]);
	free(e->cell);
	e->cell = NULL;
}

/* --- bounds -------------------------------------------------------------- */

static double pattern_rate(const struct store *s, uint64_t length, uint64_t gap)
{
	struct store_pattern p = {.write = true,
		.runs = 1000,
		.length = length,
		.command = length < MIB ? length : MIB,
		.distance = gap};

	return 1000.0 * (double)length * 1e9 / (double)store_model_time(s, &p);
}

/*
 * N streams, in turn. The limit is all there is to gather runs in; a stream
 * has least just after it was written and most just before, so a run is twice
 * the limit's Nth part, or a request if that is more. With more streams than
 * a stick has open erase blocks, a run begins and ends anywhere in one, and
 * one more is copied.
 */
static double streams_bound(const struct cell *c, const struct cell_device *d,
	const struct store *s)
{
	uint64_t part = d->size / c->writers;
	uint64_t run = 2 * d->limit / c->writers;

	if (c->writers == 1)
		return pattern_rate(s, GIB, 0);
	if (run < c->bs)
		run = c->bs;
	if (run > part)
		run = part;
	if (!strcmp(d->model, "usb"))
		run = run / MIB * MIB + 1;
	return pattern_rate(s, run, part > run ? part - run : 0);
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
	const struct store *s)
{
	double chance = share_ahead((double)d->limit / (double)d->size);
	double ns = 0;

	for (unsigned i = 0; i < 1000; i++) {
		double others =
			floor(log(1 - (i + .5) / 1000) / log(1 - chance));

		ns += (double)c->bs * 1e9 /
			pattern_rate(s, c->bs, (uint64_t)others * c->bs);
	}
	return 1000.0 * (double)c->bs * 1e9 / ns;
}

double cell_bound(const struct cell *c, const struct bed *b)
{
	double sum = 0;

	for (unsigned i = 0; i < CELL_DEVICES && c->device[i].model; i++) {
		const struct cell_device *d = &c->device[i];
		const struct store *s = engine_store(b[i].engine);

		sum += c->random ? random_bound(c, d, s)
				 : streams_bound(c, d, s);
	}
	return sum;
}
