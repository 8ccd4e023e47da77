/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.c: waiting for a page, and ranges kept from everybody.
 *
 * A range lock is announced first; then cache_range_idle() takes and lets go
 * the lock of each shard that has part of the range. Whoever looks for range
 * locks does so under a shard's lock, so after that nobody is still at work
 * who did not see it.
 *
 * Locks that overlap are granted in the order they were asked for, but shared
 * ones do not wait for each other.
 */
#include <errno.h>

#include "cache-impl.h"

static void run_waiter(struct reactor_task *task)
{
	struct cache_waiter *w = container_of(task, struct cache_waiter, task);

	w->wake(w);
}

static void wake_one(struct cache_waiter *w, int error)
{
	w->next = NULL;
	w->error = error;
	w->task.fn = run_waiter;
	reactor_post(w->reactor, &w->task);
}

void waiter_add(struct cache_waiter **list, struct cache_waiter *w)
{
	w->error = 0;
	w->next = *list;
	*list = w;
}

void waiters_wake(struct cache_waiter **list)
{
	struct cache_waiter *w = *list;

	*list = NULL;
	while (w) {
		struct cache_waiter *next = w->next;

		wake_one(w, 0);
		w = next;
	}
}

void page_wake(struct page *p, unsigned first, unsigned count, int error)
{
	struct cache_waiter *w = p->waiters;

	p->waiters = NULL;
	while (w) {
		struct cache_waiter *next = w->next;
		bool concerned =
			w->first < first + count && first < w->first + w->count;

		wake_one(w, concerned ? error : 0);
		w = next;
	}
}

static bool overlap(
	const struct cache_range_lock *l, uint64_t offset, uint64_t end)
{
	return l->offset < end && offset < l->end;
}

uint64_t range_free(struct cache *c, uint64_t offset, uint64_t end, bool shared)
{
	if (!atomic_load(&c->nlocks))
		return end;

	SCOPED_LOCK(&c->locks_mutex);

	list_for_each (at, &c->locks) {
		struct cache_range_lock *l =
			list_entry(at, struct cache_range_lock, link);

		if (overlap(l, offset, end) && (shared || !l->shared))
			end = max_u64(l->offset, offset);
	}
	return end;
}

bool range_locked_among(
	struct cache *c, uint64_t offset, uint64_t end, struct cache_waiter *w)
{
	SCOPED_LOCK(&c->locks_mutex);

	list_for_each (at, &c->locks) {
		struct cache_range_lock *l =
			list_entry(at, struct cache_range_lock, link);

		if (l->shared || !overlap(l, offset, end))
			continue;
		if (w)
			waiter_add(&l->waiters, w);
		return true;
	}
	return false;
}

/* The first lock asked for before `l` that it waits for; or NULL. */
static struct cache_range_lock *ahead_of(
	struct cache *c, const struct cache_range_lock *l)
{
	list_for_each (at, &c->locks) {
		struct cache_range_lock *o =
			list_entry(at, struct cache_range_lock, link);

		if (o == l)
			return NULL;
		if (overlap(o, l->offset, l->end) && !(o->shared && l->shared))
			return o;
	}
	return NULL;
}

int cache_range_lock(struct cache *c, struct cache_range_lock *l)
{
	SCOPED_LOCK(&c->locks_mutex);
	struct cache_range_lock *ahead;

	if (!l->link.next) {
		l->offset = round_down(l->offset, block_size(c));
		l->end = round_up(l->end, block_size(c));
		l->waiters = NULL;
		list_push_tail(&c->locks, &l->link);
		atomic_fetch_add(&c->nlocks, 1);
	}
	ahead = ahead_of(c, l);
	if (!ahead)
		return 0;
	waiter_add(&ahead->waiters, &l->waiter);
	return -EINPROGRESS;
}

void cache_range_unlock(struct cache *c, struct cache_range_lock *l)
{
	SCOPED_LOCK(&c->locks_mutex);

	list_remove(&l->link);
	l->link.next = NULL;
	atomic_fetch_sub(&c->nlocks, 1);
	waiters_wake(&l->waiters);
}

/* --- the pages present in a range ---------------------------------------- */

struct range_walk {
	uint64_t offset, end;
	struct cache_range_lock *lock;
	struct delta delta;
	bool busy;
};

