/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-load.c: see experiment-load.h.
 *
 *   start ─> depth requests ─(each answer: the next)─> none left ─> flush
 *     ─> shutdown ─> the loop stops
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "experiment-load.h"
#include "placement/placement.h"

#define POOL_SIZE (UINT64_C(4) << 30)
#define SEED 1
#define OPENED_NS (60 * NSEC_PER_SEC)

struct load {
	const struct load_config *config;
	struct reactor *loop;
	struct reactor_task start;
	struct engine *engine;
	struct engine_export *export;
	struct engine_request buffer, flush;
	struct load_slot *slot;
	uint64_t size, next, asked, answered, random;
	uint64_t start_ns, end_ns;
	unsigned inflight;
	int error;
	bool down;
};

struct load_slot {
	struct load *load;
	struct engine_request req;
};

/* --- the end -------------------------------------------------------------- */

static void is_down(struct engine *e, int error, void *arg)
{
	struct load *l = arg;

	(void)e;
	if (!l->error)
		l->error = error;
	l->down = true;
	if (l->config->live)
		reactor_stop(l->loop);
}

static void finish(struct load *l)
{
	l->end_ns = reactor_now(l->loop);
	if (l->buffer.niov)
		engine_release(&l->buffer);
	engine_shutdown(l->engine, 0, is_down, l);
}

static void flushed(struct engine_request *req)
{
	struct load *l = container_of(req, struct load, flush);

	if (!l->error)
		l->error = req->error;
	finish(l);
}

static void all_answered(struct load *l)
{
	if (l->config->op != ENGINE_WRITE || l->config->flags & ENGINE_FUA) {
		finish(l);
		return;
	}
	engine_request_init(&l->flush);
	l->flush.op = ENGINE_FLUSH;
	l->flush.export = l->export;
	l->flush.reactor = l->loop;
	l->flush.done = flushed;
	if (engine_submit(&l->flush))
		flushed(&l->flush);
}

/* --- requests ------------------------------------------------------------- */

static bool may_go(const struct load *l)
{
	const struct load_config *c = l->config;

	if (l->error || l->asked + c->bs > c->bytes)
		return false;
	return !c->seconds ||
		reactor_now(l->loop) - l->start_ns < c->seconds * NSEC_PER_SEC;
}

static uint64_t place(struct load *l)
{
	uint64_t bs = l->config->bs, at = l->next;

	if (l->config->random)
		return random_below(&l->random, l->size / bs) * bs;
	l->next = at + 2 * bs > l->size ? 0 : at + bs;
	return at;
}

static void note_answer(struct load_slot *s)
{
	struct load *l = s->load;

	if (s->req.error && !l->error)
		l->error = s->req.error;
	if (!s->req.error && s->req.op == ENGINE_READ)
		engine_release(&s->req);
	l->answered += s->req.length;
}

static void slot_run(struct load_slot *s);

static void answered(struct engine_request *req)
{
	struct load_slot *s = container_of(req, struct load_slot, req);

	note_answer(s);
	slot_run(s);
}

static bool ask(struct load_slot *s)
{
	struct load *l = s->load;
	struct engine_request *req = &s->req;

	engine_request_init(req);
	req->op = l->config->op;
	req->flags = l->config->flags;
	req->offset = place(l);
	req->length = l->config->bs;
	req->export = l->export;
	req->reactor = l->loop;
	req->done = answered;
	l->asked += req->length;
	if (req->op == ENGINE_WRITE && engine_payload_share(req, &l->buffer)) {
		req->error = -ENOMEM;
		return true;
	}
	return engine_submit(req);
}

static void slot_run(struct load_slot *s)
{
	struct load *l = s->load;

	while (may_go(l)) {
		if (!ask(s))
			return;
		note_answer(s);
	}
	if (!--l->inflight)
		all_answered(l);
}

