/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-make.c: `weir pool create` and `weir pool grow`.
 *
 *  1. Nothing is changed before it is known that nobody has the file or
 *     device open and, for create, that nothing is on it (or --force).
 *  2. A file that create made and could not make a pool of is removed again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "placement/placement.h"
#include "pool.h"

/* The file or device, held open and kept from others. */
struct target {
	int fd;
	bool block, created;
	uint64_t size; /* bytes, as it is */
};

static int fail(const struct pool_args *a, const char *what)
{
	return client_error(EXIT_USAGE, a->command, "%s: %s: %s", a->path, what,
		strerror(errno));
}

static int open_target(const struct pool_args *a, bool create, struct target *t)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat st;

	t->created = create && access(a->path, F_OK) && errno == ENOENT;
	t->block = !t->created && !stat(a->path, &st) && S_ISBLK(st.st_mode);
	t->fd = open(a->path,
		O_RDWR | O_CLOEXEC | (t->created ? O_CREAT | O_EXCL : 0) |
			(t->block ? O_EXCL : 0),
		0600);
	if (t->fd < 0)
		return fail(a, t->created ? "cannot make it" : "cannot open");
	if (fstat(t->fd, &st))
		return fail(a, "cannot open");
	if (!t->block && !S_ISREG(st.st_mode))
		return client_error(EXIT_USAGE, a->command,
			"%s: neither a file nor a block device", a->path);
	t->size = (uint64_t)st.st_size;
	if (t->block && ioctl(t->fd, BLKGETSIZE64, &t->size))
		return fail(a, "cannot get its size");
	/* Where locks are not to be had a server goes without them too. */
	if (!t->block && fcntl(t->fd, F_OFD_SETLK, &lock) &&
		(errno == EAGAIN || errno == EACCES))
		return client_error(EXIT_USAGE, a->command,
			"%s: in use: a server has it open", a->path);
	return EXIT_OK;
}

/* Let go, so that the store can take it. What was made is removed if `code`
 * is an error. */
static int close_target(const struct pool_args *a, struct target *t, int code)
{
	if (t->fd >= 0)
		close(t->fd);
	if (t->created && t->fd >= 0 && code)
		unlink(a->path);
	t->fd = -1;
	return code;
}

/* Give the file its size, and its space if it is to have it at once. */
static int shape_file(const struct pool_args *a, const struct target *t,
	uint64_t space, bool preallocate)
{
	int err;

	if (t->block)
		return EXIT_OK;
	if (t->size != space && ftruncate(t->fd, (off_t)space))
		return fail(a, "cannot set its size");
	if (!preallocate)
		return EXIT_OK;
	err = fallocate(t->fd, 0, 0, (off_t)space) ? errno : 0;
	if (!err)
		return EXIT_OK;
	if (ftruncate(t->fd, (off_t)t->size)) {
		/* It is larger than it was, and no harm is done. */
	}
	errno = err;
	return fail(a, "cannot allocate its space");
}

static int check_space(
	const struct pool_args *a, const struct target *t, uint64_t space)
{
	if (space == UINT64_MAX || space > INT64_MAX)
		return client_error(
			EXIT_USAGE, a->command, "%s: too large", a->path);
	if (t->block && space > t->size)
		return client_error(EXIT_USAGE, a->command,
			"%s: --space is more than the device has", a->path);
	return EXIT_OK;
}

static char *raw_spec(const struct pool_args *a)
{
	return client_format("raw:%s", a->path);
}

/* --- create -------------------------------------------------------------- */

static uint64_t space_to_make(const struct pool_args *a, const struct target *t)
{
	if (a->space)
		return a->space;
	return t->size ? t->size / 4096 * 4096 : pool_space_for(a->size);
}

