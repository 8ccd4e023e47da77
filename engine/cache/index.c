/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index.c: from a device offset to its page.
 *
 * A shard hashes nodes; a node holds the pages of one aligned stretch, so a
 * run of pages hashes once per sixteen. All under the shard's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cache-impl.h"

#define FIRST_BUCKETS 16U

static unsigned hash(uint64_t key, unsigned buckets)
{
	return (unsigned)((key * UINT64_C(0xff51afd7ed558ccd)) >> 32) &
		(buckets - 1);
}

/* Held for a copy at most: who finds it taken looks for a while before it
 * sleeps. */
static void lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

int index_init(struct shard *sh)
{
	lock_init(&sh->lock);
	list_init(&sh->inactive);
	list_init(&sh->active);
	list_init(&sh->dirty_nodes);
	list_init(&sh->unstable);
	sh->buckets = FIRST_BUCKETS;
	sh->bucket = calloc(sh->buckets, sizeof(struct node *));
	return sh->bucket ? 0 : -ENOMEM;
}

static void account(struct cache *c, int64_t bytes)
{
	atomic_fetch_add_explicit(&c->used, bytes, memory_order_relaxed);
}

/* Double the table; if there is no memory the chains just get longer. */
static void grow(struct shard *sh)
{
	unsigned buckets = sh->buckets * 2;
	struct node **bucket = calloc(buckets, sizeof(struct node *));

	if (!bucket)
		return;
	for (unsigned i = 0; i < sh->buckets; i++) {
		for (struct node *n = sh->bucket[i], *next; n; n = next) {
			unsigned h = hash(n->key, buckets);

			next = n->hash_next;
			n->hash_next = bucket[h];
			bucket[h] = n;
		}
	}
	free(sh->bucket);
	sh->bucket = bucket;
	sh->buckets = buckets;
}

static struct node *find_key(const struct shard *sh, uint64_t key)
{
	struct node *n = sh->bucket[hash(key, sh->buckets)];

	while (n && n->key != key)
		n = n->hash_next;
	return n;
}

struct node *index_find_node(
	const struct cache *c, const struct shard *sh, uint64_t offset)
{
	return find_key(sh, offset >> (c->page_shift + NODE_SHIFT));
}

struct page *index_find(
	const struct cache *c, const struct shard *sh, uint64_t offset)
{
	const struct node *n = index_find_node(c, sh, offset);

	if (!n)
		return NULL;
	return n->page[(offset >> c->page_shift) & (NODE_PAGES - 1)];
}

struct node *index_node_of(
	const struct cache *c, const struct shard *sh, const struct page *p)
{
	(void)c;
	return find_key(sh, p->index >> NODE_SHIFT);
}

static struct node *new_node(struct cache *c, struct shard *sh, uint64_t key)
{
	struct node *n = calloc(1, sizeof(*n));
	unsigned h;

	if (!n)
		return NULL;
	if (sh->nodes >= sh->buckets)
		grow(sh);
	h = hash(key, sh->buckets);
	n->key = key;
	n->hash_next = sh->bucket[h];
	list_init(&n->dirty_link);
	sh->bucket[h] = n;
	sh->nodes++;
	account(c, sizeof(*n) + sizeof(struct node *));
	return n;
}

static void free_node(struct cache *c, struct shard *sh, struct node *n)
{
	struct node **link = &sh->bucket[hash(n->key, sh->buckets)];

	while (*link != n)
		link = &(*link)->hash_next;
	*link = n->hash_next;
	sh->nodes--;
	account(c, -(int64_t)(sizeof(*n) + sizeof(struct node *)));
	free(n);
}

static struct page *new_page(struct cache *c, uint64_t index)
{
	struct page *p = malloc(c->page_struct);

	if (!p)
		return NULL;
	memset(p, 0, c->page_struct);
	p->index = index;
	p->next_block = NOT_USED;
	list_init(&p->lru);
	list_init(&p->unstable_link);
	account(c, (int64_t)c->page_struct);
	atomic_fetch_add_explicit(&c->pages, 1, memory_order_relaxed);
	return p;
}

struct page *index_get(struct cache *c, struct shard *sh, uint64_t offset)
{
	uint64_t index = offset >> c->page_shift;
	unsigned slot = (unsigned)index & (NODE_PAGES - 1);
	struct node *n = find_key(sh, index >> NODE_SHIFT);

	if (n && n->page[slot])
		return n->page[slot];
	if (!n) {
		n = new_node(c, sh, index >> NODE_SHIFT);
		if (!n)
			return NULL;
	}
	n->page[slot] = new_page(c, index);
	if (n->page[slot]) {
		n->pages++;
		page_settle(sh, n->page[slot]);
	} else if (!n->pages) {
		free_node(c, sh, n);
		return NULL;
	}
	return n->page[slot];
}

void index_drop(struct cache *c, struct shard *sh, struct page *p)
{
	struct node *n = index_node_of(c, sh, p);
	frame_t *frame = page_frames(c, p);
	int64_t bytes = (int64_t)c->page_struct;

	for (unsigned i = 0, run; i < c->page_frames; i += run) {
		run = 1;
		if (!frame[i])
			continue;
		while (i + run < c->page_frames &&
			frame[i + run] == frame[i] + run)
			run++;
		arena_put(&c->arena, frame[i], run);
		bytes += (int64_t)run * FRAME_SIZE;
	}
	if (p->flags & PAGE_LISTED)
		lru_remove(sh, p);
	if (p->flags & PAGE_AHEAD)
		atomic_fetch_add_explicit(
			&c->ahead_unused, page_size(c), memory_order_relaxed);
	n->page[p->index & (NODE_PAGES - 1)] = NULL;
	if (!--n->pages)
		free_node(c, sh, n);
	free(p);
	account(c, -bytes);
	atomic_fetch_sub_explicit(&c->pages, 1, memory_order_relaxed);
}

void index_for_each(struct cache *c, struct shard *sh,
	void (*fn)(
		struct cache *c, struct shard *sh, struct page *p, void *arg),
	void *arg)
{
	for (unsigned i = 0; i < sh->buckets; i++) {
		for (struct node *n = sh->bucket[i], *next; n; n = next) {
			unsigned left = n->pages;

			next = n->hash_next;
			for (unsigned k = 0; left && k < NODE_PAGES; k++) {
				if (!n->page[k])
					continue;
				left--;
				fn(c, sh, n->page[k], arg);
			}
		}
	}
}

static void drop(struct cache *c, struct shard *sh, struct page *p, void *arg)
{
	(void)arg;
	index_drop(c, sh, p);
}

void index_destroy(struct cache *c, struct shard *sh)
{
	if (!sh->bucket)
		return;
	index_for_each(c, sh, drop, NULL);
	free(sh->bucket);
	pthread_mutex_destroy(&sh->lock);
}
