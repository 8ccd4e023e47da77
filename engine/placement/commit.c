/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commit.c: group commit: making durable what was written and mapped. On the
 * home loop.
 *
 *   NONE -> DATA -> (ROOM) -> WRITE -> FLUSH -> NONE
 *            |                                   ^
 *            +-------- nothing was sealed -------+
 *
 *  1. What is sealed is what was recorded when the round begins; its data was
 *     written before, so that the flush of DATA covers it.
 *  2. Who came before the round began and waits for no later record is
 *     answered at its end; all others wait for the next, together.
 *  3. When a step fails everything sealed is pending again, in its old place
 *     before what came meanwhile, and the journal ends where it did: the next
 *     round writes over what this one may have written.
 *  4. A store flush of ours that fails may have lost what no flush of the
 *     layers above had covered. So who waits is told if one failed since its
 *     data was sent; and a FLUSH, if one failed since a FLUSH was last told of
 *     a failure, whoever that flush was for.
 *  5. A store flush of the checkpoint that fails dooms the round that is under
 *     way: what it wrote may be lost though its own flushes succeed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool-impl.h"

/* A round is no larger than this share of the journal. */
#define ROUND_SHARE 4U
/* With so many records pending a round begins that nobody asked for. */
#define PENDING_SHARE 8U
#define RETRY_NS (100 * NSEC_PER_MSEC)
#define RETIRE_NS (5 * NSEC_PER_SEC)

static void commit_end(struct pool *p, int error, bool lost);

static size_t share_records(const struct pool *p, unsigned share)
{
	return pool_records_in((uint32_t)(p->super.journal_size / share /
		POOL_UNIT * POOL_UNIT));
}

/* --- who waits ----------------------------------------------------------- */

void commit_wait(struct pool *p, struct commit_waiter *w)
{
	pthread_rwlock_wrlock(&p->lock);
	w->upto = p->recorded;
	if (w->flush)
		w->since = p->told;
	list_push_tail(&p->waiters, &w->link);
	pthread_rwlock_unlock(&p->lock);
	pool_kick(p);
}

static void tell(struct pool *p, const struct commit_waiter *w)
{
	pthread_rwlock_wrlock(&p->lock);
	if (p->told < w->failures)
		p->told = w->failures;
	pthread_rwlock_unlock(&p->lock);
}

static void run_waiter(struct reactor_task *task)
{
	struct commit_waiter *w =
		container_of(task, struct commit_waiter, task);

	if (w->flush && w->error)
		tell(w->pool, w);
	w->done(w);
}

static void answer(struct pool *p, int error)
{
	uint64_t failures = pool_failures(p);
	struct list *at;

	while ((at = list_pop_head(&p->commit.waiters))) {
		struct commit_waiter *w =
			list_entry(at, struct commit_waiter, link);

		w->error = pool_failure(p, w->since);
		if (!w->error &&
			error) /* recorded it is not, but not lost either */
			w->error = w->flush ? -EAGAIN : -EIO;
		w->failures = failures;
		w->pool = p;
		w->task.fn = run_waiter;
		reactor_post(w->reactor, &w->task);
	}
}

void commit_lost(struct pool *p)
{
	pthread_rwlock_wrlock(&p->lock);
	pool_taint(p);
	pthread_rwlock_unlock(&p->lock);
	p->commit.doomed = p->commit.phase != COMMIT_NONE;
}

/* --- sealing ------------------------------------------------------------- */

/* Take the first `n` pending records. Lock held for writing. */
static int seal_records(struct pool *p, size_t n)
{
	struct records *from = &p->pending, *to = &p->commit.sealed;
	struct records all = *from;

	if (n == from->count) {
		*from = *to; /* its memory, empty */
		*to = all;
		return 0;
	}
	if (records_reserve(to, n))
		return -ENOMEM;
	memcpy(to->item, from->item, n * sizeof(*to->item));
	to->count = n;
	from->count -= n;
	memmove(from->item, from->item + n, from->count * sizeof(*from->item));
	return 0;
}

/* And the space that records up to `upto` unmap: all, or the first part. */
static void seal_retired(struct pool *p, uint64_t upto)
{
	struct retired *all = p->retiring, *rest;
	size_t n = 0;

	if (!all || !all->count)
		return;
	while (n < all->count && all->item[n].number <= upto)
		n++;
	if (n < all->count) {
		rest = calloc(1, sizeof(*rest));
		if (rest)
			rest->item =
				malloc((all->count - n) * sizeof(*rest->item));
		if (!rest || !rest->item) {
			free(rest); /* all of it with a later round */
			return;
		}
		rest->count = rest->room = all->count - n;
		memcpy(rest->item, all->item + n,
			rest->count * sizeof(*rest->item));
		all->count = n;
		p->retiring = rest;
	} else {
		p->retiring = NULL;
	}
	p->commit.retired = all;
}

