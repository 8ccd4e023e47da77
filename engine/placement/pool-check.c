/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-check.c: looking at a pool from outside: pool_check().
 *
 *   superblocks -> checkpoint -> journal -> the map: who uses which space
 *
 *  1. Nothing is written, and nothing that is read is believed: places and
 *     counts are compared with what is there before they are used.
 *  2. A torn superblock and a torn end of the journal are what a crash
 *     leaves, and no findings.
 *  3. Who uses which space is looked at only if the whole map was read: in
 *     part of it, what was freed since would seem to be used twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/cleanup.h"
#include "../base/size.h"
#include "pool-check.h"

void check_found(struct check *c, uint64_t offset, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	c->out->findings++;
	if (!c->visitor->found)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->visitor->found(c->visitor->arg, offset, text);
}

void check_incomplete(struct check *c)
{
	c->out->complete = false;
}

int check_no_memory(struct check *c)
{
	return error_set(c->error, -ENOMEM, "out of memory");
}

int check_read(struct check *c, uint64_t offset, uint64_t length, void *buf)
{
	uint64_t most = c->store->info.max_io / POOL_UNIT * POOL_UNIT;
	char *to = buf;

	for (uint64_t n; length; length -= n, offset += n, to += n) {
		int err;

		n = length < most ? length : most;
		err = super_io(c->store, c->loop, STORE_READ, offset, n, to);
		if (err)
			return error_set(c->error, err,
				"cannot read at %" PRIu64 ": %s", offset,
				strerror(-err));
	}
	return 0;
}

void check_zero(struct check *c, const void *head, const uint8_t *from,
	size_t n, uint64_t offset)
{
	for (size_t i = 0; i < n; i++) {
		if (!from[i])
			continue;
		check_found(c,
			offset + (uint64_t)(from + i - (const uint8_t *)head),
			"reserved bytes that are not zero");
		return;
	}
}

/* --- records ------------------------------------------------------------- */

static bool within(uint64_t offset, uint64_t length, uint64_t from, uint64_t to)
{
	return offset >= from && offset <= to && length <= to - offset;
}

/* What is wrong with a record; NULL: nothing. */
static const char *record_fault(
	const struct check *c, const struct disk_record *d)
{
	const struct super *s = &c->super;
	struct record r = record_decode(d);

	if (d->op != POOL_OP_MAP && d->op != POOL_OP_UNMAP)
		return "of an unknown kind";
	if (d->flags & ~POOL_RECORD_UNWRITTEN)
		return "with unknown flags";
	if (get16(d->volume))
		return "of a volume that is not there";
	if (!r.length)
		return "of no length";
	if (r.logical % POOL_UNIT || r.physical % POOL_UNIT)
		return "of a place that is no multiple of 4096";
	if (!within(r.logical, r.length, 0, s->logical_size))
		return "that is not within the device";
	if (d->op == POOL_OP_UNMAP)
		return r.physical || d->flags ? "that unmaps and says where"
					      : NULL;
	if (!within(r.physical, r.length, s->journal_offset + s->journal_size,
		    s->physical_size))
		return "whose space is not within the pool";
	return NULL;
}

static int apply(struct check *c, const struct disk_record *d)
{
	struct record r = record_decode(d);
	struct extent e = {
		.logical = r.logical,
		.physical = r.physical,
		.length = r.length,
		.unwritten = r.unwritten,
	};

	if (r.op == POOL_OP_UNMAP)
		return extent_map_clear(
			&c->map, r.logical, r.length, NULL, NULL);
	return extent_map_set(&c->map, &e, NULL, NULL);
}

/* In a chunk: extents only, one after the other, also across chunks. */
static const char *chunk_record_fault(
	const struct check *c, const struct disk_record *d)
{
	struct record r = record_decode(d);
	struct extent e;

	if (d->op != POOL_OP_MAP)
		return "that maps nothing, in a checkpoint";
	if (extent_map_find(&c->map, r.logical, &e))
		return "that is not after the one before it";
	return NULL;
}

int check_records(struct check *c, const void *head, uint32_t length,
	uint32_t count, uint64_t offset, bool chunk)
{
	const struct disk_record *d = (const struct disk_record *)(const void
			*)((const struct disk_entry *)head + 1);
	const uint8_t *end = (const uint8_t *)head + length;

	for (uint32_t i = 0; i < count; i++) {
		const char *fault = record_fault(c, &d[i]);
		int err;

		if (!fault && chunk)
			fault = chunk_record_fault(c, &d[i]);
		if (fault) {
			check_found(c,
				offset + sizeof(struct disk_entry) +
					i * sizeof(*d),
				"a record %s", fault);
			check_incomplete(c);
			continue;
		}
		err = apply(c, &d[i]);
		if (err)
			return check_no_memory(c);
	}
	check_zero(c, head, (const uint8_t *)(d + count),
		(size_t)(end - (const uint8_t *)(d + count)), offset);
	return 0;
}

