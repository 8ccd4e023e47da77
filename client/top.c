/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top.c: `weir top`: what a server does just now.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/size.h"
#include "client.h"
#include "top.h"

#define DEFAULT_INTERVAL_MS 2000U
#define MIN_INTERVAL_MS 100U
#define MAX_INTERVAL_MS 86400000U

/* --- --batch -------------------------------------------------------------- */

static void print_sample(const struct top_options *o, const json_t *before,
	const json_t *now, uint64_t ms)
{
	struct top_page page = {0};
	struct top_rows rows;

	top_rows_make(&rows, before, now, (double)ms / 1000);
	top_rows_sort(&rows, o->sort, false);
	top_title(
		top_page_line(&page), o->control, &rows, o->sort, false, true);
	top_page_line(&page);
	top_view(&page, &rows, TOP_COLUMNS, true);
	for (size_t i = 0; i < page.lines; i++)
		puts(page.line[i].text);
	putchar('\n');
	top_rows_free(&rows);
	top_page_free(&page);
}

static void sleep_until(uint64_t ms)
{
	uint64_t now = clock_ms();
	struct timespec t;

	if (now >= ms)
		return;
	t.tv_sec = (time_t)((ms - now) / 1000);
	t.tv_nsec = (long)((ms - now) % 1000) * 1000000;
	nanosleep(&t, NULL);
}

/* A sample is of an interval: the first comes after it. */
static int batch(const struct top_options *o, const char *command)
{
	json_t *before = control_call(command, o->control, "stats"), *now;
	uint64_t then = clock_ms(), ms;

	for (unsigned i = 0; before && (!o->samples || i < o->samples); i++) {
		sleep_until(then + o->interval_ms);
		now = control_call(command, o->control, "stats");
		ms = clock_ms();
		if (now)
			print_sample(o, before, now, ms - then);
		json_decref(before);
		before = now;
		then = ms;
		if (fflush(stdout)) {
			json_decref(before);
			return client_error(EXIT_IO, command,
				"cannot write: %s", strerror(errno));
		}
	}
	if (!before)
		return EXIT_IO;
	json_decref(before);
	return EXIT_OK;
}

/* --- options -------------------------------------------------------------- */

static void help(void)
{
	puts("usage: weir top [OPTIONS] CONTROL\n\n"
	     "Show what the server with the control socket CONTROL does, over "
	     "and\n"
	     "over: stores, requests, clients. Keys: q quits, ? explains.\n\n"
	     "  -b, --batch        print it, for scripts\n"
	     "  -n, --samples N    end after N of them\n"
	     "  --interval TIME    how often (default 2s)\n"
	     "  --sort KEY         rate, read, write, dirty or name\n"
	     "  --help             this");
}

static int take_samples(struct top_options *o, const char *command)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(optarg, &end, 10);
	if (*optarg < '0' || *optarg > '9' || *end || errno || !n ||
		n > 1000000000)
		return client_error(EXIT_USAGE, command,
			"-n %s: expected a number from 1 to 1000000000",
			optarg);
	o->samples = (unsigned)n;
	return EXIT_OK;
}

static int take_interval(struct top_options *o, const char *command)
{
	uint64_t ns;

	if (time_parse(optarg, &ns) ||
		ns < MIN_INTERVAL_MS * UINT64_C(1000000) ||
		ns > MAX_INTERVAL_MS * UINT64_C(1000000))
		return client_error(EXIT_USAGE, command,
			"--interval %s: expected a time from 100ms to 24h",
			optarg);
	o->interval_ms = ns / 1000000;
	return EXIT_OK;
}

static int take_sort(struct top_options *o, const char *command)
{
	for (unsigned i = 0; i < TOP_SORTS; i++) {
		if (strcmp(optarg, top_sort_name[i]))
			continue;
		o->sort = (enum top_sort)i;
		return EXIT_OK;
	}
	return client_error(EXIT_USAGE, command,
		"--sort %s: expected rate, read, write, dirty or name", optarg);
}

/* True to go on, else *code is the exit code. */
static bool take_options(
	struct top_options *o, int argc, char **argv, int *code)
{
	static const struct option options[] = {
		{"batch", no_argument, NULL, 'b'},
		{"samples", required_argument, NULL, 'n'},
		{"interval", required_argument, NULL, 'i'},
		{"sort", required_argument, NULL, 'S'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	*code = EXIT_OK;
	while ((c = client_getopt(argc, argv, ":bn:h", options)) != -1) {
		if (c == 'b')
			o->batch = true;
		else if (c == 'n')
			*code = take_samples(o, argv[0]);
		else if (c == 'i')
			*code = take_interval(o, argv[0]);
		else if (c == 'S')
			*code = take_sort(o, argv[0]);
		else
			*code = c == 'h' ? EXIT_OK : EXIT_USAGE;
		if (c == 'h')
			help();
		if (c == 'h' || *code)
			return false;
	}
	return true;
}

int cmd_top(int argc, char **argv)
{
	struct top_options o = {.interval_ms = DEFAULT_INTERVAL_MS};
	int code;

	if (!take_options(&o, argc, argv, &code))
		return code;
	o.control = client_one_argument(argc, argv, "CONTROL");
	if (!o.control)
		return EXIT_USAGE;
	return o.batch ? batch(&o, argv[0]) : top_screen(&o, argv[0]);
}
