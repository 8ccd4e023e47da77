/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor-file.c: see reactor-file.h. EINTR is tried again here; EAGAIN and
 * short counts are the submitter's to continue.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include "reactor-file.h"

static int64_t file_call(const struct reactor_io *io)
{
	off_t at = (off_t)io->offset;

	switch (io->op) {
	case REACTOR_READ:
		return preadv(io->fd, io->iov, io->niov, at);
	case REACTOR_WRITE:
		return pwritev2(io->fd, io->iov, io->niov, at,
			io->flags & REACTOR_IO_DSYNC ? RWF_DSYNC : 0);
	case REACTOR_FSYNC:
		return fdatasync(io->fd);
	case REACTOR_PUNCH:
		return fallocate(io->fd,
			FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
			(off_t)io->length);
	case REACTOR_ZERO:
		return fallocate(io->fd,
			FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, at,
			(off_t)io->length);
	}
	errno = EINVAL;
	return -1;
}

int64_t reactor_file_io(const struct reactor_io *io)
{
	int64_t n;

	do {
		n = file_call(io);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}
