/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment.c: `weir experiment`: a result to reproduce, in one command.
 */
#include <errno.h>
#include <getopt.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "client.h"
#include "experiment.h"

static void help(void)
{
	puts("usage: weir experiment throttle|direct|append [OPTIONS]\n\n"
	     "throttle: dirty throttling as it was (throttle=legacy) and as it "
	     "is (ioless):\n"
	     "writers over simulated devices, in simulated time, under the "
	     "same\n"
	     "hard limit. A row is: MB/s before, the difference, MB/s after,\n"
	     "the most the device could do, the case.\n\n"
	     "direct: cache=writeback and cache=none over one to four disk "
	     "arrays.\n\n"
	     "append: durable appends to a pool, append=serial and async.\n\n"
	     "  --seconds N    throttle: simulated time of a case (default "
	     "600)\n"
	     "  --quick        less of it: of throttle 60 seconds\n"
	     "  --rows REGEX   only the cases whose names match\n"
	     "  --live DIR     direct, append: over real files in DIR, in real "
	     "time\n"
	     "  --runs N       direct, append: runs of each side, in turn; the "
	     "median\n"
	     "                 counts (default 1, with --live 3)\n"
	     "  --json FILE    write all figures, and of throttle a time "
	     "series of\n"
	     "                 each case\n"
	     "  --help         this");
}

static int bad(const char *command, const char *option, const char *value)
{
	return client_error(EXIT_USAGE, command,
		"%s %s: not a number of seconds from 10 to 100000", option,
		value);
}

/* 0, or an exit code and 1 added to it. */
static int options(struct experiment *e, int argc, char **argv)
{
	static const struct option known[] = {
		{"seconds", required_argument, NULL, 's'},
		{"quick", no_argument, NULL, 'q'},
		{"rows", required_argument, NULL, 'r'},
		{"json", required_argument, NULL, 'j'},
		{"live", required_argument, NULL, 'l'},
		{"runs", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'}, {0}};
	uint64_t runs;
	int c;

	while ((c = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (c) {
		case 's':
			if (size_parse(optarg, &e->seconds) ||
				e->seconds < 10 || e->seconds > 100000)
				return 1 + bad(argv[0], "--seconds", optarg);
			break;
		case 'q':
			e->seconds = 60;
			e->quick = true;
			break;
		case 'r':
			e->rows = optarg;
			break;
		case 'j':
			e->json = optarg;
			break;
		case 'l':
			e->live = optarg;
			break;
		case 'n':
			if (size_parse(optarg, &runs) || !runs ||
				runs > EXPERIMENT_RUNS)
				return 1 +
					client_error(EXIT_USAGE, argv[0],
						"--runs %s: not a number from "
						"1 to %u",
						optarg, EXPERIMENT_RUNS);
			e->runs = (unsigned)runs;
			break;
		case 'h':
			help();
			return 1 + EXIT_OK;
		default:
			return 1 + EXIT_USAGE;
		}
	}
	return 0;
}

int experiment_rows(const struct experiment *e, unsigned n,
	const char *(*name)(const void *rows, unsigned i), const void *rows,
	bool *match)
{
	bool any = false;
	regex_t re;

	if (e->rows && regcomp(&re, e->rows, REG_EXTENDED | REG_NOSUB))
		return client_error(EXIT_USAGE, e->command,
			"--rows %s: not a regular expression", e->rows);
	for (unsigned i = 0; i < n; i++) {
		match[i] = !e->rows || !regexec(&re, name(rows, i), 0, NULL, 0);
		any |= match[i];
	}
	if (e->rows)
		regfree(&re);
	if (e->rows && !any)
		return client_error(EXIT_USAGE, e->command,
			"--rows %s: matches no case", e->rows);
	return 0;
}

int experiment_write(const struct experiment *e, json_t *all)
{
	int err = json_dump_file(all, e->json, JSON_COMPACT);

	json_decref(all);
	if (err)
		return client_error(EXIT_IO, e->command,
			"%s: cannot be written: %s", e->json, strerror(errno));
	return 0;
}

static int throttle(struct experiment *e)
{
	int err = cells_make(e);

	if (err)
		return err;
	report_head();
	for (unsigned i = 0; i < e->ncells && !err; i++) {
		for (unsigned s = 0; s < SIDES && !err; s++)
			err = cell_run(e, &e->cell[i], s);
		if (!err)
			report_cell(&e->cell[i]);
	}
	if (!err)
		report_total(e);
	if (!err && e->json)
		err = report_json(e);
	cells_free(e);
	return err;
}

static const struct {
	const char *name;
	int (*run)(struct experiment *e);
} experiments[] = {
	{"throttle", throttle},
	{"direct", experiment_direct},
	{"append", experiment_append},
};

int cmd_experiment(int argc, char **argv)
{
	struct experiment e = {.command = argv[0], .seconds = 600};
	int code = options(&e, argc, argv);
	const char *name;

	if (code)
		return code - 1;
	name = client_one_argument(argc, argv, "the name of an experiment");
	if (!name)
		return EXIT_USAGE;
	for (size_t i = 0; i < sizeof(experiments) / sizeof(experiments[0]);
		i++) {
		if (!strcmp(name, experiments[i].name))
			return experiments[i].run(&e);
	}
	return client_error(EXIT_USAGE, argv[0],
		"%s: no such experiment (throttle, direct, append)", name);
}
