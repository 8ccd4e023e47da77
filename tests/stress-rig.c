/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress-rig.c: loops, threads and actors.
 *
 * An actor has one request under way. A foreign thread's waits for its
 * answer; a loop's goes on from the answer.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress.h"

void stress_fail(struct stress *s, const char *fmt, ...)
{
	va_list args;

	pthread_mutex_lock(&s->lock);
	if (!s->why[0]) {
		va_start(args, fmt);
		vsnprintf(s->why, sizeof(s->why), fmt, args);
		va_end(args);
	}
	pthread_mutex_unlock(&s->lock);
	atomic_store(&s->failed, true);
}

/* --- engine -------------------------------------------------------------- */

static void *run_loop(void *arg)
{
	reactor_run(arg);
	return NULL;
}

static void die(const char *what, const struct error *error)
{
	fprintf(stderr, "stress: %s: %s\n", what, error->text);
	exit(1);
}

void stress_open(struct stress *s, enum reactor_backend backend,
	const char *spec, bool plain)
{
	struct engine_config c;
	struct error error = {""};

	memset(s, 0, sizeof(*s));
	pthread_mutex_init(&s->lock, NULL);
	sem_init(&s->down, 0, 0);
	pthread_barrier_init(&s->barrier, NULL, STRESS_THREADS);
	for (unsigned i = 0; i < STRESS_LOOPS; i++) {
		if (reactor_live_new(i, backend, &s->loop[i], &error) != 0)
			die("loop", &error);
	}
	engine_config_init(&c);
	c.store = strdup(spec);
	c.cache_size = 1U << 20;
	c.dirty_limit = 256U << 10;
	c.page_size = 16U << 10;
	c.subpage = !plain;
	c.multipage = !plain;
	c.throttle = plain ? ENGINE_LEGACY : ENGINE_IOLESS;
	if (engine_config_check(&c, &error) != 0)
		die("config", &error);
	if (engine_open(&c, s->loop, STRESS_LOOPS, &s->engine, &error) != 0)
		die("open", &error);
	engine_config_free(&c);
	for (unsigned i = 0; i < STRESS_EXPORTS; i++) {
		s->export[i] = engine_export_new(s->engine, false,
			i == 2           ? ENGINE_WRITETHROUGH
				: i == 3 ? ENGINE_NONE
					 : ENGINE_WRITEBACK);
		assert(s->export[i]);
	}
	for (unsigned i = 0; i < STRESS_LOOPS; i++)
		pthread_create(&s->thread[i], NULL, run_loop, s->loop[i]);
}

static void is_down(struct engine *e, int error, void *arg)
{
	struct stress *s = arg;

	(void)e;
	s->down_error = error;
	sem_post(&s->down);
}

void stress_close(struct stress *s)
{
	engine_shutdown(s->engine, 0, is_down, s);
	sem_wait(&s->down);
	if (s->down_error)
		stress_fail(s, "shutdown ended with %d", s->down_error);
	for (unsigned i = 0; i < STRESS_LOOPS; i++) {
		reactor_stop(s->loop[i]);
		pthread_join(s->thread[i], NULL);
	}
	engine_close(s->engine);
	for (unsigned i = 0; i < STRESS_LOOPS; i++)
		reactor_free(s->loop[i]);
	pthread_barrier_destroy(&s->barrier);
	pthread_mutex_destroy(&s->lock);
	sem_destroy(&s->down);
}

/* --- actors -------------------------------------------------------------- */

static void actor_go(struct actor *a);

static void actor_done(struct engine_request *req)
{
	struct actor *a = container_of(req, struct actor, req);

	if (!a->loop) {
		sem_post(&a->answered);
		return;
	}
	if (!reactor_is_current(a->loop))
		stress_fail(a->stress, "answered on another loop");
	a->check(a);
	actor_go(a);
}

void actor_ask(
	struct actor *a, enum engine_op op, uint64_t offset, uint64_t length)
{
	struct engine_request *req = &a->req;

