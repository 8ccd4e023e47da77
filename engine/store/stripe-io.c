/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stripe-io.c: a request of the device as requests of its members.
 *
 *   submit ─> cut up ─┬─> member ─┐
 *                     ├─> member ─┼─(all)─> done
 *                     └─> member ─┘
 *
 * 1. The data is not copied: each part's iovec array points into the
 *    caller's memory, piece by piece.
 * 2. All parts run on the loop of the request and end there: nothing needs a
 *    lock.
 * 3. It fails if one of them does. Of several errors that one counts which
 *    promises least: "not fast enough" and "try again" only if nothing worse
 *    happened, since after those the caller relies on what was before.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "../base/iov.h"
#include "stripe-impl.h"

/* --- the end -------------------------------------------------------------- */

static unsigned severity(int error)
{
	if (!error)
		return 0;
	if (error == -EAGAIN || error == -ENOTSUP)
		return 1;
	return error == -ESTALE ? 2 : 3;
}

static void part_done(struct store_io *io)
{
	struct stripe_part *part = container_of(io, struct stripe_part, io);
	struct stripe_io *whole = part->whole;
	struct store_io *outer = whole->outer;
	int error;

	if (severity(io->error) > severity(whole->error))
		whole->error = io->error;
	if (--whole->pending)
		return;
	error = whole->error;
	if (!error && outer->op == STORE_STATUS)
		stripe_status_merge(whole);
	free(whole->iov);
	free(whole->extents);
	free(whole);
	store_io_done(outer, error);
}

/* --- cutting up ----------------------------------------------------------- */

static uint64_t chunk_end(const struct stripe *s, uint64_t at, uint64_t end)
{
	uint64_t next = (at / s->chunk + 1) * s->chunk;

	return next < end ? next : end;
}

/* The parts from the member that has the first byte on, all of it or as many
 * as it touches. */
static unsigned parts_of(const struct stripe *s, const struct store_io *io)
{
	uint64_t chunks;

	if (io->op == STORE_FLUSH)
		return s->members;
	if (!io->length)
		return 0;
	chunks = (io->offset + io->length - 1) / s->chunk -
		io->offset / s->chunk + 1;
	return chunks < s->members ? (unsigned)chunks : s->members;
}

static int count_pieces(struct iov_cursor *c, size_t n)
{
	void *piece;
	int pieces = 0;

	for (size_t len; n; n -= len, pieces++)
		len = iov_take(c, n, &piece);
	return pieces;
}

/* How many iovec entries each part needs, to its niov; returns how many all
 * do. */
static size_t count_iov(struct stripe_io *whole)
{
	const struct store_io *io = whole->outer;
	uint64_t end = io->offset + io->length;
	struct iov_cursor c = {.iov = io->iov};
	unsigned k = 0;
	size_t sum = 0;

	for (uint64_t at = io->offset, next; at < end; at = next) {
		int pieces;

		next = chunk_end(whole->stripe, at, end);
		pieces = count_pieces(&c, next - at);
		whole->part[k].io.niov += pieces;
		sum += (size_t)pieces;
		k = (k + 1) % whole->parts;
	}
	return sum;
}

static void fill_iov(struct stripe_io *whole)
{
	const struct store_io *io = whole->outer;
	uint64_t end = io->offset + io->length;
	struct iov_cursor c = {.iov = io->iov};
	struct iovec *next_iov = whole->iov, *to[STRIPE_MAX];
	unsigned k;

	for (k = 0; k < whole->parts; k++) {
		to[k] = next_iov;
		whole->part[k].io.iov = next_iov;
		next_iov += whole->part[k].io.niov;
	}
	k = 0;
	for (uint64_t at = io->offset, next; at < end; at = next) {
		size_t bytes;

		next = chunk_end(whole->stripe, at, end);
		to[k] += iov_slice(&c, next - at, to[k], INT_MAX, &bytes);
		k = (k + 1) % whole->parts;
	}
}

static int cut_iov(struct stripe_io *whole)
{
	const struct store_io *io = whole->outer;

	if (whole->parts == 1) {
		whole->part[0].io.iov = io->iov;
		whole->part[0].io.niov = io->niov;
		return 0;
	}
	whole->iov = calloc(count_iov(whole), sizeof *whole->iov);
	if (!whole->iov)
		return -ENOMEM;
	fill_iov(whole);
	return 0;
}

static int cut_extents(struct stripe_io *whole)
{
	size_t room = (size_t)whole->outer->nextents;

	whole->extents = calloc(room * whole->parts, sizeof *whole->extents);
	if (!whole->extents)
		return -ENOMEM;
	for (unsigned k = 0; k < whole->parts; k++) {
		whole->part[k].io.extents = whole->extents + k * room;
		whole->part[k].io.nextents = (int)room;
	}
	return 0;
}

static void part_init(struct stripe_io *whole, unsigned k)
{
	const struct stripe *s = whole->stripe;
	const struct store_io *io = whole->outer;
	struct stripe_part *part = &whole->part[k];
	uint64_t end = io->offset + io->length;

	part->whole = whole;
	part->member = (stripe_member_at(s, io->offset) + k) % s->members;
	part->io.op = io->op;
	part->io.flags = io->flags;
	part->io.reactor = io->reactor;
	part->io.done = part_done;
	if (io->op == STORE_FLUSH)
		return;
	part->io.offset = stripe_below(s, part->member, io->offset);
	part->io.length = stripe_below(s, part->member, end) - part->io.offset;
}

static int cut_up(struct stripe_io *whole)
{
	for (unsigned k = 0; k < whole->parts; k++)
		part_init(whole, k);
	switch (whole->outer->op) {
	case STORE_READ:
	case STORE_WRITE:
		return cut_iov(whole);
	case STORE_STATUS:
		return cut_extents(whole);
	default:
		return 0;
	}
}

void stripe_submit(struct store *store, struct store_io *io)
{
	struct stripe *s = container_of(store, struct stripe, base);
	unsigned parts = parts_of(s, io);
	struct stripe_io *whole =
		calloc(1, sizeof *whole + parts * sizeof whole->part[0]);

	if (!whole || !parts) {
		free(whole);
		store_io_post(io, parts ? -ENOMEM : 0);
		return;
	}
	whole->stripe = s;
	whole->outer = io;
	whole->parts = whole->pending = parts;
	if (cut_up(whole)) {
		free(whole);
		store_io_post(io, -ENOMEM);
		return;
	}
	/* None of them ends before this one returns. */
	for (unsigned k = 0; k < parts; k++)
		store_submit(
			s->member[whole->part[k].member], &whole->part[k].io);
}
