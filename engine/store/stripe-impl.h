/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stripe-impl.h: the insides of the stripe, for stripe*.c only.
 *
 * A piece of the device is one piece of each member it touches: the chunks of
 * a member follow each other there as they do on the device. So a request is
 * at most one of each member.
 */
#ifndef WEIR_STORE_STRIPE_IMPL_H
#define WEIR_STORE_STRIPE_IMPL_H

#include "kind.h"
#include "stripe.h"

struct stripe {
	struct store base;
	uint64_t chunk; /* bytes */
	unsigned members;
	struct store *member[STRIPE_MAX];
};

struct stripe_io;

/* What one member has to do of a request. */
struct stripe_part {
	struct store_io io;
	struct stripe_io *whole;
	unsigned member;
};

struct stripe_io {
	struct stripe *stripe;
	struct store_io *outer;
	struct iovec *iov;            /* of all parts; NULL: the outer one's */
	struct store_extent *extents; /* of all parts; STATUS */
	unsigned pending, parts;
	int error;
	struct stripe_part part[];
};

/* Which member has the byte at `at` of the device. */
static inline unsigned stripe_member_at(const struct stripe *s, uint64_t at)
{
	return (unsigned)(at / s->chunk % s->members);
}

/* How much of the device's first `at` bytes is that member's. */
static inline uint64_t stripe_below(
	const struct stripe *s, unsigned member, uint64_t at)
{
	uint64_t row = s->chunk * s->members, in = at % row;
	uint64_t before = member * s->chunk, own = 0;

	if (in > before)
		own = in - before < s->chunk ? in - before : s->chunk;
	return at / row * s->chunk + own;
}

/* Where on the device a member's byte is. */
static inline uint64_t stripe_device_at(
	const struct stripe *s, unsigned member, uint64_t at)
{
	return (at / s->chunk * s->members + member) * s->chunk + at % s->chunk;
}

/* --- stripe-io.c ---------------------------------------------------------- */

void stripe_submit(struct store *store, struct store_io *io);

/* --- stripe-status.c ------------------------------------------------------ */

/* Put the members' answers together, in the outer io. */
void stripe_status_merge(const struct stripe_io *whole);

#endif