/* --- the superblocks ----------------------------------------------------- */

struct slot {
	bool known; /* has the magic */
	bool good;
	struct super super;
	struct disk_super disk;
};

/* One this program cannot look into: 0 if it can. */
static int check_version(struct check *c, const struct disk_super *d)
{
	if (get32(d->version) != POOL_VERSION)
		return error_set(c->error, -EINVAL,
			"a pool of version %" PRIu32
			": this program knows version %u",
			get32(d->version), POOL_VERSION);
	if (get64(d->incompatible))
		return error_set(c->error, -EINVAL,
			"a pool with features this program does not know "
			"(incompatible bits 0x%" PRIx64 ")",
			get64(d->incompatible));
	return 0;
}

static int check_slot(struct check *c, uint64_t at, struct slot *slot)
{
	CLEANUP_FREE struct disk_super *d =
		aligned_alloc(POOL_UNIT, POOL_SUPER_SIZE);
	struct error why = {""};
	int err;

	if (!d)
		return check_no_memory(c);
	err = check_read(c, at, POOL_SUPER_SIZE, d);
	if (err)
		return err;
	slot->disk = *d;
	slot->known = !memcmp(d->magic, POOL_MAGIC_SUPER, sizeof(d->magic));
	if (!format_holds(d, POOL_SUPER_SIZE, POOL_MAGIC_SUPER))
		return 0;
	err = check_version(c, d);
	if (err)
		return err;
	if (super_decode(d, false, &slot->super, &why)) {
		check_found(c, at, "%s", why.text);
		return 0;
	}
	slot->good = true;
	check_zero(c, d, d->reserved, sizeof(d->reserved), at);
	if (super_offset(slot->super.generation) != at)
		check_found(c, at,
			"a superblock of generation %" PRIu64
			", which belongs to the other place",
			slot->super.generation);
	return 0;
}

/* Two good ones: made one after the other, of the same pool. */
static void check_pair(
	struct check *c, const struct super *last, const struct super *before)
{
	if (memcmp(last->uuid, before->uuid, sizeof(last->uuid)))
		check_found(c, super_offset(before->generation),
			"the two superblocks are of different pools");
	else if (last->generation != before->generation + 1)
		check_found(c, super_offset(before->generation),
			"superblocks of generations %" PRIu64 " and %" PRIu64
			" do not follow each other",
			before->generation, last->generation);
}

/* What does not depend on anything but the superblock itself. */
static void check_super(struct check *c)
{
	const struct super *s = &c->super;
	uint64_t at = super_offset(s->generation);

	if (s->physical_size > c->store->info.size) {
		check_found(c, at,
			"the pool was made for %" PRIu64
			" bytes, the store has %" PRIu64,
			s->physical_size, c->store->info.size);
		check_incomplete(c);
	}
	if (!s->checkpoint_chunks != !s->checkpoint_offset)
		check_found(c, at,
			"%" PRIu32 " chunks of a checkpoint at %" PRIu64,
			s->checkpoint_chunks, s->checkpoint_offset);
	if (!s->replay_sequence)
		check_found(c, at, "journal entry 0 is to be replayed");
}

static int check_supers(struct check *c)
{
	struct slot slot[2] = {0};
	int last;

	for (int i = 0; i < 2; i++) {
		int err = check_slot(
			c, (uint64_t)i * POOL_SUPER_SPACING, &slot[i]);

		if (err)
			return err;
	}
	if (!slot[0].good && !slot[1].good) {
		if (!slot[0].known && !slot[1].known)
			return error_set(c->error, -EINVAL, "not a pool");
		check_found(c, slot[0].known ? 0 : POOL_SUPER_SPACING,
			"no superblock that can be used");
		check_incomplete(c);
		return 0;
	}
	last = slot[1].good &&
		(!slot[0].good ||
			slot[1].super.generation >= slot[0].super.generation);
	c->super = slot[last].super;
	c->out->version = get32(slot[last].disk.version);
	if (slot[!last].good)
		check_pair(c, &c->super, &slot[!last].super);
	check_super(c);
	return 0;
}

/* --- who uses which space ------------------------------------------------ */

#define OF_THE_CHECKPOINT UINT64_MAX

struct used {
	uint64_t offset, length;
	uint64_t logical;
};

