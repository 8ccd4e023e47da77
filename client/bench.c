/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.c: `weir bench`: one run, or without --rw a short one of each kind.
 *
 * The short runs are for "how fast is this export?" asked of a server one has
 * just started; they write only where nothing is that looks like data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define SUITE_SIZE (256U << 20) /* bytes, of all jobs */
#define SUITE_LOOK (128U << 10) /* where every filesystem has a superblock */

static bool is_zero(const unsigned char *p, size_t n)
{
	return !n || (!p[0] && !memcmp(p, p + 1, n - 1));
}

/* May the suite write to the export? -1: cannot tell, the error is said. */
static int looks_unused(
	const struct bench_options *o, const char *uri, uint64_t *size)
{
	struct nbd_handle *nbd = connect_open(o->command, uri, false);
	size_t look = SUITE_LOOK;
	unsigned char *buf;
	int unused = -1;

	if (!nbd)
		return -1;
	*size = (uint64_t)nbd_get_size(nbd);
	if (*size < look)
		look = (size_t)*size;
	buf = calloc(1, SUITE_LOOK);
	if (!buf || nbd_pread(nbd, buf, look, 0, 0))
		connect_error(o->command, uri);
	else if (nbd_is_read_only(nbd) > 0)
		unused = 0;
	else
		unused = is_zero(buf, look) || bench_pattern_is_ours(buf, look);
	free(buf);
	nbd_shutdown(nbd, 0);
	nbd_close(nbd);
	return unused;
}

/* What is common to the suite's runs; *writes: they may write. */
static int suite_plan(
	const struct bench_options *o, struct bench_spec *spec, bool *writes)
{
	uint64_t size, least = UINT64_MAX;

	*spec = o->spec;
	*writes = true;
	for (unsigned i = 0; i < o->nuris; i++) {
		int unused = looks_unused(o, o->uris[i], &size);

		if (unused < 0)
			return EXIT_IO;
		if (!unused && !o->force)
			*writes = false;
		least = size < least ? size : least;
	}
	least -= spec->offset < least ? spec->offset : least;
	if (!spec->size)
		spec->size = least < SUITE_SIZE ? least : SUITE_SIZE;
	if (!o->spec.size)
		spec->size /= spec->numjobs;
	spec->size -= spec->size % (1U << 20);
	spec->offset_increment = spec->size;
	if (!spec->size)
		return client_error(EXIT_USAGE, o->command,
			"the export is too small for runs of 1M requests; "
			"give --rw and --bs");
	return EXIT_OK;
}

static const struct bench_spec suite[] = {
	{.name = "write", .bs = 1U << 20, .iodepth = 8},
	{.name = "read", .bs = 1U << 20, .iodepth = 8, .read_percent = 100},
	{.name = "randwrite", .bs = 4096, .iodepth = 32, .random = true},
	{.name = "randread",
		.bs = 4096,
		.iodepth = 32,
		.random = true,
		.read_percent = 100},
};

#define SUITE_RUNS (sizeof(suite) / sizeof(suite[0]))

static void suite_spec(struct bench_spec *spec, size_t i)
{
	spec->name = suite[i].name;
	spec->bs = suite[i].bs;
	spec->iodepth = suite[i].iodepth;
	spec->random = suite[i].random;
	spec->read_percent = suite[i].read_percent;
}

static int run_suite(const struct bench_options *o, struct bench_result *result,
	json_t *runs)
{
	struct bench_spec spec;
	bool writes;
	int r = suite_plan(o, &spec, &writes);

	if (r)
		return r;
	if (!writes)
		fprintf(stderr,
			"%s: read-only or holding data: only reads are "
			"measured (--force writes over data)\n",
			o->command);
	if (!o->json)
		bench_report_table_head(o);
	for (size_t i = 0; !r && i < SUITE_RUNS; i++) {
		if (!writes && suite[i].read_percent < 100)
			continue;
		suite_spec(&spec, i);
		r = bench_run(o, &spec, result);
		if (!r && !o->json)
			bench_report_table_row(result);
		if (!r)
			json_array_append_new(runs, bench_report_json(result));
		if (result->interrupted)
			break;
	}
	if (!r && writes && !o->json)
		puts(spec.end_fsync ? "(write runs include the final flush)"
				    : "(write runs are without a final flush)");
	return r;
}

static int run_one(const struct bench_options *o, struct bench_result *result,
	json_t *runs)
{
	int r = bench_run(o, &o->spec, result);

	if (!result->elapsed_ns)
		return r;
	if (!o->json)
		bench_report_text(o, result);
	json_array_append_new(runs, bench_report_json(result));
	return r;
}

static int run(const struct bench_options *o)
{
	struct bench_result *result = calloc(1, sizeof(*result));
	json_t *runs = json_array(), *uris = json_array();
	int r, printed = EXIT_OK;

	if (!result)
		return client_error(EXIT_IO, o->command, "no memory");
	for (unsigned i = 0; i < o->nuris; i++)
		json_array_append_new(uris, json_string(o->uris[i]));
	r = o->suite ? run_suite(o, result, runs) : run_one(o, result, runs);
	if (o->json && json_array_size(runs))
		printed = client_print_json(o->command,
			json_pack("{s:s,s:O,s:O}", "weir", PACKAGE_VERSION,
				"uris", uris, "runs", runs));
	json_decref(runs);
	json_decref(uris);
	free(result);
	return r ? r : printed;
}

int cmd_bench(int argc, char **argv)
{
	struct bench_options o;
	bool done = false;
	int r = bench_options_parse(argc, argv, &o, &done);

	if (r || done)
		return r;
	return run(&o);
}
