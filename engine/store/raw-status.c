/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw-status.c: STATUS of the raw store: lseek(2) for data and for holes, on a
 * helper thread, since a filesystem may have to read to know.
 *
 * Who reads asks first whether asking is worth it (store_sparse()). For that
 * there is a bit for each granule of the file, 1M or more: it was seen to be
 * all data. A TRIM or ZERO clears it. The bit is a hint: where it is wrong,
 * zeroes are read from the file that need not have been, or somebody asks in
 * vain; so it is set and cleared without a lock.
 */
#include <stdlib.h>
#include <unistd.h>

#include "raw.h"

#define GRANULE_SHIFT 20U /* at least */
#define GRANULES 65536U   /* at most */
#define NOTE_GRANULES 64U /* looked at for one STATUS */

/* --- what is known to be data --------------------------------------------- */

int raw_status_init(struct raw *r)
{
	uint64_t size = r->base.info.size;

	if (r->block)
		return 0;
	r->granule_shift = GRANULE_SHIFT;
	while (size >> r->granule_shift >= GRANULES)
		r->granule_shift++;
	r->dense =
		calloc((size >> r->granule_shift) / 64 + 1, sizeof(*r->dense));
	return r->dense ? 0 : -ENOMEM;
}

static bool is_dense(struct raw *r, uint64_t granule)
{
	return atomic_load_explicit(
		       &r->dense[granule / 64], memory_order_relaxed) >>
		(granule % 64) &
		1;
}

bool raw_sparse(struct store *s, uint64_t offset, uint64_t end)
{
	struct raw *r = container_of(s, struct raw, base);

	if (r->block || offset >= end)
		return false;
	for (uint64_t g = offset >> r->granule_shift;
		g <= (end - 1) >> r->granule_shift; g++) {
		if (!is_dense(r, g))
			return true;
	}
	return false;
}

void raw_forget_dense(struct raw *r, const struct store_io *io)
{
	uint64_t last = (io->offset + io->length - 1) >> r->granule_shift;

	if (r->block || !io->length)
		return;
	for (uint64_t g = io->offset >> r->granule_shift; g <= last; g++)
		atomic_fetch_and(&r->dense[g / 64], ~(UINT64_C(1) << g % 64));
}

static struct store_extent raw_extent(struct raw *r, uint64_t at);

/* [offset, end) is data: are the granules that it lies in all data? */
static void note_dense(struct raw *r, uint64_t offset, uint64_t end)
{
	uint64_t g = offset >> r->granule_shift;
	uint64_t last = (end - 1) >> r->granule_shift;

	if (last - g >= NOTE_GRANULES)
		return;
	for (; g <= last; g++) {
		uint64_t from = g << r->granule_shift;
		uint64_t left = r->base.info.size - from;
		uint64_t whole = UINT64_C(1) << r->granule_shift;
		struct store_extent e;

		if (is_dense(r, g))
			continue;
		e = raw_extent(r, from);
		if (!e.flags && e.length >= (left < whole ? left : whole))
			atomic_fetch_or(
				&r->dense[g / 64], UINT64_C(1) << g % 64);
	}
}

/* --- the file ------------------------------------------------------------- */

struct raw_status {
	struct reactor_work work;
	struct raw *raw;
	struct store_io *io;
};

/* The extent at `at`; its length is not yet cut at the end of the request. */
static struct store_extent raw_extent(struct raw *r, uint64_t at)
{
	uint64_t left = r->base.info.size - at;
	struct store_extent hole = {left, STORE_HOLE | STORE_ZEROES};
	struct store_extent data = {left, 0};
	off_t next = lseek(r->fd, (off_t)at, SEEK_DATA);

	if (next < 0)
		return errno == ENXIO ? hole : data;
	if ((uint64_t)next > at) {
		hole.length = (uint64_t)next - at;
		return hole;
	}
	next = lseek(r->fd, (off_t)at, SEEK_HOLE);
	if (next >= 0 && (uint64_t)next > at)
		data.length = (uint64_t)next - at;
	return data;
}

static void raw_status_run(struct reactor_work *work)
{
	struct raw_status *st = container_of(work, struct raw_status, work);
	struct store_io *io = st->io;
	uint64_t end = io->offset + io->length;
	int n = 0;

	for (uint64_t at = io->offset; at < end && n < io->nextents; n++) {
		io->extents[n] = raw_extent(st->raw, at);
		if (io->extents[n].length > end - at)
			io->extents[n].length = end - at;
		at += io->extents[n].length;
	}
	io->nextents = n;
	if (n == 1 && !io->extents[0].flags)
		note_dense(st->raw, io->offset, end);
}

static void raw_status_done(struct reactor_work *work)
{
	struct raw_status *st = container_of(work, struct raw_status, work);
	struct store_io *io = st->io;

	free(st);
	store_io_done(io, 0);
}

/* A device has no holes that it would tell of. */
static void raw_status_block(struct store_io *io)
{
	io->extents[0] = (struct store_extent){.length = io->length};
	io->nextents = 1;
	store_io_post(io, 0);
}

void raw_status(struct raw *r, struct store_io *io)
{
	struct raw_status *st;

	if (r->block) {
		raw_status_block(io);
		return;
	}
	st = calloc(1, sizeof *st);
	if (!st) {
		store_io_post(io, -ENOMEM);
		return;
	}
	st->work.run = raw_status_run;
	st->work.done = raw_status_done;
	st->raw = r;
	st->io = io;
	reactor_work(io->reactor, &st->work);
}
