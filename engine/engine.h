/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h: a write-back cache over one store, for a front end to serve.
 *
 *   front end -> engine.h -> request -> throttle -> cache -> placement -> store
 *
 * One `struct engine` per store; any number in a process. An export is a
 * named view of an engine: two exports of one engine are coherent. A client
 * is whoever the throttle shares the device among.
 *
 * What a request may count on:
 *  1. A write that was answered is seen by every later read.
 *  2. A FLUSH makes every write, trim and zero answered before the FLUSH was
 *     submitted durable; FUA does the same for its own range.
 *  3. Overlapping requests in flight at once end as one of them per block.
 *  4. An error never loses data that was answered: it stays in memory and
 *     every FLUSH answers EIO until it went through.
 */
#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/log.h"
#include "base/reactor.h"

/* --- configuration ------------------------------------------------------- */

enum engine_cache_mode {
	ENGINE_WRITEBACK,    /* answered from memory, written later */
	ENGINE_WRITETHROUGH, /* answered when the store has it; reads cached */
	ENGINE_NONE,         /* the direct path: no page is kept */
};

/* What a plain write of zeroes is. */
enum engine_detect {
	ENGINE_DETECT_OFF,
	ENGINE_DETECT_ON,    /* as write-zeroes with NO_HOLE */
	ENGINE_DETECT_UNMAP, /* as write-zeroes that may leave a hole */
};

enum engine_throttle {
	ENGINE_IOLESS,       /* writers pause before the limit is met */
	ENGINE_LEGACY,       /* writers write back themselves */
	ENGINE_THROTTLE_OFF, /* writers wait at the limit */
};

/* When a pool chooses where blocks go. */
enum engine_placement {
	ENGINE_DELALLOC,  /* when they are written back */
	ENGINE_IMMEDIATE, /* as they arrive */
};

/* Durable writes beyond the end of what a pool holds. */
enum engine_append {
	ENGINE_APPEND_ASYNC,  /* at once, with shared commits */
	ENGINE_APPEND_SERIAL, /* one at a time */
};

struct engine_config {
	char *store; /* spec; owned */
	enum engine_cache_mode cache;
	enum engine_detect detect_zeroes;
	bool readonly;
	uint64_t cache_size; /* bytes */
	uint32_t page_size;  /* bytes, 4K..1M, a power of two */
	uint32_t block_size; /* bytes, 512..page_size, a power of two */
	bool subpage;        /* a page is readable in part */
	bool multipage;      /* writes go by runs of pages */
	enum engine_throttle throttle;
	enum engine_placement placement;
	enum engine_append append;
	uint64_t dirty_limit;      /* bytes */
	uint64_t dirty_background; /* bytes */
	uint64_t dirty_time_ns;    /* 0: off */
	uint64_t dirty_expire_ns;
	uint64_t error_timeout_ns;
	uint64_t readahead;          /* bytes; 0: off */
	uint64_t inflight_bytes;     /* per connection */
	uint64_t writeback_inflight; /* bytes */
	/* "50%" as written, before engine_config_check(); 0: not a share */
	unsigned dirty_limit_percent, dirty_background_percent;
	bool direct;   /* an export will be ENGINE_NONE; no key of its own */
	bool populate; /* cache-size of memory at once; no key of its own */
	bool background_follows; /* dirty_background is half of the limit */
	unsigned pool_sabotage;  /* POOL_SABOTAGE_*, of tests; no key */
	uint64_t pool_fresh;     /* bytes: make a new pool of it; no key */
	unsigned set;            /* which keys were given, the module's */
};

/* The defaults. Free with engine_config_free(). */
void engine_config_init(struct engine_config *c);
void engine_config_free(struct engine_config *c);

/*
 * Set one key from text; the same keys for every front end. -EINVAL with
 * `error` naming key and value if it is unknown or bad.
 */
int engine_config_set(struct engine_config *c, const char *key,
	const char *value, struct error *error);

/* Was the key given? */
bool engine_config_was_set(const struct engine_config *c, const char *key);

/*
 * Fill in what follows from the rest and refuse what does not fit together
 * (a limit over cache-size, a block over a page). Call before open, and again
 * after a key was set since.
 */
int engine_config_check(struct engine_config *c, struct error *error);

/* "  store=SPEC   where the blocks end up\n ...": for --help. */
extern const char engine_config_help[];

/* --- the engine ---------------------------------------------------------- */

struct engine;

/*
 * Open the store and build the engine on `n` loops, which must outlive it.
 * Loop 0 runs the flusher. Blocks; any thread; the loops may or may not run
 * yet. -errno with `error` filled.
 */
