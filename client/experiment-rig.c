/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-rig.c: see experiment-rig.h.
 *
 * A writer's own work takes no time but for COPY_NS after each BURST: else the
 * first would fill all there is room for before the second came to run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "experiment-rig.h"

#define BURST (UINT64_C(1) << 20)
#define ROLL (UINT64_C(4) << 20)    /* bytes that are trimmed at once */
#define COPY_NS (NSEC_PER_MSEC / 2) /* for each BURST: 2 GB/s */

static void writer_run(struct bed_writer *w);

/* --- a writer ------------------------------------------------------------ */

static void place_next(struct bed_writer *w)
{
	uint64_t bs = w->bed->config.bs, slots = (w->end - w->start) / bs;

	if (w->bed->config.random)
		w->pos =
			w->start + reactor_sim_random(w->bed->loop, slots) * bs;
	else if (w->pos + 2 * bs > w->end) {
		w->pos = w->trimmed = w->start;
		w->again = true;
	} else
		w->pos += bs;
}

static void note_answer(struct bed_writer *w)
{
	uint64_t waited = reactor_now(w->bed->loop) - w->asked_ns;

	if (w->req.error) {
		fprintf(stderr, "simulated write failed: %s\n",
			strerror(-w->req.error));
		abort();
	}
	if (w->req.op == ENGINE_TRIM) {
		w->trimmed += w->req.length;
		return;
	}
	w->written += w->req.length;
	w->burst = waited ? 0 : w->burst + w->req.length;
	if (waited > w->longest_ns)
		w->longest_ns = waited;
	place_next(w);
}

static void answered(struct engine_request *req)
{
	struct bed_writer *w = container_of(req, struct bed_writer, req);

	note_answer(w);
	writer_run(w);
}

static void timer_run(struct reactor_timer *timer)
{
	writer_run(container_of(timer, struct bed_writer, timer));
}

/* Is it time for the next request? Else a timer is set. */
static bool may_go(struct bed_writer *w)
{
	uint64_t now = reactor_now(w->bed->loop), wait = 0;

	if (w->rate && w->due_ns > now)
		wait = w->due_ns - now;
	else if (w->burst >= BURST)
		wait = COPY_NS;
	if (!wait)
		return true;
	w->burst = 0;
	reactor_timer_arm(w->bed->loop, &w->timer, wait);
	return false;
}

static void begin(struct bed_writer *w, enum engine_op op)
{
	struct engine_request *req = &w->req;

	engine_request_init(req);
	req->op = op;
	req->export = w->bed->export;
	req->client = w->client;
	req->reactor = w->bed->loop;
	req->done = answered;
	w->asked_ns = reactor_now(w->bed->loop);
}

static bool ask_trim(struct bed_writer *w)
{
	uint64_t end = w->pos + ROLL < w->end ? w->pos + ROLL : w->end;

	begin(w, ENGINE_TRIM);
	w->req.offset = w->trimmed;
	w->req.length = end - w->trimmed;
	return engine_submit(&w->req);
}

static bool ask(struct bed_writer *w)
{
	struct engine_request *req = &w->req;

	if (w->bed->config.pool && w->again && !w->bed->config.random &&
		w->trimmed < w->pos + w->bed->config.bs)
		return ask_trim(w);
	begin(w, ENGINE_WRITE);
	req->offset = w->pos;
	req->length = w->bed->config.bs;
	if (engine_payload_share(req, &w->bed->buffer))
		abort(); /* no memory for a list of addresses */
	if (w->rate)
		w->due_ns += w->bed->config.bs * NSEC_PER_SEC / w->rate;
	return engine_submit(req);
}

static void writer_run(struct bed_writer *w)
{
	while (!w->stopping && may_go(w)) {
		if (!ask(w))
			return;
		note_answer(w);
	}
	w->stopped = w->stopping;
}

/* --- a bed --------------------------------------------------------------- */