static void walk_range(struct cache *c, struct range_walk *w,
	void (*fn)(
		struct cache *c, struct shard *sh, struct page *p, void *arg))
{
	uint64_t pages = (w->end - w->offset) >> c->page_shift;
	bool few = pages <= SHARDS || pages < (uint64_t)atomic_load(&c->pages);

	for (uint64_t at = w->offset; few && at < w->end && !w->busy;) {
		uint64_t stop = min_u64(shard_end(c, at), w->end);
		struct shard *sh = shard_of(c, at);
		SCOPED_LOCK(&sh->lock);

		for (; at < stop && !w->busy;
			at = round_down(at, page_size(c)) + page_size(c)) {
			struct page *p = index_find(c, sh, at);

			if (p)
				fn(c, sh, p, w);
		}
	}
	for (unsigned i = 0; !few && i < SHARDS && !w->busy; i++) {
		SCOPED_LOCK(&c->shard[i].lock);

		index_for_each(c, &c->shard[i], fn, w);
	}
}

/* The blocks of the page in the walked range; 0: none. */
static unsigned walked_blocks(const struct cache *c, const struct page *p,
	const struct range_walk *w, unsigned *first)
{
	uint64_t base = page_offset(c, p);
	uint64_t from = max_u64(w->offset, base);
	uint64_t to = min_u64(w->end, base + page_size(c));

	if (from >= to)
		return 0;
	*first = block_of(c, from);
	return (unsigned)((to - from) >> c->block_shift);
}

static void look_busy(
	struct cache *c, struct shard *sh, struct page *p, void *arg)
{
	struct range_walk *w = arg;
	unsigned first, count = walked_blocks(c, p, w, &first);

	(void)sh;
	if (w->busy || !count)
		return;
	if (!(p->writeback &&
		    bitmap_any(page_map(c, p, MAP_WRITEBACK), first, count)) &&
		!(p->refs && !w->lock->shared &&
			bitmap_any(page_map(c, p, MAP_FILLING), first, count)))
		return;
	w->busy = true;
	w->lock->waiter.first = 0;
	w->lock->waiter.count = 0;
	waiter_add(&p->waiters, &w->lock->waiter);
}

int cache_range_idle(struct cache *c, struct cache_range_lock *l)
{
	struct range_walk w = {.offset = l->offset, .end = l->end, .lock = l};

	walk_range(c, &w, look_busy);
	return w.busy ? -EINPROGRESS : 0;
}

static void forget(struct cache *c, struct shard *sh, struct page *p, void *arg)
{
	struct range_walk *w = arg;
	unsigned first, count = walked_blocks(c, p, w, &first), held;
	uint32_t before;

	if (!count)
		return;
	before = p->dirty + p->unstable;
	page_undirty(c, sh, p, first, count, &w->delta);
	page_unstabilise(c, sh, p, first, count, &w->delta);
	held = before - (p->dirty + p->unstable);
	w->delta.uncharge += (uint64_t)held << c->block_shift;
	bitmap_clear(page_map(c, p, MAP_UPTODATE), first, count);
	page_drop_frames(c, p, first, count, &w->delta);
	page_settle(sh, p);
	page_assert(c, sh, p);
}

void cache_invalidate(struct cache *c, uint64_t offset, uint64_t end)
{
	struct range_walk w = {
		.offset = round_up(offset, block_size(c)),
		/* The device's last block is whole though it may be short. */
		.end = end == c->size ? round_up(end, block_size(c))
				      : round_down(end, block_size(c)),
	};

	if (w.offset >= w.end)
		return;
	walk_range(c, &w, forget);
	delta_apply(c, &w.delta);
}

static void destabilise(
	struct cache *c, struct shard *sh, struct page *p, void *arg)
{
	struct range_walk *w = arg;
	uint64_t base = page_offset(c, p);

	if (base < w->end && w->offset < base + page_size(c) && p->unstable)
		page_redirty(c, sh, p, &w->delta);
}

void cache_destabilise(struct cache *c, uint64_t offset, uint64_t end)
{
	struct range_walk w = {.offset = offset, .end = end};

	walk_range(c, &w, destabilise);
	delta_apply(c, &w.delta);
}
