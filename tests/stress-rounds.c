/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress-rounds.c: what the actors do.
 *
 *   pieces   each owns every ninth sector, so nearly every block is shared
 *   overlap  all write the same range at once, again and again
 *   mix      each owns a stretch, all kinds of requests, reads of everything
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "stress.h"

static struct actor *new_actors(void)
{
	struct actor *a = calloc(STRESS_ACTORS, sizeof(*a));

	assert(a);
	return a;
}

static void free_actors(struct actor *a)
{
	for (unsigned i = 0; i < STRESS_ACTORS; i++) {
		free(a[i].buf);
		free(a[i].now);
		if (a[i].buf)
			sem_destroy(&a[i].answered);
	}
	free(a);
}

static bool over(const struct actor *a)
{
	return atomic_load(&a->stress->failed) ||
		reactor_now(a->stress->loop[0]) > a->stress->end_ns;
}

static uint64_t pick(struct actor *a, uint64_t limit)
{
	return random_below(&a->random, limit);
}

/* An answer that must be a success; a read's data is then in a->buf. */
static bool went_well(struct actor *a)
{
	if (!a->req.error)
		return true;
	stress_fail(a->stress,
		"actor %u: op %d %" PRIu64 "+%" PRIu64 " error %d", a->number,
		(int)a->req.op, a->req.offset, a->req.length, a->req.error);
	return false;
}

static void check_sector(struct stress *s, const unsigned char *data,
	uint32_t id, uint64_t offset)
{
	uint64_t place;
	uint32_t found;

	if (data_is(data, id, offset, SECTOR))
		return;
	if (!data_decode(data, &found, &place))
		found = UINT32_MAX;
	stress_fail(s,
		"sector at %" PRIu64 ": %#" PRIx32 " instead of %#" PRIx32,
		offset, found, id);
}

/* What everybody has written is there, after all is done and flushed. */
static void check_all(struct stress *s, const struct actor *actors,
	unsigned (*owner)(uint64_t sector))
{
	unsigned char *data = malloc(STRESS_SIZE);

	assert(data);
	if (atomic_load(&s->failed) ||
		stress_ask(s, ENGINE_FLUSH, 0, 0, NULL) != 0 ||
		stress_ask(s, ENGINE_READ, 0, STRESS_SIZE, data) != 0)
		stress_fail(s, "the last flush or read failed");
	for (uint64_t k = 0; k < STRESS_SECTORS; k++)
		check_sector(s, data + k * SECTOR, actors[owner(k)].now[k],
			k * SECTOR);
	free(data);
}

/* --- pieces -------------------------------------------------------------- */

#define PIECE_SECTORS 1024U /* all of them happen here */

static unsigned piece_owner(uint64_t sector)
{
	return (unsigned)(sector % STRESS_ACTORS);
}

static bool piece_next(struct actor *a)
{
	uint64_t k = pick(a, PIECE_SECTORS / STRESS_ACTORS) * STRESS_ACTORS +
		a->number;

	if (over(a))
		return false;
	actor_ask(
		a, pick(a, 3) ? ENGINE_WRITE : ENGINE_READ, k * SECTOR, SECTOR);
	if (pick(a, 200) == 0)
		actor_ask(a, ENGINE_FLUSH, 0, 0);
	return true;
}

static void piece_check(struct actor *a)
{
	uint64_t k = a->req.offset / SECTOR;

	if (!went_well(a))
		return;
	if (a->req.op == ENGINE_WRITE)
		a->now[k] = a->id;
	else if (a->req.op == ENGINE_READ)
		check_sector(a->stress, a->buf, a->now[k], a->req.offset);
}

void stress_pieces(struct stress *s)
{
	struct actor *actors = new_actors();

	stress_run(s, actors, false, piece_next, piece_check);
	check_all(s, actors, piece_owner);
	free_actors(actors);
}

/* --- overlap ------------------------------------------------------------- */

#define OVERLAP (256U << 10)
#define OVERLAP_BLOCK 4096U

/* All stop together: the first one decides. */
static bool overlap_next(struct actor *a)
{
	struct stress *s = a->stress;

	if (pthread_barrier_wait(&s->barrier) ==
			PTHREAD_BARRIER_SERIAL_THREAD &&
		over(a))
		s->end_ns = 0;
	pthread_barrier_wait(&s->barrier);
	if (!s->end_ns)
		return false;
	/* Reads only after all have written, and before they do again. */
	if (a->req.op == ENGINE_WRITE)
		actor_ask(a, ENGINE_READ, 0, OVERLAP);
	else
		actor_ask(a, ENGINE_WRITE, 0, OVERLAP);
	return true;
}

