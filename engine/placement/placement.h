/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * placement.h: where on the store each block of the device lies.
 *
 * Speaks store_io in the device's offsets. Rules as in store.h; a placement
 * adds none and takes none away. Two of them:
 *
 *   raw   block n of the device is block n of the store
 *   pool  blocks take space when they are written, where the pool chooses
 */
#ifndef WEIR_PLACEMENT_PLACEMENT_H
#define WEIR_PLACEMENT_PLACEMENT_H

#include <stdatomic.h>

#include "../store/store.h"

struct placement;

/* What was asked of the store, by enum store_op. */
struct placement_counts {
	_Atomic(uint64_t) ops[STORE_STATUS + 1];
	_Atomic(uint64_t) bytes[STORE_STATUS + 1];
	/* Under way now; and the time that some were, up to when the last
	 * began after none. */
	_Atomic(unsigned) depth;
	_Atomic(uint64_t) busy_ns, busy_since_ns;
};

/* Somebody who waits for space. */
struct placement_waiter {
	struct list link;
	struct reactor *reactor; /* where done runs */
	void (*done)(struct placement_waiter *w);
	uint64_t offset, length; /* bytes of the device */
	int error;               /* 0 or -ENOSPC */
	/* the placement's */
	void (*retry)(struct placement_waiter *w, bool last);
	struct placement *placement;
	struct reactor_task task;
	bool last;
};

struct placement_ops {
	const char *kind;
	/* Start an io; loop thread of io->reactor; never blocks. */
	void (*submit)(struct placement *p, struct store_io *io);
	void (*close)(struct placement *p);
	bool (*sparse)(struct placement *p, uint64_t offset, uint64_t end);
	/* The rest may be NULL. */
	int (*reserve)(struct placement *p, uint64_t offset, uint64_t length);
	void (*reserve_wait)(struct placement *p, struct placement_waiter *w);
	void (*unreserve)(
		struct placement *p, uint64_t offset, uint64_t length);
	void (*quiesce)(
		struct placement *p, void (*done)(void *arg), void *arg);
};

struct placement {
	const struct placement_ops *ops;
	struct store *store;
	struct store_info info; /* of the device as placed */
	struct placement_counts counts;
};

struct placement_config {
	const char *spec;     /* "pool:SPEC", "pool:[SPEC]", or a store's */
	unsigned flags;       /* STORE_OPEN_* */
	struct reactor *home; /* the loop on which it keeps its books */
	bool immediate;       /* pool: choose places in order of arrival */
	bool serial;          /* pool: one appending durable write at a time */
	unsigned sabotage;    /* POOL_SABOTAGE_*: 0 but in tests */
	/* Make a new pool of the store first, of a device of so many bytes; what
	 * is on it is lost. 0 but in experiments. */
	uint64_t fresh;
};

/*
 * Open a store and put the placement that the spec names on it. Blocks; may
 * be called before the loops run. 0, or a negative errno with `error` naming
 * the bad part.
 */
int placement_open(const struct placement_config *config,
	struct placement **out, struct error *error);
/* Nothing may be in flight; closes the store. Accepts NULL. Blocks. */
void placement_close(struct placement *p);

/* Start an io. Loop thread of io->reactor only; never blocks. */
void placement_submit(struct placement *p, struct store_io *io);

/* As store_sparse(). Any thread; takes a short lock. */
static inline bool placement_sparse(
	struct placement *p, uint64_t offset, uint64_t end)
{
	return p->ops->sparse(p, offset, end);
}

/* For how long something was under way, ns, up to `now_ns`. Any thread. */
uint64_t placement_busy_ns(const struct placement *p, uint64_t now_ns);

/*
 * Make sure that a later write of [offset, offset + length) will find space.
 * Doing it twice costs nothing. 0, or -EAGAIN: there is none now, ask with
 * placement_reserve_wait(). Any thread; takes a short lock.
 */
static inline int placement_reserve(
	struct placement *p, uint64_t offset, uint64_t length)
{
	return p->ops->reserve ? p->ops->reserve(p, offset, length) : 0;
}

/* The same, and wait until it is known: `done` is called, never inside the
 * call, with 0 or -ENOSPC. After a placement_reserve() said -EAGAIN. */
