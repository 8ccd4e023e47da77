/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-run.c: one run: checks the plan against the exports, starts the jobs
 * together, shows progress, adds up. All on the command's thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"

#define PROGRESS_NS 200000000
#define MAX_REQUEST (32U << 20) /* when the server names no maximum */

struct run {
	const struct bench_options *options;
	struct bench_spec spec;
	struct bench_job *jobs;
	pthread_barrier_t start;
	sem_t ended;
	atomic_bool stop;
	bool interrupted;
};

static const char *uri_of(const struct run *run, unsigned job)
{
	return run->options->uris[job % run->options->nuris];
}

/* --- the plan ------------------------------------------------------------ */

static int check_blocks(const struct run *run, struct nbd_handle *nbd)
{
	const char *command = run->options->command;
	int64_t min = nbd_get_block_size(nbd, LIBNBD_SIZE_MINIMUM);
	int64_t max = nbd_get_block_size(nbd, LIBNBD_SIZE_MAXIMUM);
	uint64_t bs = run->spec.bs;

	if (max <= 0 || max > MAX_REQUEST)
		max = MAX_REQUEST;
	if (bs > (uint64_t)max)
		return client_error(EXIT_USAGE, command,
			"--bs %llu: the server takes %lld bytes at most",
			(unsigned long long)bs, (long long)max);
	if (min > 1 && (bs % (uint64_t)min || run->spec.offset % (uint64_t)min))
		return client_error(EXIT_USAGE, command,
			"--bs and --offset must be multiples of the server's "
			"minimum, %lld bytes",
			(long long)min);
	if (run->spec.read_percent < 100 && nbd_is_read_only(nbd) > 0)
		return client_error(EXIT_USAGE, command,
			"the export is read-only; try --rw read or randread");
	return EXIT_OK;
}

/* Where the size or the increment were left open. */
static void resolve_regions(struct bench_spec *spec, uint64_t export)
{
	uint64_t room = export > spec->offset ? export - spec->offset : 0;

	if (!spec->size && spec->offset_increment)
		spec->size = spec->offset_increment;
	if (!spec->size && spec->verify)
		spec->size = room / spec->numjobs;
	if (!spec->size)
		spec->size = room;
	spec->size -= spec->size % spec->bs;
	if (!spec->offset_increment && spec->verify)
		spec->offset_increment = spec->size;
}

static int plan_job(struct run *run, unsigned number, uint64_t export)
{
	const struct bench_spec *spec = &run->spec;
	struct bench_job *job = &run->jobs[number];
	uint64_t io = spec->io_size ? spec->io_size : spec->size;

	job->spec = spec;
	job->number = number;
	job->start = &run->start;
	job->ended = &run->ended;
	job->stop = &run->stop;
	job->flushes = nbd_can_flush(job->nbd) > 0;
	job->offset = spec->offset + number * spec->offset_increment;
	job->blocks = spec->size / spec->bs;
	job->limit_bytes = io - io % spec->bs;
	if (!job->blocks || !job->limit_bytes)
		return client_error(EXIT_USAGE, run->options->command,
			"no room for one block of %llu bytes",
			(unsigned long long)spec->bs);
	if (job->offset > export || spec->size > export - job->offset)
		return client_error(EXIT_USAGE, run->options->command,
			"job %u's region, %llu bytes at %llu, ends past the "
			"export's %llu",
			number + 1, (unsigned long long)spec->size,
			(unsigned long long)job->offset,
			(unsigned long long)export);
	if (bench_job_prepare(job))
		return client_error(
			EXIT_IO, run->options->command, "no memory");
	return EXIT_OK;
}

static int prepare_jobs(struct run *run)
{
	const char *command = run->options->command;

	for (unsigned i = 0; i < run->spec.numjobs; i++) {
		struct nbd_handle *nbd =
			connect_open(command, uri_of(run, i), false);
		int64_t size;
		int r;

		run->jobs[i].nbd = nbd;
		if (!nbd)
			return EXIT_IO;
		/* Every byte of a good answer is written: no need to clear
		 * the buffer first. */
		nbd_set_pread_initialize(nbd, false);
		size = nbd_get_size(nbd);
		if (size < 0)
			return connect_error(command, uri_of(run, i));
		r = check_blocks(run, nbd);
		if (!i)
			resolve_regions(&run->spec, (uint64_t)size);
		if (!r)
			r = plan_job(run, i, (uint64_t)size);
		if (r)
			return r;
	}
	return EXIT_OK;
}

/* --- the run ------------------------------------------------------------- */

static uint64_t client_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000U +
		(uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int server_cpu(const struct bench_options *o, uint64_t *cpu_us)
{
	json_t *stats = control_call(o->command, o->control, "stats");
	bool known = stats && control_cpu(stats, cpu_us);

	json_decref(stats);
	if (!stats)
		return EXIT_IO;
	if (!known)
		return client_error(EXIT_IO, o->command,
			"control socket %s: it does not tell the server's CPU",
			o->control);
	return EXIT_OK;
}

static void show_progress(
	const struct run *run, uint64_t began, uint64_t last[2], uint64_t dt)
{
	uint64_t bytes = 0, ios = 0;

	for (unsigned i = 0; i < run->spec.numjobs; i++) {
		bytes += atomic_load(&run->jobs[i].shown_bytes);
		ios += atomic_load(&run->jobs[i].shown_ios);
	}
	fprintf(stderr, "\r%s: %.0f s, %.1f MB/s, %.0f IOPS \033[K",
		run->spec.name, (double)(clock_ns() - began) / 1e9,
		(double)(bytes - last[0]) * 1e3 / (double)dt,
		(double)(ios - last[1]) * 1e9 / (double)dt);
	last[0] = bytes;
	last[1] = ios;
}

/* The first ^C ends the run and shows what it measured, a second one ends
 * the program. The signal is blocked in all threads while the jobs run. */
static void check_interrupt(struct run *run, const sigset_t *signals)
{
	struct timespec none = {0};

	if (run->interrupted || sigtimedwait(signals, NULL, &none) < 0)
		return;
	run->interrupted = true;
	atomic_store(&run->stop, true);
	pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}

/* A semaphore's clock is the real one; what is 200 ms may well be off. */
static bool wait_ended(struct run *run)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += PROGRESS_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	return !sem_timedwait(&run->ended, &until);
}

