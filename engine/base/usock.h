/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usock.h: a unix socket to listen on, at a path that may be left over.
 */
#ifndef WEIR_BASE_USOCK_H
#define WEIR_BASE_USOCK_H

#include <sys/types.h>

#include "log.h"

struct usock {
	int fd;     /* non-blocking, listening; -1: not open */
	char *path; /* absolute; owned */
	dev_t dev;  /* of the name that was made */
	ino_t ino;
};

#define USOCK_INIT                                                             \
	{                                                                      \
		.fd = -1                                                       \
	}

/*
 * Listen at `path` with the mode `mode` (less the umask). What a process that
 * is gone left there is replaced; a socket where someone listens, or anything
 * that is no socket, is not: -EADDRINUSE, -EEXIST. 0, or a negative errno with
 * `error` filled. Any thread; may block for a moment.
 */
int usock_listen(
	struct usock *u, const char *path, mode_t mode, struct error *error);

/* Stop listening and remove the name, unless another process has put its own
 * in its place. A second time, or one never opened, does nothing. */
void usock_close(struct usock *u);

#endif
