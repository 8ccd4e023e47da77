/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-raw.c: files and devices: who else may open them, how they end, how
 * they fail. (Their data is compared in unit-store.c.)
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage.h"

struct bed {
	struct reactor *r;
	char path[32];
	char *buf; /* 1 MiB, aligned */
};

static int setup(void **state)
{
	struct bed *b = calloc(1, sizeof *b);
	int fd;

	strcpy(b->path, "/tmp/weir-unit-XXXXXX");
	fd = mkstemp(b->path);
	if (fd < 0 || ftruncate(fd, 4 << 20))
		return -1;
	close(fd);
	b->r = reactor_sim_new(1);
	b->buf = aligned_alloc(4096, MIB);
	memset(b->buf, 'x', MIB);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	unlink(b->path);
	reactor_free(b->r);
	free(b->buf);
	free(b);
	return 0;
}

/* --- who else -------------------------------------------------------------- */

static void assert_busy(const char *path, unsigned flags)
{
	struct error error;
	struct store *s;
	char text[128];

	assert_int_equal(store_open(path, flags, &s, &error), -EBUSY);
	snprintf(text, sizeof text,
		"store %s: in use: another server has it open", path);
	assert_string_equal(error.text, text);
}

static void a_second_opener_is_refused_until_the_first_closes(void **state)
{
	struct bed *b = *state;
	struct store *s = store_must_open(b->path);

	assert_busy(b->path, 0);
	assert_busy(b->path, STORE_OPEN_READONLY);
	store_close(s);
	s = store_must_open(b->path);
	store_close(s);
}

static void readers_share_and_keep_writers_out(void **state)
{
	struct bed *b = *state;
	struct store *s1, *s2;
	struct error error;

	assert_int_equal(
		store_open(b->path, STORE_OPEN_READONLY, &s1, &error), 0);
	assert_int_equal(
		store_open(b->path, STORE_OPEN_READONLY, &s2, &error), 0);
	assert_busy(b->path, 0);
	assert_int_equal(
		io_do(s1, b->r, STORE_WRITE, 0, 512, b->buf, 0), -EROFS);
	store_close(s1);
	store_close(s2);
}

static void an_empty_file_is_refused(void **state)
{
	struct bed *b = *state;
	struct error error;
	struct store *s;

	assert_int_equal(truncate(b->path, 0), 0);
	assert_int_equal(store_open(b->path, 0, &s, &error), -EINVAL);
	assert_non_null(strstr(error.text, "it is empty (to give it a size"));
}

/* --- ends and failures ------------------------------------------------------ */

static void the_file_keeps_its_size(void **state)
{
	struct bed *b = *state;
	struct store *s;
	struct stat st;

	assert_int_equal(truncate(b->path, 1000001), 0);
	s = store_must_open(b->path);
	assert_int_equal(s->info.size, 1000001);
	assert_int_equal(io_do(s, b->r, STORE_WRITE, 999999, 2, b->buf, 0), 0);
	assert_int_equal(io_do(s, b->r, STORE_ZERO, 0, 1000001, NULL, 0), 0);
	assert_int_equal(
		io_do(s, b->r, STORE_ZERO, 0, 1000001, NULL, STORE_NO_HOLE), 0);
	assert_int_equal(io_do(s, b->r, STORE_TRIM, 0, 1000001, NULL, 0), 0);
	store_close(s);
	assert_int_equal(stat(b->path, &st), 0);
	assert_int_equal(st.st_size, 1000001);
}

static void a_file_cut_off_under_us_is_an_error(void **state)
{
	struct bed *b = *state;
	struct store *s = store_must_open(b->path);

	assert_int_equal(truncate(b->path, MIB + 8192), 0);
	assert_int_equal(
		io_do(s, b->r, STORE_READ, MIB, 16384, b->buf, 0), -EIO);
	assert_int_equal(
		io_do(s, b->r, STORE_READ, 2 * MIB, 4096, b->buf, 0), -EIO);
	assert_int_equal(io_do(s, b->r, STORE_READ, MIB, 8192, b->buf, 0), 0);
	store_close(s);
}

