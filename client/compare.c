/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compare.c: `weir compare`: measurements side by side, a line a case:
 *
 *	before  ±delta%  after  case
 *	...
 *	before  ±delta%  after  TOTAL write_bw
 *
 * Every column after the first has its difference from the first before it.
 * Ends as diff(1) does: 0, nothing is worse than the threshold; 1, something
 * is; 2, it cannot be told.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "results.h"

#define MAX_COLUMNS 16
#define COLUMN 13 /* characters */
#define TROUBLE 2 /* exit code */
#define WORSE 1   /* exit code */
#define MEGA 1e6

struct compare {
	const char *command;
	struct results column[MAX_COLUMNS];
	unsigned ncolumns;
	bool all;
	double threshold; /* percent; negative: none */
	unsigned worse;   /* lines below it */
	unsigned missing; /* cases that not every file has */
};

/* A number of each column, to be a line. */
struct row {
	const double *value[MAX_COLUMNS]; /* NULL: it has none */
};

typedef const double *pick_fn(const struct result *c, const char *metric);

static void help(void)
{
	puts("usage: weir compare [OPTIONS] FILE...\n\n"
	     "Lay measurements side by side: JSON of weir bench, of weir\n"
	     "experiment and of fio. Of one file with a before and an after,\n"
	     "those two. A line is: before, the difference, after, the case;\n"
	     "bandwidths in MB/s.\n\n"
	     "  --all            every metric of every case\n"
	     "  --threshold P%   exit 1 if something is worse by more than "
	     "that\n"
	     "  --help           this\n\n"
	     "Exit code: 0 nothing is worse than the threshold, 1 something\n"
	     "is or a case is missing, 2 a file cannot be read.");
}

/* --- a line --------------------------------------------------------------- */

static double percent(double before, double after)
{
	if (before == after)
		return 0;
	return before != 0 ? (after / before - 1) * 100 : INFINITY;
}

static bool is_worse(const struct compare *c, enum results_better better,
	double before, double after)
{
	double change = percent(before, after);

	if (c->threshold < 0 || better == BETTER_NEITHER)
		return false;
	return better == BETTER_MORE ? change < -c->threshold
				     : change > c->threshold;
}

static void print_number(double value)
{
	if (fabs(value) < 1e6)
		printf("%*.2f", COLUMN, value);
	else
		printf("%*.0f", COLUMN, value);
}

static void print_change(double change)
{
	if (isinf(change))
		printf("%*s ", COLUMN - 1, "new");
	else
		printf("%+*.1f%%", COLUMN - 1, change);
}

static void print_row(struct compare *c, const struct row *r, double unit,
	enum results_better better, const char *name)
{
	bool worse = false;

	for (unsigned i = 0; i < c->ncolumns; i++) {
		const double *a = r->value[0], *b = r->value[i];

		if (i && a && b) {
			print_change(percent(*a, *b));
			worse |= is_worse(c, better, *a, *b);
		} else if (i) {
			printf("%*s", COLUMN, "");
		}
		if (b)
			print_number(*b / unit);
		else
			printf("%*s", COLUMN, "-");
	}
	printf("  %s%s\n", name, worse ? "  WORSE" : "");
	c->worse += worse;
}

/* --- a table -------------------------------------------------------------- */

/* The last part of a path that fits a column. */
static void print_title(const char *path, const char *side)
{
	const char *slash = strrchr(path, '/'),
		   *name = slash ? slash + 1 : path;
	size_t n = strlen(name);

	if (*side)
		name = side;
	else if (n > COLUMN - 1)
		name += n - (COLUMN - 1);
	printf("%*s", COLUMN, name);
}

static void print_head(const struct compare *c, bool sides)
{
	static const char *const names[] = {"before", "after"};

	for (unsigned i = 0; i < c->ncolumns; i++) {
		if (i)
			printf("%*s", COLUMN, "");
		print_title(c->column[i].path, sides ? names[i] : "");
	}
	putchar('\n');
}

static unsigned pick_row(const struct compare *c, const char *name,
	pick_fn *pick, const char *metric, struct row *r)
{
	unsigned found = 0;

	for (unsigned i = 0; i < c->ncolumns; i++) {
		const struct result *result = results_find(&c->column[i], name);

		r->value[i] = result ? pick(result, metric) : NULL;
		found += !!r->value[i];
	}
	return found;
}

/* One metric of all cases. Returns the number of its lines. */
static unsigned print_metric(struct compare *c, pick_fn *pick,
	const char *metric, double unit, enum results_better better)
{
	double sum[MAX_COLUMNS] = {0};
	struct row total;
	unsigned lines = 0, whole = 0;
	char *title;

	for (unsigned k = 0; k < c->column[0].n; k++) {
		const char *name = c->column[0].result[k].name;
		struct row r;
		unsigned found = pick_row(c, name, pick, metric, &r);

		if (!found)
			continue;
		print_row(c, &r, unit, better, name);
		lines++;
		if (found < c->ncolumns)
			continue;
		whole++;
		for (unsigned i = 0; i < found; i++)
			sum[i] += *r.value[i];
	}
	if (!whole)
		return lines;
	for (unsigned i = 0; i < c->ncolumns; i++)
		total.value[i] = &sum[i];
	title = client_format("TOTAL %s", metric);
	print_row(c, &total, unit, better, title);
	free(title);
	return lines;
}

static const double *write_bw(const struct result *c, const char *metric)
{
	(void)metric;
	return result_write_bw(c);
}

static const double *read_bw(const struct result *c, const char *metric)
{
	(void)metric;
	return result_read_bw(c);
}

