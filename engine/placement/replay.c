/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c: opening a pool: the map from the checkpoint and the journal, free
 * space from the map. Waits for the store; nothing is written.
 *
 *   superblock -> chain of chunks -> map
 *              -> journal entries, in order, on top of it
 *   map + chain -> what is left is free
 *
 *  1. The entry at which replay ends may be torn: that is what a crash leaves.
 *     It is damage if a later entry says that it was durable: then the pool is
 *     refused, since what follows is missing.
 *  2. What two extents claim both is damage. So is a checksum of the chain
 *     that does not hold.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cleanup.h"
#include "pool-impl.h"

static uint64_t data_start(const struct super *s)
{
	return s->journal_offset + s->journal_size;
}

static int no_memory(struct error *error)
{
	return error_set(error, -ENOMEM, "out of memory");
}

/* --- records ------------------------------------------------------------- */

static bool in_units(uint64_t n)
{
	return n % POOL_UNIT == 0;
}

static bool within(uint64_t offset, uint64_t length, uint64_t from, uint64_t to)
{
	return offset >= from && offset <= to && length <= to - offset;
}

/* Is it about something that is there? */
static bool record_sane(const struct super *s, const struct disk_record *d)
{
	struct record r = record_decode(d);

	if (!r.length || !in_units(r.logical) || !in_units(r.physical) ||
		get16(d->volume) || d->flags & ~POOL_RECORD_UNWRITTEN ||
		!within(r.logical, r.length, 0, s->logical_size))
		return false;
	if (r.op == POOL_OP_UNMAP)
		return true;
	return r.op == POOL_OP_MAP &&
		within(r.physical, r.length, data_start(s), s->physical_size);
}

static struct extent record_extent(const struct record *r)
{
	return (struct extent){
		.logical = r->logical,
		.physical = r->physical,
		.length = r->length,
		.unwritten = r->unwritten,
	};
}

static int apply(struct pool *p, const struct disk_record *d)
{
	struct record r = record_decode(d);
	struct extent e = record_extent(&r);

	if (r.op == POOL_OP_UNMAP)
		return extent_map_clear(
			&p->map, r.logical, r.length, NULL, NULL);
	return extent_map_set(&p->map, &e, NULL, NULL);
}

/* An extent of the checkpoint, whose extents are in order. */
static int append(
	struct pool *p, const struct disk_record *d, struct extent *last)
{
	struct record r = record_decode(d);
	struct extent e = record_extent(&r);

	return r.op == POOL_OP_MAP ? extent_map_append(&p->map, last, &e)
				   : -EINVAL;
}

/* All records of an entry, or of a chunk (`last`: of those before); `at` is
 * where it lies, for messages. */
static int apply_all(struct pool *p, const struct disk_record *d,
	uint32_t count, uint64_t at, struct extent *last, struct error *error)
{
	for (uint32_t i = 0; i < count; i++) {
		int err = -EINVAL;

		if (record_sane(&p->super, &d[i]))
			err = last ? append(p, &d[i], last) : apply(p, &d[i]);
		if (err == -EINVAL)
			return error_set(error, err,
				"damaged: record %" PRIu32
				" of what lies at %" PRIu64 " makes no sense",
				i, at);
		if (err)
			return no_memory(error);
	}
	return 0;
}

/* --- the checkpoint ------------------------------------------------------ */

static bool chunk_holds(const struct pool *p, const char *buf,
	const struct chunk_at *at, uint32_t index)
{
	const struct disk_chunk *d =
		(const struct disk_chunk *)(const void *)buf;

	return format_holds(buf, at->length, POOL_MAGIC_CHUNK) &&
		get32(d->length) == at->length &&
		get64(d->pool) == super_pool(&p->super) &&
		get64(d->generation) == p->super.generation &&
		get32(d->index) == index &&
		get32(d->count) <= pool_records_in(at->length);
}

