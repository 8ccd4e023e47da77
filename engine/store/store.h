/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store.h: where blocks end up: files, devices, memory, models of devices.
 *
 * Every store implements one vtable, and some wrap another store. A store
 * does no caching and knows nothing of pages.
 *
 * Rules:
 *  1. `done` is called on the loop of `io->reactor`, never inside
 *     store_submit(). The io, its iovec array and its memory stay valid until
 *     then.
 *  2. An io ends whole or with an error: no short counts come out (a store
 *     finishes a short one itself). After a failed write the range may hold
 *     old data, new data or a mix.
 *  3. Writes in flight at once to the same bytes end in no promised order:
 *     the layers above never do that.
 *  4. A completed write is durable after a FLUSH that was submitted after its
 *     completion and succeeded, or if it had STORE_FUA. A FLUSH that fails
 *     promises nothing about any earlier unflushed write; if it fails with
 *     -EAGAIN, none of them is lost, and another FLUSH may succeed. -ESTALE:
 *     they may be lost, and nothing is wrong with the store: it is worth
 *     while to write them again at once, and to flush again.
 *  5. offset and length are multiples of info.align, except that the last io
 *     may end at info.size exactly. Memory is aligned to info.mem_align.
 */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "../base/log.h"
#include "../base/reactor.h"

enum store_op {
	STORE_READ,
	STORE_WRITE,
	STORE_FLUSH,
	STORE_TRIM,   /* may read back as zeroes or old data */
	STORE_ZERO,   /* reads back as zeroes */
	STORE_STATUS, /* which parts are allocated, which read as zeroes */
};

#define STORE_FUA 1U     /* WRITE, TRIM, ZERO: durable when done */
#define STORE_NO_HOLE 2U /* ZERO: keep or make the space allocated */
#define STORE_FAST 4U    /* ZERO: -ENOTSUP unless faster than writing */

#define STORE_HOLE 1U   /* an extent that takes no space */
#define STORE_ZEROES 2U /* an extent that reads as zeroes */

struct store_extent {
	uint64_t length; /* bytes */
	unsigned flags;  /* STORE_HOLE | STORE_ZEROES */
};

struct store_io {
	enum store_op op;
	unsigned flags;
	uint64_t offset;         /* bytes */
	uint64_t length;         /* bytes; READ and WRITE: the sum of iov */
	const struct iovec *iov; /* READ, WRITE */
	int niov;
	/* STATUS: room for `nextents`; on return how many were filled. They
	 * start at offset and cover at least one byte, maybe not all. */
	int nextents;
	struct store_extent *extents;
	struct reactor *reactor;
	void (*done)(struct store_io *io);
	int error; /* 0 or a negative errno */

	/* Of who hands it to the store, to come by at its end (placement.h). */
	void (*passed_done)(struct store_io *io);
	void *passed_by;

	/* The store's while in flight, whatever store it is: a wrapper keeps
	 * nothing of its own in the io it hands on. */
	struct reactor_io rio;
	struct reactor_task task;
	void *priv;
};

struct store_info {
	uint64_t size;      /* bytes */
	uint32_t align;     /* bytes; of offset and length; a power of two */
	uint32_t mem_align; /* bytes; of memory; a power of two, <= 4096 */
	uint32_t max_io;    /* bytes; the longest READ or WRITE */
	bool can_trim;      /* TRIM frees space */
	bool can_zero;      /* ZERO is faster than writing zeroes */
	bool can_fua;       /* STORE_FUA is native, not write + flush */
	bool direct;        /* no host page cache in between (O_DIRECT) */
	bool readonly;      /* writes answer -EROFS */
	bool forgets;       /* what is not flushed may be gone while it is
			     * open; a FLUSH then answers -ESTALE */
	/* Parts that fail apart: bytes [k * chunk, (k + 1) * chunk) are on
	 * member k % members. 0: there are none, or none that are known. */
	uint64_t chunk; /* bytes; a power of two */
	unsigned members;
};

struct store;

