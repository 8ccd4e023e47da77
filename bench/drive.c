/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drive.c: the engine's own speed: requests with no socket in between.
 *
 *   drive [--op=read|write] [--bs=SIZE] [--count=N] [--threads=N]
 *         [--span=SIZE] [--random] [--payload] [--scatter=N] [KEY=VALUE...]
 *
 * Fills the span, then times `count` requests from each of `threads` foreign
 * threads, all hits: each is answered inside engine_submit(). Prints
 * requests/s, and ns and ns of processor time per request. Under `valgrind
 * --tool=callgrind --toggle-collect=engine_submit` it counts the instructions
 * of a request.
 *
 * --payload: as weir-server does it, data is received into and sent from the
 * cache's own memory, so that nothing is copied. What multipage=off costs:
 *
 *   drive --op=write --bs=1M --payload multipage=off
 *
 * --scatter: instead of filling the span, writes N times at random in it, and
 * tells the reads of the store before and after. What subpage=off costs:
 *
 *   drive --scatter=300000 --count=100000 --random --bs=1K --span=512M \
 *         page-size=4K block-size=1K store=mem:512M subpage=off
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "engine.h"

struct drive {
	enum engine_op op;
	uint64_t bs, count, span;
	unsigned threads;
	bool random, payload;
	uint64_t scatter;
	struct engine_config config;
	struct engine *engine;
	struct engine_export *export;
	pthread_barrier_t start;
};

struct thread {
	struct drive *d;
	pthread_t id;
	unsigned number;
	uint64_t waited; /* requests that were not hits */
	sem_t done;
};

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what, int err)
{
	fprintf(stderr, "drive: %s: %s\n", what, strerror(-err));
	exit(2);
}

struct pending {
	struct engine_request req;
	struct thread *thread;
};

static void answered(struct engine_request *req)
{
	struct pending *p = (struct pending *)(void *)req;

	sem_post(&p->thread->done);
}

static void give_memory(struct pending *p)
{
	p->req.buf = NULL;
	if (p->req.op == ENGINE_WRITE && engine_payload(&p->req))
		fail("payload", -ENOMEM);
}