static void start(struct reactor_task *task)
{
	struct load *l = container_of(task, struct load, start);

	l->start_ns = reactor_now(l->loop);
	l->inflight = l->config->depth;
	for (unsigned i = 0; i < l->config->depth; i++)
		slot_run(&l->slot[i]);
}

/* --- open and close ------------------------------------------------------- */

/* An empty pool in a file, of which nothing is allocated. */
static int make_pool(const struct load_config *c, struct error *error)
{
	struct pool_geometry g = {.logical_size = POOL_SIZE};
	CLEANUP_CLOSE int fd =
		open(c->pool, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct store *s;
	int err;

	if (fd < 0 || ftruncate(fd, (off_t)pool_space_for(POOL_SIZE)))
		return error_set(error, -errno, "%s: cannot be made: %s",
			c->pool, strerror(errno));
	err = store_open(c->pool_store, 0, &s, error);
	if (err)
		return err;
	err = pool_format(s, &g, error);
	store_close(s);
	return err;
}

static int open_engine(struct load *l, struct error *error)
{
	const struct load_config *c = l->config;
	struct engine_config keys;
	int err;

	engine_config_init(&keys);
	err = engine_config_set(&keys, "store", c->store, error);
	for (unsigned i = 0; i < 4 && c->key[i] && !err; i++)
		err = engine_config_set(&keys, c->key[i], c->value[i], error);
	if (!err)
		err = engine_config_check(&keys, error);
	if (!err)
		err = engine_open(&keys, &l->loop, 1, &l->engine, error);
	if (!err)
		l->export = engine_export_new(l->engine, false, keys.cache);
	engine_config_free(&keys);
	if (!err && !l->export)
		abort(); /* no memory */
	return err;
}

static void fill_buffer(struct load *l)
{
	engine_request_init(&l->buffer);
	l->buffer.op = ENGINE_WRITE;
	l->buffer.length = l->config->bs;
	l->buffer.export = l->export;
	if (engine_payload(&l->buffer))
		abort(); /* no memory */
	for (unsigned i = 0; i < l->buffer.niov; i++)
		memset(l->buffer.iov[i].iov_base, 0xa5,
			l->buffer.iov[i].iov_len);
}

static int open_all(struct load *l, struct error *error)
{
	const struct load_config *c = l->config;
	struct engine_info info;
	int err = c->pool ? make_pool(c, error) : 0;

	if (!err && c->live)
		err = reactor_live_new(0, REACTOR_AUTO, &l->loop, error);
	else if (!err)
		l->loop = reactor_sim_new(SEED);
	if (err)
		return err;
	l->slot = calloc(c->depth, sizeof(*l->slot));
	if (!l->loop || !l->slot)
		return error_set(error, -ENOMEM, "out of memory");
	err = open_engine(l, error);
	if (err)
		return err;
	engine_export_info(l->export, &info);
	l->size = info.size;
	for (unsigned i = 0; i < c->depth; i++)
		l->slot[i].load = l;
	if (c->op == ENGINE_WRITE)
		fill_buffer(l);
	return 0;
}

static void run(struct load *l)
{
	/* The model still has what was read at the opening to do. */
	if (!l->config->live)
		reactor_sim_run_until(l->loop, OPENED_NS);
	l->start.fn = start;
	reactor_post(l->loop, &l->start);
	if (l->config->live)
		reactor_run(l->loop);
	while (!l->down)
		reactor_sim_step(l->loop);
	engine_close(l->engine);
}

int load_run(const struct load_config *config, struct load_result *out,
	struct error *error)
{
	struct load l = {.config = config, .random = SEED};
	int err = open_all(&l, error);

	if (!err) {
		run(&l);
		if (l.error)
			err = error_set(error, l.error, "store %s: %s",
				config->store, strerror(-l.error));
	}
	*out = (struct load_result){l.answered, l.end_ns - l.start_ns};
	free(l.slot);
	if (l.loop)
		reactor_free(l.loop);
	return err;
}
