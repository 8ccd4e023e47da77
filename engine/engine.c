/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.c: opening and closing an engine, exports and clients.
 *
 * Made from the right to the left of the request path (store, placement,
 * cache, writeback, throttle), freed from the left to the right.
 *
 * Shutdown: refuse new requests, wait until those inside are out and what they
 * had read in is there, flush until it goes through or the deadline, let the
 * flusher come to rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "engine-impl.h"

#define PAYLOAD_SPACE (UINT64_C(8) << 30) /* address space, bytes */
#define DIRECT_SPACE (UINT64_C(16) << 20) /* memory of direct requests, bytes */
#define POLL_NS NSEC_PER_MSEC
#define RETRY_NS (500 * NSEC_PER_MSEC)

/* --- open ---------------------------------------------------------------- */

static int check_sizes(const struct engine_config *c,
	const struct store_info *info, struct error *error)
{
	if (!info->size)
		return error_set(
			error, -EINVAL, "store %s: is empty", c->store);
	if (info->align > c->block_size)
		return error_set(error, -EINVAL,
			"block-size=%u: store %s can address no less than "
			"%u bytes",
			c->block_size, c->store, info->align);
	return 0;
}

/* Of the machine, bytes: what cache-size may grow to. */
static uint64_t memory_size(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

/* Direct I/O goes from and to memory that the kernel knows, if it will. */
static void fix_memory(struct engine *e)
{
	struct iovec memory;
	char size[16];
	int err = 0;

	cache_direct_memory(e->cache, &memory);
	for (unsigned i = 0; memory.iov_len && i < e->nloops && !err; i++)
		err = reactor_fix(e->loops[i], &memory);
	if (err)
		log_warning("store %s: no registered buffers for direct I/O "
			    "(%s; each of %u loops locks %s, see ulimit -l): "
			    "it costs a little more",
			e->config.store, strerror(-err), e->nloops,
			size_format(memory.iov_len, size));
}

static void unfix_memory(struct engine *e)
{
	struct iovec memory;

	if (!e->cache)
		return;
	cache_direct_memory(e->cache, &memory);
	for (unsigned i = 0; memory.iov_len && i < e->nloops; i++)
		reactor_unfix(e->loops[i], &memory);
}

static int build(struct engine *e, struct error *error)
{
	const struct engine_config *k = &e->config;
	struct cache_config cache = {
		.clock = e->loops[0],
		.size = e->placement->info.size,
		.cache_size = k->cache_size,
		.room = memory_size(),
		.extra = PAYLOAD_SPACE,
		.readahead = k->readahead,
		.populate = k->populate,
		.page_size = k->page_size,
		.block_size = k->block_size,
		.subpage = k->subpage,
		.direct =
			k->direct || k->cache == ENGINE_NONE ? DIRECT_SPACE : 0,
	};
	struct writeback_config writeback = {
		.dirty_limit = k->dirty_limit,
		.dirty_background = k->dirty_background,
		.dirty_expire_ns = k->dirty_expire_ns,
		.error_timeout_ns = k->error_timeout_ns,
		.inflight = k->writeback_inflight,
		.name = k->store,
	};
	struct throttle_config throttle = engine_throttle_config(k);
	char size[16];
	int err = cache_new(&cache, e->placement, &e->cache);

	atomic_init(&e->multipage, k->multipage);
	atomic_init(&e->detect_zeroes, k->detect_zeroes);

	if (!err)
		err = writeback_new(&writeback, e->cache, e->placement,
			e->loops[0], &e->writeback);
	if (!err)
		err = throttle_new(e->cache, e->writeback, e->loops[0],
			&throttle, &e->throttle);
	if (err)
		return error_set(error, err, "cache-size=%s: out of memory",
			size_format(k->cache_size, size));
	cache_set_wake(e->cache, throttle_wake, e->throttle);
	fix_memory(e);
	return 0;
}

static int open_store(struct engine *e, struct error *error)
{
	const struct engine_config *k = &e->config;
	struct placement_config config = {
		.spec = k->store,
		.flags = k->readonly ? STORE_OPEN_READONLY : 0,
		.home = e->loops[0],
		.immediate = k->placement == ENGINE_IMMEDIATE,
		.serial = k->append == ENGINE_APPEND_SERIAL,
		.sabotage = k->pool_sabotage,
		.fresh = k->pool_fresh,
	};
	int err = placement_open(&config, &e->placement, error);

	return err ? err : check_sizes(k, &e->placement->info, error);
}

/* Give each loop that shares its stripe with no other that one for itself. */
static void own_stripes(struct engine *e)
{
	unsigned users[LOOP_STRIPES] = {0};

	for (unsigned i = 0; i < e->nloops; i++)
		users[e->loops[i]->id % LOOP_STRIPES]++;
	for (unsigned i = 0; i < e->nloops; i++) {
		unsigned n = e->loops[i]->id % LOOP_STRIPES;

		if (users[n] == 1)
			e->stripe[n].owner = e->loops[i];
	}
}

static struct engine *engine_alloc(
	const struct engine_config *c, struct reactor *const *loops, unsigned n)
{
	struct engine *e = aligned_alloc(64, sizeof(*e));

	if (!e)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->config = *c;
	pthread_mutex_init(&e->lock, NULL);
	list_init(&e->exports);
	e->config.store = strdup(c->store);
	e->current = e->config;
	e->loops = calloc(n, sizeof(struct reactor *));
	if (!e->config.store || !e->loops) {
		engine_close(e);
		return NULL;
	}
	memcpy(e->loops, loops, n * sizeof(struct reactor *));
	e->nloops = n;
	own_stripes(e);
	e->opened_ns = reactor_now(loops[0]);
	return e;
}

int engine_open(const struct engine_config *c, struct reactor *const *loops,
	unsigned n, struct engine **out, struct error *error)
{
	struct engine *e = engine_alloc(c, loops, n);
	int err;

	if (!e)
		return error_set(error, -ENOMEM, "out of memory");
	err = open_store(e, error);
	if (!err)
		err = build(e, error);
	if (err) {
		engine_close(e);
		return err;
	}
	*out = e;
	return 0;
}

/* --- close --------------------------------------------------------------- */

void engine_close(struct engine *e)
{
	if (!e)
		return;
	unfix_memory(e);
	throttle_free(e->throttle);
	writeback_free(e->writeback);
	cache_free(e->cache);
	placement_close(e->placement);
	list_for_each_safe (at, &e->exports)
		free(list_entry(at, struct engine_export, link));
	pthread_mutex_destroy(&e->lock);
	free(e->config.store);
	free(e->loops);
	free(e);
}

static void shutdown_placed(void *arg)
{
	struct engine *e = arg;

	if (e->shutdown.expired)
		return;
	reactor_timer_cancel(e->loops[0], &e->shutdown.deadline);
	e->shutdown.done(e, e->shutdown.error, e->shutdown.arg);
}

/* The flusher is at rest: now what is on its right. */
static void shutdown_done(void *arg)
{
	struct engine *e = arg;

	placement_quiesce(e->placement, shutdown_placed, e);
}

/* Is there nothing that trying again could still make durable? */
static bool hopeless(struct engine *e)
{
	return writeback_lost(e->writeback) && !cache_charged(e->cache);
}

static void shutdown_flushed(struct writeback_sync *s)
{
	struct engine *e = container_of(s, struct engine, shutdown.sync);
	uint64_t deadline = e->shutdown.deadline_ns;

	e->shutdown.flushing = false;
	if (e->shutdown.expired)
		return; /* `done` was told */
	if (s->error && !hopeless(e) &&
		!(deadline && reactor_now(e->loops[0]) >= deadline)) {
		/* Try again until it goes through. */
		reactor_timer_arm(e->loops[0], &e->shutdown.poll, RETRY_NS);
		return;
	}
	if (s->error)
		engine_log_dirty(e);
	if (!e->shutdown.error)
		e->shutdown.error = s->error;
	writeback_quiesce(e->writeback, shutdown_done, e);
}

static void shutdown_poll(struct reactor_timer *timer)
{
	struct engine *e = container_of(timer, struct engine, shutdown.poll);

	if (stats_requests_inside(e) || cache_filling(e->cache)) {
		reactor_timer_arm(e->loops[0], &e->shutdown.poll, POLL_NS);
		return;
	}
	e->shutdown.flushing = true;
	e->shutdown.sync = (struct writeback_sync){
		.reactor = e->loops[0], .done = shutdown_flushed};
	writeback_flush(e->writeback, &e->shutdown.sync);
}

/* Time is up: say what is lost. The engine can't be freed: a write or flush
 * may still be under way; the process is about to end. */
static void shutdown_expired(struct reactor_timer *timer)
{
	struct engine *e =
		container_of(timer, struct engine, shutdown.deadline);

	reactor_timer_cancel(e->loops[0], &e->shutdown.poll);
	engine_log_dirty(e);
	e->shutdown.expired = true;
	e->shutdown.done(e, -ETIMEDOUT, e->shutdown.arg);
}

static void shutdown_start(struct reactor_task *task)
{
	struct engine *e = container_of(task, struct engine, shutdown.start);
	struct reactor *loop = e->loops[0];
	uint64_t now = reactor_now(loop);

	e->shutdown.poll.fn = shutdown_poll;
	if (e->shutdown.deadline_ns)
		reactor_timer_arm(loop, &e->shutdown.deadline,
			e->shutdown.deadline_ns > now
				? e->shutdown.deadline_ns - now
				: 0);
	shutdown_poll(&e->shutdown.poll);
}

void engine_shutdown(struct engine *e, uint64_t timeout_ns,
	void (*done)(struct engine *e, int error, void *arg), void *arg)
{
	atomic_store(&e->closing, true);
	e->shutdown.done = done;
	e->shutdown.arg = arg;
	if (timeout_ns)
		e->shutdown.deadline_ns = reactor_now(e->loops[0]) + timeout_ns;
	e->shutdown.deadline.fn = shutdown_expired;
	e->shutdown.start.fn = shutdown_start;
	reactor_post(e->loops[0], &e->shutdown.start);
}

void engine_shutdown_within(struct engine *e, uint64_t timeout_ns)
{
	if (!timeout_ns)
		return;
	e->shutdown.deadline_ns = reactor_now(e->loops[0]) + timeout_ns;
	reactor_timer_arm(e->loops[0], &e->shutdown.deadline, timeout_ns);
}

void engine_rest(struct engine *e)
{
	throttle_rest(e->throttle);
	store_rest(e->placement->store);
}

void engine_log_dirty(struct engine *e)
{
	writeback_log_dirty(e->writeback);
}

struct store *engine_store(struct engine *e)
{
	return e->placement->store;
}

/* --- exports and clients ------------------------------------------------- */

struct engine_export *engine_export_new(
	struct engine *e, bool readonly, enum engine_cache_mode cache)
{
	struct engine_export *x = malloc(sizeof(*x));

	if (!x)
		return NULL;
	*x = (struct engine_export){
		.engine = e,
		.readonly = readonly || e->placement->info.readonly,
		.cache = cache,
	};

	SCOPED_LOCK(&e->lock);

	list_push_tail(&e->exports, &x->link);
	return x;
}

void engine_export_free(struct engine_export *x)
{
	struct engine *e = x->engine;

	pthread_mutex_lock(&e->lock);
	list_remove(&x->link);
	pthread_mutex_unlock(&e->lock);
	free(x);
}

void engine_export_info(const struct engine_export *x, struct engine_info *i)
{
	const struct engine *e = x->engine;
	const struct store_info *s = &e->placement->info;

	*i = (struct engine_info){
		.size = s->size,
		.min_block = 1,
		.preferred_block = e->config.block_size,
		.max_block = ENGINE_MAX_REQUEST,
		.readonly = x->readonly,
		.can_trim = s->can_trim && !x->readonly,
		.can_zero = !x->readonly,
		.can_fast_zero = s->can_zero && !x->readonly,
		.inflight_bytes = e->config.inflight_bytes,
	};
}

/*
 * To a front end a client is opaque; here it is the throttle's. The two names
 * are one object.
 */
struct engine_client *engine_client_get(struct engine *e, const char *identity)
{
	return (struct engine_client *)throttle_client_get(
		e->throttle, identity);
}

void engine_client_put(struct engine_client *c)
{
	throttle_client_put((struct throttle_client *)c);
}
