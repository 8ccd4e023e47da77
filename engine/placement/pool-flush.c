/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-flush.c: flushing the store, one flush at a time. On the home loop.
 *
 * With two under way a kernel may tell one of them of an error that concerns
 * both (Linux reports a writeback error once to each open file). So who wants
 * a flush waits its turn, and knows when its own begins how the one before
 * ended.
 */
#include <errno.h>

#include "pool-impl.h"

static void next(struct pool *p);

uint64_t pool_failures(struct pool *p)
{
	uint64_t n;

	pthread_rwlock_rdlock(&p->lock);
	n = p->failures;
	pthread_rwlock_unlock(&p->lock);
	return n;
}

int pool_failure_locked(const struct pool *p, uint64_t since)
{
	if (p->failures <= since)
		return 0;
	return p->hard > since ? -EIO : -ESTALE;
}

int pool_failure(struct pool *p, uint64_t since)
{
	int err;

	pthread_rwlock_rdlock(&p->lock);
	err = pool_failure_locked(p, since);
	pthread_rwlock_unlock(&p->lock);
	return err;
}

/* One failed: who is told of it counts it next. */
static void note_hard(struct pool *p)
{
	pthread_rwlock_wrlock(&p->lock);
	p->hard = p->failures + 1;
	pthread_rwlock_unlock(&p->lock);
}

static void flushed(struct store_io *io)
{
	struct pool *p = container_of(io, struct pool, flush_io);
	struct pool_flush *now = p->flushing;

	p->flushing = NULL;
	if (io->error && io->error != -ESTALE)
		note_hard(p);
	now->done(p, io->error);
	next(p);
}

static void next(struct pool *p)
{
	struct list *at;

	if (p->flushing)
		return;
	at = list_pop_head(&p->flushes);
	if (!at)
		return;
	p->flushing = list_entry(at, struct pool_flush, link);
	p->flush_io = (struct store_io){
		.op = STORE_FLUSH, .reactor = p->home, .done = flushed};
	store_submit(p->base.store, &p->flush_io);
}

void pool_flush_store(struct pool *p, struct pool_flush *f)
{
	list_push_tail(&p->flushes, &f->link);
	next(p);
}
