/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool-check.c: what pool_check() finds in a pool, and where: each rule
 * broken by name, checksums made good again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked.h"

/* --- clean ones ---------------------------------------------------------- */

static void a_new_pool_is_clean(void **state)
{
	struct pooled *b = pooled_new(SIZE, DEVICE);
	uint64_t free_bytes = pooled_counts(b).free_bytes;
	struct findings f;

	(void)state;
	pooled_drop(b);
	assert_clean(b, &f);
	assert_int_equal(f.summary.logical_size, DEVICE);
	assert_int_equal(f.summary.physical_size, SIZE);
	assert_int_equal(f.summary.extents, 0);
	assert_int_equal(f.summary.free_bytes, free_bytes);
	assert_int_equal(f.summary.free_extents, 1);
	assert_int_equal(f.summary.free_largest, free_bytes);
	pooled_free(b);
}

static void a_pool_left_open_is_clean_and_says_what_is_in_it(void **state)
{
	struct pooled *b = *state;
	struct findings f;
	struct pool_counts n;

	assert_clean(b, &f);
	assert_int_equal(f.summary.checkpoint_extents, 2);
	assert_int_equal(f.summary.journal_entries, 2);
	assert_int_equal(f.summary.mapped_bytes, 15 * UNIT);
	pooled_open(b);
	n = pooled_counts(b);
	assert_int_equal(f.summary.extents, n.extents);
	assert_int_equal(f.summary.mapped_bytes, n.mapped_bytes);
	assert_int_equal(f.summary.free_bytes, n.free_bytes);
}

static void a_torn_end_of_the_journal_is_no_finding(void **state)
{
	struct pooled *b = *state;
	struct findings f;

	((unsigned char *)entry_of(b, 1))[100] ^= 1;
	assert_clean(b, &f);
	assert_int_equal(f.summary.journal_entries, 1);
}

static void a_torn_superblock_is_no_finding(void **state)
{
	struct pooled *b = *state;
	uint64_t last = offset_of(b, last_super(b));
	struct findings f;

	b->map[POOL_SUPER_SPACING - last + 200] ^= 1;
	assert_clean(b, &f);
}

/* --- broken ones --------------------------------------------------------- */

static void no_pool_and_another_version_are_errors(void **state)
{
	struct pooled *b = *state;
	struct disk_super *s = last_super(b);
	struct findings f;

	s->version = put32(2);
	seal_super(s);
	assert_int_equal(check(b, &f), -EINVAL);
	assert_non_null(strstr(f.error.text, "version 2"));
	memset(b->map, 0, POOL_JOURNAL_OFFSET);
	assert_int_equal(check(b, &f), -EINVAL);
	assert_non_null(strstr(f.error.text, "not a pool"));
	assert_int_equal(ftruncate(b->fd, 4096), 0);
	assert_int_equal(check(b, &f), -EINVAL);
	assert_int_equal(ftruncate(b->fd, SIZE), 0);
}

static void broken_superblocks_are_found(void **state)
{
	struct pooled *b = *state;
	struct disk_super *s = last_super(b), was = *s;
	uint64_t at = offset_of(b, s);

	s->reserved[7] = 1;
	seal_super(s);
	assert_finds(b, offset_of(b, &s->reserved[7]), "not zero");
	*s = was;
	s->checkpoint_extents = put64(3);
	seal_super(s);
	assert_finds(b, at, "1 chunks and 3 extents");
	*s = was;
	s->generation = put64(get64(was.generation) + 2);
	seal_super(s);
	assert_finds(b, POOL_SUPER_SPACING - at, "do not follow");
	s->generation = put64(get64(was.generation) + 1);
	seal_super(s);
	assert_finds(b, at, "the other place");
	*s = was;
	s->unit = put32(512);
	seal_super(s);
	assert_finds(b, at, "makes no sense");
	super_at(b, 0)->uuid[0] ^= 1;
	super_at(b, POOL_SUPER_SPACING)->uuid[0] ^= 1;
	assert_finds(b, 0, "no superblock");
}

static void a_store_cut_short_is_found(void **state)
{
	struct pooled *b = *state;

	assert_int_equal(ftruncate(b->fd, SIZE - 4096), 0);
	assert_finds(b, offset_of(b, last_super(b)), "the store has");
	assert_int_equal(ftruncate(b->fd, SIZE), 0);
}

