/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c: a pool's life, and what its home loop does.
 *
 * Everything that happens there ends in pool_advance(), which looks at all
 * there is to do: the commit, the checkpoint, the space that comes back, and
 * whether all is quiet.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool-op.h"

/* --- the home loop ------------------------------------------------------- */

static bool is_quiet(struct pool *p)
{
	return p->commit.phase == COMMIT_NONE && !p->punching &&
		list_empty(&p->busy) &&
		p->checkpoint.phase == CHECKPOINT_NONE &&
		!atomic_load(&p->kicked); /* comes here again */
}

/* Nothing under way? At the end comes what nobody flushed, as far as it can
 * be written, and a checkpoint: the next open has nothing to replay. */
static void quiesce_advance(struct pool *p)
{
	void (*quiet)(void *arg) = p->quiet;

	if (!quiet || !is_quiet(p))
		return;
	if (p->ending == ENDING_NOT) {
		p->ending = ENDING_COMMIT;
		commit_advance(p);
		if (!is_quiet(p))
			return;
	}
	if (p->ending == ENDING_COMMIT) {
		p->ending = ENDING_CHECKPOINT;
		if (checkpoint_last(p))
			return;
	}
	reactor_timer_cancel(p->home, &p->checkpoint.retry);
	reactor_timer_cancel(p->home, &p->commit.retry);
	p->quiet = NULL;
	quiet(p->quiet_arg);
}

void pool_advance(struct pool *p)
{
	commit_advance(p);
	checkpoint_advance(p);
	pool_free_advance(p);
	quiesce_advance(p);
}

static void kicked(struct reactor_task *task)
{
	struct pool *p = container_of(task, struct pool, kick);

	atomic_store(&p->kicked, false);
	pool_advance(p);
}

void pool_kick(struct pool *p)
{
	if (!atomic_exchange(&p->kicked, true))
		reactor_post(p->home, &p->kick);
}

static void pool_quiesce(
	struct placement *placement, void (*done)(void *arg), void *arg)
{
	struct pool *p = pool_of(placement);

	p->quiet = done;
	p->quiet_arg = arg;
	/* From a task: what was posted before comes first. */
	pool_kick(p);
}

/* --- ios ----------------------------------------------------------------- */

static void answered(struct reactor_task *task)
{
	struct store_io *io = container_of(task, struct store_io, task);

	io->done(io);
}

void pool_answer(struct store_io *io, int error)
{
	io->error = error;
	io->task.fn = answered;
	reactor_post(io->reactor, &io->task);
}

static void pool_flush(struct pool *p, struct store_io *io)
{
	struct pool_op *op = op_new(p, io);

	if (op)
		op_commit(op);
	else
		pool_answer(io, -ENOMEM);
}

static void pool_submit(struct placement *placement, struct store_io *io)
{
	struct pool *p = pool_of(placement);

	if (p->base.info.readonly && io->op != STORE_READ &&
		io->op != STORE_STATUS) {
		pool_answer(io, io->op == STORE_FLUSH ? 0 : -EROFS);
		return;
	}
	switch (io->op) {
	case STORE_READ:
		pool_read(p, io);
		break;
	case STORE_WRITE:
		pool_write(p, io);
		break;
	case STORE_FLUSH:
		pool_flush(p, io);
		break;
	case STORE_TRIM:
	case STORE_ZERO:
		pool_unmap(p, io);
		break;
	case STORE_STATUS:
		pool_status(p, io);
		break;
	}
}

/* --- life ---------------------------------------------------------------- */

static void free_busy(struct pool *p)
{
	struct list *at;

	while ((at = list_pop_head(&p->busy))) {
		struct retired *b = list_entry(at, struct retired, link);

		free(b->item);
		free(b);
	}
}

static void pool_close(struct placement *placement)
{
	struct pool *p = pool_of(placement);

	commit_free(p);
	checkpoint_free(p);
	free_busy(p);
	extent_map_destroy(&p->map);
	extent_map_destroy(&p->tainted);
	extent_map_destroy(&p->reserved);
	extent_map_destroy(&p->placing);
	extent_map_destroy(&p->ahead);
	extent_map_destroy(&p->chosen);
	free_space_destroy(&p->space);
	pthread_rwlock_destroy(&p->lock);
	store_close(p->base.store);
	free(p->name);
	free(p);
}

