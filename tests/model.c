/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.c: the engine against a flat array, seed after seed.
 *
 *   model [--first N] [--seeds N]         many seeds, each in its own process
 *   model --seed N [--ops M] [--verbose]  one, here; to repeat a failure
 *   model --pool ...                      over a pool
 *   model --pool --sabotage NAME ...      a pool with a fault of its own: ends
 *                                         well at the first seed that finds it
 *
 * Prints TAP, one line for a slice of the seeds.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model.h"
#include "placement/placement.h"

#define SLICES 10U
#define SEEDS 200U       /* without --seeds */
#define MOST_SECONDS 60U /* real, for one seed */

static void no_log(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

/* What is tested. */
static struct {
	bool pool;
	unsigned sabotage;
} subject;

static const struct {
	const char *name;
	unsigned bit;
} sabotages[] = {
	{"no-data-flush", POOL_SABOTAGE_NO_DATA_FLUSH},
	{"no-last-flush", POOL_SABOTAGE_NO_LAST_FLUSH},
	{"early-free", POOL_SABOTAGE_EARLY_FREE},
	{"busy-reuse", POOL_SABOTAGE_BUSY_REUSE},
	{"bad-record", POOL_SABOTAGE_BAD_RECORD},
};

static unsigned sabotage_named(const char *name)
{
	for (size_t i = 0; i < sizeof(sabotages) / sizeof(sabotages[0]); i++) {
		if (strcmp(sabotages[i].name, name) == 0)
			return sabotages[i].bit;
	}
	fprintf(stderr, "model: no sabotage is called %s\n", name);
	exit(1);
}

static void print_failure(const struct run *run)
{
	char plan[512];

	plan_print(&run->plan, plan, sizeof(plan));
	printf("# seed %" PRIu64 ": %s\n# %s\n", run->plan.seed, run->failure,
		plan);
	printf("# again: model %s--seed %" PRIu64 " --verbose\n",
		subject.pool ? "--pool " : "", run->plan.seed);
	fflush(stdout);
}

/* Good, bad, or good but with memory that could not be freed. */
enum outcome {
	GOOD,
	BAD,
	GOOD_LEAKY,
};

static enum outcome one_seed(uint64_t seed, unsigned ops, bool verbose)
{
	struct run *run = calloc(1, sizeof(*run));
	char plan[512];
	enum outcome outcome;

	if (!run)
		abort();
	run->verbose = verbose;
	run->plan.pool = subject.pool;
	run->plan.sabotage = subject.sabotage;
	if (verbose) {
		plan_make(&run->plan, seed, ops);
		plan_print(&run->plan, plan, sizeof(plan));
		printf("# %s\n", plan);
	}
	if (!run_seed(run, seed, ops)) {
		print_failure(run);
		return BAD; /* what a broken engine holds is not freed */
	}
	outcome = run->abandoned ? GOOD_LEAKY : GOOD;
	free(run);
	return outcome;
}

/* In a process of its own, so that a crash is one seed's. */
static bool seed_apart(uint64_t seed, unsigned ops)
{
	enum outcome outcome;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		alarm(MOST_SECONDS);
		outcome = one_seed(seed, ops, false);
		if (outcome == GOOD)
			exit(0); /* and have leaks looked for */
		_exit(outcome == GOOD_LEAKY ? 0 : 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		abort();
	if (WIFSIGNALED(status))
		printf("# seed %" PRIu64 ": killed by signal %d (%s)\n"
		       "# again: model --seed %" PRIu64 " --verbose\n",
			seed, WTERMSIG(status), strsignal(WTERMSIG(status)),
			seed);
	else if (WEXITSTATUS(status) > 1)
		printf("# seed %" PRIu64 ": exit status %d\n", seed,
			WEXITSTATUS(status));
	return status == 0;
}

static int many_seeds(uint64_t first, uint64_t count, unsigned ops)
{
	uint64_t bad = 0;

	printf("1..%u\n", SLICES);
	for (unsigned s = 0; s < SLICES; s++) {
		uint64_t from = first + count * s / SLICES;
		uint64_t end = first + count * (s + 1) / SLICES;
		uint64_t was = bad;

		for (uint64_t seed = from; seed < end; seed++)
			bad += !seed_apart(seed, ops);
		printf("%s %u - seeds %" PRIu64 " to %" PRIu64 "\n",
			bad == was ? "ok" : "not ok", s + 1, from, end - 1);
		fflush(stdout);
	}
	if (bad)
		printf("# %" PRIu64 " of %" PRIu64 " seeds failed\n", bad,
			count);
	return bad ? 1 : 0;
}

/* The sabotage must be found. */
static int sabotaged_seeds(uint64_t first, uint64_t count)
{
	printf("1..1\n");
	for (uint64_t seed = first; seed < first + count; seed++) {
		if (!seed_apart(seed, 0)) {
			printf("ok 1 - found by seed %" PRIu64 "\n", seed);
			return 0;
		}
	}
	printf("not ok 1 - not found by %" PRIu64 " seeds\n", count);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"first", required_argument, NULL, 'f'},
		{"seeds", required_argument, NULL, 'n'},
		{"ops", required_argument, NULL, 'o'},
		{"verbose", no_argument, NULL, 'v'},
		{"pool", no_argument, NULL, 'p'},
		{"sabotage", required_argument, NULL, 'b'},
		{NULL, 0, NULL, 0},
	};
	const char *seeds = getenv("MODEL_SEEDS");
	uint64_t seed = 0, first = 1;
	uint64_t count = seeds ? strtoull(seeds, NULL, 0) : SEEDS;
	bool one = false, verbose = false;
	unsigned ops = 0;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		uint64_t n = optarg ? strtoull(optarg, NULL, 0) : 0;

		if (c == 's')
			one = true, seed = n;
		else if (c == 'f')
			first = n;
		else if (c == 'n')
			count = n;
		else if (c == 'o')
			ops = (unsigned)n;
		else if (c == 'v')
			verbose = true;
		else if (c == 'p')
			subject.pool = true;
		else if (c == 'b')
			subject.sabotage = sabotage_named(optarg);
		else
			return 1;
	}
	/* Thousands of injected errors would be reported. */
	log_setup("model", verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR,
		verbose ? NULL : no_log, NULL);
	if (!one && subject.sabotage)
		return sabotaged_seeds(first, count);
	if (!one)
		return many_seeds(first, count, ops);
	printf("1..1\n");
	one = one_seed(seed, ops, verbose) != BAD;
	printf("%s 1 - seed %" PRIu64 "\n", one ? "ok" : "not ok", seed);
	fflush(stdout);
	_exit(one ? 0 : 1);
}