static void take_waiters(struct pool *p)
{
	list_for_each_safe (at, &p->waiters) {
		struct commit_waiter *w =
			list_entry(at, struct commit_waiter, link);

		if (w->upto > p->commit.upto)
			continue;
		list_remove(at);
		list_push_tail(&p->commit.waiters, at);
	}
}

/* 0 or -ENOMEM. */
static int seal(struct pool *p)
{
	size_t most = share_records(p, ROUND_SHARE);
	size_t n;
	int err;

	pthread_rwlock_wrlock(&p->lock);
	n = p->pending.count < most ? p->pending.count : most;
	p->commit.upto = p->recorded - p->pending.count + n;
	err = seal_records(p, n);
	if (!err)
		seal_retired(p, p->commit.upto);
	take_waiters(p);
	if (p->broken)
		err = -EIO;
	pthread_rwlock_unlock(&p->lock);
	return err;
}

/* Put back what was sealed. Lock held for writing. */
static void unseal_records(struct pool *p)
{
	struct records *sealed = &p->commit.sealed, *pending = &p->pending;
	struct records swap = *sealed;

	if (!sealed->count)
		return;
	if (records_reserve(sealed, pending->count)) {
		p->broken = true;
		return;
	}
	swap = *sealed;
	if (pending->count)
		memcpy(swap.item + swap.count, pending->item,
			pending->count * sizeof(*swap.item));
	swap.count += pending->count;
	*sealed = *pending;
	sealed->count = 0;
	*pending = swap;
}

static void unseal_retired(struct pool *p)
{
	struct retired *sealed = p->commit.retired, *now = p->retiring;

	p->commit.retired = NULL;
	if (!sealed)
		return;
	p->retiring = sealed;
	if (!now)
		return;
	for (size_t i = 0; i < now->count; i++) {
		struct extent e = {.physical = now->item[i].offset,
			.length = now->item[i].length};

		size_t count = sealed->count;

		pool_retire(p, &e);
		/* As it was: no record of now may ever come to be sealed. */
		if (sealed->count > count)
			sealed->item[count].number = now->item[i].number;
	}
	free(now->item);
	free(now);
}

/* If a flush failed, so may be the data of all that no flush had covered. */
static void unseal(struct pool *p, bool lost)
{
	bool covered = p->commit.phase != COMMIT_DATA;

	pthread_rwlock_wrlock(&p->lock);
	if (lost && covered)
		pool_taint(p);
	unseal_records(p);
	if (lost && !covered)
		pool_taint(p);
	unseal_retired(p);
	pthread_rwlock_unlock(&p->lock);
}

/* --- the steps ----------------------------------------------------------- */

static void entries_written(struct store_io *io);

static void flush(struct pool *p, enum commit_phase phase,
	void (*done)(struct pool *p, int error))
{
	p->commit.phase = phase;
	p->commit.flush.done = done;
	pool_flush_store(p, &p->commit.flush);
}

/* The next of the entries' bytes that lie in one piece. */
static void write_entries(struct pool *p)
{
	struct commit *c = &p->commit;
	const struct super *s = &p->super;
	uint64_t position =
		(p->journal.position + c->written) % s->journal_size;
	uint64_t n = c->bytes - c->written;

	if (n > s->journal_size - position)
		n = s->journal_size - position;
	if (n > p->base.info.max_io)
		n = p->base.info.max_io / POOL_UNIT * POOL_UNIT;
	c->iov = (struct iovec){c->buf + c->written, n};
	c->io = (struct store_io){
		.op = STORE_WRITE,
		.offset = s->journal_offset + position,
		.length = n,
		.iov = &c->iov,
		.niov = 1,
		.reactor = p->home,
		.done = entries_written,
	};
	store_submit(p->base.store, &c->io);
}

/* Encode and begin to write, if the journal has room. */
static void commit_write(struct pool *p)
{
	struct commit *c = &p->commit;
	uint64_t used = journal_used(&p->super, &p->journal);

	c->bytes = journal_bytes(&p->super, &p->journal, c->sealed.count);
	if (used + c->bytes > p->super.journal_size) {
		if (c->phase != COMMIT_ROOM)
			atomic_fetch_add(&p->checkpoint_waits, 1);
		c->phase = COMMIT_ROOM;
		return;
	}
	free(c->buf);
	c->buf = aligned_alloc(POOL_UNIT, c->bytes);
	if (!c->buf) {
		commit_end(p, -ENOMEM, false);
		return;
	}
	c->phase = COMMIT_WRITE;
	c->next = p->journal;
	c->written = 0;
	journal_encode(&p->super, &c->next, p->journal.sequence - 1,
		c->sealed.item, c->sealed.count, c->buf);
	write_entries(p);
}

static void data_flushed(struct pool *p, int error)
{
	if (error || p->commit.doomed)
		commit_end(p, -EIO, true);
	else if (!p->commit.sealed.count)
		commit_end(p, 0, false);
	else
		commit_write(p);
	pool_advance(p);
}