static const struct placement_ops pool_ops = {
	.kind = "pool",
	.submit = pool_submit,
	.close = pool_close,
	.sparse = pool_sparse,
	.reserve = pool_reserve,
	.reserve_wait = pool_reserve_wait,
	.unreserve = pool_unreserve,
	.quiesce = pool_quiesce,
};

static int init_trees(struct pool *p)
{
	struct extent_map *maps[] = {&p->map, &p->tainted, &p->reserved,
		&p->placing, &p->ahead, &p->chosen};

	for (unsigned i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		if (extent_map_init(maps[i]))
			return -ENOMEM;
	}
	return free_space_init(&p->space);
}

static struct pool *pool_new(
	const struct placement_config *config, struct store *store)
{
	struct pool *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->base.ops = &pool_ops;
	p->base.store = store;
	p->home = config->home;
	p->sabotage = config->sabotage;
	p->immediate = config->immediate;
	p->serial = config->serial;
	pthread_rwlock_init(&p->lock, NULL);
	list_init(&p->hungry);
	list_init(&p->appends);
	list_init(&p->flushes);
	list_init(&p->busy);
	p->kick.fn = kicked;
	commit_init(p);
	checkpoint_init(p);
	p->name = strdup(config->spec);
	if (init_trees(p) || !p->name) {
		p->base.store = NULL;
		pool_close(&p->base);
		return NULL;
	}
	return p;
}

static void set_info(struct pool *p)
{
	const struct store_info *s = &p->base.store->info;

	p->base.info = (struct store_info){
		.size = p->super.logical_size,
		.align = POOL_UNIT,
		.mem_align = s->mem_align,
		.max_io = s->max_io,
		.can_trim = true,
		.can_zero = true,
		.can_fua = true,
		.direct = s->direct,
		.forgets = s->forgets,
		.readonly = s->readonly,
	};
}

static int load(struct pool *p, struct error *error)
{
	struct reactor *r = reactor_sim_new(1);
	int err;

	if (!r)
		return error_set(error, -ENOMEM, "out of memory");
	err = super_read(p->base.store, r, &p->super, error);
	if (!err)
		err = pool_replay(p, r, error);
	reactor_free(r);
	return err;
}

int pool_open(const struct placement_config *config, struct store *store,
	struct placement **out, struct error *error)
{
	struct pool *p;
	int err;

	if (store->info.align > POOL_UNIT || store->info.max_io < POOL_UNIT) {
		store_close(store);
		return error_set(error, -EINVAL,
			"a pool needs a store of blocks of 4K or less");
	}
	p = pool_new(config, store);
	if (!p) {
		store_close(store);
		return error_set(error, -ENOMEM, "out of memory");
	}
	err = load(p, error);
	if (err) {
		pool_close(&p->base);
		return err;
	}
	set_info(p);
	commit_limits(p);
	*out = &p->base;
	return 0;
}

bool pool_counts(struct placement *placement, struct pool_counts *out)
{
	struct pool *p;

	if (placement->ops != &pool_ops)
		return false;
	p = pool_of(placement);
	*out = (struct pool_counts){
		.journal_commits = atomic_load(&p->journal_commits),
		.journal_bytes = atomic_load(&p->journal_bytes),
		.checkpoints = atomic_load(&p->checkpoints),
		.checkpoint_waits = atomic_load(&p->checkpoint_waits),
	};
	pthread_rwlock_rdlock(&p->lock);
	out->extents = extent_map_count(&p->map);
	out->mapped_bytes = extent_map_mapped_bytes(&p->map);
	out->reserved_bytes = extent_map_mapped_bytes(&p->reserved);
	out->free_bytes = free_space_bytes(&p->space) +
		extent_map_mapped_bytes(&p->ahead);
	pthread_rwlock_unlock(&p->lock);
	return true;
}
