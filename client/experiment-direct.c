/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-direct.c: `weir experiment direct`: an export with cache=none
 * against the same with cache=writeback, on a stripe of one to four stores.
 *
 * What is written is three times the cache and more, and the final flush
 * counts; so a cache is no faster than what is below it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "experiment-pair.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define ARRAYS 4U
#define FILE_SIZE (GIB / 4) /* of each, with --live */
#define CHUNK "64K"

/* --- the stores ----------------------------------------------------------- */

static void file_name(char *to, size_t size, const char *folder, unsigned i)
{
	snprintf(to, size, "%s/%u.img", folder, i);
}

/* Allocated and written: a sparse file would measure the allocation. */
static int make_file(const struct experiment *e, const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char *zeroes = calloc(1, MIB);
	bool good = fd >= 0 && zeroes;

	for (uint64_t at = 0; good && at < FILE_SIZE; at += MIB)
		good = pwrite(fd, zeroes, MIB, (off_t)at) == (ssize_t)MIB;
	good = good && !fsync(fd);
	if (!good)
		client_error(EXIT_IO, e->command, "%s: cannot be made: %s",
			path, strerror(errno));
	free(zeroes);
	if (fd >= 0)
		close(fd);
	return good ? 0 : EXIT_IO;
}

static int make_files(const struct experiment *e, const char *folder)
{
	char path[256];
	int err = 0;

	for (unsigned i = 0; i < ARRAYS && !err; i++) {
		file_name(path, sizeof(path), folder, i);
		err = make_file(e, path);
	}
	return err;
}

static void remove_files(const char *folder)
{
	char path[256];

	for (unsigned i = 0; i < ARRAYS; i++) {
		file_name(path, sizeof(path), folder, i);
		unlink(path);
	}
	rmdir(folder);
}

static void stripe_of(struct pair_row *row, const char *folder, unsigned n)
{
	size_t at = (size_t)snprintf(
		row->store, sizeof(row->store), "stripe:" CHUNK);

	for (unsigned i = 0; i < n; i++) {
		char path[256];

		file_name(path, sizeof(path), folder ? folder : "", i);
		at += (size_t)snprintf(row->store + at, sizeof(row->store) - at,
			",[%s%s]", folder ? "raw:" : "sim:msa,null:64G",
			folder ? path : "");
	}
}

/* --- the rows ------------------------------------------------------------- */

static struct pair_row *add(const struct experiment *e, struct pair_table *t,
	const char *folder, unsigned arrays, const struct load_config *load)
{
	static const char *const modes[SIDES] = {"writeback", "none"};
	struct pair_row *row = &t->row[t->rows++];

	stripe_of(row, folder, arrays);
	for (unsigned s = 0; s < SIDES; s++) {
		row->side[s] = *load;
		row->side[s].store = row->store;
		row->side[s].live = e->live;
		row->side[s].key[0] = "cache";
		row->side[s].value[0] = modes[s];
		row->side[s].key[1] = "cache-size";
		row->side[s].value[1] = folder ? "64M" : "256M";
	}
	return row;
}

static void add_rows(
	const struct experiment *e, struct pair_table *t, const char *folder)
{
	uint64_t each = folder ? FILE_SIZE : e->quick ? GIB : 4 * GIB;
	struct load_config seq = {.op = ENGINE_WRITE, .bs = MIB, .depth = 16};
	struct load_config at_random = {
		.bs = 4096, .depth = 16, .random = true, .seconds = 10};
	struct pair_row *row;

	for (unsigned n = 1; n <= ARRAYS; n++) {
		seq.bytes = each * n;
		row = add(e, t, folder, n, &seq);
		snprintf(row->name, sizeof(row->name), "write/%u", n);
	}
	seq.op = ENGINE_READ;
	row = add(e, t, folder, ARRAYS, &seq);
	snprintf(row->name, sizeof(row->name), "read/%u", ARRAYS);
	for (unsigned w = 0; w < 2; w++) {
		at_random.op = w ? ENGINE_WRITE : ENGINE_READ;
		/* So many that the cache holds a third of them at most. */
		at_random.bytes = UINT64_MAX / 2;
		row = add(e, t, folder, ARRAYS, &at_random);
		snprintf(row->name, sizeof(row->name), "rand%s/%u",
			w ? "write" : "read", ARRAYS);
	}
}

/* The original's form. */
static void print_arrays(const struct pair_table *t)
{
	for (unsigned n = 0; n < ARRAYS; n++)
		if (t->row[n].left_out)
			return;
	printf("sequential writes, 1M, 16 at once, GB/s over 1 to %u %s\n",
		ARRAYS, t->row[0].side[0].live ? "files" : "arrays");
	for (unsigned s = 0; s < SIDES; s++) {
		printf("%-10s", t->side[s]);
		for (unsigned n = 0; n < ARRAYS; n++)
			printf("  %6.3f", pair_rate(t, &t->row[n], s) / 1e9);
		printf("   %.2fx\n",
			pair_rate(t, &t->row[ARRAYS - 1], s) /
				pair_rate(t, &t->row[0], s));
	}
	puts("");
}

static void print_table(const struct pair_table *t)
{
	print_arrays(t);
	pair_print_head(t);
	for (unsigned i = 0; i < t->rows; i++)
		pair_print(t, &t->row[i]);
}

int experiment_direct(struct experiment *e)
{
	struct pair_table t = {.experiment = "direct",
		.side = {"buffered", "direct"},
		.runs = e->runs   ? e->runs
			: e->live ? 3
				  : 1};
	char *folder = NULL;
	int err = 0;

	if (e->live) {
		folder = pair_folder(e);
		err = folder ? make_files(e, folder) : EXIT_IO;
	}
	add_rows(e, &t, folder);
	if (!err)
		err = pair_run(e, &t);
	if (!err) {
		print_table(&t);
		err = pair_json(e, &t);
	}
	if (folder)
		remove_files(folder);
	free(folder);
	return err;
}
