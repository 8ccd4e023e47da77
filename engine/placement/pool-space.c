/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-space.c: promising space, and getting it back.
 *
 * Reserved is what was promised: unmapped ranges of the device that a write
 * will need space for, each once however often it is asked for. What is
 * promised can be kept (rule 4 of pool-impl.h):
 *
 *   free + chains on the store >= reserved + two chains of the largest map
 *
 * Getting space back, on the home loop: a batch of unmapped space whose
 * records are durable is stamped with the epoch. When the ios that began in
 * that epoch or before have ended, nobody can be using it: it is punched out
 * of the store, if that can be, and is free. Epochs are counted by parity:
 * one begins when no io of the last but one is left.
 */
#include <errno.h>
#include <stdlib.h>

#include "pool-impl.h"

#define SLACK_EXTENTS 1024U /* for extents that trims split */

/* --- ios under way ------------------------------------------------------- */

unsigned pool_enter(struct pool *p)
{
	unsigned parity = p->epoch % 2;

	atomic_fetch_add(&p->inflight[parity], 1);
	return parity;
}

void pool_leave(struct pool *p, unsigned parity)
{
	if (atomic_fetch_sub(&p->inflight[parity], 1) == 1 &&
		atomic_load(&p->freeing))
		pool_kick(p);
}

/* Begin new epochs until `goal`; false: ios are in the way. */
static bool reach_epoch(struct pool *p, uint64_t goal)
{
	bool reached;

	pthread_rwlock_wrlock(&p->lock);
	while (p->epoch < goal &&
		!atomic_load(&p->inflight[(p->epoch + 1) % 2]))
		p->epoch++;
	reached = p->epoch >= goal;
	pthread_rwlock_unlock(&p->lock);
	return reached || p->sabotage & POOL_SABOTAGE_BUSY_REUSE;
}

/* --- promising ----------------------------------------------------------- */

/* The first hole of the map in [*at, end): false: none. */
static bool next_hole(
	const struct extent_map *m, uint64_t *at, uint64_t end, uint64_t *stop)
{
	struct extent e;

	while (*at < end) {
		bool any = extent_map_find(m, *at, &e);

		if (!any || e.logical > *at) {
			*stop = any && e.logical < end ? e.logical : end;
			return true;
		}
		*at = e.logical + e.length;
	}
	return false;
}

/* Bytes of [offset, end) that have neither a place nor a promise. */
static uint64_t unpromised(const struct pool *p, uint64_t offset, uint64_t end)
{
	uint64_t bytes = 0, stop;

	for (uint64_t at = offset; next_hole(&p->map, &at, end, &stop);
		at = stop) {
		uint64_t from = at, to;

		for (; next_hole(&p->reserved, &from, stop, &to); from = to)
			bytes += to - from;
	}
	return bytes;
}

/* Can `bytes` more be promised? */
static bool affordable(const struct pool *p, uint64_t bytes)
{
	uint64_t promised = extent_map_mapped_bytes(&p->reserved) + bytes;
	uint64_t extents = extent_map_count(&p->map) + SLACK_EXTENTS +
		(promised + p->allocating) / POOL_UNIT;

	/* Of what is chosen already the space is no longer free. */
	return free_space_bytes(&p->space) + p->chains +
		extent_map_mapped_bytes(&p->chosen) >=
		promised + 2 * chain_bytes(extents);
}

/* Promise a hole of the map, [at, end). */
static int promise_hole(struct pool *p, uint64_t at, uint64_t end)
{
	struct extent e = {.logical = at, .physical = at, .length = end - at};
	uint64_t stop;
	int err = 0;

	for (; p->immediate && !err && next_hole(&p->chosen, &at, end, &stop);
		at = stop)
		err = pool_choose_now(p, at, stop);
	return err ? err : extent_map_set(&p->reserved, &e, NULL, NULL);
}

static int promise(struct pool *p, uint64_t offset, uint64_t end)
{
	uint64_t stop;
	int err = 0;

	for (uint64_t at = offset; !err && next_hole(&p->map, &at, end, &stop);
		at = stop)
		err = promise_hole(p, at, stop);
	return err == -ENOSPC ? -EAGAIN : err;
}

int pool_reserve_locked(struct pool *p, uint64_t offset, uint64_t end)
{
	uint64_t bytes = unpromised(p, offset, end);

	if (!bytes)
		return 0;
	if (!affordable(p, bytes) &&
		(!pool_drop_ahead(p) || !affordable(p, bytes)))
		return -EAGAIN;
	return promise(p, offset, end);
}

/* Without memory the promise stands until the range is written. */
void pool_unreserve_locked(struct pool *p, uint64_t offset, uint64_t end)
{
	pool_unchoose(p, offset, end);
	if (extent_map_count(&p->reserved))
		extent_map_clear(
			&p->reserved, offset, end - offset, NULL, NULL);
}

