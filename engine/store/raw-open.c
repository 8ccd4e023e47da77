/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw-open.c: open a file or device, keep others out, find out how it wants
 * to be addressed.
 *
 * 1. A file is locked with an open-file-description lock, which belongs to
 *    the descriptor and goes with it; a device is opened O_EXCL, which also
 *    keeps out mounts. Readers share. The kernel may hold the descriptors of
 *    a server that was killed for a moment longer, for the I/O it had under
 *    way: who comes next waits a second before it gives up.
 * 2. O_DIRECT is used where the file's size and filesystem allow it: then
 *    info.align and info.mem_align are what the kernel asks for. Otherwise
 *    the host's page cache is in between, and any byte can be addressed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "raw.h"

/* How long a file or device may be busy: a second. */
#define BUSY_STEPS 50U
#define BUSY_STEP_NS 20000000L

/* How O_DIRECT must be addressed; offset 0: not at all. */
struct dio_align {
	uint32_t offset, memory; /* bytes */
};

static int raw_open_error(
	const struct raw *r, const char *path, int err, struct error *error)
{
	const char *hint = "";

	if (err == -EBUSY && r->block)
		hint = " (mounted, or served by someone else?)";
	else if (err == -EROFS || err == -EACCES)
		hint = " (readonly=yes needs no write access)";
	if (err == -ENOENT)
		return error_set(error, err,
			"cannot open: %s (to make one: truncate -s 4G %s; a "
			"pool: weir pool create %s --size 4G)",
			strerror(-err), path, path);
	return error_set(error, err, "cannot open: %s%s", strerror(-err), hint);
}

/* Is there time left to try again? Sleeps a little if so. */
static bool patience(unsigned *left)
{
	const struct timespec while_ns = {.tv_nsec = BUSY_STEP_NS};

	if (!*left)
		return false;
	--*left;
	nanosleep(&while_ns, NULL);
	return true;
}

static int raw_open_fd(const char *path, int how)
{
	unsigned left = BUSY_STEPS;
	int fd;

	do
		fd = open(path, how);
	while (fd < 0 && errno == EBUSY && patience(&left));
	return fd;
}

static int raw_lock(
	struct raw *r, const char *path, bool readonly, struct error *error)
{
	struct flock lock = {
		.l_type = readonly ? F_RDLCK : F_WRLCK,
		.l_whence = SEEK_SET,
	};

	unsigned left = BUSY_STEPS;
	bool busy;

	do {
		if (!fcntl(r->fd, F_OFD_SETLK, &lock))
			return 0;
		busy = errno == EAGAIN || errno == EACCES;
	} while (busy && patience(&left));
	if (busy)
		return error_set(
			error, -EBUSY, "in use: another server has it open");
	log_warning("store raw:%s: cannot lock it (%s): nothing keeps a second "
		    "server from opening it",
		path, strerror(errno));
	return 0;
}

static int raw_device_size(struct raw *r, uint64_t *size, struct error *error)
{
	if (ioctl(r->fd, BLKGETSIZE64, size))
		return error_set(error, -errno, "cannot get its size: %s",
			strerror(errno));
	return 0;
}

/* Open it, keep others out, and learn its size. */
static int raw_open_file(
	struct raw *r, const char *path, bool readonly, struct error *error)
{
	int how = (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC;
	uint64_t size;
	struct stat st;
	int err;

	if (!*path)
		return error_set(error, -EINVAL, "no path");
	if (stat(path, &st))
		return raw_open_error(r, path, -errno, error);
	r->block = S_ISBLK(st.st_mode);
	if (!r->block && !S_ISREG(st.st_mode))
		return error_set(
			error, -EINVAL, "neither a file nor a block device");
	r->fd = raw_open_fd(path, how | (r->block && !readonly ? O_EXCL : 0));
	if (r->fd < 0 || fstat(r->fd, &st))
		return raw_open_error(r, path, -errno, error);
	size = (uint64_t)st.st_size;
	err = r->block ? raw_device_size(r, &size, error)
		       : raw_lock(r, path, readonly, error);
	if (err)
		return err;
	if (!size)
		return error_set(error, -EINVAL,
			"it is empty (to give it a size: truncate -s 4G %s)",
			path);
	r->base.info.size = size;
	return 0;
}

/* --- O_DIRECT ------------------------------------------------------------- */

/* Ask the kernel (6.1 and later); false: it does not say. */
static bool dio_ask(int fd, struct dio_align *align)
{
#ifdef STATX_DIOALIGN
	struct statx stx;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) &&
		stx.stx_mask & STATX_DIOALIGN) {
		align->offset = stx.stx_dio_offset_align;
		align->memory = stx.stx_dio_mem_align;
		return true;
	}
#endif
	(void)fd;
	(void)align;
	return false;
}

/* Try it: the smallest block that can be read. */
static void dio_probe(int fd, uint64_t size, struct dio_align *align)
{
	CLEANUP_FREE char *buf = aligned_alloc(4096, 8192);

	*align = (struct dio_align){0};
	for (uint32_t n = 512; buf && n <= 4096; n *= 8) {
		/* At an address and offset that no larger block divides. */
		if (size < 2 * n || pread(fd, buf + n, n, n) != (ssize_t)n)
			continue;
		*align = (struct dio_align){n, n};
		return;
	}
}

static bool dio_usable(const struct dio_align *align, uint64_t size)
{
	return align->offset && align->offset <= 4096 &&
		align->memory <= 4096 && size % align->offset == 0;
}

/* Turn O_DIRECT on if it can be; why not, otherwise. */
static const char *raw_direct(struct raw *r, struct dio_align *align)
{
	int flags = fcntl(r->fd, F_GETFL);

	if (fcntl(r->fd, F_SETFL, flags | O_DIRECT))
		return "its filesystem has none";
	if (!dio_ask(r->fd, align))
		dio_probe(r->fd, r->base.info.size, align);
	if (dio_usable(align, r->base.info.size))
		return NULL;
	fcntl(r->fd, F_SETFL, flags);
	return align->offset ? "its size is not a whole number of blocks"
			     : "its filesystem has none";
}

int raw_setup(
	struct raw *r, const char *path, unsigned flags, struct error *error)
{
	bool readonly = flags & STORE_OPEN_READONLY;
	struct dio_align align = {0};
	int err = raw_open_file(r, path, readonly, error);
	const char *why;

	if (err)
		return err;
	why = raw_direct(r, &align);
	if (why) {
		log_warning("store raw:%s: no O_DIRECT, %s: the host's page "
			    "cache is used as well",
			path, why);
		/* A device still zeroes and discards by the sector. */
		align = (struct dio_align){r->block ? 512 : 1, 1};
	}
	r->base.info = (struct store_info){
		.size = r->base.info.size,
		.align = align.offset,
		.mem_align = align.memory,
		.max_io = STORE_MAX_IO,
		.can_trim = true,
		.can_zero = true,
		.can_fua = true,
		.direct = !why,
		.readonly = readonly,
	};
	return 0;
}
