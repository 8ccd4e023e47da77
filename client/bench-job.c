/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-job.c: one job: a thread with a connection of its own.
 *
 *   prepare -> barrier -> run -> final flush -> [read back and verify]
 *              |<--- measured ------------->|
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"

void bench_job_fail(struct bench_job *job, const char *fmt, ...)
{
	va_list ap;

	if (job->failure.failed)
		return;
	va_start(ap, fmt);
	vsnprintf(job->failure.text, sizeof(job->failure.text), fmt, ap);
	va_end(ap);
	job->failure.failed = true;
	atomic_store(job->stop, true);
}

int bench_job_prepare(struct bench_job *job)
{
	const struct bench_spec *spec = job->spec;
	size_t stride = (spec->bs + 4095) & ~(size_t)4095;
	uint64_t seed = bench_mix(spec->seed + job->number);

	job->slots = calloc(spec->iodepth, sizeof(*job->slots));
	if (!job->slots ||
		posix_memalign(
			(void **)&job->memory, 4096, stride * spec->iodepth)) {
		job->memory = NULL;
		return -ENOMEM;
	}
	if (spec->verify && spec->read_percent < 100) {
		job->versions = calloc(job->blocks, sizeof(*job->versions));
		if (!job->versions)
			return -ENOMEM;
	}
	bench_pattern_noise(job->memory, stride * spec->iodepth, seed);
	for (unsigned i = spec->iodepth; i--;) {
		struct bench_slot *slot = &job->slots[i];

		slot->job = job;
		slot->buf = job->memory + i * stride;
		slot->next_idle = job->idle;
		job->idle = slot;
	}
	job->random = seed;
	bench_offset_init(&job->order, spec->random, job->blocks, seed);
	return 0;
}

void bench_job_free(struct bench_job *job)
{
	/* A server that failed or hangs is left without a goodbye. */
	if (job->nbd && !job->inflight && !job->failure.failed)
		nbd_shutdown(job->nbd, 0);
	if (job->nbd)
		nbd_close(job->nbd);
	free(job->slots);
	free(job->memory);
	free(job->versions);
}

static enum bench_op choose_op(struct bench_job *job)
{
	unsigned percent = job->spec->read_percent;

	if (percent == 0 || percent == 100)
		return percent ? BENCH_READ : BENCH_WRITE;
	job->random = bench_mix(job->random);
	return job->random % 100 < percent ? BENCH_READ : BENCH_WRITE;
}

static bool is_over(const struct bench_job *job)
{
	const struct bench_spec *spec = job->spec;

	if (job->failure.failed ||
		atomic_load_explicit(job->stop, memory_order_relaxed))
		return true;
	if (spec->runtime_ns && job->now_ns - job->start_ns >= spec->runtime_ns)
		return true;
	return !spec->time_based && job->issued_bytes >= job->limit_bytes;
}

/* When the next request may go out, by --rate; 0: now. */
static uint64_t rate_wait(const struct bench_job *job)
{
	const struct bench_spec *spec = job->spec;
	uint64_t due;

	if (!spec->rate)
		return 0;
	due = job->start_ns +
		(uint64_t)((double)job->issued_bytes * 1e9 /
			(double)spec->rate);
	if (due <= job->now_ns)
		return 0;
	if (spec->runtime_ns && due > job->start_ns + spec->runtime_ns)
		return job->start_ns + spec->runtime_ns;
	return due;
}

static void submit_next(struct bench_job *job)
{
	enum bench_op op = choose_op(job);

	/* A block must not be in flight twice if it is to be verified. */
	if (job->versions && bench_offset_at_end(&job->order)) {
		bench_queue_drain(job);
		if (is_over(job))
			return;
	}
	bench_queue_submit(job, op, bench_offset_next(&job->order));
	job->issued_bytes += job->spec->bs;
	if (op == BENCH_WRITE)
		job->unsynced++;
}

static bool flush_is_due(const struct bench_job *job)
{
	return job->spec->fsync && job->unsynced >= job->spec->fsync;
}

static void run(struct bench_job *job)
{
	while (!is_over(job)) {
		uint64_t wait = 0;

		while (job->idle && !is_over(job) && !wait) {
			if (flush_is_due(job)) {
				job->unsynced = 0;
				bench_queue_submit(job, BENCH_FLUSH, 0);
				continue;
			}
			wait = rate_wait(job);
			if (!wait)
				submit_next(job);
		}
		if (!is_over(job))
			bench_queue_wait(job, wait);
		if (wait)
			job->now_ns = clock_ns();
	}
	bench_queue_drain(job);
}

/* The flush that makes the figure honest: what was written is durable. */
static void final_flush(struct bench_job *job)
{
	uint64_t start = clock_ns();

	if (!job->spec->end_fsync || !job->flushes ||
		!job->latency[BENCH_WRITE].count || atomic_load(job->stop))
		return;
	bench_queue_submit(job, BENCH_FLUSH, 0);
	bench_queue_drain(job);
	job->end_flush_ns = clock_ns() - start;
}

static void read_back(struct bench_job *job)
{
	job->checking = true;
	for (uint64_t i = 0; i < job->blocks && !atomic_load(job->stop); i++) {
		if (!job->versions[i])
			continue;
		while (!job->idle && !atomic_load(job->stop))
			bench_queue_wait(job, 0);
		if (job->idle)
			bench_queue_submit(job, BENCH_READ, i);
	}
	bench_queue_drain(job);
}

void *bench_job_thread(void *arg)
{
	struct bench_job *job = arg;

	pthread_barrier_wait(job->start);
	job->start_ns = job->now_ns = clock_ns();
	run(job);
	final_flush(job);
	job->end_ns = clock_ns();
	if (job->versions && !atomic_load(job->stop))
		read_back(job);
	sem_post(job->ended);
	return NULL;
}