/*
 * A file size limit makes the kernel write the part that fits: the store
 * goes on from there and meets the error.
 */
static void a_short_write_goes_on_to_its_error(void **state)
{
	struct bed *b = *state;
	struct store *s = store_must_open(b->path);
	struct rlimit old, limit;
	void (*handler)(int);
	int err;

	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = MIB;
	handler = signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	err = io_do(s, b->r, STORE_WRITE, MIB - 64 * KIB, 128 * KIB, b->buf, 0);
	setrlimit(RLIMIT_FSIZE, &old);
	signal(SIGXFSZ, handler);
	assert_int_equal(err, -EFBIG);
	assert_int_equal(io_do(s, b->r, STORE_READ, MIB - 64 * KIB, 128 * KIB,
				 b->buf, 0),
		0);
	assert_int_equal(b->buf[64 * KIB - 1], 'x');
	assert_int_equal(b->buf[64 * KIB], 0);
	store_close(s);
}

#define PIECES (IOV_MAX * 2 + 100)

/* More pieces than one system call takes: several, seen as one. */
static void any_number_of_pieces_makes_one_io(void **state)
{
	struct bed *b = *state;
	struct store *s = store_must_open(b->path);
	struct iovec *iov = calloc(PIECES, sizeof *iov);
	char *data = aligned_alloc(4096, (PIECES + 7) / 8 * 4096);
	struct waited_io w = {.io = {
				      .op = STORE_WRITE,
				      .offset = 512,
				      .length = PIECES * 512,
				      .iov = iov,
				      .niov = PIECES,
				      .reactor = b->r,
				      .done = waited_io_done,
			      }};

	for (int i = 0; i < PIECES; i++) {
		/* Backwards, so that no two pieces are one. */
		iov[i] = (struct iovec){data + (PIECES - 1 - i) * 512, 512};
		memset(iov[i].iov_base, 'a' + i % 23, 512);
	}
	store_submit(s, &w.io);
	while (!w.done)
		assert_true(reactor_sim_step(b->r));
	assert_int_equal(w.io.error, 0);
	for (int i = 0; i < PIECES; i += 50) {
		assert_int_equal(
			io_do(s, b->r, STORE_READ, 512 + (uint64_t)i * 512, 512,
				b->buf, 0),
			0);
		assert_int_equal(b->buf[0], 'a' + i % 23);
		assert_int_equal(b->buf[511], 'a' + i % 23);
	}
	store_close(s);
	free(data);
	free(iov);
}

static void trim_gives_the_space_back_and_no_hole_keeps_it(void **state)
{
	struct bed *b = *state;
	struct store *s = store_must_open(b->path);
	struct stat full, st;

	for (uint64_t at = 0; at < 4 * MIB; at += MIB)
		assert_int_equal(
			io_do(s, b->r, STORE_WRITE, at, MIB, b->buf, 0), 0);
	stat(b->path, &full);
	assert_int_equal(io_do(s, b->r, STORE_ZERO, 0, 2 * MIB, NULL,
				 STORE_NO_HOLE | STORE_FUA),
		0);
	stat(b->path, &st);
	assert_int_equal(st.st_blocks, full.st_blocks);
	assert_int_equal(
		io_do(s, b->r, STORE_TRIM, 0, 2 * MIB, NULL, STORE_FUA), 0);
	stat(b->path, &st);
	assert_true(st.st_blocks < full.st_blocks);
	assert_int_equal(io_do(s, b->r, STORE_READ, 0, MIB, b->buf, 0), 0);
	assert_int_equal(b->buf[0], 0);
	store_close(s);
}

/* --- devices ----------------------------------------------------------------- */

/* A loop device over the file; its descriptor, or -1. */
static int loop_attach(const char *file, char device[32])
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	int fd, dev = -1;

	close(control);
	if (number < 0)
		return -1;
	snprintf(device, 32, "/dev/loop%d", number);
	fd = open(file, O_RDWR | O_CLOEXEC);
	dev = open(device, O_RDWR | O_CLOEXEC);
	if (dev >= 0 && ioctl(dev, LOOP_SET_FD, fd)) {
		close(dev);
		dev = -1;
	}
	close(fd);
	return dev;
}

