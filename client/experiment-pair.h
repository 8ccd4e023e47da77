/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-pair.h: rows of a table that are one load measured twice: as it
 * was and as it is.
 *
 * An experiment describes its rows; here they are run, the sides in turn, and
 * printed and written as JSON. In simulated time one run says it all.
 */
#ifndef WEIR_CLIENT_EXPERIMENT_PAIR_H
#define WEIR_CLIENT_EXPERIMENT_PAIR_H

#include "experiment-load.h"
#include "experiment.h"

#define PAIR_ROWS 16U

struct pair_row {
	char name[64];
	char store[320]; /* what side[].store points to */
	bool left_out;   /* its name does not match e->rows */
	struct load_config side[SIDES];
	double rate[SIDES]
		   [EXPERIMENT_RUNS]; /* bytes a second, ascending at last */
};

struct pair_table {
	const char *experiment;
	const char *side[SIDES]; /* what they are called: "buffered" */
	unsigned runs, rows;
	struct pair_row row[PAIR_ROWS];
};

/* Measure every row whose name matches e->rows. 0, or an exit code with the
 * error said. */
int pair_run(const struct experiment *e, struct pair_table *t);

/* The median of a side, bytes a second. */
double pair_rate(
	const struct pair_table *t, const struct pair_row *row, enum side side);

/* "rate, requests a second" of both sides and their ratio, a line. */
void pair_print_head(const struct pair_table *t);
void pair_print(const struct pair_table *t, const struct pair_row *row);

/* To e->json, if that is asked for. */
int pair_json(const struct experiment *e, const struct pair_table *t);

/* A folder of our own in e->live; to free(). NULL with the error said. */
char *pair_folder(const struct experiment *e);

#endif
