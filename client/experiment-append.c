/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-append.c: `weir experiment append`: durable writes behind the end
 * of what a pool holds, one at a time (append=serial) and at once
 * (append=async).
 *
 * The pool is a file, new for each run; in simulated time it is one in memory
 * behind a model of a device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "experiment-pair.h"

#define DEPTH 32U
#define REQUESTS 20000U /* in simulated time */
#define SECONDS 3U      /* in real time, of a side */

static void add(const struct experiment *e, struct pair_table *t,
	const char *model, const char *path, const char *inner, uint64_t bs)
{
	static const char *const ways[SIDES] = {"serial", "async"};
	struct pair_row *row = &t->row[t->rows++];

	snprintf(row->name, sizeof(row->name), "%s%s%lluk", model ? model : "",
		model ? "/" : "", (unsigned long long)bs / 1024);
	snprintf(row->store, sizeof(row->store), "pool:[%s%s%s%s]",
		model ? "sim:" : "", model ? model : "", model ? "," : "",
		inner);
	for (unsigned s = 0; s < SIDES; s++) {
		row->side[s] = (struct load_config){
			.store = row->store,
			.key = {"append", "cache-size"},
			.value = {ways[s], "64M"},
			.pool = path,
			.pool_store = inner,
			.live = e->live,
			.op = ENGINE_WRITE,
			.flags = ENGINE_FUA,
			.bs = bs,
			.depth = DEPTH,
			.bytes = e->live
				? UINT64_C(1) << 35
				: bs * (e->quick ? REQUESTS / 10 : REQUESTS),
			.seconds = e->live ? e->quick ? 1 : SECONDS : 0,
		};
	}
}

static void add_rows(const struct experiment *e, struct pair_table *t,
	const char *path, const char *inner)
{
	static const char *const models[] = {"ssd", "nvme", "hdd"};

	for (unsigned m = 0; m < (e->live ? 1 : 3); m++)
		for (uint64_t bs = 4096; bs <= 16384; bs *= 2)
			add(e, t, e->live ? NULL : models[m], path, inner, bs);
}

static int run_on(
	const struct experiment *e, const char *path, const char *inner)
{
	struct pair_table t = {.experiment = "append",
		.side = {"serial", "async"},
		.runs = e->runs   ? e->runs
			: e->live ? 3
				  : 1};
	int err;

	add_rows(e, &t, path, inner);
	err = pair_run(e, &t);
	if (err)
		return err;
	printf("durable appends, %u at once%s\n", DEPTH,
		e->live ? "" : ", in simulated time");
	pair_print_head(&t);
	for (unsigned i = 0; i < t.rows; i++)
		pair_print(&t, &t.row[i]);
	return pair_json(e, &t);
}

static int on_disk(const struct experiment *e)
{
	char *folder = pair_folder(e);
	char *path;
	int err;

	if (!folder)
		return EXIT_IO;
	path = client_format("%s/pool", folder);
	err = run_on(e, path, path);
	unlink(path);
	rmdir(folder);
	free(path);
	free(folder);
	return err;
}

static int in_memory(const struct experiment *e)
{
	int fd = memfd_create("weir-experiment", MFD_CLOEXEC), err;
	char *path = client_format("/proc/self/fd/%d", fd);
	char *inner = client_format("volatile:%s", path);

	err = fd < 0 ? client_error(EXIT_IO, e->command, "out of memory")
		     : run_on(e, path, inner);
	if (fd >= 0)
		close(fd);
	free(path);
	free(inner);
	return err;
}

int experiment_append(struct experiment *e)
{
	return e->live ? on_disk(e) : in_memory(e);
}
