/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint.c: the map written out, so that the journal can begin anew. On
 * the home loop, beside everything else.
 *
 *   NONE -> WALK <-> CHUNK -> FLUSH -> SUPER -> SUPER_FLUSH -> NONE
 *
 *  1. It is fuzzy: each slice of the map is as it was when it was walked. All
 *     changes since the beginning are in the journal from `start` on; replayed
 *     in order on top of it they lead to the map as it is: what a record
 *     touches ends as the last one says, what none touches did not change.
 *  2. The map may be ahead of the journal. What it says was written before,
 *     and is flushed before the superblock names the chain; if any flush
 *     failed since the beginning, the chain is given up.
 *  3. The old chain and the journal before `start` are used until the new
 *     superblock is durable, and free from then on. If it cannot be known
 *     whether it is, both stay and the superblock is written again.
 *  4. The lock is held for one slice at a time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool-impl.h"

#define SLICE 2048U /* extents; well under a millisecond */
#define RETRY_FIRST_NS (100 * NSEC_PER_MSEC)
#define RETRY_MAX_NS (10 * NSEC_PER_SEC)

uint64_t chain_bytes(uint64_t extents)
{
	uint64_t each = pool_records_in(POOL_UNIT); /* the shortest chunks */

	return (extents + each - 1) / each * POOL_UNIT;
}

int chain_add(struct chain *c, uint64_t offset, uint32_t length)
{
	if (c->count == c->room) {
		uint32_t room = c->room ? 2 * c->room : 16;
		void *all = realloc(c->chunk, room * sizeof(*c->chunk));

		if (!all)
			return -ENOMEM;
		c->chunk = all;
		c->room = room;
	}
	c->chunk[c->count++] = (struct chunk_at){offset, length};
	c->bytes += length;
	return 0;
}

/* --- failing ------------------------------------------------------------- */

/* Its space is free again. Lock held for writing. */
static void chain_release(struct pool *p, struct chain *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		free_space_add(
			&p->space, c->chunk[i].offset, c->chunk[i].length);
	p->chains -= c->bytes;
	free(c->chunk);
	*c = (struct chain){0};
}

static void try_again_later(struct pool *p)
{
	struct checkpoint *c = &p->checkpoint;

	c->delay_ns = c->delay_ns ? 2 * c->delay_ns : RETRY_FIRST_NS;
	if (c->delay_ns > RETRY_MAX_NS)
		c->delay_ns = RETRY_MAX_NS;
	reactor_timer_arm(p->home, &c->retry, c->delay_ns);
}

static void give_up(struct pool *p, int error)
{
	struct checkpoint *c = &p->checkpoint;

	if (!c->delay_ns)
		log_error("store %s: cannot write a checkpoint: %s; %s",
			p->name, strerror(-error),
			p->quiet ? "the journal is replayed instead"
				 : "will be tried again");
	pthread_rwlock_wrlock(&p->lock);
	chain_release(p, &c->chain);
	pthread_rwlock_unlock(&p->lock);
	c->phase = CHECKPOINT_NONE;
	try_again_later(p);
	pool_advance(p);
}

/* --- the superblock ------------------------------------------------------ */

static void step(struct pool *p, enum checkpoint_phase phase, enum store_op op,
	uint64_t offset, uint64_t length);

static void super_write(struct pool *p)
{
	struct checkpoint *c = &p->checkpoint;

	c->failures = pool_failures(p);
	super_encode(&c->super, c->buf);
	step(p, CHECKPOINT_SUPER, STORE_WRITE,
		super_offset(c->super.generation), POOL_SUPER_SIZE);
}

/* Rule 3. Who is closing the pool does not wait: whichever superblock is
 * found, all it names is there. */
static void super_failed(struct pool *p, int error)
{
	struct checkpoint *c = &p->checkpoint;

	if (!c->delay_ns)
		log_error("store %s: cannot write the superblock: %s; will be "
			  "tried again",
			p->name, strerror(-error));
	c->phase = p->quiet ? CHECKPOINT_NONE : CHECKPOINT_SUPER;
	try_again_later(p);
	pool_advance(p);
}

static void super_durable(struct pool *p)
{
	struct checkpoint *c = &p->checkpoint;

	pthread_rwlock_wrlock(&p->lock);
	chain_release(p, &p->chain);
	pthread_rwlock_unlock(&p->lock);
	p->super = c->super;
	p->chain = c->chain;
	c->chain = (struct chain){0};
	c->phase = CHECKPOINT_NONE;
	c->delay_ns = 0;
	atomic_fetch_add(&p->checkpoints, 1);
	pool_advance(p);
}