static inline void placement_reserve_wait(
	struct placement *p, struct placement_waiter *w)
{
	p->ops->reserve_wait(p, w);
}

/* Nothing that is not written of the range will be. Any thread. */
static inline void placement_unreserve(
	struct placement *p, uint64_t offset, uint64_t length)
{
	if (p->ops->unreserve)
		p->ops->unreserve(p, offset, length);
}

/* No more ios will come: call `done` when nothing of the placement's own is
 * under way, maybe inside the call. On the home loop. */
static inline void placement_quiesce(
	struct placement *p, void (*done)(void *arg), void *arg)
{
	if (p->ops->quiesce)
		p->ops->quiesce(p, done, arg);
	else
		done(arg);
}

/* --- pools --------------------------------------------------------------- */

#define POOL_SPACE_MIN (1U << 20) /* bytes; the smallest store of a pool */

struct pool_geometry {
	uint64_t logical_size;  /* bytes, of the device; 0: as physical */
	uint64_t physical_size; /* bytes; 0: the store's */
	uint64_t journal_size;  /* bytes; 0: 1/256 of the physical size */
	bool preallocated; /* keep what the store has allocated: no punching */
};

/* Make an empty pool of a store; what is on it is lost. Blocks. 0, or a
 * negative errno with `error`. */
int pool_format(struct store *s, const struct pool_geometry *geometry,
	struct error *error);

/* The physical size with which all of a device of that size can be written,
 * in any order. Bytes; UINT64_MAX: there is none. */
uint64_t pool_space_for(uint64_t logical_size);

/*
 * Make the pool of a spec ("pool:...") larger: to `geometry`, whose 0 means
 * as it is. The store must have the size already. Durable and all or nothing:
 * it is one checkpoint. The pool must not be open. Blocks. 0, or a negative
 * errno with `error`.
 */
int pool_grow(const char *spec, const struct pool_geometry *geometry,
	struct error *error);

struct pool_counts {
	uint64_t extents, mapped_bytes, reserved_bytes, free_bytes;
	uint64_t journal_commits, journal_bytes;
	uint64_t checkpoints, checkpoint_waits;
};

/* False: it is not a pool. Any thread. */
bool pool_counts(struct placement *p, struct pool_counts *out);

/* --- looking at a pool that is not open ---------------------------------- */

/* What a pool is and holds. */
struct pool_summary {
	uint8_t uuid[16];
	uint32_t version;
	uint64_t generation;
	uint64_t logical_size, physical_size; /* bytes */
	uint64_t journal_size, journal_used;  /* bytes */
	uint64_t journal_entries;             /* to replay at the next open */
	uint64_t checkpoint_bytes, checkpoint_extents;
	uint64_t extents, mapped_bytes; /* of the map; unwritten ones too */
	uint64_t unwritten_bytes;
	uint64_t free_bytes, free_extents, free_largest;
	uint64_t findings; /* rules that are broken */
	bool complete;     /* all of the map could be read */
	bool preallocated;
};

/* Who is told; each may be NULL. */
struct pool_visitor {
	void *arg;
	/* A rule is broken: at which byte of the store, and how. */
	void (*found)(void *arg, uint64_t offset, const char *what);
	/* The map's extents, in order; bytes. */
	void (*extent)(void *arg, uint64_t logical, uint64_t physical,
		uint64_t length, bool unwritten);
};

/*
 * Read a pool as its next open would, and look at every rule of format.h and
 * of weir-pool(5). Writes nothing; a broken rule does not end it. 0, whatever
 * was found, or a negative errno with `error`: not a pool, of another version,
 * a read that fails, no memory. Blocks.
 */
int pool_check(struct store *s, const struct pool_visitor *visitor,
	struct pool_summary *out, struct error *error);

/* What the tests of the tests break on purpose. */
#define POOL_SABOTAGE_NO_DATA_FLUSH 1U /* commit without flushing the data */
#define POOL_SABOTAGE_NO_LAST_FLUSH 2U /* answer before the second flush */
#define POOL_SABOTAGE_EARLY_FREE 4U    /* free before the commit is durable */
#define POOL_SABOTAGE_BUSY_REUSE 8U    /* free while reads are under way */
#define POOL_SABOTAGE_BAD_RECORD 16U   /* replay past a bad journal entry */

#endif
