/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor-fixed.c: which memory a live loop's ring has been told of, so that
 * the kernel pins it once (reactor_fix()).
 *
 * A piece is in the table only while the ring knows it: told first and noted
 * then, and forgotten in the opposite order. The loop's thread reads the table
 * without the lock.
 */
#include <errno.h>

#include "cleanup.h"
#include "reactor-live.h"

/* The piece that begins at `base`; 0: a free one. Lock held. */
static int find_fixed(struct live *l, const void *base)
{
	for (int i = 0; i < LIVE_FIXED; i++) {
		if (atomic_load(&l->fixed[i].base) == (uintptr_t)base)
			return i;
	}
	return -1;
}

int live_fix(struct reactor *r, const struct iovec *memory)
{
	struct live *l = container_of(r, struct live, base);
	SCOPED_LOCK(&l->lock);
	int slot = find_fixed(l, NULL), err;

	if (!l->uring)
		return 0;
	if (slot < 0)
		return -ENOSPC;
	err = uring_fix(l->uring, (unsigned)slot, memory);
	if (err)
		return err;
	atomic_store(&l->fixed[slot].base, (uintptr_t)memory->iov_base);
	atomic_store(&l->fixed[slot].length, memory->iov_len);
	return 0;
}

void live_unfix(struct reactor *r, const struct iovec *memory)
{
	static const struct iovec none = {NULL, 0};
	struct live *l = container_of(r, struct live, base);
	SCOPED_LOCK(&l->lock);
	int slot = find_fixed(l, memory->iov_base);

	if (slot < 0)
		return;
	atomic_store(&l->fixed[slot].length, 0);
	atomic_store(&l->fixed[slot].base, 0);
	if (l->uring)
		uring_fix(l->uring, (unsigned)slot, &none);
}

void live_fix_again(struct live *l)
{
	for (unsigned i = 0; i < LIVE_FIXED; i++) {
		struct iovec memory = {
			(void *)atomic_load(&l->fixed[i].base),
			atomic_load(&l->fixed[i].length),
		};

		if (!memory.iov_len ||
			(l->uring && !uring_fix(l->uring, i, &memory)))
			continue;
		atomic_store(&l->fixed[i].length, 0);
		atomic_store(&l->fixed[i].base, 0);
	}
}