static void a_broken_chunk_is_found(void **state)
{
	struct pooled *b = *state;
	struct disk_chunk *c = chunk_of(b), was = *c;
	uint64_t at = offset_of(b, c);

	((unsigned char *)c)[80] ^= 1;
	assert_finds(b, at, "its checksum is wrong");
	((unsigned char *)c)[80] ^= 1;
	c->generation = put64(1);
	seal_chunk(c);
	assert_finds(b, at, "another generation");
	*c = was;
	c->index = put32(1);
	seal_chunk(c);
	assert_finds(b, at, "another one of the chain");
	*c = was;
	c->next_offset = put64(UNIT);
	seal_chunk(c);
	assert_finds(b, offset_of(b, last_super(b)), "more than 1");
	*c = was;
	b->map[at + get32(c->length) - 1] = 1;
	seal_chunk(c);
	assert_finds(b, at + get32(c->length) - 1, "not zero");
}

/* The first record of the chunk, or of an entry, changed. */
static void assert_record_fault(struct pooled *b, struct disk_record *r,
	void (*seal)(struct pooled *b), struct disk_record bad,
	const char *words)
{
	struct disk_record was = *r;

	*r = bad;
	seal(b);
	assert_finds(b, offset_of(b, r), words);
	*r = was;
	seal(b);
}

static void seal_the_chunk(struct pooled *b)
{
	seal_chunk(chunk_of(b));
}

static void broken_records_are_found(void **state)
{
	struct pooled *b = *state;
	struct disk_record *r = records_of(chunk_of(b)), bad;
	struct findings f;

#define BAD(member, value, words)                                              \
	bad = *r;                                                              \
	bad.member = value;                                                    \
	assert_record_fault(b, r, seal_the_chunk, bad, words)

	BAD(op, 9, "unknown kind");
	BAD(flags, 8, "unknown flags");
	BAD(volume, put16(1), "volume");
	BAD(units, put32(0), "no length");
	BAD(logical, put64(512), "multiple");
	BAD(logical, put64(DEVICE), "within the device");
	BAD(physical, put64(0), "within the pool");
	BAD(physical, put64(SIZE - UNIT), "within the pool");
	BAD(op, POOL_OP_UNMAP, "unmaps");
#undef BAD
	bad = r[1];
	r[1].logical = r[0].logical;
	seal_the_chunk(b);
	assert_finds(b, offset_of(b, r + 1), "not after");
	r[1] = bad;
	seal_the_chunk(b);
	assert_clean(b, &f);
}

static void space_used_twice_is_found(void **state)
{
	struct pooled *b = *state;
	struct disk_record *r = records_of(chunk_of(b)), was = r[1];

	r[1].physical = r[0].physical;
	seal_chunk(chunk_of(b));
	assert_finds(b, get64(r[0].physical), "used twice");
	r[1] = was;
	r[1].physical = last_super(b)->checkpoint_offset;
	r[1].units = put32(1); /* behind it the pool ends */
	seal_chunk(chunk_of(b));
	assert_finds(b, get64(r[1].physical), "checkpoint");
}

static void damage_in_the_journal_is_found(void **state)
{
	struct pooled *b = *state;
	struct disk_entry *e = entry_of(b, 0);
	uint64_t at = offset_of(b, e);

	((unsigned char *)e)[80] ^= 1;
	assert_finds(b, at, "says it was durable");
	((unsigned char *)e)[80] ^= 1;
	e = entry_of(b, 1);
	e->durable = e->sequence;
	seal_entry(e);
	assert_finds(b, offset_of(b, e), "durable before");
	e->durable = put64(get64(e->sequence) - 1);
	records_of(e)->physical = put64(UNIT);
	seal_entry(e);
	assert_finds(b, offset_of(b, records_of(e)), "unmaps and says where");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_pool_is_clean),
		TEST(a_pool_left_open_is_clean_and_says_what_is_in_it),
		TEST(a_torn_end_of_the_journal_is_no_finding),
		TEST(a_torn_superblock_is_no_finding),
		TEST(no_pool_and_another_version_are_errors),
		TEST(broken_superblocks_are_found),
		TEST(a_store_cut_short_is_found),
		TEST(a_broken_chunk_is_found),
		TEST(broken_records_are_found),
		TEST(space_used_twice_is_found),
		TEST(damage_in_the_journal_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