static int print_main(struct compare *c)
{
	const char *metric = c->column[0].main_metric;
	unsigned lines = 0;

	if (metric)
		lines += print_metric(
			c, result_find, metric, 1, results_better(metric));
	if (!lines) {
		lines += print_metric(
			c, write_bw, "write_bw", MEGA, BETTER_MORE);
		lines += print_metric(c, read_bw, "read_bw", MEGA, BETTER_MORE);
	}
	if (lines)
		return EXIT_OK;
	return client_error(TROUBLE, c->command,
		"%s: no bandwidth in it; --all shows what there is",
		c->column[0].path);
}

/* What every file says nothing happened of is not worth a line. */
static bool all_zero(const struct compare *c, const struct row *r)
{
	for (unsigned i = 0; i < c->ncolumns; i++)
		if (r->value[i] && *r->value[i] != 0)
			return false;
	return true;
}

static void print_all(struct compare *c)
{
	for (unsigned k = 0; k < c->column[0].n; k++) {
		const struct result *first = &c->column[0].result[k];

		printf("%s%s\n", k ? "\n" : "", first->name);
		for (unsigned m = 0; m < first->nmetrics; m++) {
			const char *metric = first->metric[m].name;
			struct row r;

			pick_row(c, first->name, result_find, metric, &r);
			if (!all_zero(c, &r))
				print_row(c, &r, 1, results_better(metric),
					metric);
		}
	}
}

/* --- cases that are not everywhere ---------------------------------------- */

static void say_missing(struct compare *c, unsigned in, unsigned from)
{
	const struct results *a = &c->column[in], *b = &c->column[from];

	for (unsigned k = 0; k < a->n; k++) {
		if (results_find(b, a->result[k].name))
			continue;
		c->missing++;
		client_error(EXIT_OK, c->command, "%s: no case '%s', of %s",
			b->path, a->result[k].name, a->path);
	}
}

static void find_missing(struct compare *c)
{
	for (unsigned i = 1; i < c->ncolumns; i++) {
		say_missing(c, 0, i);
		say_missing(c, i, 0);
	}
}

static bool have_common(const struct compare *c)
{
	for (unsigned k = 0; k < c->column[0].n; k++)
		for (unsigned i = 1; i < c->ncolumns; i++)
			if (results_find(
				    &c->column[i], c->column[0].result[k].name))
				return true;
	return false;
}

/* --- the command ---------------------------------------------------------- */

static int parse_threshold(struct compare *c, const char *text)
{
	char *end;

	c->threshold = strtod(text, &end);
	if (end != text && *end == '%')
		end++;
	if (end != text && !*end && c->threshold >= 0 && c->threshold <= 100)
		return 0;
	return client_error(TROUBLE, c->command,
		"--threshold %s: not a percentage from 0 to 100", text);
}

/* True to go on, else *code is the exit code. */
static bool parse(struct compare *c, int argc, char **argv, int *code)
{
	static const struct option options[] = {
		{"all", no_argument, NULL, 'a'},
		{"threshold", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int o;

	while ((o = client_getopt(argc, argv, ":h", options)) != -1) {
		*code = TROUBLE;
		if (o == 'a') {
			c->all = true;
		} else if (o == 't') {
			if (parse_threshold(c, optarg))
				return false;
		} else {
			if (o == 'h') {
				help();
				*code = EXIT_OK;
			}
			return false;
		}
	}
	return true;
}

static int load_column(
	struct compare *c, const char *path, enum results_side side)
{
	int err = results_load(&c->column[c->ncolumns], c->command, path, side);

	if (err)
		return TROUBLE;
	c->ncolumns++;
	return EXIT_OK;
}

/* One file of two sides is two columns. */
static int load_alone(struct compare *c, const char *path)
{
	int code = load_column(c, path, RESULTS_BEFORE);

	if (code)
		return code;
	if (!c->column[0].sided)
		return client_error(TROUBLE, c->command,
			"%s: has no before and after: name the file to "
			"compare it with",
			path);
	return load_column(c, path, RESULTS_AFTER);
}

static int load_files(struct compare *c, int n, char **paths)
{
	int code = EXIT_OK;

	if (n < 1)
		return client_error(TROUBLE, c->command,
			"FILE is missing; try '%s --help'", c->command);
	if (n > MAX_COLUMNS)
		return client_error(
			TROUBLE, c->command, "at most %d files", MAX_COLUMNS);
	if (n == 1)
		return load_alone(c, paths[0]);
	for (int i = 0; i < n && !code; i++)
		code = load_column(c, paths[i], RESULTS_AFTER);
	return code;
}

static int compare(struct compare *c, bool sides)
{
	int code = EXIT_OK;

	if (!have_common(c))
		return client_error(TROUBLE, c->command,
			"%s and the others have no case in common",
			c->column[0].path);
	find_missing(c);
	print_head(c, sides);
	if (c->all)
		print_all(c);
	else
		code = print_main(c);
	if (fflush(stdout) || ferror(stdout))
		return client_error(TROUBLE, c->command, "cannot write");
	if (code || c->threshold < 0)
		return code;
	return c->worse || c->missing ? WORSE : EXIT_OK;
}

int cmd_compare(int argc, char **argv)
{
	struct compare c = {.command = argv[0], .threshold = -1};
	int code;

	if (!parse(&c, argc, argv, &code))
		return code;
	code = load_files(&c, argc - optind, argv + optind);
	if (!code)
		code = compare(&c, argc - optind == 1);
	for (unsigned i = 0; i < c.ncolumns; i++)
		results_free(&c.column[i]);
	return code;
}