static int set_keys(struct engine_config *k, const struct bed_config *c,
	struct error *error)
{
	char limit[24], background[24], cache[24];
	int err = engine_config_set(k, "store", c->store, error);

	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)c->limit);
	snprintf(background, sizeof(background), "%llu",
		(unsigned long long)c->background);
	snprintf(cache, sizeof(cache), "%llu",
		(unsigned long long)(2 * c->limit + (16 << 20)));
	k->pool_fresh = c->pool;
	if (!err)
		err = engine_config_set(k, "throttle", c->throttle, error);
	if (!err)
		err = engine_config_set(k, "cache-size", cache, error);
	if (!err)
		err = engine_config_set(k, "dirty-limit", limit, error);
	if (!err && c->background)
		err = engine_config_set(
			k, "dirty-background", background, error);
	return err ? err : engine_config_check(k, error);
}

static int add_writers(struct bed *b)
{
	const struct bed_config *c = &b->config;
	struct engine_info info;
	uint64_t part, span;

	engine_export_info(b->export, &info);
	part = info.size / c->writers >> 20 << 20;
	span = c->span ? c->span / c->writers >> 20 << 20 : part;
	for (unsigned i = 0; i < c->writers; i++) {
		struct bed_writer *w = &b->writer[i];
		char name[16];

		snprintf(name, sizeof(name), "dd %u", i);
		w->bed = b;
		w->client = engine_client_get(b->engine, name);
		if (!w->client)
			return -ENOMEM;
		w->start = c->random ? 0 : i * part;
		w->end = c->random ? span * c->writers : w->start + span;
		w->pos = w->start;
		w->rate = c->rate ? c->rate[i] : 0;
		w->due_ns = reactor_now(b->loop);
		w->timer.fn = timer_run;
		reactor_timer_arm(b->loop, &w->timer,
			i + 1 == c->writers ? c->late_ns : 0);
	}
	return 0;
}

static int fill_buffer(struct bed *b)
{
	engine_request_init(&b->buffer);
	b->buffer.op = ENGINE_WRITE;
	b->buffer.length = b->config.bs;
	b->buffer.export = b->export;
	return engine_payload(&b->buffer);
}

int bed_open(struct bed *b, const struct bed_config *config,
	struct reactor *loop, struct error *error)
{
	struct engine_config keys;
	int err;

	*b = (struct bed){.config = *config, .loop = loop};
	engine_config_init(&keys);
	err = set_keys(&keys, config, error);
	if (!err)
		err = engine_open(&keys, &loop, 1, &b->engine, error);
	engine_config_free(&keys);
	if (err)
		return err;
	b->export = engine_export_new(b->engine, false, ENGINE_WRITEBACK);
	b->writer = calloc(config->writers, sizeof(*b->writer));
	if (!b->export || !b->writer || fill_buffer(b) || add_writers(b))
		abort(); /* no memory */
	return 0;
}

static void is_down(struct engine *e, int error, void *arg)
{
	(void)e;
	(void)error;
	*(bool *)arg = true;
}

void bed_close(struct bed *b)
{
	for (unsigned i = 0; i < b->config.writers; i++)
		b->writer[i].stopping = true;
	for (unsigned i = 0; i < b->config.writers; i++)
		while (!b->writer[i].stopped)
			reactor_sim_step(b->loop);
	for (unsigned i = 0; i < b->config.writers; i++)
		engine_client_put(b->writer[i].client);
	engine_release(&b->buffer);
	engine_shutdown(b->engine, 0, is_down, &b->down);
	while (!b->down)
		reactor_sim_step(b->loop);
	engine_close(b->engine);
	free(b->writer);
	free(b->stats);
}

/* --- looking ------------------------------------------------------------- */

void bed_look(struct bed *b)
{
	free(b->stats);
	b->stats = engine_stats_json(b->engine, "bed");
}

double bed_counter(const struct bed *b, const char *name)
{
	char key[48];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = b->stats ? strstr(b->stats, key) : NULL;
	return at ? strtod(at + strlen(key), NULL) : 0;
}

uint64_t bed_written(const struct bed *b)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < b->config.writers; i++)
		sum += b->writer[i].written;
	return sum;
}

bool bed_filled(const struct bed *b)
{
	for (unsigned i = 0; i < b->config.writers; i++)
		if (!b->writer[i].again)
			return false;
	return true;
}
