/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-impl.h: a pool's own structures. Included only in this folder.
 *
 * Two kinds of state:
 *
 *   under `lock`    the map, free and reserved space, the changes that are
 *                   not durable yet. Any thread; never held across I/O.
 *   on `home`       the commit under way, the journal, the checkpoint, what
 *                   is being freed. That loop's thread only, without a lock.
 *
 * A change of the map goes through these:
 *
 *   write done -> map, pending -> sealed -> journal -> durable
 *                                                |
 *   unmapped space: retiring --------> retired --+--> busy -> punched -> free
 *                                                     (reads that began
 *                                                      before have ended)
 *
 * Rules:
 *  1. A record exists only after the data write it is for has completed; the
 *     data is flushed before the record is written to the journal.
 *  2. Space is free only when no durable map names it, no map in memory does,
 *     and nothing that looked it up is under way.
 *  3. A store flush that fails may have lost any data not flushed before:
 *     what is mapped by records not sealed then is `tainted`. Its records say
 *     "unwritten" until it is written again, so that a crash shows zeroes
 *     and not what lay there.
 *  4. Free space covers what is reserved, and two checkpoints of the largest
 *     map that can come of it.
 */
#ifndef WEIR_PLACEMENT_POOL_IMPL_H
#define WEIR_PLACEMENT_POOL_IMPL_H

#include <pthread.h>

#include "extent-map.h"
#include "free-space.h"
#include "placement.h"
#include "super.h"

#define FRESH_REGION (UINT64_C(1) << 20) /* bytes */
#define FRESH_BUCKETS 1024U

/* --- changes that are not durable ---------------------------------------- */

struct pool;

struct record {
	uint64_t logical, physical, length; /* bytes */
	uint8_t op;                         /* POOL_OP_* */
	bool unwritten;
};

struct records {
	struct record *item; /* owned */
	size_t count, room;
};

/* Space that a record unmaps. */
struct retired_range {
	uint64_t offset, length; /* bytes of the store */
	uint64_t number;         /* of the record */
};

struct retired {
	struct list link;
	struct retired_range *item; /* owned */
	size_t count, room;
	size_t next;    /* to be punched */
	uint64_t epoch; /* ios that began in it or before may use it */
	bool merged;
};

/* Who waits for a commit. */
struct commit_waiter {
	struct list link;
	struct reactor *reactor;
	void (*done)(struct commit_waiter *w); /* there */
	bool flush;     /* for all that was written: a FLUSH */
	uint64_t since; /* fails if flushes failed after so many had; FLUSH:
			 * commit_wait() sets it */
	int error;
	/* the pool's */
	uint64_t upto;     /* the record that must be durable */
	uint64_t failures; /* when it was answered */
	struct pool *pool;
	struct reactor_task task;
};

/* --- flushing the store; home loop --------------------------------------- */

struct pool_flush {
	struct list link;
	void (*done)(struct pool *p, int error);
};

/* --- the journal and its commits; home loop ------------------------------ */

/* A place in the journal. */
struct journal_at {
	uint64_t sequence; /* of the entry that goes there */
	uint64_t position; /* bytes from the start of the ring */
	uint32_t chain;    /* checksum of the entry before */
};

enum commit_phase {
	COMMIT_NONE,
	COMMIT_DATA,  /* store flush: the data of the sealed records */
	COMMIT_ROOM,  /* waiting for a checkpoint to free journal */
	COMMIT_WRITE, /* the journal entries */
	COMMIT_FLUSH, /* store flush: the entries */
};

struct commit {
	enum commit_phase phase;
	bool doomed; /* a flush of others failed meanwhile */
	struct list waiters;
	struct records sealed;
	uint64_t upto; /* the last record sealed */
	struct retired *retired;
	struct journal_at next; /* the journal's end when it is done */
	char *buf;              /* the entries; owned */
	uint64_t bytes, written;
	uint64_t retry_ns;  /* after a failure: nothing on our own before */
	uint64_t retire_ns; /* when space must not wait longer; 0: none does */
	struct reactor_timer retry;
	struct pool_flush flush;
	struct store_io io;
	struct iovec iov;
};

/* --- the checkpoint; home loop ------------------------------------------- */

struct chunk_at {
	uint64_t offset;
	uint32_t length;
};

/* The chunks of a chain. */
struct chain {
	struct chunk_at *chunk; /* owned */
	uint32_t count, room;
	uint64_t bytes, extents;
};