static int refuse_data(const struct pool_args *a, const struct target *t)
{
	const char *what = a->force ? NULL : pool_probe(t->fd, t->size);

	if (!what)
		return EXIT_OK;
	if (!strcmp(what, "?"))
		return fail(a, "cannot read");
	return client_error(EXIT_USAGE, a->command,
		"%s: there is %s on it; --force overwrites it", a->path, what);
}

static int format(const struct pool_args *a, uint64_t space)
{
	CLEANUP_FREE char *spec = raw_spec(a);
	struct pool_geometry g = {
		.logical_size = a->size,
		.physical_size = space,
		.preallocated = a->preallocate,
	};
	struct error error = {""};
	struct store *s;
	int err = store_open(spec, 0, &s, &error);

	if (!err) {
		err = pool_format(s, &g, &error);
		store_close(s);
	}
	return err ? client_error(err == -EIO ? EXIT_IO : EXIT_USAGE,
			     a->command, "%s: %s", a->path, error.text)
		   : EXIT_OK;
}

int pool_create_run(const struct pool_args *a)
{
	struct target t = {.fd = -1};
	uint64_t space = 0;
	int code;

	if (!a->size)
		return client_error(EXIT_USAGE, a->command,
			"--size is missing; try 'weir pool --help'");
	code = open_target(a, true, &t);
	if (!code && t.size)
		code = refuse_data(a, &t);
	if (!code) {
		space = space_to_make(a, &t);
		code = check_space(a, &t, space);
	}
	if (!code)
		code = shape_file(a, &t, space, a->preallocate);
	close_target(a, &t, code);
	if (code)
		return code;
	code = format(a, space);
	if (code && t.created)
		unlink(a->path);
	return code;
}

/* --- grow ---------------------------------------------------------------- */

/* What the pool is now. */
static int look(const struct pool_args *a, struct pool_summary *now)
{
	CLEANUP_FREE char *spec = raw_spec(a);
	const struct pool_visitor nobody = {0};
	struct error error = {""};
	struct store *s;
	int err = store_open(spec, STORE_OPEN_READONLY, &s, &error);

	if (!err) {
		err = pool_check(s, &nobody, now, &error);
		store_close(s);
	}
	if (err)
		return client_error(err == -EIO ? EXIT_IO : EXIT_USAGE,
			a->command, "%s: %s", a->path, error.text);
	if (now->findings)
		return client_error(EXIT_IO, a->command,
			"%s: damaged: weir pool check %s says how", a->path,
			a->path);
	return EXIT_OK;
}

/* A file that has room for all of its device keeps that; a device gives all
 * it has. */
static uint64_t space_to_grow(const struct pool_args *a,
	const struct pool_summary *now, const struct target *t)
{
	uint64_t whole = pool_space_for(a->size ? a->size : now->logical_size);

	if (a->space)
		return a->space;
	if (t->block)
		return t->size / 4096 * 4096;
	if (now->physical_size >= pool_space_for(now->logical_size) &&
		whole > now->physical_size)
		return whole;
	return now->physical_size;
}

static int enlarge(const struct pool_args *a, uint64_t space)
{
	CLEANUP_FREE char *spec = client_format("pool:[raw:%s]", a->path);
	struct pool_geometry g = {
		.logical_size = a->size, .physical_size = space};
	struct error error = {""};
	int err = pool_grow(spec, &g, &error);

	return err ? client_error(err == -EIO ? EXIT_IO : EXIT_USAGE,
			     a->command, "%s", error.text)
		   : EXIT_OK;
}

int pool_grow_run(const struct pool_args *a)
{
	struct target t = {.fd = -1};
	struct pool_summary now;
	uint64_t space;
	int code = look(a, &now);

	if (code)
		return code;
	code = open_target(a, false, &t);
	if (code)
		return close_target(a, &t, code);
	space = space_to_grow(a, &now, &t);
	code = check_space(a, &t, space);
	if (!code && space > t.size)
		code = shape_file(a, &t, space, now.preallocated);
	close_target(a, &t, code);
	return code ? code : enlarge(a, space);
}
