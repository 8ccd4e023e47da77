/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-cells.c: the cases of `weir experiment throttle`.
 *
 * thresh=A:B is a limit of A and a background of B, half of A if not given;
 * Ndd are N sequential writers, 64K a request unless the name ends in the
 * size. UKEY is a USB stick; UKEY-HDD has writers on it and on a disk at once.
 * Cases that begin with pool/ are those of the disk again, on a pool;
 * UKEY-7G is a pool of 7 GB on a stick, nearly full at every moment: files
 * were written until it was, and go when new ones take their place.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "experiment.h"
#include "placement/placement.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)
#define CELLS_MAX 128
#define HDD_SIZE (64 * GIB)
#define HDD_SPAN (8 * GIB) /* of the file that is written at random */
#define UKEY_SIZE (16 * GIB)
#define FULL_SIZE (7 * GIB)             /* of the stick's pool */
#define FULL_SPAN (FULL_SIZE / 20 * 19) /* that is in use */
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

	c->device[n] = (struct cell_device){.model = model,
		.size = size,
		.limit = limit,
		.background = background};
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

static void add_full(struct experiment *e)
{
	for (unsigned i = 0; i < 3; i++) {
		struct cell *c =
			add(e, "pool/UKEY-7G-thresh=100M/%udd", counts[i]);

		c->writers = counts[i];
		c->full = true;
		on(c, "usb", FULL_SIZE, 100 * MIB, 0);
		c->device[0].pool = UKEY_SIZE;
		c->device[0].span = FULL_SPAN;
	}
}

/* The cases from `first` on again, on a pool that has room for all. */
static void add_pools(struct experiment *e, unsigned first)
{
	unsigned end = e->ncells;

	for (unsigned i = first; i < end; i++) {
		const struct cell *raw = &e->cell[i];
		struct cell *c = add(e, "pool/%.50s", raw->name);

		c->writers = raw->writers;
		c->bs = raw->bs;
		c->random = raw->random;
		c->rated = raw->rated;
		c->device[0] = raw->device[0];
		c->device[0].pool = c->device[0].size;
		c->device[0].size = pool_space_for(c->device[0].pool);
	}
}

static const char *name_of(const void *cells, unsigned i)
{
	return ((const struct cell *)cells)[i].name;
}

static int only_matching(struct experiment *e)
{
	bool match[CELLS_MAX];
	unsigned n = 0;
	int err = experiment_rows(e, e->ncells, name_of, e->cell, match);

	for (unsigned i = 0; i < e->ncells && !err; i++)
		if (match[i])
			e->cell[n++] = e->cell[i];
	e->ncells = n;
	return err;
}

int cells_make(struct experiment *e)
{
	unsigned first;
	int err;

	e->cell = calloc(CELLS_MAX, sizeof(*e->cell));
	if (!e->cell)
		return client_error(EXIT_IO, e->command, "out of memory");
	add_ukey(e);
	first = e->ncells;
	add_fio(e);
	add_limits(e, 64 * KIB, "");
	add_limits(e, 4 * KIB, "/4k");
	add_pools(e, first);
	add_full(e);
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