	engine_request_init(req);
	req->op = op;
	req->offset = offset;
	req->length = length;
	req->export = a->stress->export[a->number % 2];
	req->reactor = a->loop;
	req->done = actor_done;
	if (op == ENGINE_WRITE) {
		a->id = a->number << 16 | (++a->count & 0xffff);
		if (random_below(&a->random, 2) && engine_payload(req) == 0) {
			uint64_t at = offset;

			for (unsigned i = 0; i < req->niov; i++) {
				data_fill(req->iov[i].iov_base, a->id, at,
					req->iov[i].iov_len);
				at += req->iov[i].iov_len;
			}
			return;
		}
		data_fill(a->buf, a->id, offset, length);
	}
	req->buf = a->buf;
}

/* Act until something has to be waited for. */
static void actor_go(struct actor *a)
{
	while (a->next(a)) {
		if (!engine_submit(&a->req)) {
			if (a->loop)
				return;
			sem_wait(&a->answered);
		}
		a->check(a);
	}
	if (a->loop)
		sem_post(&a->answered);
}

static void actor_start(struct reactor_task *task)
{
	actor_go(container_of(task, struct actor, start));
}

static void *actor_thread(void *arg)
{
	actor_go(arg);
	return NULL;
}

/* Something else every few milliseconds, until the round is over. */
static void change_settings(struct stress *s)
{
	static const struct engine_setting what[] = {
		{"dirty-limit", "10%"},
		{"dirty-limit", "8K"},
		{"dirty-limit", "50%"},
		{"cache-size", "512K"},
		{"cache-size", "2M"},
		{"dirty-time", "1ms"},
		{"dirty-time", "off"},
		{"dirty-expire", "1ms"},
		{"dirty-expire", "30s"},
		{"subpage", "off"},
		{"subpage", "on"},
		{"multipage", "off"},
		{"multipage", "on"},
		{"readahead", "off"},
		{"readahead", "256K"},
		{"detect-zeroes", "unmap"},
		{"detect-zeroes", "off"},
	};
	const struct timespec pause = {.tv_nsec = 3000000};
	uint64_t random = 1;
	struct error error;

	while (reactor_now(s->loop[0]) < s->end_ns) {
		unsigned i = (unsigned)random_below(
			&random, sizeof(what) / sizeof(what[0]));

		if (engine_set(s->engine, &what[i], 1, &error) != 0)
			stress_fail(s, "%s", error.text);
		if (i % 4 == 0)
			engine_drop(s->engine);
		nanosleep(&pause, NULL);
	}
}

void stress_run(struct stress *s, struct actor *actors, bool foreign_only,
	bool (*next)(struct actor *a), void (*check)(struct actor *a))
{
	unsigned n = foreign_only ? STRESS_THREADS : STRESS_ACTORS;
	pthread_t thread[STRESS_THREADS];

	s->end_ns = reactor_now(s->loop[0]) + STRESS_NS;
	for (unsigned i = 0; i < n; i++) {
		struct actor *a = &actors[i];

		a->stress = s;
		a->number = i;
		a->random = i;
		a->next = next;
		a->check = check;
		a->loop = i < STRESS_THREADS ? NULL : s->loop[i % STRESS_LOOPS];
		a->start.fn = actor_start;
		a->buf = malloc(STRESS_SIZE);
		a->now = calloc(STRESS_SECTORS, sizeof(a->now[0]));
		assert(a->buf && a->now);
		sem_init(&a->answered, 0, 0);
		if (a->loop)
			reactor_post(a->loop, &a->start);
		else
			pthread_create(&thread[i], NULL, actor_thread, a);
	}
	if (s->changing)
		change_settings(s);
	for (unsigned i = 0; i < n; i++) {
		if (actors[i].loop)
			sem_wait(&actors[i].answered);
		else
			pthread_join(thread[i], NULL);
	}
}

/* --- one request --------------------------------------------------------- */

int stress_ask(struct stress *s, enum engine_op op, uint64_t offset,
	uint64_t length, void *buf)
{
	struct actor a = {.stress = s};

	sem_init(&a.answered, 0, 0);
	actor_ask(&a, op, offset, length);
	a.req.buf = buf;
	if (!engine_submit(&a.req))
		sem_wait(&a.answered);
	sem_destroy(&a.answered);
	return a.req.error;
}