/* All chunks are durable, and all data that they name. */
static void chain_durable(struct pool *p)
{
	struct checkpoint *c = &p->checkpoint;
	const struct chain *chain = &c->chain;

	if (c->failures != pool_failures(p)) {
		give_up(p, -EIO);
		return;
	}
	c->super = p->super;
	c->super.generation++;
	c->super.replay_sequence = c->start.sequence;
	c->super.replay_position = c->start.position;
	c->super.replay_chain = c->start.chain;
	c->super.checkpoint_offset = chain->count ? chain->chunk[0].offset : 0;
	c->super.checkpoint_length = chain->count ? chain->chunk[0].length : 0;
	c->super.checkpoint_chunks = chain->count;
	c->super.checkpoint_extents = chain->extents;
	super_write(p);
}

/* --- the chunks ---------------------------------------------------------- */

/* Take space for the next chunk. Lock held for writing. */
static int chunk_take(struct pool *p)
{
	struct checkpoint *c = &p->checkpoint;
	uint64_t all = extent_map_count(&p->map), offset, length;
	uint64_t left = all > c->chain.extents ? all - c->chain.extents : 1;
	uint64_t want = pool_bytes_for(left);
	int err;

	if (want > POOL_CHUNK_MAX)
		want = POOL_CHUNK_MAX;
	if (want > p->base.info.max_io)
		want = p->base.info.max_io / POOL_UNIT * POOL_UNIT;
	if (free_space_largest(&p->space) < want)
		pool_drop_ahead(p);
	/* At the end, where it is in the way of no stream. */
	err = free_space_alloc(&p->space, p->super.physical_size - want, want,
		&offset, &length);
	if (err)
		return err;
	err = chain_add(&c->chain, offset, (uint32_t)length);
	if (err)
		free_space_add(&p->space, offset, length);
	else
		p->chains += length;
	return err;
}

/* The next piece of the map, as it is to be found when opened. */
static bool next_piece(struct pool *p, struct extent *e)
{
	struct checkpoint *c = &p->checkpoint;
	uint64_t end;
	struct extent t;

	if (!extent_map_next(&p->map, &c->cursor, e))
		return false;
	end = e->logical + e->length;
	if (!extent_map_find(&p->tainted, e->logical, &t) || t.logical >= end)
		return true;
	if (t.logical > e->logical) {
		end = t.logical;
	} else {
		e->unwritten = true;
		if (t.logical + t.length < end)
			end = t.logical + t.length;
	}
	e->length = end - e->logical;
	c->cursor = end;
	return true;
}

static void put_extent(struct checkpoint *c, const struct extent *e)
{
	struct disk_record *to = (struct disk_record *)(void *)(c->buf +
		sizeof(struct disk_chunk));
	struct record r = {
		.logical = e->logical,
		.physical = e->physical,
		.length = e->length,
		.op = POOL_OP_MAP,
		.unwritten = e->unwritten,
	};

	to[c->filled++] = record_encode(&r);
	c->chain.extents++;
}

/* Chunk `i`, which is full or the last, to the store. */
static void chunk_write(struct pool *p, uint32_t i)
{
	struct checkpoint *c = &p->checkpoint;
	const struct chunk_at *at = &c->chain.chunk[i];
	const struct chunk_at none = {0}, *next = c->last ? &none : at + 1;
	struct disk_chunk *head = (struct disk_chunk *)(void *)c->buf;
	size_t used = sizeof(*head) + c->filled * sizeof(struct disk_record);

	memset(c->buf + used, 0, at->length - used);
	*head = (struct disk_chunk){
		.pool = put64(super_pool(&p->super)),
		.generation = put64(p->super.generation + 1),
		.index = put32(i),
		.count = put32(c->filled),
		.next_offset = put64(next->offset),
		.next_length = put32(next->length),
	};
	format_seal(c->buf, at->length, POOL_MAGIC_CHUNK);
	c->filled = 0;
	step(p, CHECKPOINT_CHUNK, STORE_WRITE, at->offset, at->length);
}

/* Walk a slice. 0, or an error. */
static int walk(struct pool *p)
{
	struct checkpoint *c = &p->checkpoint;
	uint32_t i = c->chain.count - 1;
	uint32_t most = pool_records_in(c->chain.chunk[i].length);
	struct extent e;
	uint64_t peek;
	int err = 0;

	pthread_rwlock_rdlock(&p->lock);
	for (unsigned n = 0; n < SLICE && c->filled < most; n++) {
		if (!next_piece(p, &e))
			break;
		put_extent(c, &e);
	}
	peek = c->cursor;
	c->last = !extent_map_next(&p->map, &peek, &e);
	pthread_rwlock_unlock(&p->lock);
	if (c->filled < most && !c->last) {
		reactor_post(p->home, &c->task);
		return 0;
	}
	if (!c->last) {
		pthread_rwlock_wrlock(&p->lock);
		err = chunk_take(p);
		pthread_rwlock_unlock(&p->lock);
	}
	if (!err)
		chunk_write(p, i);
	return err;
}

