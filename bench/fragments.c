/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fragments.c: what interleaved sequential writers leave of a pool.
 *
 *   fragments [--streams=N] [--size=SIZE] [--fill=PERCENT] [--model=SIM]
 *             [KEY=VALUE...]
 *
 * N writers (10) each write SIZE (256M) in order, 1M at a time and at once, to
 * parts of a thin device far apart; then all is flushed, and the pool is
 * PERCENT (50) full. Prints, with placement=delalloc and with immediate, the
 * pool's extents and their average length, and how fast the writing was and is
 * the reading back, stream after stream with no cache, on a simulated disk
 * (hdd). Time is simulated too: it takes what the copying takes, and SIZE * N
 * of memory.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/list.h"
#include "base/size.h"
#include "engine.h"
#include "placement/placement.h"

#define PIECE (UINT64_C(1) << 20)
#define SPACING_MIN (UINT64_C(128) << 20)

struct bench {
	unsigned streams, fill;
	uint64_t size; /* of a stream, bytes */
	const char *model;
	char **keys;
	int nkeys;
	/* of the run */
	const char *placement;
	int fd;
	struct reactor *loop;
	struct engine *engine;
	struct engine_export *export;
	enum engine_op op;
	unsigned left; /* streams that go on */
	bool down;
	void *buf;
};

struct stream {
	struct engine_request req;
	struct reactor_task task;
	struct bench *b;
	uint64_t at, end; /* bytes of the device */
};

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "fragments: %s: %s\n", what, why);
	exit(2);
}

/* --- the pool ------------------------------------------------------------ */

static uint64_t data_size(const struct bench *b)
{
	return b->streams * b->size;
}

/* From one stream's start to the next: as files of a filesystem, each with a
 * part of a disk that is four times as large as what is written. */
static uint64_t spacing(const struct bench *b)
{
	return b->size > SPACING_MIN / 4 ? 4 * b->size : SPACING_MIN;
}

static uint64_t device_size(const struct bench *b)
{
	return b->streams * spacing(b);
}

static char *file_spec(const struct bench *b, char spec[64])
{
	snprintf(spec, 64, "raw:/proc/self/fd/%d", b->fd);
	return spec;
}

static void make_pool(struct bench *b)
{
	struct pool_geometry g = {.logical_size = device_size(b)};
	uint64_t space = pool_space_for(data_size(b) * 100 / b->fill);
	struct error error = {""};
	struct store *s;
	char spec[64];

	b->fd = memfd_create("fragments", 0);
	if (b->fd < 0 || ftruncate(b->fd, (off_t)(space / 4096 * 4096)))
		fail("pool", "no memory");
	if (store_open(file_spec(b, spec), 0, &s, &error) ||
		pool_format(s, &g, &error))
		fail("pool", error.text);
	store_close(s);
}

static struct pool_summary look(struct bench *b)
{
	const struct pool_visitor nobody = {0};
	struct pool_summary p;
	struct error error = {""};
	struct store *s;
	char spec[64];

	if (store_open(file_spec(b, spec), STORE_OPEN_READONLY, &s, &error) ||
		pool_check(s, &nobody, &p, &error))
		fail("pool", error.text);
	store_close(s);
	if (p.findings || p.mapped_bytes != data_size(b))
		fail("pool", "it does not hold what was written");
	return p;
}

/* --- the engine ---------------------------------------------------------- */

static void set(struct engine_config *config, const char *key, const char *to)
{
	struct error error = {""};

	if (engine_config_set(config, key, to, &error))
		fail(key, error.text);
}

static void set_keys(struct bench *b, struct engine_config *config)
{
	for (int i = 0; i < b->nkeys; i++) {
		char *key = strdup(b->keys[i]), *equals = strchr(key, '=');

		if (!equals)
			fail(b->keys[i], "not KEY=VALUE");
		*equals = '\0';
		set(config, key, equals + 1);
		free(key);
	}
}

static void start(struct bench *b, const char *cache)
{
	struct engine_config config;
	struct error error = {""};
	char spec[128], file[64];

	snprintf(spec, sizeof(spec), "pool:[sim:%s,%s]", b->model,
		file_spec(b, file));
	engine_config_init(&config);
	set(&config, "store", spec);
	set(&config, "cache", cache);
	set(&config, "cache-size", "64M");
	set(&config, "placement", b->placement);
	set_keys(b, &config);
	b->loop = reactor_sim_new(1);
	if (engine_config_check(&config, &error) ||
		engine_open(&config, &b->loop, 1, &b->engine, &error))
		fail("open", error.text);
	b->export = engine_export_new(b->engine, false, config.cache);
	engine_config_free(&config);
}

static void stopped(struct engine *e, int error, void *arg)
{
	struct bench *b = arg;

	(void)e;
	if (error)
		fail("shutdown", strerror(-error));
	b->down = true;
}

