/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stripe-status.c: what the members say of their parts, as one list.
 *
 * Walks the device from the request's offset on, each step as far as nothing
 * can change: where all members say the same, up to where the first of them
 * says something else, however many chunks that are; else to the end of the
 * chunk. It ends where a member's answer does, where the room for extents
 * does, or the request.
 */
#include "stripe-impl.h"

/* Where in the answer of a part the walk is. */
struct place {
	const struct store_io *io;
	int i;        /* the extent */
	uint64_t end; /* of it, bytes of the member */
};

struct merge {
	const struct stripe *stripe;
	const struct stripe_io *whole;
	struct place place[STRIPE_MAX]; /* by part */
	uint64_t at, end;               /* of the device */
	int used;
};

static void place_begin(struct place *p, const struct store_io *io)
{
	*p = (struct place){.io = io};
	p->end = io->offset + (io->nextents ? io->extents[0].length : 0);
}

/* Move to the extent that has the member's byte `at`; false: it has no
 * answer for that. */
static bool place_seek(struct place *p, uint64_t at)
{
	while (p->i < p->io->nextents && p->end <= at) {
		if (++p->i < p->io->nextents)
			p->end += p->io->extents[p->i].length;
	}
	return p->i < p->io->nextents;
}

static unsigned flags_of(const struct place *p)
{
	return p->io->extents[p->i].flags;
}

/* The part that has the byte at `at`. */
static unsigned part_at(const struct merge *m, uint64_t at)
{
	const struct stripe *s = m->stripe;

	return (unsigned)((at / s->chunk - m->whole->outer->offset / s->chunk) %
		m->whole->parts);
}

/* How far all members say the same as the one at m->at; 0: they do not. */
static uint64_t same_until(struct merge *m, unsigned flags)
{
	uint64_t until = m->end;

	for (unsigned k = 0; k < m->whole->parts; k++) {
		struct place *p = &m->place[k];
		unsigned member = m->whole->part[k].member;
		uint64_t at = stripe_below(m->stripe, member, m->at), ends;

		if (at == p->io->offset + p->io->length)
			continue; /* nothing more of it is asked for */
		if (!place_seek(p, at) || flags_of(p) != flags)
			return 0;
		ends = stripe_device_at(m->stripe, member, p->end);
		if (ends < until)
			until = ends;
	}
	return until;
}

/* One step; false: the end. */
static bool step(struct merge *m)
{
	uint64_t chunk = m->stripe->chunk;
	struct place *p = &m->place[part_at(m, m->at)];
	unsigned member = m->whole->part[part_at(m, m->at)].member, flags;
	uint64_t until;

	if (!place_seek(p, stripe_below(m->stripe, member, m->at)))
		return false;
	flags = flags_of(p);
	until = same_until(m, flags);
	if (until <= m->at) {
		until = stripe_device_at(m->stripe, member, p->end);
		if (until > (m->at / chunk + 1) * chunk)
			until = (m->at / chunk + 1) * chunk;
		if (until > m->end)
			until = m->end;
	}
	if (!store_extent_add(m->whole->outer, &m->used, until - m->at, flags))
		return false;
	m->at = until;
	return m->at < m->end;
}

void stripe_status_merge(const struct stripe_io *whole)
{
	struct store_io *outer = whole->outer;
	struct merge m = {
		.stripe = whole->stripe,
		.whole = whole,
		.at = outer->offset,
		.end = outer->offset + outer->length,
	};

	for (unsigned k = 0; k < whole->parts; k++)
		place_begin(&m.place[k], &whole->part[k].io);
	while (step(&m))
		;
	outer->nextents = m.used;
}