static void walk_on(struct pool *p)
{
	int err = walk(p);

	if (err)
		give_up(p, err);
}

static void next_slice(struct reactor_task *task)
{
	walk_on(container_of(task, struct pool, checkpoint.task));
}

/* --- the steps ----------------------------------------------------------- */

static void stepped(struct pool *p, int error)
{
	struct checkpoint *c = &p->checkpoint;

	if (error &&
		(c->phase == CHECKPOINT_FLUSH ||
			c->phase == CHECKPOINT_SUPER_FLUSH))
		commit_lost(p);

	switch (c->phase) {
	case CHECKPOINT_CHUNK:
		if (error) {
			give_up(p, error);
		} else if (!c->last) {
			c->phase = CHECKPOINT_WALK;
			walk_on(p);
		} else {
			step(p, CHECKPOINT_FLUSH, STORE_FLUSH, 0, 0);
		}
		break;
	case CHECKPOINT_FLUSH:
		if (error)
			give_up(p, error);
		else
			chain_durable(p);
		break;
	case CHECKPOINT_SUPER:
		if (error)
			super_failed(p, error);
		else
			step(p, CHECKPOINT_SUPER_FLUSH, STORE_FLUSH, 0, 0);
		break;
	default:
		if (error || c->failures != pool_failures(p))
			super_failed(p, -EIO);
		else
			super_durable(p);
	}
}

static void io_stepped(struct store_io *io)
{
	stepped(container_of(io, struct pool, checkpoint.io), io->error);
}

/* An io of the buffer, or a flush. */
static void step(struct pool *p, enum checkpoint_phase phase, enum store_op op,
	uint64_t offset, uint64_t length)
{
	struct checkpoint *c = &p->checkpoint;

	c->phase = phase;
	c->flush.done = stepped;
	if (op == STORE_FLUSH) {
		pool_flush_store(p, &c->flush);
		return;
	}
	c->iov = (struct iovec){c->buf, length};
	c->io = (struct store_io){
		.op = op,
		.offset = offset,
		.length = length,
		.iov = &c->iov,
		.niov = 1,
		.reactor = p->home,
		.done = io_stepped,
	};
	store_submit(p->base.store, &c->io);
}

/* --- when ---------------------------------------------------------------- */

static int begin(struct pool *p)
{
	struct checkpoint *c = &p->checkpoint;
	int err = 0;

	if (!c->buf)
		c->buf = aligned_alloc(POOL_UNIT, POOL_CHUNK_MAX);
	if (!c->buf)
		return -ENOMEM;
	c->start = p->journal;
	c->cursor = 0;
	c->filled = 0;
	pthread_rwlock_wrlock(&p->lock);
	c->failures = p->failures;
	c->last = !extent_map_count(&p->map);
	if (!c->last)
		err = chunk_take(p);
	pthread_rwlock_unlock(&p->lock);
	if (err)
		return err;
	c->phase = CHECKPOINT_WALK;
	if (c->last)
		step(p, CHECKPOINT_FLUSH, STORE_FLUSH, 0, 0);
	else
		reactor_post(p->home, &c->task);
	return 0;
}

static bool wanted(const struct pool *p)
{
	return p->commit.phase == COMMIT_ROOM ||
		journal_used(&p->super, &p->journal) >
		p->super.journal_size / 2;
}

void checkpoint_advance(struct pool *p)
{
	struct checkpoint *c = &p->checkpoint;
	int err;

	if (c->phase != CHECKPOINT_NONE || reactor_timer_armed(&c->retry) ||
		p->quiet || p->base.info.readonly || !wanted(p))
		return;
	err = begin(p);
	if (err)
		give_up(p, err);
}

bool checkpoint_last(struct pool *p)
{
	bool pending;

	pthread_rwlock_rdlock(&p->lock);
	pending = p->pending.count;
	pthread_rwlock_unlock(&p->lock);
	if (pending || p->checkpoint.delay_ns || p->base.info.readonly ||
		(!journal_used(&p->super, &p->journal) && !p->resized))
		return false;
	return begin(p) == 0;
}

static void retry(struct reactor_timer *timer)
{
	struct pool *p = container_of(timer, struct pool, checkpoint.retry);

	if (p->checkpoint.phase == CHECKPOINT_SUPER)
		super_write(p);
	else
		pool_advance(p);
}

void checkpoint_init(struct pool *p)
{
	p->checkpoint.task.fn = next_slice;
	p->checkpoint.retry.fn = retry;
}

void checkpoint_free(struct pool *p)
{
	free(p->checkpoint.buf);
	free(p->checkpoint.chain.chunk);
	free(p->chain.chunk);
}
