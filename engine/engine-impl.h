/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine-impl.h: the engine's own structures. Included only by the files at
 * the root of engine/.
 */
#ifndef WEIR_ENGINE_IMPL_H
#define WEIR_ENGINE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "cache/cache.h"
#include "engine.h"
#include "placement/placement.h"
#include "store/store.h"
#include "throttle/throttle.h"
#include "writeback/writeback.h"

/* --- stats --------------------------------------------------------------- */

#define STRIPES 16U
#define LOOP_STRIPES 8U /* where those of foreign threads begin */
#define LATENCY_SUB 8U  /* steps in each doubling */
#define LATENCY_BUCKETS (40U * LATENCY_SUB)
#define LATENCY_SAMPLE 64U /* of the hits, one in so many is timed */

enum stats_latency {
	LATENCY_READ,
	LATENCY_WRITE,
	LATENCY_FLUSH,
	LATENCIES
};

struct histogram {
	_Atomic(uint64_t) bucket[LATENCY_BUCKETS];
	_Atomic(uint64_t) sum_ns, max_ns;
};

/* Counters of one loop (or of foreign threads): no line is shared. */
struct stripe {
	_Alignas(64) _Atomic(uint64_t) entered; /* requests */
	_Atomic(uint64_t) left;
	const struct reactor *owner; /* who alone counts here, or NULL */
	struct {
		_Atomic(uint64_t) ops, bytes;
	} op[7]; /* by enum engine_op */
	struct histogram latency[LATENCIES];
};

/* --- the engine ---------------------------------------------------------- */

struct engine {
	/* As it was opened; store is owned. Only what is fixed is read here,
	 * by anybody. */
	struct engine_config config;
	/* As engine_set() has left it, under the lock. */
	struct engine_config current;
	/* The config's, for requests. */
	_Atomic(bool) multipage;
	_Atomic(enum engine_detect) detect_zeroes;
	struct placement *placement;
	struct cache *cache;
	struct writeback *writeback;
	struct throttle *throttle;
	struct reactor **loops;
	unsigned nloops;
	_Atomic(unsigned) next_loop;   /* for foreign threads */
	_Atomic(uint64_t) prefetching; /* bytes that prefetches may bring in */
	uint64_t opened_ns;

	pthread_mutex_t lock; /* exports, config */
	struct list exports;

	_Atomic(bool) closing;
	struct shutdown {
		void (*done)(struct engine *e, int error, void *arg);
		void *arg;
		uint64_t deadline_ns; /* 0: none */
		struct reactor_task start;
		struct reactor_timer poll, deadline;
		struct writeback_sync sync;
		bool flushing, expired;
		int error;
	} shutdown;

	struct stripe stripe[STRIPES];
};

struct engine_export {
	struct list link;
	struct engine *engine;
	bool readonly;
	enum engine_cache_mode cache;
};

/* --- requests ------------------------------------------------------------ */

#define READ_EXTENTS 8 /* of the store, that a read asks for at once */

/* What a request is between its steps; lives in engine_request.priv. */
struct request {
	struct engine *e;
	struct reactor *loop; /* where it runs; NULL: in a foreign thread */
	/* Go on. 0 or an error: it is over; -EINPROGRESS: it will be called
	 * again on `loop`; -EAGAIN: it needs a loop. */
	int (*step)(struct request *r);
	uint64_t start_ns; /* 0: not timed */
	uint64_t weight;
	struct stripe *stripe;
	bool own_stripe; /* only this loop counts there */
	struct cache_io io;
	uint64_t admitted; /* write: admitted up to here */
	/* Past the cache: the whole blocks. A prefetch: bytes, where it ends. */
	uint64_t a, b;
	struct iovec *cut; /* past the cache: the piece's memory; owned */
	int error;
	unsigned char phase;
	bool flat_payload; /* the payload is a copy of buf */
	bool synced;
	unsigned char ask;  /* a read: how far it is asking about holes */
	bool asked;         /* `look` is what the store said */
	unsigned char asks; /* how often it has */
	bool zeroes;  /* a write: its whole blocks [a, b) are zeroed instead */
	bool durable; /* past the cache: is once the store has answered */
	bool settles; /* past the cache: waits for a flush, FUA or not */
	struct cache_range_lock lock;
	struct store_extent look[READ_EXTENTS];
	union {
		struct throttle_waiter throttle;
		struct writeback_sync sync;
		struct store_io store;
		struct placement_waiter space;
		struct reactor_task task;
	} u;
};