static int load_chunk(struct pool *p, struct reactor *r, char *buf,
	const struct chunk_at *at, struct extent *last, struct error *error)
{
	const struct disk_chunk *d = (struct disk_chunk *)(void *)buf;
	int err;

	if (!at->length || at->length > POOL_CHUNK_MAX ||
		!in_units(at->length) || !in_units(at->offset) ||
		!within(at->offset, at->length, data_start(&p->super),
			p->super.physical_size))
		return error_set(error, -EINVAL,
			"damaged: a checkpoint chunk at %" PRIu64
			" cannot be there",
			at->offset);
	err = super_io(
		p->base.store, r, STORE_READ, at->offset, at->length, buf);
	if (err)
		return error_set(error, err,
			"cannot read the checkpoint at %" PRIu64 ": %s",
			at->offset, strerror(-err));
	if (!chunk_holds(p, buf, at, p->chain.count))
		return error_set(error, -EINVAL,
			"damaged: chunk %" PRIu32 " of the checkpoint, at "
			"%" PRIu64 ", does not check",
			p->chain.count, at->offset);
	if (chain_add(&p->chain, at->offset, at->length))
		return no_memory(error);
	p->chain.extents += get32(d->count);
	return apply_all(p, (const struct disk_record *)(d + 1),
		get32(d->count), at->offset, last, error);
}

static int load_chain(struct pool *p, struct reactor *r, struct error *error)
{
	const struct super *s = &p->super;
	CLEANUP_FREE char *buf = aligned_alloc(POOL_UNIT, POOL_CHUNK_MAX);
	const struct disk_chunk *d = (struct disk_chunk *)(void *)buf;
	struct chunk_at at = {s->checkpoint_offset, s->checkpoint_length};
	struct extent last = {0};
	int err = 0;

	if (!buf)
		return no_memory(error);
	while (!err && at.offset && p->chain.count < s->checkpoint_chunks) {
		err = load_chunk(p, r, buf, &at, &last, error);
		if (!err)
			at = (struct chunk_at){
				get64(d->next_offset), get32(d->next_length)};
	}
	if (!err &&
		(at.offset || p->chain.count != s->checkpoint_chunks ||
			p->chain.extents != s->checkpoint_extents))
		err = error_set(error, -EINVAL,
			"damaged: the checkpoint has %" PRIu32 " chunks and "
			"%" PRIu64 " extents, the superblock says %" PRIu32
			" and %" PRIu64,
			p->chain.count, p->chain.extents, s->checkpoint_chunks,
			s->checkpoint_extents);
	p->chains = p->chain.bytes;
	return err;
}

/* --- the journal --------------------------------------------------------- */

/* The whole ring in memory. */
static int load_journal(
	struct pool *p, struct reactor *r, char *ring, struct error *error)
{
	const struct super *s = &p->super;
	uint32_t max_io = p->base.store->info.max_io / POOL_UNIT * POOL_UNIT;

	for (uint64_t at = 0; at < s->journal_size;) {
		uint64_t n = s->journal_size - at;
		int err;

		if (n > max_io)
			n = max_io;
		err = super_io(p->base.store, r, STORE_READ,
			s->journal_offset + at, n, ring + at);
		if (err)
			return error_set(error, err,
				"cannot read the journal at %" PRIu64 ": %s",
				s->journal_offset + at, strerror(-err));
		at += n;
	}
	return 0;
}

/* The entry of this pool that lies there; NULL: none that checks. */
static const struct disk_entry *entry_at(
	const struct super *s, const char *ring, uint64_t position)
{
	const struct disk_entry *e =
		(const struct disk_entry *)(const void *)(ring + position);
	uint32_t length = get32(e->length);

	if (memcmp(e->magic, POOL_MAGIC_ENTRY, sizeof(e->magic)) ||
		get64(e->pool) != super_pool(s) || length < POOL_UNIT ||
		length > POOL_ENTRY_MAX || !in_units(length) ||
		length > s->journal_size - position ||
		get32(e->count) > pool_records_in(length) ||
		!format_holds(e, length, POOL_MAGIC_ENTRY))
		return NULL;
	return e;
}

/* An entry that says the one that should be at `end` was durable. */
static const struct disk_entry *later_entry(
	const struct super *s, const char *ring, const struct journal_at *end)
{
	for (uint64_t at = 0; at < s->journal_size; at += POOL_UNIT) {
		const struct disk_entry *e =
			(const struct disk_entry *)(const void *)(ring + at);

		if (get64(e->durable) >= end->sequence &&
			get64(e->sequence) > end->sequence &&
			(e = entry_at(s, ring, at)))
			return e;
	}
	return NULL;
}

/* Replay one entry and stand after it. */
static int replay_entry(
	struct pool *p, const struct disk_entry *e, struct error *error)
{
	struct journal_at *at = &p->journal;
	int err = apply_all(p, (const struct disk_record *)(e + 1),
		get32(e->count), p->super.journal_offset + at->position, NULL,
		error);

	at->sequence = get64(e->sequence) + 1;
	at->chain = get32(e->crc);
	at->position =
		(at->position + get32(e->length)) % p->super.journal_size;
	return err;
}