static int used_order(const void *a, const void *b)
{
	const struct used *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* All that takes space, in order, and an end; owned by the caller. */
static struct used *list_used(const struct check *c, size_t *count)
{
	size_t n = extent_map_count(&c->map) + c->chain.count, i = 0;
	struct used *all = malloc((n + 1) * sizeof(*all));
	uint64_t pos = 0;
	struct extent e;

	if (!all)
		return NULL;
	while (extent_map_next(&c->map, &pos, &e))
		all[i++] = (struct used){e.physical, e.length, e.logical};
	for (uint32_t k = 0; k < c->chain.count; k++)
		all[i++] = (struct used){c->chain.chunk[k].offset,
			c->chain.chunk[k].length, OF_THE_CHECKPOINT};
	qsort(all, n, sizeof(*all), used_order);
	all[n] = (struct used){.offset = c->super.physical_size};
	*count = n;
	return all;
}

static const char *user_name(const struct used *u, char buf[40])
{
	if (u->logical == OF_THE_CHECKPOINT)
		return "the checkpoint";
	snprintf(buf, 40, "%" PRIu64 " of the device", u->logical);
	return buf;
}

static void found_twice(
	struct check *c, const struct used *a, const struct used *b)
{
	char one[40], two[40];

	check_found(c, b->offset, "used twice: for %s and for %s",
		user_name(a, one), user_name(b, two));
}

static void count_free(struct check *c, uint64_t bytes)
{
	c->out->free_bytes += bytes;
	c->out->free_extents++;
	if (bytes > c->out->free_largest)
		c->out->free_largest = bytes;
}

static int check_space(struct check *c)
{
	size_t n = 0, last = 0; /* the one that ends last */
	CLEANUP_FREE struct used *all = list_used(c, &n);
	uint64_t at = c->super.journal_offset + c->super.journal_size;

	if (!all)
		return check_no_memory(c);
	for (size_t i = 0; i <= n; i++) {
		if (all[i].offset < at)
			found_twice(c, &all[last], &all[i]);
		else if (all[i].offset > at)
			count_free(c, all[i].offset - at);
		if (all[i].offset + all[i].length > at) {
			at = all[i].offset + all[i].length;
			last = i;
		}
	}
	return 0;
}

/* --- all of it ----------------------------------------------------------- */

static void tell_extents(struct check *c)
{
	uint64_t pos = 0;
	struct extent e;

	while (extent_map_next(&c->map, &pos, &e)) {
		if (e.unwritten)
			c->out->unwritten_bytes += e.length;
		if (c->visitor->extent)
			c->visitor->extent(c->visitor->arg, e.logical,
				e.physical, e.length, e.unwritten);
	}
}

static void summarize(struct check *c)
{
	const struct super *s = &c->super;
	struct pool_summary *out = c->out;

	memcpy(out->uuid, s->uuid, sizeof(out->uuid));
	out->generation = s->generation;
	out->logical_size = s->logical_size;
	out->preallocated = s->compatible & POOL_PREALLOCATED;
	out->physical_size = s->physical_size;
	out->journal_size = s->journal_size;
	out->checkpoint_bytes = c->chain.bytes;
	out->checkpoint_extents = c->chain.extents;
	out->extents = extent_map_count(&c->map);
	out->mapped_bytes = extent_map_mapped_bytes(&c->map);
}

static int check_all(struct check *c)
{
	int err;

	if (c->store->info.align > POOL_UNIT ||
		c->store->info.max_io < POOL_UNIT)
		return error_set(c->error, -EINVAL,
			"a pool needs a store of blocks of 4K or less");
	if (c->store->info.size < POOL_JOURNAL_OFFSET)
		return error_set(c->error, -EINVAL, "not a pool: too small");
	err = check_supers(c);
	if (err || !c->out->complete) {
		summarize(c);
		return err;
	}
	err = check_chain(c);
	if (!err)
		err = check_journal(c);
	if (!err && c->out->complete)
		err = check_space(c);
	if (!err)
		tell_extents(c);
	summarize(c);
	return err;
}

int pool_check(struct store *s, const struct pool_visitor *visitor,
	struct pool_summary *out, struct error *error)
{
	struct check c = {
		.store = s,
		.loop = reactor_sim_new(1),
		.visitor = visitor,
		.out = out,
		.error = error,
	};
	int err;

	*out = (struct pool_summary){.complete = true};
	if (!c.loop)
		return check_no_memory(&c);
	extent_map_init(&c.map);
	err = check_all(&c);
	extent_map_destroy(&c.map);
	free(c.chain.chunk);
	reactor_free(c.loop);
	return err;
}
