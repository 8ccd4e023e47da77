/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-report.c: the table of an experiment. MB is 1000000 bytes.
 */
#include <stdio.h>
#include <string.h>
#include <errno.h>

#include "client.h"
#include "experiment.h"

static double percent(double before, double after)
{
	return before > 0 ? (after / before - 1) * 100 : 0;
}

void report_head(void)
{
	printf("%10s  %8s  %10s  %10s %6s  %s\n", "legacy", "", "ioless",
		"bound", "of it", "");
}

void report_cell(const struct cell *c)
{
	double before = c->rate[SIDE_BEFORE], after = c->rate[SIDE_AFTER];

	printf("%10.2f  %+7.1f%%  %10.2f  %10.2f %5.1f%%  %s\n", before / 1e6,
		percent(before, after), after / 1e6, c->bound / 1e6,
		after / c->bound * 100, c->name);
	fflush(stdout);
}

static void sum_up(const struct experiment *e, double sum[SIDES], double *bound)
{
	sum[SIDE_BEFORE] = sum[SIDE_AFTER] = *bound = 0;
	for (unsigned i = 0; i < e->ncells; i++) {
		if (e->cell[i].fast)
			continue;
		for (unsigned s = 0; s < SIDES; s++)
			sum[s] += e->cell[i].rate[s];
		*bound += e->cell[i].bound;
	}
}

void report_total(const struct experiment *e)
{
	double sum[SIDES], bound;

	sum_up(e, sum, &bound);
	if (bound > 0)
		printf("%10.2f  %+7.1f%%  %10.2f  %10.2f %5.1f%%  "
		       "TOTAL write_bw\n",
			sum[SIDE_BEFORE] / 1e6,
			percent(sum[SIDE_BEFORE], sum[SIDE_AFTER]),
			sum[SIDE_AFTER] / 1e6, bound / 1e6,
			sum[SIDE_AFTER] / bound * 100);
}

static json_t *cell_json(const struct cell *c)
{
	return json_pack("{s:s s:f s:f s:f s:b s:O s:O}", "case", c->name,
		"before_bytes_per_second", c->rate[SIDE_BEFORE],
		"after_bytes_per_second", c->rate[SIDE_AFTER],
		"bound_bytes_per_second", c->bound, "in_total", !c->fast,
		"before", c->detail[SIDE_BEFORE], "after",
		c->detail[SIDE_AFTER]);
}

int report_json(const struct experiment *e)
{
	json_t *all, *cells = json_array();
	double sum[SIDES], bound;
	int err;

	for (unsigned i = 0; i < e->ncells; i++)
		json_array_append_new(cells, cell_json(&e->cell[i]));
	sum_up(e, sum, &bound);
	all = json_pack("{s:s s:s s:s s:I s:f s:f s:o}", "experiment",
		"throttle", "before", side_names[SIDE_BEFORE], "after",
		side_names[SIDE_AFTER], "simulated_seconds",
		(json_int_t)e->seconds, "total_before_bytes_per_second",
		sum[SIDE_BEFORE], "total_after_bytes_per_second",
		sum[SIDE_AFTER], "cells", cells);
	err = json_dump_file(all, e->json, JSON_COMPACT);
	json_decref(all);
	if (err)
		return client_error(EXIT_IO, e->command,
			"%s: cannot be written: %s", e->json, strerror(errno));
	return EXIT_OK;
}