struct store_ops {
	const char *kind; /* "raw", "mem", ... */
	void (*submit)(struct store *s, struct store_io *io);
	void (*close)(struct store *s);
	/* The inner store of that number, from 0; NULL: no such. May be NULL:
	 * it has none. */
	struct store *(*member)(struct store *s, unsigned i);
	/* See store_rest(); of itself alone. May be NULL. */
	void (*rest)(struct store *s);
	/* See store_sparse(). NULL: it is not. */
	bool (*sparse)(struct store *s, uint64_t offset, uint64_t end);
};

struct store {
	const struct store_ops *ops;
	struct store_info info;
	char *spec; /* as given, for messages */
};

#define STORE_OPEN_READONLY 1U

#define STORE_ANYWHERE UINT64_MAX

/* Runs of one kind of access, one after the other. */
struct store_pattern {
	bool write;
	uint64_t runs;
	uint64_t length;   /* of a run, bytes */
	uint64_t command;  /* its commands, bytes each; 0: a run is one */
	uint64_t depth;    /* commands kept in flight; 0: all that fit */
	uint64_t distance; /* bytes from the end of a run on to the next;
			    * STORE_ANYWHERE: they are at random places */
};

/*
 * Open what a spec names: "raw:PATH" or just PATH, "mem:SIZE", "null:SIZE",
 * an NBD URI, "exec:COMMAND",
 * "sim:PROFILE,OPTIONS,INNER", "fault:OPTIONS,INNER" (see fault.h),
 * "stripe:CHUNK,INNER,INNER,..." (see stripe.h), "volatile:PATH" (see
 * volatile.h); an inner spec that has commas stands in brackets. Takes the
 * lock that keeps a second opener out. Blocks.
 * Returns 0, or a negative errno with `error` naming the bad part.
 */
int store_open(const char *spec, unsigned flags, struct store **out,
	struct error *error);

/*
 * The same for who has a loop of which the store may make its own, beside the
 * ios: it outlives the store, which is closed from it, when it is stopped, or
 * after store_rest().
 * Without, a remote store takes the first live loop that an io comes from.
 */
int store_open_on(const char *spec, unsigned flags, struct reactor *home,
	struct store **out, struct error *error);

/*
 * Before a close that is not on the home loop, while that goes on: have the
 * loop forget the store and what it has inside. Nothing is in flight, and
 * nothing is asked any more. On the home loop; never blocks.
 */
void store_rest(struct store *s);

/* Close; nothing may be in flight. Accepts NULL. Blocks. */
void store_close(struct store *s);

/*
 * What a pattern takes a "sim:" store, ns, until all of it is on the medium:
 * from the model alone, to hold a measurement against. Exact for even
 * distances and many runs, a mean for random places; erase blocks are taken
 * to begin where runs do. 0 if the store is another kind. Any thread.
 */
uint64_t store_model_time(const struct store *s, const struct store_pattern *p);

/* The inner store of that number, from 0; NULL: no such. Any thread. */
static inline struct store *store_member(struct store *s, unsigned i)
{
	return s->ops->member ? s->ops->member(s, i) : NULL;
}

/*
 * Give the "fault:" stores that a store is or has inside new rules, as text
 * (fault.h), in place of all they had; or, if not `really`, see whether that
 * would do. Any thread; takes short locks, but for a power cut. -EINVAL with
 * `error`: there is no such store, or the rules are bad.
 */
int store_set_fault(
	struct store *s, const char *rules, bool really, struct error *error);

/* May a STATUS find that some of [offset, end) reads as zeroes, so that it is
 * worth asking before a READ? Any thread; cheap. */
static inline bool store_sparse(struct store *s, uint64_t offset, uint64_t end)
{
	return s->ops->sparse && s->ops->sparse(s, offset, end);
}

/*
 * Of a STATUS whose answer is made from its front to its back, with *n extents
 * so far: `length` bytes more, which are of the last extent or a new one.
 * False: there is no room. Pure.
 */
static inline bool store_extent_add(
	struct store_io *io, int *n, uint64_t length, unsigned flags)
{
	if (*n && io->extents[*n - 1].flags == flags) {
		io->extents[*n - 1].length += length;
		return true;
	}
	if (*n == io->nextents)
		return false;
	io->extents[(*n)++] = (struct store_extent){length, flags};
	return true;
}

/* Start an io. Loop thread of io->reactor only; never blocks. */
static inline void store_submit(struct store *s, struct store_io *io)
{
	s->ops->submit(s, io);
}

#endif