static bool is_next(const struct journal_at *at, const struct disk_entry *e)
{
	return e && get64(e->sequence) == at->sequence &&
		get32(e->chain) == at->chain;
}

static int replay_entries(struct pool *p, const char *ring, struct error *error)
{
	const struct super *s = &p->super;
	struct journal_at *at = &p->journal;
	const struct disk_entry *e, *later;
	int err = 0;

	*at = (struct journal_at){
		.sequence = s->replay_sequence,
		.position = s->replay_position,
		.chain = s->replay_chain,
	};
	while (!err) {
		e = entry_at(s, ring, at->position);
		if (is_next(at, e)) {
			err = replay_entry(p, e, error);
			continue;
		}
		later = later_entry(s, ring, at);
		if (!later)
			return 0;
		if (!(p->sabotage & POOL_SABOTAGE_BAD_RECORD))
			return error_set(error, -EINVAL,
				"damaged: the journal entry %" PRIu64 ", at "
				"%" PRIu64 ", does not check, and entry "
				"%" PRIu64 " says it was durable",
				at->sequence, s->journal_offset + at->position,
				get64(later->sequence));
		at->position = (uint64_t)((const char *)later - ring);
		err = replay_entry(p, later, error);
	}
	return err;
}

static int replay_journal(
	struct pool *p, struct reactor *r, struct error *error)
{
	CLEANUP_FREE char *ring =
		aligned_alloc(POOL_UNIT, p->super.journal_size);
	int err;

	if (!ring)
		return no_memory(error);
	err = load_journal(p, r, ring, error);
	if (!err)
		err = replay_entries(p, ring, error);
	if (err || p->base.store->info.readonly ||
		p->journal.sequence == p->super.replay_sequence)
		return err;
	/* What was read may be in a cache only; from now on it counts. */
	err = super_io(p->base.store, r, STORE_FLUSH, 0, 0, NULL);
	if (err)
		error_set(error, err, "cannot flush: %s", strerror(-err));
	return err;
}

/* --- free space ---------------------------------------------------------- */

struct used {
	uint64_t offset, length;
	uint64_t logical; /* UINT64_MAX: of the checkpoint */
};

static int used_order(const void *a, const void *b)
{
	const struct used *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Everything that takes space, in order; owned by the caller. */
static struct used *list_used(const struct pool *p, size_t *count)
{
	size_t n = extent_map_count(&p->map) + p->chain.count, i = 0;
	struct used *all = malloc((n + 1) * sizeof(*all));
	uint64_t pos = 0;
	struct extent e;

	if (!all)
		return NULL;
	while (extent_map_next(&p->map, &pos, &e))
		all[i++] = (struct used){e.physical, e.length, e.logical};
	for (uint32_t k = 0; k < p->chain.count; k++)
		all[i++] = (struct used){p->chain.chunk[k].offset,
			p->chain.chunk[k].length, UINT64_MAX};
	qsort(all, n, sizeof(*all), used_order);
	*count = n;
	return all;
}

static int overlap(
	const struct used *a, const struct used *b, struct error *error)
{
	const char *checkpoint = " (of the checkpoint)";

	return error_set(error, -EINVAL,
		"damaged: bytes %" PRIu64 " to %" PRIu64
		" of the store are used twice, for %" PRIu64 "%s and %" PRIu64
		"%s of the device",
		b->offset, a->offset + a->length,
		a->logical == UINT64_MAX ? 0 : a->logical,
		a->logical == UINT64_MAX ? checkpoint : "",
		b->logical == UINT64_MAX ? 0 : b->logical,
		b->logical == UINT64_MAX ? checkpoint : "");
}

static int find_free(struct pool *p, struct error *error)
{
	size_t n = 0;
	CLEANUP_FREE struct used *all = list_used(p, &n);
	uint64_t at = data_start(&p->super), end = p->super.physical_size;

	if (!all)
		return no_memory(error);
	all[n] = (struct used){.offset = end};
	for (size_t i = 0; i <= n; i++) {
		if (all[i].offset < at)
			return overlap(&all[i - 1], &all[i], error);
		if (all[i].offset > at &&
			free_space_append(&p->space, at, all[i].offset - at))
			return no_memory(error);
		at = all[i].offset + all[i].length;
	}
	return 0;
}

int pool_replay(struct pool *p, struct reactor *r, struct error *error)
{
	int err = load_chain(p, r, error);

	if (!err)
		err = replay_journal(p, r, error);
	if (!err)
		err = find_free(p, error);
	return err;
}
