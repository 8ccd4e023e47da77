/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-pair.c: see experiment-pair.h. MB is 1000000 bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "experiment-pair.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int measure(const struct experiment *e, struct pair_row *row,
	enum side side, unsigned k)
{
	struct load_result result;
	struct error error = {0};

	if (load_run(&row->side[side], &result, &error))
		return client_error(
			EXIT_IO, e->command, "%s: %s", row->name, error.text);
	row->rate[side][k] =
		(double)result.bytes * 1e9 / (double)(result.ns + !result.ns);
	return 0;
}

static int measure_row(
	const struct experiment *e, struct pair_row *row, unsigned k)
{
	int err = 0;

	for (unsigned s = 0; s < SIDES && !err && !row->left_out; s++)
		err = measure(e, row, s, k);
	return err;
}

static const char *name_of(const void *rows, unsigned i)
{
	return ((const struct pair_row *)rows)[i].name;
}

/* Leave out the rows whose names do not match. */
static int only_matching(const struct experiment *e, struct pair_table *t)
{
	bool match[PAIR_ROWS];
	int err = experiment_rows(e, t->rows, name_of, t->row, match);

	for (unsigned i = 0; i < t->rows && !err; i++)
		t->row[i].left_out = !match[i];
	return err;
}

int pair_run(const struct experiment *e, struct pair_table *t)
{
	int err = only_matching(e, t);

	for (unsigned k = 0; k < t->runs && !err; k++)
		for (unsigned i = 0; i < t->rows && !err; i++)
			err = measure_row(e, &t->row[i], k);
	for (unsigned i = 0; i < t->rows && !err; i++)
		for (unsigned s = 0; s < SIDES; s++)
			qsort(t->row[i].rate[s], t->runs, sizeof(double),
				ascending);
	return err;
}

double pair_rate(
	const struct pair_table *t, const struct pair_row *row, enum side side)
{
	const double *rate = row->rate[side];

	return (rate[(t->runs - 1) / 2] + rate[t->runs / 2]) / 2;
}

void pair_print_head(const struct pair_table *t)
{
	printf("%8s MB/s    IOPS  %8s MB/s    IOPS   ratio\n",
		t->side[SIDE_BEFORE], t->side[SIDE_AFTER]);
}

void pair_print(const struct pair_table *t, const struct pair_row *row)
{
	double before = pair_rate(t, row, SIDE_BEFORE);
	double after = pair_rate(t, row, SIDE_AFTER);
	double bs = (double)row->side[SIDE_AFTER].bs;

	if (row->left_out)
		return;
	printf("%13.2f %7.0f  %13.2f %7.0f  %5.2fx  %s\n", before / 1e6,
		before / bs, after / 1e6, after / bs, after / before,
		row->name);
}

static json_t *rates_json(
	const struct pair_table *t, const struct pair_row *row, enum side side)
{
	json_t *runs = json_array();

	for (unsigned k = 0; k < t->runs; k++)
		json_array_append_new(runs, json_real(row->rate[side][k]));
	return runs;
}

static json_t *row_json(const struct pair_table *t, const struct pair_row *row)
{
	return json_pack("{s:s s:I s:I s:f s:f s:o s:o}", "case", row->name,
		"request_bytes", (json_int_t)row->side[SIDE_AFTER].bs, "depth",
		(json_int_t)row->side[SIDE_AFTER].depth,
		"before_bytes_per_second", pair_rate(t, row, SIDE_BEFORE),
		"after_bytes_per_second", pair_rate(t, row, SIDE_AFTER),
		"before_runs", rates_json(t, row, SIDE_BEFORE), "after_runs",
		rates_json(t, row, SIDE_AFTER));
}

int pair_json(const struct experiment *e, const struct pair_table *t)
{
	json_t *cells;

	if (!e->json)
		return 0;
	cells = json_array();
	for (unsigned i = 0; i < t->rows; i++)
		if (!t->row[i].left_out)
			json_array_append_new(cells, row_json(t, &t->row[i]));
	return experiment_write(e,
		json_pack("{s:s s:s s:s s:b s:I s:o}", "experiment",
			t->experiment, "before", t->side[SIDE_BEFORE], "after",
			t->side[SIDE_AFTER], "simulated", !e->live, "runs",
			(json_int_t)t->runs, "cells", cells));
}

char *pair_folder(const struct experiment *e)
{
	char *folder = client_format("%s/weir-experiment-XXXXXX", e->live);

	if (mkdtemp(folder))
		return folder;
	client_error(EXIT_IO, e->command, "%s: cannot be made: %s", folder,
		strerror(errno));
	free(folder);
	return NULL;
}
