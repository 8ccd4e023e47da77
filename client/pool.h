/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h: the parts of `weir pool`: pool.c (the command line), pool-make.c
 * (create, grow), pool-look.c (info, map, check), pool-probe.c.
 *
 * All of them work on a pool that no server has open: who opens it takes the
 * store's lock, and is told if somebody else has it.
 */
#ifndef WEIR_CLIENT_POOL_H
#define WEIR_CLIENT_POOL_H

#include "base/log.h"
#include "client.h"

/* What `weir pool check` ends with, as fsck(8) does. */
enum pool_check_code {
	POOL_CHECK_CLEAN = 0,
	POOL_CHECK_ERRORS = 4,
	POOL_CHECK_FAILED = 8, /* it could not be looked at */
	POOL_CHECK_USAGE = 16,
};

struct pool_args {
	const char *command; /* "weir pool create", for messages */
	const char *path;
	uint64_t size, space; /* bytes; 0: not given */
	bool preallocate, force, json;
};

/* Each returns the exit code, with what is wrong said. */
int pool_create_run(const struct pool_args *a);
int pool_grow_run(const struct pool_args *a);
int pool_info_run(const struct pool_args *a);
int pool_map_run(const struct pool_args *a);
int pool_check_run(const struct pool_args *a);

/*
 * What is on the file or device of `size` bytes: NULL if it is blank, that is
 * zeroes in its first and last MiB; else a name for it. "?" if it cannot be
 * read.
 */
const char *pool_probe(int fd, uint64_t size);

#endif
