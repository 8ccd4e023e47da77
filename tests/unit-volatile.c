/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-volatile.c: what a power cut leaves of a file behind a volatile cache.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage.h"
#include "store/fault.h"

#define SECTORS 64U
#define SIZE (SECTORS * 512U)

struct bed {
	struct reactor *r;
	struct store *s;
	char path[32];
	char buf[SIZE];
};

static struct bed *bed_open(const char *options)
{
	struct bed *b = calloc(1, sizeof *b);
	char spec[128];
	int fd;

	strcpy(b->path, "/tmp/weir-unit-XXXXXX");
	fd = mkstemp(b->path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	close(fd);
	snprintf(spec, sizeof spec, "fault:%svolatile:%s", options, b->path);
	b->r = reactor_sim_new(1);
	b->s = store_must_open(spec);
	return b;
}

static void bed_close(struct bed *b)
{
	store_close(b->s);
	reactor_free(b->r);
	unlink(b->path);
	free(b);
}

/* Write `n` sectors full of a letter. */
static int bed_write(
	struct bed *b, unsigned sector, unsigned n, char c, unsigned flags)
{
	memset(b->buf, c, n * 512);
	return io_do(
		b->s, b->r, STORE_WRITE, sector * 512, n * 512, b->buf, flags);
}

static int bed_flush(struct bed *b)
{
	return io_do(b->s, b->r, STORE_FLUSH, 0, 0, NULL, 0);
}

/* What the file holds: a letter a sector ('.': zeroes); each sector whole. */
static const char *bed_file(struct bed *b, char letters[SECTORS + 1])
{
	FILE *f = fopen(b->path, "r");

	assert_non_null(f);
	assert_int_equal(fread(b->buf, 1, SIZE, f), SIZE);
	fclose(f);
	for (unsigned i = 0; i < SECTORS; i++) {
		char *p = b->buf + i * 512;

		assert_memory_equal(p, p + 1, 511);
		letters[i] = *p ? *p : '.';
	}
	letters[SECTORS] = '\0';
	return letters;
}

static unsigned count(const char *letters, char c)
{
	unsigned n = 0;

	for (; *letters; letters++)
		n += *letters == c;
	return n;
}

static void unflushed_writes_are_read_but_not_in_the_file(void **state)
{
	struct bed *b = bed_open("");
	char file[SECTORS + 1];

	(void)state;
	assert_int_equal(bed_write(b, 0, SECTORS, 'a', 0), 0);
	assert_int_equal(count(bed_file(b, file), '.'), SECTORS);
	assert_int_equal(io_do(b->s, b->r, STORE_READ, 512, 512, b->buf, 0), 0);
	assert_int_equal(b->buf[0], 'a');
	assert_int_equal(bed_flush(b), 0);
	assert_int_equal(count(bed_file(b, file), 'a'), SECTORS);
	bed_close(b);
}

static void a_power_cut_keeps_what_was_flushed_and_any_of_the_rest(void **state)
{
	bool none = false, some = false, all = false;

	(void)state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct bed *b = bed_open("");
		char file[SECTORS + 1];
		unsigned got;

		bed_write(b, 0, SECTORS, 'a', 0);
		assert_int_equal(bed_flush(b), 0);
		bed_write(b, 0, SECTORS / 2, 'b', 0);
		store_fault_power_cut(b->s, seed);
		bed_file(b, file);
		got = count(file, 'b');
		assert_int_equal(got + count(file, 'a'), SECTORS);
		assert_int_equal(count(file + SECTORS / 2, 'a'), SECTORS / 2);
		none |= got == 0;
		some |= got > 0 && got < SECTORS / 2;
		all |= got == SECTORS / 2;
		bed_close(b);
	}
	assert_true(none && some && all);
}

static void each_version_of_a_sector_can_survive(void **state)
{
	unsigned seen[4] = {0}; /* '.', a, b, c */

	(void)state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct bed *b = bed_open("");
		char file[SECTORS + 1];

		bed_write(b, 0, SECTORS, 'a', 0);
		bed_write(b, 0, SECTORS, 'b', 0);
		bed_write(b, 0, SECTORS, 'c', 0);
		store_fault_power_cut(b->s, seed);
		bed_file(b, file);
		for (unsigned i = 0; i < 4; i++)
			seen[i] += count(file, ".abc"[i]);
		bed_close(b);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_true(seen[i] > 0);
	assert_int_equal(seen[0] + seen[1] + seen[2] + seen[3], 30 * SECTORS);
}

static void fua_is_durable_and_not_undone_by_older_writes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct bed *b = bed_open("");
		char file[SECTORS + 1];

		bed_write(b, 0, SECTORS, 'a', 0);
		assert_int_equal(bed_write(b, 8, 8, 'b', STORE_FUA), 0);
		store_fault_power_cut(b->s, seed);
		bed_file(b, file);
		assert_int_equal(count(file, 'b'), 8);
		assert_memory_equal(file + 8, "bbbbbbbb", 8);
		bed_close(b);
	}
}