int engine_open(const struct engine_config *c, struct reactor *const *loops,
	unsigned n, struct engine **out, struct error *error);

/*
 * Start a close: requests submitted from now on answer ESHUTDOWN, those in
 * progress finish, dirty data is written and the store flushed. `done` runs
 * on loop 0 with 0 or a negative errno. `timeout_ns` (0: none) bounds the
 * wait: then -ETIMEDOUT, and the ranges given up are logged. Any thread.
 */
void engine_shutdown(struct engine *e, uint64_t timeout_ns,
	void (*done)(struct engine *e, int error, void *arg), void *arg);

/* Of a shutdown that goes on: end it by then, as if it had been said at its
 * start. On loop 0. */
void engine_shutdown_within(struct engine *e, uint64_t timeout_ns);

/* Log the dirty ranges and their bytes, for an exit that cannot wait. Any
 * thread. */
void engine_log_dirty(struct engine *e);

/* Where loops go on after `done`: forget what may yet be due on them. On loop
 * 0, when all that had been posted to the loops by then has run. */
void engine_rest(struct engine *e);

/* Free it. After `done` of engine_shutdown(), and with the loops stopped, or
 * after engine_rest(). Any thread. Blocks (closes the store). */
void engine_close(struct engine *e);

/* The store underneath, for tests: to make it fail and see what it was
 * asked. */
struct store;
struct store *engine_store(struct engine *e);

struct engine_info {
	uint64_t size;                                  /* bytes */
	uint32_t min_block, preferred_block, max_block; /* NBD block sizes */
	bool readonly;
	bool can_trim, can_zero, can_fast_zero;
	uint64_t inflight_bytes;
};

/* --- while it runs -------------------------------------------------------- */

struct engine_setting {
	const char *key, *value;
};

/*
 * Change limits and policies of a running engine: all `n` of them, or none and
 * -EINVAL with `error` filled (a key that is fixed while the store is open, or
 * values that do not fit together). Takes effect at once for whoever asks from
 * then on; a limit below what is dirty lets that fall. Any thread; never
 * blocks but for short locks.
 */
int engine_set(struct engine *e, const struct engine_setting *settings,
	unsigned n, struct error *error);
/* Would it? Changes nothing. */
int engine_set_check(struct engine *e, const struct engine_setting *settings,
	unsigned n, struct error *error);

/* The keys in which two configurations differ, those that engine_set() may
 * change or the others, as "a, b". Their number. What only an export looks at
 * (cache) is none of them. */
unsigned engine_config_diff(const struct engine_config *a,
	const struct engine_config *b, bool live, char *text, size_t size);

/* Change what differs between `from` and `to`, of what engine_set() may
 * change, to what it is in `to`; see there. Not `really`: would it? */
int engine_adopt(struct engine *e, const struct engine_config *from,
	const struct engine_config *to, bool really, struct error *error);

/* Forget what is cached and clean; bytes of memory freed. Any thread; takes
 * short locks. */
uint64_t engine_drop(struct engine *e);

/* --- exports and clients ------------------------------------------------- */

struct engine_export;
struct engine_client;

/* A view of the engine; freed by engine_close(). Any thread. NULL: no
 * memory. */
struct engine_export *engine_export_new(
	struct engine *e, bool readonly, enum engine_cache_mode cache);
void engine_export_info(const struct engine_export *x, struct engine_info *i);
/* Free it before the engine. No request is for it any more. Any thread. */
void engine_export_free(struct engine_export *x);

/* The client of that identity ("10.0.0.7", "pid 4711"): the same one for the
 * same text. Counted references. Any thread. */
struct engine_client *engine_client_get(struct engine *e, const char *identity);
void engine_client_put(struct engine_client *c);

/* --- requests ------------------------------------------------------------ */

enum engine_op {
	ENGINE_READ,
	ENGINE_WRITE,
	ENGINE_FLUSH,
	ENGINE_TRIM,
	ENGINE_ZERO,
	ENGINE_CACHE,  /* prefetch */
	ENGINE_STATUS, /* base:allocation */
};

#define ENGINE_FUA 1U
#define ENGINE_NO_HOLE 2U
#define ENGINE_FAST_ZERO 4U
#define ENGINE_REQ_ONE 8U /* STATUS: one extent is enough */
#define ENGINE_HOLES 16U  /* READ: iov may have holes, see there */

#define ENGINE_HOLE 1U   /* as NBD_STATE_HOLE */
#define ENGINE_ZEROES 2U /* as NBD_STATE_ZERO */