_Static_assert(sizeof(struct request) <= ENGINE_PRIVATE_SIZE,
	"a request's private part fits where the front end keeps it");

/* The names of the modes are two, the values one. */
_Static_assert(ENGINE_IOLESS == (int)THROTTLE_IOLESS &&
		ENGINE_LEGACY == (int)THROTTLE_LEGACY &&
		ENGINE_THROTTLE_OFF == (int)THROTTLE_OFF,
	"engine_throttle is throttle_mode");

static inline struct throttle_config engine_throttle_config(
	const struct engine_config *c)
{
	return (struct throttle_config){
		.mode = (enum throttle_mode)c->throttle,
		.dirty_limit = c->dirty_limit,
		.dirty_background = c->dirty_background,
		.dirty_time_ns = c->dirty_time_ns,
	};
}

static inline struct engine_request *request_front(struct request *r)
{
	return container_of((unsigned char *)r, struct engine_request, priv[0]);
}

static inline struct request *request_of(struct engine_request *req)
{
	return (struct request *)(void *)req->priv;
}

/* request.c: go back to the start, as a plain write or what it is. */
void request_rewind(struct request *r);
/* Run a step and finish the request if it is over. On r->loop. */
void request_run(struct request *r);
/* Have r->u.sync call request_run() and keep its error in r->error. */
int request_sync(struct request *r, uint64_t offset, uint64_t end, bool stable);
/* The same for what the request sent to the store past the cache. */
int request_sync_through(struct request *r);
int request_sync_all(struct request *r);
/* The placement's answer runs the request; its error is r->error. */
int request_store(struct request *r, enum store_op op, unsigned flags,
	uint64_t offset, uint64_t length, const struct iovec *iov, int niov);
int request_store_status(struct request *r, uint64_t offset, uint64_t length,
	struct store_extent *extents, int nextents);
/* Memory for these bytes of the device: req->iov. 0, -ENOMEM or -E2BIG. */
int request_payload(
	struct engine_request *req, uint64_t offset, uint64_t length);
/* Room for every iovec that memory of `length` bytes can need. 0 or -ENOMEM. */
int request_grow_iov(struct engine_request *req, uint64_t length);

/* request-rw.c */
int step_read(struct request *r);
int step_write(struct request *r);
int step_cache(struct request *r);
/* May the reader get holes? */
bool read_takes_holes(const struct engine_request *req);
/* Write [io.pos, end) through the cache, piece by piece as admitted. */
int write_admitted(struct request *r, uint64_t end);

/* Copy buf, flat, to memory that can become the pages'. 0 or -ENOMEM. */
int flat_to_payload(struct request *r);

/* request-through.c */
int step_through(struct request *r);
/* The whole blocks of the request, none if a >= b; the device's last block is
 * whole though it may be short. */
void request_whole_blocks(struct request *r, uint64_t *a, uint64_t *b);

/* request-zeroes.c: has a write zeroes that are worth it? [r->a, r->b). */
bool request_is_zeroes(struct request *r);

/* request-direct.c */
int step_direct_read(struct request *r);
int step_direct_write(struct request *r);

/* request-status.c */
int step_status(struct request *r);

/* latency.c: one that took `ns`, and stands for `weight` of them. */
void stats_latency(
	struct stripe *s, enum engine_op op, uint64_t ns, uint64_t weight);
struct json_t *latency_json(struct engine *e);
void latency_reset(struct engine *e);

/* stats.c */
uint64_t stats_requests_inside(struct engine *e);

#endif