static void stop(struct bench *b)
{
	b->down = false;
	engine_shutdown(b->engine, 0, stopped, b);
	while (!b->down && reactor_sim_step(b->loop))
		;
	engine_close(b->engine);
	reactor_free(b->loop);
}

/* --- the streams --------------------------------------------------------- */

static void stream_answered(struct engine_request *req)
{
	struct stream *s = container_of(req, struct stream, req);

	if (req->error)
		fail("request", strerror(-req->error));
	s->at += PIECE;
	if (s->at < s->end)
		reactor_post(s->b->loop, &s->task);
	else
		s->b->left--;
}

/* The next piece; from a task, so that the streams take turns. */
static void stream_go(struct reactor_task *task)
{
	struct stream *s = container_of(task, struct stream, task);

	engine_request_init(&s->req);
	s->req.op = s->b->op;
	s->req.offset = s->at;
	s->req.length = PIECE;
	s->req.export = s->b->export;
	s->req.reactor = s->b->loop;
	s->req.done = stream_answered;
	s->req.buf = s->b->buf;
	if (engine_submit(&s->req))
		stream_answered(&s->req);
}

static void flush_done(struct engine_request *req)
{
	struct stream *s = container_of(req, struct stream, req);

	s->b->left--;
}

static void wait_all(struct bench *b)
{
	while (b->left)
		if (!reactor_sim_step(b->loop))
			fail("request", "it hangs");
}

static void run_streams(struct bench *b, unsigned first, unsigned n)
{
	struct stream *all = calloc(n, sizeof(*all));

	b->left = n;
	for (unsigned i = 0; i < n; i++) {
		struct stream *s = &all[i];

		s->b = b;
		s->at = (first + i) * spacing(b);
		s->end = s->at + b->size;
		s->task.fn = stream_go;
		reactor_post(b->loop, &s->task);
	}
	wait_all(b);
	free(all);
}

static void flush(struct bench *b)
{
	struct stream *s = calloc(1, sizeof(*s));

	s->b = b;
	b->left = 1;
	engine_request_init(&s->req);
	s->req.op = ENGINE_FLUSH;
	s->req.export = b->export;
	s->req.reactor = b->loop;
	s->req.done = flush_done;
	if (!engine_submit(&s->req))
		wait_all(b);
	if (s->req.error)
		fail("flush", strerror(-s->req.error));
	free(s);
}

/* MB/s of all data, since `from`. */
static double rate(const struct bench *b, uint64_t from)
{
	double seconds = (double)(reactor_now(b->loop) - from) / 1e9;

	return (double)data_size(b) / 1e6 / seconds;
}

static double write_all(struct bench *b)
{
	double fast;
	uint64_t from;

	start(b, "writeback");
	from = reactor_now(b->loop);
	b->op = ENGINE_WRITE;
	run_streams(b, 0, b->streams);
	flush(b);
	fast = rate(b, from);
	stop(b);
	return fast;
}

static double read_all(struct bench *b)
{
	double fast;
	uint64_t from;

	start(b, "none");
	from = reactor_now(b->loop);
	b->op = ENGINE_READ;
	for (unsigned i = 0; i < b->streams; i++)
		run_streams(b, i, 1);
	fast = rate(b, from);
	stop(b);
	return fast;
}

static void bench(struct bench *b)
{
	struct pool_summary p;
	double written, read;
	char average[16];

	make_pool(b);
	written = write_all(b);
	p = look(b);
	read = read_all(b);
	printf("%-10s %8" PRIu64 " extents of %5s, written at %6.1f MB/s, read "
	       "at %6.1f MB/s\n",
		b->placement, p.extents,
		size_format(p.mapped_bytes / p.extents, average), written,
		read);
	close(b->fd);
}

static int usage(void)
{
	fputs("usage: fragments [--streams=N] [--size=SIZE] [--fill=PERCENT] "
	      "[--model=SIM] [KEY=VALUE...]\n",
		stderr);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"streams", required_argument, NULL, 'n'},
		{"size", required_argument, NULL, 's'},
		{"fill", required_argument, NULL, 'f'},
		{"model", required_argument, NULL, 'm'},
		{NULL, 0, NULL, 0},
	};
	struct bench b = {
		.streams = 10, .fill = 50, .size = 256 << 20, .model = "hdd"};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n')
			b.streams = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'f')
			b.fill = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'm')
			b.model = optarg;
		else if (c != 's' || size_parse(optarg, &b.size))
			return usage();
	}
	if (!b.streams || !b.size || b.size % PIECE || !b.fill || b.fill > 100)
		return usage();
	b.keys = argv + optind;
	b.nkeys = argc - optind;
	b.buf = aligned_alloc(4096, PIECE);
	if (!b.buf)
		fail("buffer", "no memory");
	memset(b.buf, 1, PIECE);
	log_setup("fragments", LOG_LEVEL_ERROR, NULL, NULL);
	b.placement = "delalloc";
	bench(&b);
	b.placement = "immediate";
	bench(&b);
	free(b.buf);
	return 0;
}
