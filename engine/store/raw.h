/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw.h: the parts of the raw store; for raw*.c only.
 */
#ifndef WEIR_STORE_RAW_H
#define WEIR_STORE_RAW_H

#include <errno.h>
#include <stdatomic.h>

#include "kind.h"

struct raw {
	struct store base;
	int fd;
	bool block;   /* a block device */
	char *zeroes; /* RAW_ZEROES bytes, aligned for O_DIRECT */
	/* A bit a granule; NULL: a device. Owned. */
	_Atomic(uint64_t) *dense;
	unsigned granule_shift;

	/*
	 * Without O_DIRECT: a FUA write or zero was told of a failed fsync. The
	 * kernel tells an open file once, of data that others wrote too: so the
	 * next flush has to fail as well.
	 */
	atomic_bool sync_failed;

	/* What was found out to be missing; only ever set. */
	atomic_bool no_punch, no_zero_range, no_discard;
};

#define RAW_ZEROES 65536U

/* Open, lock and look at the file. 0 or -errno with `error`. Blocks. */
int raw_setup(
	struct raw *r, const char *path, unsigned flags, struct error *error);

/* TRIM and ZERO. Loop thread of the io. */
void raw_zero(struct raw *r, struct store_io *io);

/* STATUS. Loop thread of the io. */
void raw_status(struct raw *r, struct store_io *io);
/* Once the size is known. 0 or -ENOMEM. */
int raw_status_init(struct raw *r);
bool raw_sparse(struct store *s, uint64_t offset, uint64_t end);
/* A TRIM or ZERO of that range begins or ends. Any thread. */
void raw_forget_dense(struct raw *r, const struct store_io *io);

/* Is that error "cannot do this here", rather than a failure? */
static inline bool raw_unsupported(int64_t error)
{
	return error == -EOPNOTSUPP || error == -ENOSYS || error == -ENODEV ||
		error == -ENOTTY;
}

/* A FUA write or zero ended so. */
static inline void raw_durable_ended(
	struct raw *r, const struct store_io *io, int error)
{
	if (error && (io->flags & STORE_FUA) && !r->base.info.direct)
		atomic_store(&r->sync_failed, true);
}

/* Is it to be tried again? */
static inline bool raw_interrupted(int64_t error)
{
	return error == -EINTR || error == -EAGAIN;
}

#endif
