/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-store.c: what every store that keeps data must do: random operations,
 * several at once, against a flat array. In the simulated loop.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "storage.h"

#define LANES 4U /* operations at once, each in its own part of the store */
#define MAX_LENGTH (96 * KIB)
#define ROUNDS 80

struct lane {
	struct waited_io w;
	struct iovec iov[3];
	char *buf; /* MAX_LENGTH */
};

struct flat {
	struct reactor *r;
	struct store *s;
	uint64_t seed;
	char *want; /* the whole store as it should be */
	struct lane lane[LANES];
};

/* --- one operation --------------------------------------------------------- */

/* A range of the lane's part of the store, as the store wants it. */
static void lane_range(
	struct flat *f, unsigned n, uint64_t *offset, uint64_t *length)
{
	uint64_t align = f->s->info.align, size = f->s->info.size;
	uint64_t from = size / LANES / align * align * n;
	uint64_t to =
		n == LANES - 1 ? size : size / LANES / align * align * (n + 1);

	*offset = from + random_below(&f->seed, (to - from) / align) * align;
	*length = align + random_below(&f->seed, MAX_LENGTH / align) * align;
	if (*length > to - *offset)
		*length = to - *offset;
}

/* Cut the lane's buffer up at places that memory alignment allows. */
static void lane_scatter(struct flat *f, struct lane *l, uint64_t length)
{
	uint64_t align = f->s->info.mem_align;
	uint64_t a = random_below(&f->seed, length / align + 1) * align;
	uint64_t b =
		a + random_below(&f->seed, (length - a) / align + 1) * align;

	l->iov[0] = (struct iovec){l->buf, a};
	l->iov[1] = (struct iovec){l->buf + a, b - a};
	l->iov[2] = (struct iovec){l->buf + b, length - b};
}

static void lane_start(struct flat *f, unsigned n)
{
	static const enum store_op ops[] = {STORE_READ, STORE_READ, STORE_WRITE,
		STORE_WRITE, STORE_WRITE, STORE_TRIM, STORE_ZERO};
	static const unsigned zero_flags[] = {
		0, STORE_NO_HOLE, STORE_NO_HOLE | STORE_FUA, STORE_FUA};
	struct lane *l = &f->lane[n];
	enum store_op op = ops[random_below(&f->seed, 7)];
	uint64_t offset, length;

	lane_range(f, n, &offset, &length);
	memset(&l->w, 0, sizeof l->w);
	l->w.io = (struct store_io){
		.op = op,
		.offset = offset,
		.length = length,
		.reactor = f->r,
		.done = waited_io_done,
	};
	if (op == STORE_READ || op == STORE_WRITE) {
		lane_scatter(f, l, length);
		l->w.io.iov = l->iov;
		l->w.io.niov = 3;
	}
	if (op == STORE_WRITE) {
		for (uint64_t i = 0; i < length; i++)
			l->buf[i] = (char)random_next(&f->seed);
		l->w.io.flags = random_below(&f->seed, 4) ? 0 : STORE_FUA;
	} else if (op == STORE_ZERO) {
		l->w.io.flags = zero_flags[random_below(&f->seed, 4)];
	}
	store_submit(f->s, &l->w.io);
	assert_false(l->w.done);
}

/* A trimmed byte reads as zero or as it was: take what it is. */
static void trim_check(struct flat *f, uint64_t offset, uint64_t length)
{
	char *got = aligned_alloc(4096, MAX_LENGTH);

	assert_int_equal(
		io_do(f->s, f->r, STORE_READ, offset, length, got, 0), 0);
	for (uint64_t i = 0; i < length; i++)
		assert_true(!got[i] || got[i] == f->want[offset + i]);
	memcpy(f->want + offset, got, length);
	free(got);
}

static void lane_check(struct flat *f, struct lane *l)
{
	struct store_io *io = &l->w.io;

	assert_int_equal(io->error, 0);
	switch (io->op) {
	case STORE_READ:
		assert_memory_equal(l->buf, f->want + io->offset, io->length);
		break;
	case STORE_WRITE:
		memcpy(f->want + io->offset, l->buf, io->length);
		break;
	case STORE_ZERO:
		memset(f->want + io->offset, 0, io->length);
		break;
	default:
		trim_check(f, io->offset, io->length);
	}
}

/* --- the whole store --------------------------------------------------------- */

