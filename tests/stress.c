/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress.c: several loops and foreign threads at one engine, with each
 * backend, for a few seconds; TAP.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placement/placement.h"
#include "stress.h"

static const struct {
	const char *name;
	void (*run)(struct stress *s);
	const char *spec; /* "raw" and "pool": in a new file */
	bool plain;       /* subpage, multipage off; throttle=legacy */
} rounds[] = {
	{"disjoint pieces of shared blocks", stress_pieces, "mem:4M", false},
	{"overlapping writes", stress_overlap, "mem:4M", false},
	{"overlapping writes, plain", stress_overlap, "mem:4M", true},
	{"everything at once", stress_mix, "mem:4M", false},
	{"everything at once, plain", stress_mix, "mem:4M", true},
	{"everything at once, settings changing", stress_mix_changing, "mem:4M",
		false},
	{"everything at once on a file", stress_mix, "raw", false},
	{"everything at once on a pool", stress_mix, "pool", false},
	{"overlapping writes on a pool", stress_overlap, "pool", false},
};

#define ROUNDS (sizeof(rounds) / sizeof(rounds[0]))

static bool backend_works(enum reactor_backend backend)
{
	struct error error;
	struct reactor *r;

	if (reactor_live_new(0, backend, &r, &error) != 0)
		return false;
	reactor_free(r);
	return true;
}

/* An empty pool as large as what it is in, nearly. */
static void make_pool(const char *spec)
{
	struct pool_geometry g = {.logical_size = STRESS_SIZE};
	struct error error = {""};
	struct store *store;

	if (store_open(spec, 0, &store, &error) ||
		pool_format(store, &g, &error)) {
		fprintf(stderr, "stress: %s\n", error.text);
		exit(1);
	}
	store_close(store);
}

/* A file, gone with its descriptor, for a device of our size. */
static int temporary_file(const char *kind, char *spec, size_t size)
{
	const char *dir = getenv("TMPDIR");
	bool pool = !strcmp(kind, "pool");
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/weir-stress.XXXXXX",
		dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0 ||
		ftruncate(fd, (off_t)(pool ? 2 * STRESS_SIZE : STRESS_SIZE)))
		abort();
	unlink(path);
	snprintf(spec, size, "raw:/proc/self/fd/%d", fd);
	if (pool) {
		make_pool(spec);
		snprintf(spec, size, "pool:/proc/self/fd/%d", fd);
	}
	return fd;
}

static bool one_round(enum reactor_backend backend, unsigned i)
{
	struct stress *s = malloc(sizeof(*s));
	const char *spec = rounds[i].spec;
	char file[64];
	int fd = -1;
	bool good;

	if (!s)
		abort();
	if (!strchr(spec, ':')) {
		fd = temporary_file(spec, file, sizeof(file));
		spec = file;
	}
	stress_open(s, backend, spec, rounds[i].plain);
	rounds[i].run(s);
	stress_close(s);
	good = !atomic_load(&s->failed);
	if (!good)
		printf("# %s\n", s->why);
	free(s);
	if (fd >= 0)
		close(fd);
	return good;
}

int main(void)
{
	static const char *const names[] = {
		[REACTOR_URING] = "io_uring", [REACTOR_THREADS] = "threads"};
	unsigned test = 0;
	int status = 0;

	printf("1..%zu\n", 2 * ROUNDS);
	log_setup("stress", LOG_LEVEL_ERROR, NULL, NULL);
	for (enum reactor_backend b = REACTOR_URING; b <= REACTOR_THREADS;
		b++) {
		bool works = backend_works(b);

		for (unsigned i = 0; i < ROUNDS; i++) {
			bool good = !works || one_round(b, i);

			printf("%sok %u - %s, %s%s\n", good ? "" : "not ",
				++test, names[b], rounds[i].name,
				works ? "" : " # SKIP no io_uring here");
			fflush(stdout);
			status |= !good;
		}
	}
	return status;
}