static void wait_jobs(struct run *run, const sigset_t *signals)
{
	uint64_t began = clock_ns(), shown = began, last[2] = {0, 0};
	bool terminal = isatty(STDERR_FILENO) == 1;
	unsigned ended = 0;

	while (ended < run->spec.numjobs) {
		uint64_t now;

		if (wait_ended(run)) {
			ended++;
			continue;
		}
		check_interrupt(run, signals);
		now = clock_ns();
		if (terminal && now - shown >= PROGRESS_NS) {
			show_progress(run, began, last, now - shown);
			shown = now;
		}
	}
	if (terminal)
		fprintf(stderr, "\r\033[K");
}

/* Threads that were started must all meet at the barrier: when one cannot
 * be, those wait for the ones missing here, with the stop flag set. */
static int run_jobs(struct run *run)
{
	unsigned n = run->spec.numjobs, started = 0;
	sigset_t signals, old;
	int r = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, &old);
	pthread_barrier_init(&run->start, NULL, n);
	for (; !r && started < n; started += !r)
		r = pthread_create(&run->jobs[started].thread, NULL,
			bench_job_thread, &run->jobs[started]);
	if (r) { /* no way to go on, nor back: the barrier waits for n */
		client_error(EXIT_USAGE, run->options->command,
			"cannot start thread %u of %u: %s", started + 1, n,
			strerror(r));
		exit(EXIT_USAGE);
	}
	wait_jobs(run, &signals);
	for (unsigned i = 0; i < n; i++)
		pthread_join(run->jobs[i].thread, NULL);
	pthread_barrier_destroy(&run->start);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return EXIT_OK;
}

/* --- the sum ------------------------------------------------------------- */

static void add_job(struct bench_result *result, const struct bench_job *job)
{
	for (unsigned op = 0; op < BENCH_OPS; op++) {
		hist_merge(&result->latency[op], &job->latency[op]);
		result->bytes[op] += job->bytes[op];
	}
	if (job->end_flush_ns > result->end_flush_ns)
		result->end_flush_ns = job->end_flush_ns;
	result->verified += job->verified;
	result->corrupt += job->corrupt;
}

static void add_up(const struct run *run, struct bench_result *result)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (unsigned i = 0; i < run->spec.numjobs; i++) {
		const struct bench_job *job = &run->jobs[i];

		add_job(result, job);
		start = job->start_ns < start ? job->start_ns : start;
		end = job->end_ns > end ? job->end_ns : end;
	}
	result->elapsed_ns = end - start;
	result->interrupted = run->interrupted;
	result->spec = run->spec;
}

/* Say the first failure there is; corrupt data last. */
static int say_failure(const struct run *run, const struct bench_result *r)
{
	const char *command = run->options->command;

	for (unsigned i = 0; i < run->spec.numjobs; i++)
		if (run->jobs[i].failure.failed)
			return client_error(EXIT_IO, command, "%s: %s",
				uri_of(run, i), run->jobs[i].failure.text);
	for (unsigned i = 0; i < run->spec.numjobs; i++)
		if (run->jobs[i].corrupt)
			return client_error(EXIT_IO, command,
				"%s: %s; %llu of %llu blocks are wrong",
				uri_of(run, i), run->jobs[i].failure.text,
				(unsigned long long)r->corrupt,
				(unsigned long long)r->verified);
	return EXIT_OK;
}

static int measure(struct run *run, struct bench_result *result)
{
	const struct bench_options *o = run->options;
	uint64_t server[2] = {0, 0}, client;
	int r = o->control ? server_cpu(o, &server[0]) : EXIT_OK;

	if (r)
		return r;
	client = client_cpu();
	r = run_jobs(run);
	result->client_cpu_us = client_cpu() - client;
	if (!r && o->control)
		r = server_cpu(o, &server[1]);
	result->server_cpu_us = server[1] - server[0];
	result->have_server_cpu = o->control && !r;
	add_up(run, result);
	return r ? r : say_failure(run, result);
}

int bench_run(const struct bench_options *o, const struct bench_spec *spec,
	struct bench_result *result)
{
	struct run run = {.options = o, .spec = *spec};
	int r;

	memset(result, 0, sizeof(*result));
	result->spec = *spec;
	sem_init(&run.ended, 0, 0);
	run.jobs = calloc(spec->numjobs, sizeof(*run.jobs));
	r = run.jobs ? prepare_jobs(&run)
		     : client_error(EXIT_IO, o->command, "no memory");
	if (!r)
		r = measure(&run, result);
	for (unsigned i = 0; run.jobs && i < spec->numjobs; i++)
		bench_job_free(&run.jobs[i]);
	free(run.jobs);
	sem_destroy(&run.ended);
	return r;
}
