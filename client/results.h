/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * results.h: measurements read back from JSON: of `weir bench --json`, of
 * `weir experiment --json`, and of fio (3 and newer, alone or as a client).
 *
 * A file is a list of cases, and a case a list of metrics, numbers with dotted
 * names ("write.latency.p99_ns"):
 *
 *  1. A member of a case whose name is "before" or begins with "before_"
 *     belongs to its first side, "after" to its second; the word is dropped.
 *     What has no such word belongs to both.
 *  2. Settings, time series and histograms are no metrics.
 *  3. Two cases of one name are told apart: "name", "name#2".
 *
 * One thread; nothing but results_load() blocks.
 */
#ifndef WEIR_CLIENT_RESULTS_H
#define WEIR_CLIENT_RESULTS_H

#include <stdbool.h>

enum results_side {
	RESULTS_BEFORE,
	RESULTS_AFTER,
};

/* Which difference is for the good. */
enum results_better {
	BETTER_NEITHER,
	BETTER_MORE,
	BETTER_LESS,
};

struct result_metric {
	char *name;
	double value;
};

struct result {
	char *name;
	struct result_metric *metric;
	unsigned nmetrics;
};

struct results {
	const char *path;
	char *main_metric; /* what the file says is its result, or NULL */
	bool sided;        /* it has a before and an after */
	struct result *result;
	unsigned n;
};

/* Read one side of a file, the only one if it has no sides. 0, or a negative
 * number with the error said under `command`. Free with results_free(). */
int results_load(struct results *r, const char *command, const char *path,
	enum results_side side);
void results_free(struct results *r);

/* NULL: there is none of that name. */
const struct result *results_find(const struct results *r, const char *name);
const double *result_find(const struct result *c, const char *metric);

/* Bytes a second, by whichever name the file has for them; NULL: it has none,
 * or nothing was done. */
const double *result_write_bw(const struct result *c);
const double *result_read_bw(const struct result *c);

enum results_better results_better(const char *metric);

#endif
