/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checked.h: for the unit tests of pool_check(): a pool with something in each
 * part, where those parts lie, and what is found in it. Include after
 * cmocka.h.
 */
#ifndef WEIR_TESTS_CHECKED_H
#define WEIR_TESTS_CHECKED_H

#include "placement/format.h"
#include "placement/super.h"
#include "pooled.h"

#define SIZE (2 * MIB)
#define DEVICE (64 * MIB)

/* What was found. */
struct findings {
	unsigned count;
	uint64_t offset; /* of the first */
	char text[256];
	struct pool_summary summary;
	struct error error;
	uint64_t extents, bytes; /* that were visited */
};

static inline void found(void *arg, uint64_t offset, const char *what)
{
	struct findings *f = arg;

	if (f->count++)
		return;
	f->offset = offset;
	snprintf(f->text, sizeof(f->text), "%s", what);
}

static inline void visit(void *arg, uint64_t logical, uint64_t physical,
	uint64_t length, bool unwritten)
{
	struct findings *f = arg;

	(void)logical;
	(void)physical;
	(void)unwritten;
	f->extents++;
	f->bytes += length;
}

static inline int check(struct pooled *b, struct findings *f)
{
	struct pool_visitor v = {.arg = f, .found = found, .extent = visit};
	struct store *s = NULL;
	char spec[64];
	int err;

	*f = (struct findings){0};
	snprintf(spec, sizeof(spec), "volatile:/proc/self/fd/%d", b->fd);
	assert_int_equal(
		store_open(spec, STORE_OPEN_READONLY, &s, &f->error), 0);
	err = pool_check(s, &v, &f->summary, &f->error);
	store_close(s);
	assert_int_equal(f->count, f->summary.findings);
	return err;
}

static inline void assert_clean(struct pooled *b, struct findings *f)
{
	if (check(b, f))
		fail_msg("%s", f->error.text);
	if (f->count)
		fail_msg("at %" PRIu64 ": %s", f->offset, f->text);
	assert_true(f->summary.complete);
	assert_int_equal(f->extents, f->summary.extents);
	assert_int_equal(f->bytes, f->summary.mapped_bytes);
}

/* Something with these words is found there. */
static inline void assert_finds(
	struct pooled *b, uint64_t offset, const char *words)
{
	struct findings f;

	assert_int_equal(check(b, &f), 0);
	assert_true(f.count > 0);
	if (!strstr(f.text, words) || f.offset != offset)
		fail_msg("at %" PRIu64 ": %s; not at %" PRIu64 ": %s", f.offset,
			f.text, offset, words);
}

/* --- pools --------------------------------------------------------------- */

/* Two extents in the checkpoint and two entries in the journal. */
static inline struct pooled *used_pool(void)
{
	struct pooled *b = pooled_new(SIZE, DEVICE);

	pooled_write(b, 1, 0, 8 * UNIT);
	pooled_write(b, 2, 64 * UNIT, 4 * UNIT);
	pooled_flush(b);
	pooled_close(b);
	pooled_open(b);
	pooled_write(b, 3, 128 * UNIT, 4 * UNIT);
	pooled_flush(b);
	pooled_trim(b, 2 * UNIT, UNIT);
	pooled_flush(b);
	pooled_drop(b);
	return b;
}

static inline int setup(void **state)
{
	*state = used_pool();
	return 0;
}

/* It may be beyond opening: nothing is written any more. */
static inline int teardown(void **state)
{
	struct pooled *b = *state;

	if (b->pool)
		pooled_drop(b);
	pooled_free(b);
	return 0;
}

static inline struct disk_super *super_at(struct pooled *b, uint64_t offset)
{
	return (struct disk_super *)(void *)(b->map + offset);
}

/* The one that counts, and the other. */
static inline struct disk_super *last_super(struct pooled *b)
{
	struct disk_super *one = super_at(b, 0);
	struct disk_super *two = super_at(b, POOL_SUPER_SPACING);

	return get64(one->generation) > get64(two->generation) ? one : two;
}

static inline uint64_t offset_of(struct pooled *b, const void *at)
{
	return (uint64_t)((const unsigned char *)at - b->map);
}

static inline struct disk_chunk *chunk_of(struct pooled *b)
{
	return (void *)(b->map + get64(last_super(b)->checkpoint_offset));
}

static inline struct disk_entry *entry_of(struct pooled *b, unsigned skip)
{
	struct disk_super *s = last_super(b);
	unsigned char *at =
		b->map + get64(s->journal_offset) + get64(s->replay_position);

	while (skip--)
		at += get32(((struct disk_entry *)(void *)at)->length);
	return (void *)at;
}

static inline struct disk_record *records_of(void *head)
{
	return (void *)((struct disk_entry *)head + 1);
}

static inline void seal_super(struct disk_super *s)
{
	s->crc = put32(format_checksum(s, sizeof(*s)));
}

static inline void seal_chunk(struct disk_chunk *c)
{
	format_seal(c, get32(c->length), POOL_MAGIC_CHUNK);
}

static inline void seal_entry(struct disk_entry *e)
{
	format_seal(e, get32(e->length), POOL_MAGIC_ENTRY);
}

#endif
