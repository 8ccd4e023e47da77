/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment.h: the parts of `weir experiment`.
 *
 *   options -> cells (what to run) -> each side in simulated time -> report
 */
#ifndef WEIR_CLIENT_EXPERIMENT_H
#define WEIR_CLIENT_EXPERIMENT_H

#include <jansson.h>

#include "experiment-rig.h"

#define EXPERIMENT_RUNS 99U
#define CELL_DEVICES 2 /* at once, at most */

enum side {
	SIDE_BEFORE, /* legacy */
	SIDE_AFTER,  /* ioless */
	SIDES,
};

/* One row of the table. */
struct cell {
	char name[64];
	struct cell_device {
		const char *model; /* "hdd" */
		uint64_t size;     /* bytes */
		uint64_t limit, background;
		uint64_t pool;  /* a pool of such a device, bytes; 0: raw */
		uint64_t span;  /* bytes that are written of it; 0: all */
	} device[CELL_DEVICES]; /* a model of NULL ends them */
	unsigned writers;       /* on each */
	uint64_t bs;            /* bytes */
	bool random, rated;
	bool full; /* it begins when all of the span is written */
	bool fast; /* not in TOTAL, and for a tenth of the time */

	/* Filled in by running it; bytes a second that reached the devices. */
	double rate[SIDES], bound;
	json_t *detail[SIDES];
};

static inline bool cell_in_pool(const struct cell *c)
{
	return c->device[0].pool;
}

struct experiment {
	const char *command; /* for messages */
	uint64_t seconds;    /* simulated, for a cell */
	const char *rows;    /* a regular expression; NULL: all */
	const char *json;    /* a path; NULL: none */
	const char *live;    /* a folder for real files; NULL: simulated */
	unsigned runs;       /* of each side; 0: as the experiment has it */
	bool quick;
	struct cell *cell;
	unsigned ncells;
};

/* --- experiment-direct.c, experiment-append.c ----------------------------- */

int experiment_direct(struct experiment *e);
int experiment_append(struct experiment *e);

/* --- experiment.c -------------------------------------------------------- */

/*
 * Which of `n` names match --rows; without it all do. match[i] is whether the
 * i-th does. 0, or an exit code with the error said: also if none does.
 */
int experiment_rows(const struct experiment *e, unsigned n,
	const char *(*name)(const void *rows, unsigned i), const void *rows,
	bool *match);

/* Write it to e->json and give it up. 0, or an exit code with the error said. */
int experiment_write(const struct experiment *e, json_t *all);

/* --- experiment-cells.c -------------------------------------------------- */

/* Fill in e->cell: the rows whose names match. 0, or an exit code with the
 * error said. */
int cells_make(struct experiment *e);
void cells_free(struct experiment *e);

/* --- experiment-bound.c --------------------------------------------------- */

/* What the devices of a cell can do at most, bytes a second, from their models
 * alone. `b` are its open beds. */
double cell_bound(const struct cell *c, const struct bed *b);

/* --- experiment-run.c ---------------------------------------------------- */

extern const char *const side_names[SIDES];

/* For how long a cell is run. */
uint64_t cell_seconds(const struct experiment *e, const struct cell *c);

/* Run one side; fills in rate, bound and, if `series`, detail. */
int cell_run(const struct experiment *e, struct cell *c, enum side side);

/* --- experiment-report.c ------------------------------------------------- */

void report_head(void);
void report_cell(const struct cell *c);
void report_total(const struct experiment *e);
int report_json(const struct experiment *e);

#endif