enum checkpoint_phase {
	CHECKPOINT_NONE,
	CHECKPOINT_WALK,  /* filling a chunk, slice by slice */
	CHECKPOINT_CHUNK, /* writing it */
	CHECKPOINT_FLUSH,
	CHECKPOINT_SUPER, /* writing the superblock */
	CHECKPOINT_SUPER_FLUSH,
};

struct checkpoint {
	enum checkpoint_phase phase;
	struct journal_at start; /* replay from here on top of it */
	struct chain chain;
	uint64_t cursor;    /* of the map */
	bool last;          /* the chunk being filled or written is */
	uint32_t filled;    /* extents in it */
	uint64_t failures;  /* of flushes, when it began */
	char *buf;          /* POOL_CHUNK_MAX; owned */
	struct super super; /* to be written */
	struct store_io io;
	struct iovec iov;
	struct reactor_task task;
	struct reactor_timer retry;
	uint64_t delay_ns; /* after a failure */
	struct pool_flush flush;
};

/* --- space --------------------------------------------------------------- */

#define STREAMS 64U

/* A range of the device for which space is held ahead. */
struct stream {
	uint64_t logical, length; /* bytes */
};

/* --- the pool ------------------------------------------------------------ */

struct pool {
	struct placement base;
	struct reactor *home;
	char *name; /* the spec, for messages; owned */
	unsigned sabotage;
	bool immediate, serial;

	pthread_rwlock_t lock;
	/* under lock */
	struct extent_map map, tainted;
	struct extent_map reserved; /* physical is logical */
	struct extent_map placing;  /* of writes under way, not mapped yet */
	struct extent_map ahead;    /* held for streams (pool-alloc.c) */
	struct extent_map chosen;   /* immediate: where what is reserved goes */
	struct stream stream[STREAMS];
	unsigned next_stream;
	bool allocated;   /* something, since the last commit */
	uint64_t arrival; /* immediate: where the next goes */
	struct free_space space;
	uint64_t chains;     /* bytes of the chains on the store */
	uint64_t allocating; /* bytes taken for writes under way */
	struct records pending;
	size_t pending_most; /* then a commit begins that nobody asked for */
	uint64_t recorded;   /* records ever; the number of the last */
	struct retired *retiring;
	uint32_t fresh[FRESH_BUCKETS]; /* records not durable, by region */
	uint64_t failures;             /* store flushes that failed */
	uint64_t hard;       /* how many had, when one failed for good */
	uint64_t told;       /* how many of them a FLUSH was told of */
	bool broken;         /* it cannot be said any more what is durable */
	struct list waiters; /* struct commit_waiter */
	struct list hungry;  /* struct placement_waiter */
	bool appending;      /* serial: one is under way */
	struct list appends; /* struct pool_op that wait for their turn */
	uint64_t epoch;
	_Atomic(uint64_t) inflight[2]; /* ios by the parity of their epoch */

	_Atomic(bool) kicked, freeing;
	struct reactor_task kick;

	/* home */
	struct list flushes; /* struct pool_flush that wait */
	struct pool_flush *flushing;
	struct store_io flush_io;
	struct super super;
	struct journal_at journal; /* where the next entry goes */
	bool starved; /* a commit failed: who waits for space is told */
	struct commit commit;
	struct checkpoint checkpoint;
	struct chain chain; /* that the superblock names */
	struct list busy;   /* struct retired */
	struct store_io punch_io;
	bool punching;
	void (*quiet)(void *arg);
	void *quiet_arg;
	enum {
		ENDING_NOT,
		ENDING_COMMIT,     /* the last commit was tried */
		ENDING_CHECKPOINT, /* and the last checkpoint */
	} ending;
	bool resized; /* the superblock is to be written in any case */

	_Atomic(uint64_t) journal_commits, journal_bytes;
	_Atomic(uint64_t) checkpoints, checkpoint_waits;
};

static inline struct pool *pool_of(struct placement *p)
{
	return container_of(p, struct pool, base);
}

/* pool.c */
int pool_open(const struct placement_config *config, struct store *store,
	struct placement **out, struct error *error);
/* Answer from a task on the io's loop. */
void pool_answer(struct store_io *io, int error);
/* Look on the home loop at what there is to do. Any thread. */
void pool_kick(struct pool *p);
/* The same, there. */
void pool_advance(struct pool *p);

/* pool-io.c */
void pool_read(struct pool *p, struct store_io *io);
void pool_write(struct pool *p, struct store_io *io);