static void a_write_after_the_flush_began_is_not_covered(void **state)
{
	unsigned lost = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct bed *b = bed_open("");
		struct waited_io write, flush;
		char file[SECTORS + 1];

		memset(b->buf, 'a', 512);
		io_start(b->s, b->r, &write, STORE_WRITE, 0, 512, b->buf, 0);
		io_start(b->s, b->r, &flush, STORE_FLUSH, 0, 0, NULL, 0);
		while (reactor_sim_step(b->r))
			;
		assert_true(write.done && flush.done);
		assert_int_equal(flush.io.error, 0);
		store_fault_power_cut(b->s, seed);
		lost += bed_file(b, file)[0] == '.';
		bed_close(b);
	}
	assert_true(lost > 0);
}

static void after_a_failed_flush_a_good_one_does_not_help(void **state)
{
	struct bed *b = bed_open("flush-error=1,");
	char file[SECTORS + 1];
	unsigned lost;

	(void)state;
	bed_write(b, 0, SECTORS, 'a', 0);
	assert_int_equal(bed_flush(b), -EIO);
	assert_int_equal(bed_flush(b), 0);
	lost = count(bed_file(b, file), '.');
	assert_true(lost > 0 && lost < SECTORS);
	/* Reads do not tell. */
	assert_int_equal(io_do(b->s, b->r, STORE_READ, 0, SIZE, b->buf, 0), 0);
	for (unsigned i = 0; i < SIZE; i++)
		assert_int_equal(b->buf[i], 'a');
	/* Writing again does. */
	bed_write(b, 0, SECTORS, 'a', 0);
	assert_int_equal(bed_flush(b), 0);
	assert_int_equal(count(bed_file(b, file), 'a'), SECTORS);
	bed_close(b);
}

static void trims_and_zeroes_can_be_lost_like_writes(void **state)
{
	bool kept = false, lost = false;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct bed *b = bed_open("");
		char file[SECTORS + 1];
		unsigned zero;

		bed_write(b, 0, SECTORS, 'a', STORE_FUA);
		assert_int_equal(
			io_do(b->s, b->r, STORE_ZERO, 0, 4096, NULL, 0), 0);
		assert_int_equal(
			io_do(b->s, b->r, STORE_TRIM, 4096, 4096, NULL, 0), 0);
		store_fault_power_cut(b->s, seed);
		zero = count(bed_file(b, file), '.');
		assert_true(zero <= 16);
		assert_int_equal(count(file + 16, 'a'), SECTORS - 16);
		kept |= zero > 0;
		lost |= zero < 16;
		bed_close(b);
	}
	assert_true(kept && lost);
}

static void a_close_in_order_keeps_everything(void **state)
{
	struct bed *b = bed_open("");
	char file[SECTORS + 1];

	(void)state;
	bed_write(b, 0, SECTORS, 'a', 0);
	store_close(b->s);
	assert_int_equal(count(bed_file(b, file), 'a'), SECTORS);
	b->s = NULL;
	bed_close(b);
}

static void a_snapshot_is_what_a_cut_would_leave_and_changes_nothing(
	void **state)
{
	char image[SIZE], file[SECTORS + 1], before[SECTORS + 1];

	(void)state;
	for (uint64_t seed = 0; seed < 30; seed++) {
		struct bed *b = bed_open("");

		bed_write(b, 0, SECTORS, 'a', 0);
		assert_int_equal(bed_flush(b), 0);
		bed_write(b, 8, SECTORS / 2, 'b', 0);
		bed_write(b, 0, SECTORS / 4, 'c', 0);
		bed_file(b, before);
		store_fault_snapshot(b->s, seed, image);
		assert_string_equal(bed_file(b, file), before);
		store_fault_power_cut(b->s, seed);
		bed_file(b, file);
		assert_memory_equal(image, b->buf, SIZE);
		bed_close(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unflushed_writes_are_read_but_not_in_the_file),
		cmocka_unit_test(
			a_power_cut_keeps_what_was_flushed_and_any_of_the_rest),
		cmocka_unit_test(
			a_snapshot_is_what_a_cut_would_leave_and_changes_nothing),
		cmocka_unit_test(each_version_of_a_sector_can_survive),
		cmocka_unit_test(fua_is_durable_and_not_undone_by_older_writes),
		cmocka_unit_test(a_write_after_the_flush_began_is_not_covered),
		cmocka_unit_test(after_a_failed_flush_a_good_one_does_not_help),
		cmocka_unit_test(trims_and_zeroes_can_be_lost_like_writes),
		cmocka_unit_test(a_close_in_order_keeps_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
