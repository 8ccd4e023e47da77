/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor-file.h: one file operation as one blocking system call, for the
 * reactors that have no io_uring.
 */
#ifndef WEIR_BASE_REACTOR_FILE_H
#define WEIR_BASE_REACTOR_FILE_H

#include <stdint.h>

#include "reactor.h"

/* Do it: bytes moved (maybe short; 0 for FSYNC, PUNCH, ZERO), or -errno.
 * Blocks; any thread. */
int64_t reactor_file_io(const struct reactor_io *io);

#endif