/* pool-unmap.c */
void pool_unmap(struct pool *p, struct store_io *io);
void pool_status(struct pool *p, struct store_io *io);
bool pool_sparse(struct placement *placement, uint64_t offset, uint64_t end);

/* pool-flush.c; home loop */
/* How many flushes of the store failed. Any thread; takes the lock. */
uint64_t pool_failures(struct pool *p);
/* What to tell who counted `since` failures, if there are more now: -EIO, or
 * -ESTALE if none was more than that. 0: there are not. Lock held. */
int pool_failure_locked(const struct pool *p, uint64_t since);
int pool_failure(struct pool *p, uint64_t since);
/* Flush the store after all writes that have ended; then f->done(). */
void pool_flush_store(struct pool *p, struct pool_flush *f);

/* pool-record.c; lock held for writing */
int records_reserve(struct records *r, size_t more);
/* Both lists have room for `changes` more records and what they free. */
int pool_reserve_records(struct pool *p, unsigned changes);
/* Room was reserved. */
void pool_record(struct pool *p, const struct record *r);
/* extent_map's callback: space that the next record unmaps. */
void pool_retire(void *pool, const struct extent *piece);
/* A store flush failed. */
void pool_taint(struct pool *p);
bool pool_is_fresh(const struct pool *p, uint64_t offset, uint64_t end);
void pool_forget_fresh(struct pool *p, const struct records *r);

/* pool-space.c */
/* An io looks the map up (lock held), and has ended. */
unsigned pool_enter(struct pool *p);
void pool_leave(struct pool *p, unsigned parity);
/* Lock held for writing: space for [offset, end) where it has none. 0 or
 * -EAGAIN. */
int pool_reserve_locked(struct pool *p, uint64_t offset, uint64_t end);
void pool_unreserve_locked(struct pool *p, uint64_t offset, uint64_t end);
int pool_reserve(struct placement *p, uint64_t offset, uint64_t length);
void pool_reserve_wait(struct placement *p, struct placement_waiter *w);
void pool_unreserve(struct placement *p, uint64_t offset, uint64_t length);
/* Wait until space is freed; lock not held. */
void pool_hunger(struct pool *p, struct placement_waiter *w);
/* Home loop: free what can be; wake who waits for space. */
void pool_free_advance(struct pool *p);

/* pool-alloc.c; lock held for writing */
/* Take space for a piece of a write of [logical, logical + want). */
int pool_alloc(struct pool *p, uint64_t logical, uint64_t want,
	uint64_t *physical, uint64_t *length);
/* The write has ended. */
void pool_placed(struct pool *p, uint64_t logical, uint64_t length);
/* Give up what is held ahead; false: there was nothing. */
bool pool_drop_ahead(struct pool *p);
/* A commit has ended: give it up if nothing was allocated since the last. */
void pool_idle(struct pool *p);
/* Immediate: choose places for a range that has none, and give them up. */
int pool_choose_now(struct pool *p, uint64_t logical, uint64_t end);
void pool_unchoose(struct pool *p, uint64_t logical, uint64_t end);

/* commit.c; home loop */
void commit_init(struct pool *p);
/* The superblock is known. */
void commit_limits(struct pool *p);
/* Any thread. */
void commit_wait(struct pool *p, struct commit_waiter *w);
void commit_advance(struct pool *p);
/* A store flush failed outside a commit. */
void commit_lost(struct pool *p);
void commit_free(struct pool *p);

/* journal.c: records to bytes and back */
/* The bytes that the entries for `count` records take from a place on. */
uint64_t journal_bytes(
	const struct super *s, const struct journal_at *at, size_t count);
/* Fill `buf` with them; *at moves past them. */
void journal_encode(const struct super *s, struct journal_at *at,
	uint64_t durable, const struct record *r, size_t count, char *buf);
uint64_t journal_used(const struct super *s, const struct journal_at *at);
struct disk_record record_encode(const struct record *r);
struct record record_decode(const struct disk_record *d);

/* checkpoint.c; home loop */
void checkpoint_init(struct pool *p);
void checkpoint_advance(struct pool *p);
/* Begin the one that ends all; false: there is no need, or no point. */
bool checkpoint_last(struct pool *p);
void checkpoint_free(struct pool *p);
/* The bytes of a chain of that many extents, at most. */
uint64_t chain_bytes(uint64_t extents);
int chain_add(struct chain *c, uint64_t offset, uint32_t length);

/* replay.c */
/* Fill map, chain, journal and free space from the store. */
int pool_replay(struct pool *p, struct reactor *r, struct error *error);

#endif
