/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-report.c: the table of an experiment. MB is 1000000 bytes.
 */
#include <stdio.h>
#include <string.h>

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

struct total {
	double rate[SIDES], bound;
};

/* Of the cells in pools, or of the others. */
static struct total sum_up(const struct experiment *e, bool pool)
{
	struct total sum = {0};

	for (unsigned i = 0; i < e->ncells; i++) {
		const struct cell *c = &e->cell[i];

		if (c->fast || cell_in_pool(c) != pool)
			continue;
		for (unsigned s = 0; s < SIDES; s++)
			sum.rate[s] += c->rate[s];
		sum.bound += c->bound;
	}
	return sum;
}

void report_total(const struct experiment *e)
{
	static const char *const name[] = {"", " on pools"};

	for (unsigned pool = 0; pool < 2; pool++) {
		struct total t = sum_up(e, pool);
		double before = t.rate[SIDE_BEFORE], after = t.rate[SIDE_AFTER];

		if (t.bound > 0)
			printf("%10.2f  %+7.1f%%  %10.2f  %10.2f %5.1f%%  "
			       "TOTAL write_bw%s\n",
				before / 1e6, percent(before, after),
				after / 1e6, t.bound / 1e6,
				after / t.bound * 100, name[pool]);
	}
}

static json_t *total_json(const struct experiment *e, bool pool)
{
	struct total t = sum_up(e, pool);

	return json_pack("{s:f s:f s:f}", "before_bytes_per_second",
		t.rate[SIDE_BEFORE], "after_bytes_per_second",
		t.rate[SIDE_AFTER], "bound_bytes_per_second", t.bound);
}

static json_t *cell_json(const struct cell *c)
{
	return json_pack("{s:s s:s s:i s:I s:f s:f s:f s:b s:O s:O}", "case",
		c->name, "placement", cell_in_pool(c) ? "pool" : "raw",
		"writers", (int)c->writers, "request_bytes", (json_int_t)c->bs,
		"before_bytes_per_second", c->rate[SIDE_BEFORE],
		"after_bytes_per_second", c->rate[SIDE_AFTER],
		"bound_bytes_per_second", c->bound, "in_total", !c->fast,
		"before", c->detail[SIDE_BEFORE], "after",
		c->detail[SIDE_AFTER]);
}

int report_json(const struct experiment *e)
{
	json_t *cells = json_array();

	for (unsigned i = 0; i < e->ncells; i++)
		json_array_append_new(cells, cell_json(&e->cell[i]));
	return experiment_write(e,
		json_pack("{s:s s:s s:s s:I s:o s:o s:o}", "experiment",
			"throttle", "before", side_names[SIDE_BEFORE], "after",
			side_names[SIDE_AFTER], "simulated_seconds",
			(json_int_t)e->seconds, "total_raw",
			total_json(e, false), "total_pool", total_json(e, true),
			"cells", cells));
}
