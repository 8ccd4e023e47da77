/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.c: records as journal entries, and back. Pure.
 *
 *   journal   +-----+-----+--------+-----+ - - - - - +-----+
 *             |  7  |  8  |   9    | 10  |           | ..6 |
 *             +-----+-----+--------+-----+ - - - - - +-----+
 *                   ^ replay from here   ^ the next entry
 *
 * 1. Entries follow each other without a gap; none goes over the end of the
 *    ring: the last before it is cut to what is left.
 * 2. Each says the checksum of the one before (`chain`): what a crash left
 *    behind the end of an older run of entries is never taken for the entry
 *    that follows, even if its number fits.
 */
#include <string.h>

#include "pool-impl.h"

struct disk_record record_encode(const struct record *r)
{
	return (struct disk_record){
		.logical = put64(r->logical),
		.physical = put64(r->physical),
		.units = put32((uint32_t)(r->length / POOL_UNIT)),
		.op = r->op,
		.flags = r->unwritten ? POOL_RECORD_UNWRITTEN : 0,
	};
}

struct record record_decode(const struct disk_record *d)
{
	return (struct record){
		.logical = get64(d->logical),
		.physical = get64(d->physical),
		.length = (uint64_t)get32(d->units) * POOL_UNIT,
		.op = d->op,
		.unwritten = d->flags & POOL_RECORD_UNWRITTEN,
	};
}

/* The next entry of what is left: its records, and its bytes in *length. */
static size_t entry_count(
	const struct super *s, uint64_t position, size_t left, uint32_t *length)
{
	uint64_t most = s->journal_size - position;
	size_t count;

	if (most > POOL_ENTRY_MAX)
		most = POOL_ENTRY_MAX;
	count = pool_records_in((uint32_t)most);
	if (count > left)
		count = left;
	*length = (uint32_t)pool_bytes_for(count);
	return count;
}

uint64_t journal_bytes(
	const struct super *s, const struct journal_at *at, size_t count)
{
	uint64_t position = at->position, bytes = 0;
	uint32_t length;

	while (count) {
		count -= entry_count(s, position, count, &length);
		bytes += length;
		position = (position + length) % s->journal_size;
	}
	return bytes;
}

void journal_encode(const struct super *s, struct journal_at *at,
	uint64_t durable, const struct record *r, size_t count, char *buf)
{
	while (count) {
		struct disk_entry *e = (struct disk_entry *)(void *)buf;
		struct disk_record *to = (struct disk_record *)(e + 1);
		uint32_t length;
		size_t n = entry_count(s, at->position, count, &length);

		memset(buf, 0, length);
		e->pool = put64(super_pool(s));
		e->sequence = put64(at->sequence++);
		e->durable = put64(durable);
		e->chain = put32(at->chain);
		e->count = put32((uint32_t)n);
		for (size_t i = 0; i < n; i++)
			to[i] = record_encode(r++);
		format_seal(buf, length, POOL_MAGIC_ENTRY);
		at->chain = get32(e->crc);
		at->position = (at->position + length) % s->journal_size;
		count -= n;
		buf += length;
	}
}

uint64_t journal_used(const struct super *s, const struct journal_at *at)
{
	uint64_t size = s->journal_size;

	/* At the place it begins at it is empty, or full all the way round. */
	if (at->position == s->replay_position)
		return at->sequence == s->replay_sequence ? 0 : size;
	return (at->position + size - s->replay_position) % size;
}