static void entries_flushed(struct pool *p, int error)
{
	if (error || p->commit.doomed)
		commit_end(p, -EIO, error);
	else
		commit_end(p, 0, false);
	pool_advance(p);
}

static void entries_written(struct store_io *io)
{
	struct pool *p = container_of(io, struct pool, commit.io);
	struct commit *c = &p->commit;

	c->written += io->length;
	if (io->error || c->doomed)
		commit_end(p, -EIO, false);
	else if (c->written < c->bytes)
		write_entries(p);
	else if (p->sabotage & POOL_SABOTAGE_NO_LAST_FLUSH)
		commit_end(p, 0, false);
	else
		flush(p, COMMIT_FLUSH, entries_flushed);
	pool_advance(p);
}

/* --- the end ------------------------------------------------------------- */

static void committed(struct pool *p)
{
	struct commit *c = &p->commit;

	p->journal = c->next;
	atomic_fetch_add(&p->journal_commits, 1);
	atomic_fetch_add(&p->journal_bytes, c->bytes);
	pthread_rwlock_wrlock(&p->lock);
	pool_forget_fresh(p, &c->sealed);
	pool_idle(p);
	c->sealed.count = 0;
	if (c->retired) {
		c->retired->epoch = p->epoch;
		list_push_tail(&p->busy, &c->retired->link);
		c->retired = NULL;
	}
	pthread_rwlock_unlock(&p->lock);
}

static void commit_end(struct pool *p, int error, bool lost)
{
	struct commit *c = &p->commit;

	if (error) {
		unseal(p, lost);
		p->starved = true;
		c->retry_ns = reactor_now(p->home) + RETRY_NS;
		if (!p->quiet)
			reactor_timer_arm(p->home, &c->retry, RETRY_NS);
	} else if (c->sealed.count) {
		committed(p);
	}
	if (error && p->ending == ENDING_COMMIT)
		p->ending = ENDING_CHECKPOINT; /* not again and again */
	c->phase = COMMIT_NONE;
	c->doomed = false;
	free(c->buf);
	c->buf = NULL;
	answer(p, error);
}

/* Has space been waiting to be free for long? Nobody may flush after a trim.
 * A timer comes back here when it will have been. */
static bool overdue(struct pool *p, bool retiring, uint64_t now)
{
	struct commit *c = &p->commit;

	if (!retiring || p->quiet) {
		c->retire_ns = 0;
		return false;
	}
	if (!c->retire_ns)
		c->retire_ns = now + RETIRE_NS;
	if (now < c->retire_ns && !reactor_timer_armed(&c->retry))
		reactor_timer_arm(p->home, &c->retry, c->retire_ns - now);
	return now >= c->retire_ns;
}

/* Somebody waits; or, unless that failed just now, it would be good to. */
static bool wanted(struct pool *p)
{
	uint64_t now = reactor_now(p->home);
	bool may = now >= p->commit.retry_ns;
	bool want, retiring, good;

	pthread_rwlock_rdlock(&p->lock);
	retiring = p->retiring && p->retiring->count;
	want = !list_empty(&p->waiters) ||
		(p->ending == ENDING_COMMIT && p->pending.count);
	good = p->pending.count >= p->pending_most ||
		(!list_empty(&p->hungry) && retiring);
	pthread_rwlock_unlock(&p->lock);
	good |= overdue(p, retiring, now);
	return want || (may && good);
}

static void retry(struct reactor_timer *timer)
{
	pool_advance(container_of(timer, struct pool, commit.retry));
}

void commit_advance(struct pool *p)
{
	struct commit *c = &p->commit;

	if (c->phase == COMMIT_ROOM && (p->checkpoint.delay_ns || c->doomed))
		commit_end(p, -EIO, false);
	if (c->phase == COMMIT_ROOM)
		commit_write(p);
	if (c->phase != COMMIT_NONE || !wanted(p))
		return;
	c->phase = COMMIT_DATA;
	if (seal(p)) {
		commit_end(p, -EIO, false);
		return;
	}
	if (p->sabotage & POOL_SABOTAGE_NO_DATA_FLUSH && c->sealed.count)
		commit_write(p);
	else
		flush(p, COMMIT_DATA, data_flushed);
}

void commit_limits(struct pool *p)
{
	p->pending_most = share_records(p, PENDING_SHARE);
}

void commit_init(struct pool *p)
{
	p->commit.retry.fn = retry;
	list_init(&p->commit.waiters);
	list_init(&p->waiters);
}

void commit_free(struct pool *p)
{
	free(p->commit.buf);
	free(p->commit.sealed.item);
	free(p->pending.item);
	if (p->commit.retired)
		free(p->commit.retired->item);
	free(p->commit.retired);
	if (p->retiring)
		free(p->retiring->item);
	free(p->retiring);
}
