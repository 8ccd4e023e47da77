/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-append.c: append=serial: durable writes beyond the mapped end, one at a
 * time, each with its own commit, in the order in which they came. For
 * comparison: without it they run at once and share commits.
 */
#include "pool-op.h"

/* Lock held. */
static uint64_t mapped_end(const struct pool *p)
{
	struct extent e;

	return extent_map_before(&p->map, EXTENT_LOGICAL_END - 1, &e)
		? e.logical + e.length
		: 0;
}

bool append_waits(struct pool_op *op)
{
	struct pool *p = op->pool;
	const struct store_io *io = op->outer;
	bool waits = false;

	if (!p->serial || !(io->flags & STORE_FUA))
		return false;
	pthread_rwlock_wrlock(&p->lock);
	if (io->offset + io->length > mapped_end(p)) {
		waits = p->appending;
		p->appending = true;
		op->append = true;
		if (waits)
			list_push_tail(&p->appends, &op->link);
	}
	pthread_rwlock_unlock(&p->lock);
	return waits;
}

static void append_go(struct reactor_task *task)
{
	struct store_io *io = container_of(task, struct store_io, task);

	pool_write_begin(io->priv);
}

void append_ended(struct pool *p)
{
	struct list *at;
	struct pool_op *next;

	pthread_rwlock_wrlock(&p->lock);
	at = list_pop_head(&p->appends);
	p->appending = at;
	pthread_rwlock_unlock(&p->lock);
	if (!at)
		return;
	next = list_entry(at, struct pool_op, link);
	next->outer->priv = next;
	next->outer->task.fn = append_go;
	reactor_post(next->outer->reactor, &next->outer->task);
}