/* Status: extents that cover the store; what is called zeroes is zero. */
static void status_check(struct flat *f)
{
	struct store_extent extents[8];

	for (uint64_t at = 0; at < f->s->info.size;) {
		struct waited_io w = {.io = {
					      .op = STORE_STATUS,
					      .offset = at,
					      .length = f->s->info.size - at,
					      .nextents = 8,
					      .extents = extents,
					      .reactor = f->r,
					      .done = waited_io_done,
				      }};

		store_submit(f->s, &w.io);
		while (!w.done)
			assert_true(reactor_sim_step(f->r));
		assert_int_equal(w.io.error, 0);
		assert_in_range(w.io.nextents, 1, 8);
		for (int i = 0; i < w.io.nextents; i++) {
			assert_in_range(
				extents[i].length, 1, f->s->info.size - at);
			if (extents[i].flags & STORE_ZEROES)
				assert_true(!f->want[at] &&
					!memcmp(f->want + at, f->want + at + 1,
						extents[i].length - 1));
			at += extents[i].length;
		}
	}
}

static void content_check(struct flat *f)
{
	char *got = aligned_alloc(4096, MAX_LENGTH);

	for (uint64_t at = 0; at < f->s->info.size; at += MAX_LENGTH) {
		uint64_t n = f->s->info.size - at;

		if (n > MAX_LENGTH)
			n = MAX_LENGTH;
		assert_int_equal(
			io_do(f->s, f->r, STORE_READ, at, n, got, 0), 0);
		assert_memory_equal(got, f->want + at, n);
	}
	free(got);
}

static void run_against_a_flat_array(const char *spec, uint64_t seed)
{
	struct flat f = {.r = reactor_sim_new(seed), .seed = seed};

	f.s = store_must_open(spec);
	f.want = calloc(1, f.s->info.size);
	for (unsigned n = 0; n < LANES; n++)
		f.lane[n].buf = aligned_alloc(4096, MAX_LENGTH);
	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned n = 0; n < LANES; n++)
			lane_start(&f, n);
		while (reactor_sim_step(f.r))
			;
		for (unsigned n = 0; n < LANES; n++) {
			assert_true(f.lane[n].w.done);
			lane_check(&f, &f.lane[n]);
		}
		if (i % 10 == 0)
			assert_int_equal(
				io_do(f.s, f.r, STORE_FLUSH, 0, 0, NULL, 0), 0);
	}
	content_check(&f);
	status_check(&f);
	for (unsigned n = 0; n < LANES; n++)
		free(f.lane[n].buf);
	free(f.want);
	store_close(f.s);
	reactor_free(f.r);
}

/* A new file of that size in a folder, run against, and removed. */
static void run_on_a_file(const char *kind, const char *dir, off_t size)
{
	char path[64], spec[96];
	int fd;

	snprintf(path, sizeof path, "%s/weir-unit-XXXXXX", dir);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
	snprintf(spec, sizeof spec, "%s%s", kind, path);
	run_against_a_flat_array(spec, (uint64_t)size);
	unlink(path);
}

/* --- tests --------------------------------------------------------------------- */

static void mem_keeps_what_it_is_given(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 5; seed++)
		run_against_a_flat_array("mem:5M", seed);
	run_against_a_flat_array("mem:1234567", 9);
}

static void wrappers_change_no_data(void **state)
{
	(void)state;
	run_against_a_flat_array(
		"sim:bandwidth=50M,latency=1ms,depth=3,mem:3M", 1);
	run_against_a_flat_array("sim:hdd,depth=3,mem:3M", 3);
	run_against_a_flat_array("sim:hdd,cache=100K,mem:3M", 4);
	run_against_a_flat_array("sim:usb,mem:3M", 5);
	run_against_a_flat_array("sim:msa,mem:3M", 6);
	run_against_a_flat_array(
		"fault:record=on,delay=3ms,every=2,[sim:depth=2,mem:3M]", 2);
}

static void stripes_keep_what_they_are_given(void **state)
{
	(void)state;
	run_against_a_flat_array("stripe:4K,[mem:1M],[mem:1M],[mem:1M]", 1);
	run_against_a_flat_array("stripe:64K,[mem:3M],[mem:2M]", 2);
	run_against_a_flat_array("stripe:16K,[mem:3M]", 3);
	run_against_a_flat_array(
		"stripe:8K,[sim:usb,mem:1M],[sim:hdd,mem:1M],"
		"[fault:delay=3ms,every=2,mem:1M],[mem:1M],[mem:1M]",
		4);
	run_against_a_flat_array(
		"stripe:16K,[stripe:4K,[mem:1M],[mem:1M]],[mem:2M]", 5);
}