static void overlap_check(struct actor *a)
{
	if (!went_well(a) || a->req.op != ENGINE_READ)
		return;
	for (uint64_t at = 0; at < OVERLAP; at += OVERLAP_BLOCK) {
		uint64_t place;
		uint32_t id;

		if (!data_decode(a->buf + at, &id, &place) ||
			(id & 0xffff) != (a->count & 0xffff) ||
			!data_is(a->buf + at, id, at, OVERLAP_BLOCK)) {
			stress_fail(a->stress,
				"block at %" PRIu64 " is a mix or old", at);
			return;
		}
	}
}

void stress_overlap(struct stress *s)
{
	struct actor *actors = new_actors();

	stress_run(s, actors, true, overlap_next, overlap_check);
	free_actors(actors);
}

/* --- mix ----------------------------------------------------------------- */

#define MIX_STRETCH 56U /* sectors: neither pages nor blocks fit */

static unsigned mix_owner(uint64_t sector)
{
	return (unsigned)(sector / MIX_STRETCH % STRESS_ACTORS);
}

static void mix_read(struct actor *a)
{
	uint64_t first = pick(a, STRESS_SECTORS);
	uint64_t n = 1 + pick(a, 256);

	if (n > STRESS_SECTORS - first)
		n = STRESS_SECTORS - first;
	actor_ask(a, pick(a, 8) ? ENGINE_READ : ENGINE_CACHE, first * SECTOR,
		n * SECTOR);
}

static void mix_change(struct actor *a)
{
	static const enum engine_op ops[] = {ENGINE_WRITE, ENGINE_WRITE,
		ENGINE_WRITE, ENGINE_WRITE, ENGINE_ZERO, ENGINE_TRIM};
	uint64_t round = MIX_STRETCH * STRESS_ACTORS;
	uint64_t base = pick(a, STRESS_SECTORS / round) * round +
		a->number * MIX_STRETCH;
	uint64_t first = pick(a, MIX_STRETCH);
	uint64_t n = 1 + pick(a, MIX_STRETCH - first);

	actor_ask(a, ops[pick(a, 6)], (base + first) * SECTOR, n * SECTOR);
	if (pick(a, 20) == 0)
		a->req.flags = ENGINE_FUA;
}

static bool mix_next(struct actor *a)
{
	if (over(a))
		return false;
	if (pick(a, 100) == 0)
		actor_ask(a, ENGINE_FLUSH, 0, 0);
	else if (pick(a, 2))
		mix_read(a);
	else
		mix_change(a);
	a->req.export = a->stress->export[pick(a, STRESS_EXPORTS)];
	return true;
}

/* Its own sectors exactly; others' whole, in their place, and theirs. */
static void mix_check_read(struct actor *a)
{
	uint64_t first = a->req.offset / SECTOR;

	for (uint64_t i = 0; i < a->req.length / SECTOR; i++) {
		const unsigned char *data = a->buf + i * SECTOR;
		uint64_t k = first + i, place;
		unsigned owner = mix_owner(k);
		uint32_t id;

		if (owner == a->number)
			id = a->now[k];
		else if (!data_decode(data, &id, &place) ||
			(id && id >> 16 != owner))
			id = UINT32_MAX;
		check_sector(a->stress, data, id, k * SECTOR);
	}
}

static void mix_check(struct actor *a)
{
	uint64_t first = a->req.offset / SECTOR;
	uint32_t id = a->req.op == ENGINE_WRITE ? a->id : 0;

	if (!went_well(a))
		return;
	switch (a->req.op) {
	case ENGINE_READ:
		mix_check_read(a);
		break;
	case ENGINE_WRITE:
	case ENGINE_ZERO:
	case ENGINE_TRIM:
		for (uint64_t i = 0; i < a->req.length / SECTOR; i++)
			a->now[first + i] = id;
		break;
	default:
		break;
	}
}

void stress_mix_changing(struct stress *s)
{
	s->changing = true;
	stress_mix(s);
}

void stress_mix(struct stress *s)
{
	struct actor *actors = new_actors();

	stress_run(s, actors, false, mix_next, mix_check);
	check_all(s, actors, mix_owner);
	free_actors(actors);
}
