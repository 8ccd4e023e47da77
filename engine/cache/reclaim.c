/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reclaim.c: which clean pages to forget when memory is needed.
 *
 * A scan-resistant two-list clock in each shard. New pages enter the tail of
 * the inactive list; one that was used again by the time it reaches the head
 * moves to the active list, so a scan passes through the inactive list and
 * leaves the active one alone. The active list gives its head back to the
 * inactive one when it outgrows it. Pages that may not be reclaimed are on
 * neither list (state rule 2), so the walk never meets one.
 */
#include "cache-impl.h"

static void move(struct shard *sh, struct page *p, bool active)
{
	list_remove(&p->lru);
	if (p->flags & PAGE_ACTIVE)
		sh->nactive--;
	else
		sh->ninactive--;
	p->flags &= (uint16_t) ~(PAGE_ACTIVE | PAGE_REFERENCED);
	if (active)
		p->flags |= PAGE_ACTIVE;
	page_settle(sh, p);
}

/* Keep the active list no longer than the inactive one. */
static void balance(struct shard *sh)
{
	while (sh->nactive > sh->ninactive) {
		struct list *head = sh->active.next;
		struct page *p = list_entry(head, struct page, lru);

		move(sh, p, false);
	}
}

/* Reclaim from one shard; bytes freed. Lock held. */
static uint64_t reclaim_shard(struct cache *c, struct shard *sh, uint64_t need)
{
	int64_t before = atomic_load(&c->used);
	uint64_t freed = 0;

	while (freed < need) {
		struct page *p;

		balance(sh);
		if (list_empty(&sh->inactive))
			break;
		p = list_entry(sh->inactive.next, struct page, lru);
		if (p->flags & PAGE_REFERENCED) {
			move(sh, p, true);
			continue;
		}
		index_drop(c, sh, p);
		atomic_fetch_add_explicit(
			&c->reclaimed, 1, memory_order_relaxed);
		freed = (uint64_t)(before - atomic_load(&c->used));
		if ((int64_t)freed < 0)
			freed = 0; /* others added meanwhile */
	}
	return freed;
}

uint64_t reclaim(struct cache *c, uint64_t need)
{
	uint64_t freed = 0;

	for (unsigned i = 0; i < SHARDS && freed < need; i++) {
		unsigned hand = atomic_fetch_add(&c->hand, 1) % SHARDS;
		SCOPED_LOCK(&c->shard[hand].lock);

		freed += reclaim_shard(c, &c->shard[hand], need - freed);
	}
	return freed;
}

bool cache_make_room(struct cache *c, uint64_t bytes)
{
	int64_t over = atomic_load_explicit(&c->used, memory_order_relaxed) +
		(int64_t)bytes - (int64_t)c->cache_size;

	if (over <= 0)
		return true;
	reclaim(c, (uint64_t)over);
	return atomic_load(&c->used) + (int64_t)bytes <= (int64_t)c->cache_size;
}

static void drop_idle(
	struct cache *c, struct shard *sh, struct page *p, void *arg)
{
	(void)arg;
	if (!page_busy(p))
		index_drop(c, sh, p);
}

uint64_t cache_drop_clean(struct cache *c)
{
	int64_t before = atomic_load(&c->used), after;

	for (unsigned i = 0; i < SHARDS; i++) {
		SCOPED_LOCK(&c->shard[i].lock);

		index_for_each(c, &c->shard[i], drop_idle, NULL);
	}
	after = atomic_load(&c->used);
	return after < before ? (uint64_t)(before - after) : 0;
}