/* Two new files of that size, as members of a stripe. */
static void run_on_two_files(uint64_t chunk, off_t size)
{
	char path[2][64], spec[256];

	for (int i = 0; i < 2; i++) {
		int fd;

		snprintf(path[i], sizeof path[i], "/tmp/weir-unit-XXXXXX");
		fd = mkstemp(path[i]);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, size), 0);
		close(fd);
	}
	snprintf(spec, sizeof spec, "stripe:%llu,[%s],[raw:%s]",
		(unsigned long long)chunk, path[0], path[1]);
	run_against_a_flat_array(spec, chunk);
	unlink(path[0]);
	unlink(path[1]);
}

static void stripes_of_files_keep_what_they_are_given(void **state)
{
	(void)state;
	run_on_two_files(4 * KIB, 2 << 20);
	run_on_two_files(64 * KIB, (2 << 20) + 512);
	run_on_two_files(64 * KIB, (2 << 20) + 77); /* no O_DIRECT */
}

static void raw_keeps_what_it_is_given(void **state)
{
	(void)state;
	run_on_a_file("raw:", "/tmp", 4 << 20);
	run_on_a_file("", "/tmp", (4 << 20) + 512);
}

static void raw_serves_odd_sizes_to_the_byte(void **state)
{
	(void)state;
	run_on_a_file("raw:", "/tmp", 1234567);
}

static void raw_works_in_memory_filesystems(void **state)
{
	(void)state;
	if (access("/dev/shm", W_OK))
		skip();
	run_on_a_file("raw:", "/dev/shm", 4 << 20);
}

static void volatile_keeps_what_it_is_given(void **state)
{
	(void)state;
	run_on_a_file("volatile:", "/tmp", 2 << 20);
	run_on_a_file("fault:volatile:", "/tmp", 512 * 999);
}

static void a_readonly_store_refuses_to_change(void **state)
{
	static const enum store_op ops[] = {
		STORE_WRITE, STORE_TRIM, STORE_ZERO};
	struct reactor *r = reactor_sim_new(1);
	struct error error;
	struct store *s;
	char buf[512] = "";

	(void)state;
	assert_int_equal(
		store_open("sim:mem:1M", STORE_OPEN_READONLY, &s, &error), 0);
	assert_true(s->info.readonly);
	for (int i = 0; i < 3; i++)
		assert_int_equal(io_do(s, r, ops[i], 0, 512, buf, 0), -EROFS);
	assert_int_equal(io_do(s, r, STORE_READ, 0, 512, buf, 0), 0);
	store_close(s);
	reactor_free(r);
}

static void null_forgets_and_reads_zeroes(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct store *s = store_must_open("null:1T");
	char buf[512];

	(void)state;
	memset(buf, 'x', sizeof buf);
	assert_int_equal(io_do(s, r, STORE_WRITE, 0, 512, buf, 0), 0);
	assert_int_equal(io_do(s, r, STORE_READ, 0, 512, buf, 0), 0);
	for (int i = 0; i < 512; i++)
		assert_int_equal(buf[i], 0);
	store_close(s);
	reactor_free(r);
}

#ifdef __SANITIZE_THREAD__ /* which leaves no room for a mapping of 1T */
#define HUGE_SPEC "mem:16G"
#define HUGE_SIZE (16ULL << 30)
#else
#define HUGE_SPEC "mem:1T"
#define HUGE_SIZE (1ULL << 40)
#endif

static void a_huge_memory_store_takes_no_memory(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct store *s = store_must_open(HUGE_SPEC);
	char buf[4096];

	(void)state;
	memset(buf, 'x', sizeof buf);
	assert_int_equal(
		io_do(s, r, STORE_WRITE, HUGE_SIZE - 4096, 4096, buf, 0), 0);
	assert_int_equal(io_do(s, r, STORE_ZERO, 0, HUGE_SIZE, NULL, 0), 0);
	assert_int_equal(
		io_do(s, r, STORE_READ, HUGE_SIZE - 4096, 4096, buf, 0), 0);
	assert_int_equal(buf[0], 0);
	assert_int_equal(buf[4095], 0);
	store_close(s);
	reactor_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mem_keeps_what_it_is_given),
		cmocka_unit_test(wrappers_change_no_data),
		cmocka_unit_test(stripes_keep_what_they_are_given),
		cmocka_unit_test(stripes_of_files_keep_what_they_are_given),
		cmocka_unit_test(raw_keeps_what_it_is_given),
		cmocka_unit_test(raw_serves_odd_sizes_to_the_byte),
		cmocka_unit_test(raw_works_in_memory_filesystems),
		cmocka_unit_test(volatile_keeps_what_it_is_given),
		cmocka_unit_test(a_readonly_store_refuses_to_change),
		cmocka_unit_test(null_forgets_and_reads_zeroes),
		cmocka_unit_test(a_huge_memory_store_takes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
