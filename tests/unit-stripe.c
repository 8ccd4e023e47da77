/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-stripe.c: what each member of a stripe is asked, what it may do
 * together with the others, and what becomes of one that fails.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage.h"
#include "store/fault.h"

#define RECORDED "[fault:record=on,mem:1M]"

struct bench {
	struct reactor *r;
	struct store *s;
	char *buf; /* 1M */
};

static struct bench bench(const char *spec)
{
	struct bench b = {
		.r = reactor_sim_new(1),
		.s = store_must_open(spec),
		.buf = calloc(1, MIB),
	};

	return b;
}

static void bench_end(struct bench *b)
{
	store_close(b->s);
	reactor_free(b->r);
	free(b->buf);
}

static int ask(struct bench *b, enum store_op op, uint64_t offset,
	uint64_t length, unsigned flags)
{
	return io_do(b->s, b->r, op, offset, length, b->buf, flags);
}

/* The log of a member; it begins anew. */
static size_t log_of(
	struct bench *b, unsigned member, struct store_fault_record records[8])
{
	struct store *m = store_member(b->s, member);
	size_t n = store_fault_log(m, records, 8);

	store_fault_record(m, true);
	return n;
}

static void assert_asked(struct bench *b, unsigned member, enum store_op op,
	uint64_t offset, uint64_t length, unsigned flags)
{
	struct store_fault_record r[8];

	assert_int_equal(log_of(b, member, r), 1);
	assert_int_equal(r[0].op, op);
	assert_int_equal(r[0].offset, offset);
	assert_int_equal(r[0].length, length);
	assert_int_equal(r[0].flags, flags);
	assert_true(r[0].done);
}

static void assert_idle(struct bench *b, unsigned member)
{
	struct store_fault_record r[8];

	assert_int_equal(log_of(b, member, r), 0);
}

static void each_member_is_asked_once(void **state)
{
	struct bench b =
		bench("stripe:64K," RECORDED "," RECORDED "," RECORDED);

	(void)state;
	/* Chunks 1 (its second half) to 8 (its first): of members 1, 2, 0. */
	assert_int_equal(
		ask(&b, STORE_WRITE, 96 * KIB, 448 * KIB, STORE_FUA), 0);
	assert_asked(&b, 0, STORE_WRITE, 64 * KIB, 128 * KIB, STORE_FUA);
	assert_asked(&b, 1, STORE_WRITE, 32 * KIB, 160 * KIB, STORE_FUA);
	assert_asked(&b, 2, STORE_WRITE, 0, 160 * KIB, STORE_FUA);
	assert_int_equal(ask(&b, STORE_READ, 64 * KIB, 64 * KIB, 0), 0);
	assert_idle(&b, 0);
	assert_asked(&b, 1, STORE_READ, 0, 64 * KIB, 0);
	assert_idle(&b, 2);
	assert_int_equal(
		ask(&b, STORE_ZERO, 0, 3 * MIB, STORE_NO_HOLE | STORE_FUA), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_asked(
			&b, i, STORE_ZERO, 0, MIB, STORE_NO_HOLE | STORE_FUA);
	assert_int_equal(ask(&b, STORE_TRIM, 64 * KIB, 128 * KIB, 0), 0);
	assert_idle(&b, 0);
	assert_asked(&b, 1, STORE_TRIM, 0, 64 * KIB, 0);
	assert_asked(&b, 2, STORE_TRIM, 0, 64 * KIB, 0);
	assert_int_equal(ask(&b, STORE_FLUSH, 0, 0, 0), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_asked(&b, i, STORE_FLUSH, 0, 0, 0);
	bench_end(&b);
}

static void break_member(
	struct bench *b, unsigned member, enum store_op op, int error)
{
	struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(op),
		.error = error,
	};

	store_fault_set(store_member(b->s, member), &rule, error != 0);
}

static void one_member_fails_its_own_part_only(void **state)
{
	struct bench b = bench("stripe:64K," RECORDED "," RECORDED);

	(void)state;
	break_member(&b, 1, STORE_READ, -EIO);
	assert_int_equal(ask(&b, STORE_READ, 0, 64 * KIB, 0), 0);
	assert_int_equal(ask(&b, STORE_READ, 128 * KIB, 64 * KIB, 0), 0);
	assert_int_equal(ask(&b, STORE_READ, 64 * KIB, 4 * KIB, 0), -EIO);
	assert_int_equal(ask(&b, STORE_READ, 60 * KIB, 8 * KIB, 0), -EIO);
	break_member(&b, 1, STORE_WRITE, -ENOSPC);
	assert_int_equal(ask(&b, STORE_WRITE, 0, 128 * KIB, 0), -ENOSPC);
	assert_int_equal(ask(&b, STORE_WRITE, 0, 64 * KIB, 0), 0);
	bench_end(&b);
}

static void a_flush_succeeds_if_all_do(void **state)
{
	struct bench b = bench("stripe:4K," RECORDED "," RECORDED "," RECORDED);

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		break_member(&b, i, STORE_FLUSH, -EIO);
		assert_int_equal(ask(&b, STORE_FLUSH, 0, 0, 0), -EIO);
		break_member(&b, i, STORE_FLUSH, 0);
	}
	assert_int_equal(ask(&b, STORE_FLUSH, 0, 0, 0), 0);
	bench_end(&b);
}