static void a_device_is_opened_exclusively(void **state)
{
	struct bed *b = *state;
	struct error error;
	struct store *s, *second;
	char device[32];
	int dev = loop_attach(b->path, device);

	if (dev < 0)
		skip(); /* needs root and the loop driver */
	s = store_must_open(device);
	assert_int_equal(s->info.size, 4 * MIB);
	assert_int_equal(store_open(device, 0, &second, &error), -EBUSY);
	assert_non_null(strstr(error.text, device));
	assert_non_null(strstr(error.text, "mounted, or served"));
	assert_int_equal(io_do(s, b->r, STORE_WRITE, 0, MIB, b->buf, 0), 0);
	assert_int_equal(io_do(s, b->r, STORE_TRIM, 0, 4096, NULL, 0), 0);
	assert_int_equal(
		io_do(s, b->r, STORE_ZERO, 4096, 4096, NULL, STORE_FUA), 0);
	assert_int_equal(
		io_do(s, b->r, STORE_ZERO, 8192, 4096, NULL, STORE_NO_HOLE), 0);
	assert_int_equal(io_do(s, b->r, STORE_FLUSH, 0, 0, NULL, 0), 0);
	assert_int_equal(io_do(s, b->r, STORE_READ, 0, 16384, b->buf, 0), 0);
	assert_int_equal(b->buf[4096], 0);
	assert_int_equal(b->buf[12287], 0);
	assert_int_equal(b->buf[12288], 'x');
	store_close(s);
	ioctl(dev, LOOP_CLR_FD);
	close(dev);
}

/* --- an fsync that fails --------------------------------------------------- */

/* A loop whose next syncing I/O fails, as the kernel says it: once. */
static struct reactor_ops failing_ops;
static const struct reactor_ops *real_ops;
static bool sync_fails;

static void failing_io(struct reactor *r, struct reactor_io *io)
{
	bool syncs = io->op == REACTOR_FSYNC || io->flags & REACTOR_IO_DSYNC;

	if (sync_fails && syncs) {
		sync_fails = false;
		io->fd = -1; /* which fails with EBADF */
	}
	real_ops->io(r, io);
}

/* A size that is no whole number of blocks: no O_DIRECT. */
static void a_failed_sync_of_a_durable_write_fails_the_next_flush(void **state)
{
	static const enum store_op ops[] = {STORE_WRITE, STORE_ZERO};
	struct bed *b = *state;
	struct store *s;

	assert_int_equal(truncate(b->path, 12345), 0);
	s = store_must_open(b->path);
	assert_false(s->info.direct);
	real_ops = b->r->ops;
	failing_ops = *real_ops;
	failing_ops.io = failing_io;
	b->r->ops = &failing_ops;
	for (unsigned i = 0; i < 2; i++) {
		sync_fails = true;
		assert_int_equal(
			io_do(s, b->r, STORE_WRITE, 0, 4096, b->buf, 0), 0);
		assert_int_not_equal(
			io_do(s, b->r, ops[i], 8192, 4096, b->buf, STORE_FUA),
			0);
		assert_int_equal(
			io_do(s, b->r, STORE_FLUSH, 0, 0, NULL, 0), -EIO);
		assert_int_equal(io_do(s, b->r, STORE_FLUSH, 0, 0, NULL, 0), 0);
	}
	b->r->ops = real_ops;
	store_close(s);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_second_opener_is_refused_until_the_first_closes),
		TEST(readers_share_and_keep_writers_out),
		TEST(an_empty_file_is_refused),
		TEST(the_file_keeps_its_size),
		TEST(a_failed_sync_of_a_durable_write_fails_the_next_flush),
		TEST(a_file_cut_off_under_us_is_an_error),
		TEST(a_short_write_goes_on_to_its_error),
		TEST(any_number_of_pieces_makes_one_io),
		TEST(trim_gives_the_space_back_and_no_hole_keeps_it),
		TEST(a_device_is_opened_exclusively),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