struct engine_extent {
	uint64_t length; /* bytes */
	uint32_t flags;  /* ENGINE_HOLE | ENGINE_ZEROES */
};

#define ENGINE_MAX_REQUEST (32U << 20) /* bytes: READ, WRITE */
#define ENGINE_INLINE_IOV 18
#define ENGINE_PRIVATE_SIZE 768

struct engine_request {
	/* The caller's, set before engine_submit(). */
	enum engine_op op;
	unsigned flags;
	uint64_t offset; /* bytes; any alignment */
	uint64_t length; /* bytes */
	struct engine_export *export;
	struct engine_client *client; /* may be NULL: not throttled apart */
	/* Where `done` runs; NULL: the caller is a foreign thread, and `done`
	 * runs on a loop of the engine's choice. */
	struct reactor *reactor;
	void (*done)(struct engine_request *req);
	/* WRITE: the payload, valid until done. READ: where to put the data.
	 * NULL: cache memory is used: for WRITE engine_payload() came before,
	 * for READ iov says where the data lies until engine_release(). */
	void *buf;
	/* STATUS: room for nextents; on return how many are filled. */
	struct engine_extent *extents;
	unsigned nextents;

	/* The answer. */
	int error; /* 0 or a negative errno */
	unsigned niov;
	/* READ with ENGINE_HOLES and no buf: an entry of iov has a base of NULL:
	 * it stands for as many zeroes. Only if this is set. */
	bool holes;
	/* READ that failed on its way: all before error_at could be read. */
	bool has_error_at;
	uint64_t error_at; /* bytes */
	struct iovec *iov;

	/* The engine's. */
	struct iovec inline_iov[ENGINE_INLINE_IOV];
	alignas(max_align_t) unsigned char priv[ENGINE_PRIVATE_SIZE];
};

/* Zero what the engine needs zeroed before a request is first filled in. Call
 * before each use. Any thread. */
void engine_request_init(struct engine_request *req);

/*
 * Get cache memory for the payload of a WRITE whose offset and length are
 * set: iov then says where to receive it. End with engine_submit() or
 * engine_release(). Any thread, never blocks; -ENOMEM.
 */
int engine_payload(struct engine_request *req);

/*
 * The same without memory of its own: the first bytes of another request's
 * payload, which nobody may change any more. For who writes a lot and does
 * not mind what. Both start at a multiple of 4K; the other is not shorter.
 */
int engine_payload_share(
	struct engine_request *req, const struct engine_request *other);

/*
 * Start a request. Returns true if it is complete already (a hit): `error`
 * and `iov` are set and `done` will not be called. Otherwise `done` will be,
 * on `reactor`, never inside this call. Never blocks. From req->reactor's
 * thread, or from any thread if that is NULL.
 *
 * Errors: EINVAL (range), ENOSPC (a WRITE or ZERO past the end), EROFS (the export is
 * read only), EIO, ENOTSUP (FAST_ZERO), ESHUTDOWN, EOVERFLOW (too long).
 */
bool engine_submit(struct engine_request *req);

/* Let go of the memory in iov. Any thread, once per answered READ with NULL
 * buf, or for a payload that is not submitted. */
void engine_release(struct engine_request *req);

/* --- what the cache holds ------------------------------------------------ */

/* What a block is; none of them: it is not there. */
#define ENGINE_CACHED 1U    /* memory holds it */
#define ENGINE_DIRTY 2U     /* and newer than the store does */
#define ENGINE_WRITING 4U   /* a write of it to the store is under way */
#define ENGINE_UNSTABLE 8U  /* written, but no flush has covered that yet */
#define ENGINE_CLASS 0xf00U /* for what the block is of a filesystem */

/*
 * What the cache holds of [offset, offset + length), which lies in the device
 * and is not empty: fills up to `n` extents, one at least, which start at
 * offset and have different flags from one to the next, and returns how many.
 * They may end before the range does: a call looks at a bounded number of
 * pages. Each is as it was at some moment of the call. Any thread; takes short
 * locks.
 */
unsigned engine_cache_status(const struct engine_export *x, uint64_t offset,
	uint64_t length, struct engine_extent *extents, unsigned n);

/* --- stats --------------------------------------------------------------- */

/* The counters of one store, a JSON object as text, to free(); `name` goes
 * in as "name". Any thread; takes short locks. NULL: no memory. */
char *engine_stats_json(struct engine *e, const char *name);

/* Zero peaks and histograms. Any thread. */
void engine_stats_reset(struct engine *e);

#endif