/* The range, to whole units of the device. */
static void to_units(const struct pool *p, uint64_t *offset, uint64_t *end)
{
	*offset = *offset / POOL_UNIT * POOL_UNIT;
	*end = (*end + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT;
	if (*end > p->base.info.size)
		*end = p->base.info.size;
}

int pool_reserve(struct placement *placement, uint64_t offset, uint64_t length)
{
	struct pool *p = pool_of(placement);
	uint64_t end = offset + length;
	bool needed;
	int err = 0;

	to_units(p, &offset, &end);
	pthread_rwlock_rdlock(&p->lock);
	needed = unpromised(p, offset, end);
	pthread_rwlock_unlock(&p->lock);
	if (!needed)
		return 0;
	pthread_rwlock_wrlock(&p->lock);
	err = pool_reserve_locked(p, offset, end);
	pthread_rwlock_unlock(&p->lock);
	return err;
}

void pool_unreserve(
	struct placement *placement, uint64_t offset, uint64_t length)
{
	struct pool *p = pool_of(placement);

	pthread_rwlock_wrlock(&p->lock);
	pool_unreserve_locked(p, offset, offset + length);
	pthread_rwlock_unlock(&p->lock);
}

/* --- waiting for space --------------------------------------------------- */

void pool_hunger(struct pool *p, struct placement_waiter *w)
{
	pthread_rwlock_wrlock(&p->lock);
	list_push_tail(&p->hungry, &w->link);
	pthread_rwlock_unlock(&p->lock);
	pool_kick(p);
}

static void reserve_again(struct placement_waiter *w, bool last)
{
	struct pool *p = pool_of(w->placement);

	w->error = pool_reserve(w->placement, w->offset, w->length);
	if (w->error == -EAGAIN && !last) {
		pool_hunger(p, w);
		return;
	}
	if (w->error)
		w->error = w->error == -EAGAIN ? -ENOSPC : w->error;
	w->done(w);
}

void pool_reserve_wait(struct placement *placement, struct placement_waiter *w)
{
	w->placement = placement;
	w->retry = reserve_again;
	pool_hunger(pool_of(placement), w);
}

static void run_hungry(struct reactor_task *task)
{
	struct placement_waiter *w =
		container_of(task, struct placement_waiter, task);

	w->retry(w, w->last);
}

/* Have all who wait try again; `last`: nothing more will come. */
static void wake_hungry(struct pool *p, bool last)
{
	struct list all = LIST_INIT(all), *at;

	pthread_rwlock_wrlock(&p->lock);
	list_splice_tail(&all, &p->hungry);
	pthread_rwlock_unlock(&p->lock);
	while ((at = list_pop_head(&all))) {
		struct placement_waiter *w =
			list_entry(at, struct placement_waiter, link);

		w->last = last;
		w->task.fn = run_hungry;
		reactor_post(w->reactor, &w->task);
	}
}

static bool anyone_hungry(struct pool *p)
{
	bool any;

	pthread_rwlock_rdlock(&p->lock);
	any = !list_empty(&p->hungry);
	pthread_rwlock_unlock(&p->lock);
	return any;
}

/* --- getting it back ----------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
	const struct retired_range *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Neighbours become one. */
static void merge(struct retired *b)
{
	size_t n = 0;

	qsort(b->item, b->count, sizeof(*b->item), by_offset);
	for (size_t i = 1; i < b->count; i++) {
		struct retired_range *last = &b->item[n];

		if (last->offset + last->length == b->item[i].offset)
			last->length += b->item[i].length;
		else
			b->item[++n] = b->item[i];
	}
	b->count = n + 1;
}

static void batch_free(struct pool *p, struct retired *b)
{
	pthread_rwlock_wrlock(&p->lock);
	for (size_t i = 0; i < b->count;
		i++) /* no memory: lost till reopened */
		free_space_add(&p->space, b->item[i].offset, b->item[i].length);
	pthread_rwlock_unlock(&p->lock);
	list_remove(&b->link);
	free(b->item);
	free(b);
}

static void punched(struct store_io *io)
{
	struct pool *p = container_of(io, struct pool, punch_io);

	p->punching = false;
	pool_advance(p);
}

/* Punch the next range; false: there is none, or space is wanted now. */
static bool punch(struct pool *p, struct retired *b)
{
	const struct retired_range *r = &b->item[b->next];

	if (b->next == b->count || !p->base.store->info.can_trim ||
		p->super.compatible & POOL_PREALLOCATED || anyone_hungry(p))
		return false;
	b->next++;
	p->punching = true;
	p->punch_io = (struct store_io){
		.op = STORE_TRIM,
		.offset = r->offset,
		.length = r->length,
		.reactor = p->home,
		.done = punched,
	};
	store_submit(p->base.store, &p->punch_io);
	return true;
}

/* Go on with the oldest batch; true: it is free now. */
static bool batch_advance(struct pool *p, struct retired *b)
{
	if (!reach_epoch(p, b->epoch + 2))
		return false;
	if (!b->merged) {
		merge(b);
		b->merged = true;
	}
	if (punch(p, b))
		return false;
	batch_free(p, b);
	return true;
}

/* Nothing more comes back without somebody unmapping more, or the store
 * getting well. */
static bool exhausted(struct pool *p)
{
	bool more;

	if (p->starved)
		return true;
	pthread_rwlock_rdlock(&p->lock);
	more = p->retiring && p->retiring->count;
	pthread_rwlock_unlock(&p->lock);
	return !more && list_empty(&p->busy) &&
		p->commit.phase == COMMIT_NONE &&
		(p->checkpoint.phase == CHECKPOINT_NONE ||
			p->checkpoint.delay_ns);
}

/* For the tests: do not wait for the records to be durable. */
static void free_early(struct pool *p)
{
	pthread_rwlock_wrlock(&p->lock);
	if (p->retiring && p->retiring->count) {
		p->retiring->epoch = p->epoch;
		list_push_tail(&p->busy, &p->retiring->link);
		p->retiring = NULL;
	}
	pthread_rwlock_unlock(&p->lock);
}

void pool_free_advance(struct pool *p)
{
	bool freed = false;

	if (p->sabotage & POOL_SABOTAGE_EARLY_FREE)
		free_early(p);
	atomic_store(&p->freeing, !list_empty(&p->busy));
	while (!p->punching && !list_empty(&p->busy) &&
		batch_advance(
			p, list_entry(p->busy.next, struct retired, link)))
		freed = true;
	if (anyone_hungry(p)) {
		if (exhausted(p))
			wake_hungry(p, true);
		else if (freed)
			wake_hungry(p, false);
	}
	p->starved = false;
}