/* -EAGAIN says that nothing is lost: not if another member lost something. */
static void the_worst_error_counts(void **state)
{
	struct bench b = bench("stripe:4K," RECORDED "," RECORDED);

	(void)state;
	break_member(&b, 0, STORE_FLUSH, -EAGAIN);
	assert_int_equal(ask(&b, STORE_FLUSH, 0, 0, 0), -EAGAIN);
	break_member(&b, 1, STORE_FLUSH, -EIO);
	assert_int_equal(ask(&b, STORE_FLUSH, 0, 0, 0), -EIO);
	break_member(&b, 0, STORE_FLUSH, -EIO);
	break_member(&b, 1, STORE_FLUSH, -EAGAIN);
	assert_int_equal(ask(&b, STORE_FLUSH, 0, 0, 0), -EIO);
	bench_end(&b);
}

static void the_smallest_member_counts(void **state)
{
	struct bench b = bench("stripe:64K,[mem:1000K],[mem:300K],[mem:4G]");

	(void)state;
	assert_int_equal(b.s->info.size, 3 * 256 * KIB);
	assert_int_equal(b.s->info.chunk, 64 * KIB);
	assert_int_equal(b.s->info.members, 3);
	bench_end(&b);
}

/* null: cannot trim, and cannot say where it is zero. */
static void it_can_what_all_members_can(void **state)
{
	struct bench b = bench("stripe:64K,[mem:1M],[null:1M]");
	const struct store_info *i = &b.s->info;
	struct store *mem = store_member(b.s, 0);
	struct store *null = store_member(b.s, 1);

	(void)state;
	assert_true(mem->info.can_trim);
	assert_int_equal(i->can_trim, null->info.can_trim);
	assert_int_equal(
		i->can_zero, mem->info.can_zero && null->info.can_zero);
	assert_int_equal(i->can_fua, mem->info.can_fua && null->info.can_fua);
	assert_int_equal(i->direct, mem->info.direct && null->info.direct);
	assert_null(store_member(b.s, 2));
	assert_null(store_member(mem, 0));
	bench_end(&b);
}

/* --- status --------------------------------------------------------------- */

static int status(struct bench *b, uint64_t offset, uint64_t length,
	struct store_extent *extents, int n)
{
	struct waited_io w = {.io = {
				      .op = STORE_STATUS,
				      .offset = offset,
				      .length = length,
				      .nextents = n,
				      .extents = extents,
				      .reactor = b->r,
				      .done = waited_io_done,
			      }};

	store_submit(b->s, &w.io);
	while (!w.done)
		assert_true(reactor_sim_step(b->r));
	assert_int_equal(w.io.error, 0);
	return w.io.nextents;
}

static void assert_extent(
	const struct store_extent *x, uint64_t length, bool hole)
{
	assert_int_equal(x->length, length);
	assert_int_equal(x->flags, hole ? STORE_HOLE | STORE_ZEROES : 0);
}

static void status_is_put_together(void **state)
{
	struct bench b = bench("stripe:64K,[mem:1M],[mem:1M]");
	struct store_extent x[8];

	(void)state;
	memset(b.buf, 'x', MIB);
	assert_int_equal(status(&b, 0, 2 * MIB, x, 8), 1);
	assert_extent(x, 2 * MIB, true);
	/* The second half of chunk 1, all of 2, the first page of 3. */
	assert_int_equal(ask(&b, STORE_WRITE, 96 * KIB, 100 * KIB, 0), 0);
	assert_int_equal(status(&b, 0, 2 * MIB, x, 8), 3);
	assert_extent(x, 96 * KIB, true);
	assert_extent(x + 1, 100 * KIB, false);
	assert_extent(x + 2, 2 * MIB - 196 * KIB, true);
	/* With room for less, and from within. */
	assert_int_equal(status(&b, 100 * KIB, MIB, x, 1), 1);
	assert_extent(x, 96 * KIB, false);
	assert_int_equal(status(&b, 180 * KIB, 20 * KIB, x, 8), 2);
	assert_extent(x, 16 * KIB, false);
	assert_extent(x + 1, 4 * KIB, true);
	bench_end(&b);
}

/* Not a step a chunk: 64T in one. */
static void status_of_a_huge_hole_is_quick(void **state)
{
	struct bench b = bench("stripe:4K,[null:32T],[null:32T]");
	struct store_extent x[2];
	uint64_t got = 0;
	int asked = 0;

	(void)state;
	while (got < b.s->info.size && asked++ < 100) {
		int n = status(&b, got, b.s->info.size - got, x, 2);

		for (int i = 0; i < n; i++)
			got += x[i].length;
	}
	assert_int_equal(got, b.s->info.size);
	bench_end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_member_is_asked_once),
		cmocka_unit_test(one_member_fails_its_own_part_only),
		cmocka_unit_test(a_flush_succeeds_if_all_do),
		cmocka_unit_test(the_worst_error_counts),
		cmocka_unit_test(the_smallest_member_counts),
		cmocka_unit_test(it_can_what_all_members_can),
		cmocka_unit_test(status_is_put_together),
		cmocka_unit_test(status_of_a_huge_hole_is_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