/* One request, to its end. */
static void request(struct thread *t, struct pending *p, enum engine_op op,
	uint64_t offset, void *buf)
{
	engine_request_init(&p->req);
	p->thread = t;
	p->req.op = op;
	p->req.offset = offset;
	p->req.length = t->d->bs;
	p->req.export = t->d->export;
	p->req.buf = buf;
	p->req.done = answered;
	if (t->d->payload)
		give_memory(p);
	if (!engine_submit(&p->req)) {
		t->waited++;
		while (sem_wait(&t->done))
			;
	}
	if (p->req.error)
		fail("request", p->req.error);
	if (t->d->payload && op == ENGINE_READ)
		engine_release(&p->req);
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void *run(void *arg)
{
	struct thread *t = arg;
	struct drive *d = t->d;
	uint64_t slots = d->span / d->bs, at = slots / d->threads * t->number;
	uint64_t state = 88172645463325252u + t->number;
	struct pending *p = malloc(sizeof(*p));
	void *buf = aligned_alloc(4096, (d->bs + 4095) / 4096 * 4096);

	if (!p || !buf)
		fail("start", -ENOMEM);
	memset(buf, 1, d->bs);
	pthread_barrier_wait(&d->start);
	for (uint64_t i = 0; i < d->count; i++) {
		at = d->random ? next_random(&state) % slots : (at + 1) % slots;
		request(t, p, d->op, at * d->bs, buf);
	}
	pthread_barrier_wait(&d->start);
	free(buf);
	free(p);
	return NULL;
}

static void fill(struct drive *d)
{
	struct thread t = {.d = d};
	struct pending *p = malloc(sizeof(*p));
	void *buf = calloc(1, d->bs);
	uint64_t slots = d->span / d->bs, state = 1;

	if (!p || !buf)
		fail("fill", -ENOMEM);
	sem_init(&t.done, 0, 0);
	for (uint64_t i = 0; i < d->scatter; i++)
		request(&t, p, ENGINE_WRITE,
			next_random(&state) % slots * d->bs, buf);
	for (uint64_t i = 0; i < slots && !d->scatter; i++)
		request(&t, p, ENGINE_WRITE, i * d->bs, buf);
	free(buf);
	free(p);
}

static unsigned long long store_reads(struct drive *d)
{
	static const char key[] = "\"store_reads\":";
	char *json = engine_stats_json(d->engine, "drive");
	char *at = json ? strstr(json, key) : NULL;
	unsigned long long n = at ? strtoull(at + strlen(key), NULL, 10) : 0;

	free(json);
	return n;
}

static void measure(struct drive *d)
{
	struct thread *t = calloc(d->threads, sizeof(*t));
	uint64_t waited = 0;
	double took, cpu;

	pthread_barrier_init(&d->start, NULL, d->threads + 1);
	for (unsigned i = 0; i < d->threads; i++) {
		t[i].d = d;
		t[i].number = i;
		sem_init(&t[i].done, 0, 0);
		pthread_create(&t[i].id, NULL, run, &t[i]);
	}
	pthread_barrier_wait(&d->start);
	took = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	pthread_barrier_wait(&d->start);
	took = now(CLOCK_MONOTONIC) - took;
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	for (unsigned i = 0; i < d->threads; i++) {
		pthread_join(t[i].id, NULL);
		waited += t[i].waited;
	}
	printf("%s bs=%llu threads=%u: %.0f requests/s, %.0f ns each, "
	       "%.0f ns of CPU, %llu of %llu waited\n",
		d->op == ENGINE_READ ? "read" : "write",
		(unsigned long long)d->bs, d->threads,
		(double)(d->count * d->threads) / took,
		took * 1e9 / (double)d->count,
		cpu * 1e9 / (double)(d->count * d->threads),
		(unsigned long long)waited,
		(unsigned long long)(d->count * d->threads));
	free(t);
}

static void *loop_thread(void *loop)
{
	reactor_run(loop);
	return NULL;
}

static void stopped(struct engine *e, int error, void *arg)
{
	(void)e;
	if (error)
		fail("shutdown", error);
	reactor_stop(arg);
}

static void drive(struct drive *d)
{
	struct reactor *loop;
	struct error error;
	pthread_t id;

	if (engine_config_check(&d->config, &error) ||
		reactor_live_new(0, REACTOR_AUTO, &loop, &error) ||
		engine_open(&d->config, &loop, 1, &d->engine, &error)) {
		fprintf(stderr, "drive: %s\n", error.text);
		exit(1);
	}
	d->export = engine_export_new(d->engine, false, d->config.cache);
	pthread_create(&id, NULL, loop_thread, loop);
	fill(d);
	if (d->scatter)
		printf("%llu reads of the store\n", store_reads(d));
	measure(d);
	if (d->scatter)
		printf("%llu reads of the store\n", store_reads(d));
	engine_shutdown(d->engine, 0, stopped, loop);
	pthread_join(id, NULL);
	engine_close(d->engine);
	reactor_free(loop);
}

static void set_key(struct drive *d, char *word)
{
	char *equals = strchr(word, '=');
	struct error error;

	if (!equals) {
		fprintf(stderr, "drive: %s: not KEY=VALUE\n", word);
		exit(1);
	}
	*equals = '\0';
	if (engine_config_set(&d->config, word, equals + 1, &error)) {
		fprintf(stderr, "drive: %s\n", error.text);
		exit(1);
	}
}

static uint64_t size_arg(const char *text)
{
	uint64_t n;

	if (size_parse(text, &n) || !n) {
		fprintf(stderr, "drive: %s: not a size\n", text);
		exit(1);
	}
	return n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"op", required_argument, NULL, 'o'},
		{"bs", required_argument, NULL, 'b'},
		{"count", required_argument, NULL, 'c'},
		{"threads", required_argument, NULL, 't'},
		{"span", required_argument, NULL, 's'},
		{"random", no_argument, NULL, 'r'},
		{"payload", no_argument, NULL, 'p'},
		{"scatter", required_argument, NULL, 'w'}, {0}};
	struct drive d = {.op = ENGINE_READ,
		.bs = 4096,
		.count = 1000000,
		.span = 64 << 20,
		.threads = 1};
	int c;

	engine_config_init(&d.config);
	engine_config_set(&d.config, "store", "mem:1G", NULL);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			d.op = strcmp(optarg, "write") ? ENGINE_READ
						       : ENGINE_WRITE;
			break;
		case 'b':
			d.bs = size_arg(optarg);
			break;
		case 'c':
			d.count = size_arg(optarg);
			break;
		case 't':
			d.threads = (unsigned)size_arg(optarg);
			break;
		case 's':
			d.span = size_arg(optarg);
			break;
		case 'r':
			d.random = true;
			break;
		case 'p':
			d.payload = true;
			break;
		case 'w':
			d.scatter = size_arg(optarg);
			break;
		default:
			return 1;
		}
	}
	for (int i = optind; i < argc; i++)
		set_key(&d, argv[i]);
	drive(&d);
	engine_config_free(&d.config);
	return 0;
}
