/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-queue.c: a job's requests in flight, over libnbd's asynchronous API.
 *
 *   idle --submit--> in flight --completed()--> idle
 *
 *  1. completed() runs inside bench_queue_wait(), on the job's thread; it may
 *     not call libnbd on the handle, so it only notes and frees the slot.
 *  2. libnbd is told to read only when poll(2) said that it can: told so in
 *     vain it would wait for a reply and not go on sending.
 *  3. The caller refills after each completion, so that the server always
 *     has work.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"

static const char *const op_names[BENCH_OPS] = {"read", "write", "flush"};

static void check_block(struct bench_job *job, const struct bench_slot *slot)
{
	const struct bench_spec *spec = job->spec;
	struct bench_pattern expect = {
		.offset = job->offset + slot->block * spec->bs,
		.seed = spec->seed,
		.version = job->versions ? job->versions[slot->block] : 0};
	char text[160];
	const char *wrong =
		bench_pattern_check(slot->buf, spec->bs, &expect, text);

	job->verified++;
	if (!wrong)
		return;
	if (!job->corrupt++)
		snprintf(job->failure.text, sizeof(job->failure.text),
			"verify: offset %llu: %s",
			(unsigned long long)expect.offset, wrong);
}

static void count(struct bench_job *job, const struct bench_slot *slot)
{
	hist_add(&job->latency[slot->op], job->now_ns - slot->start_ns);
	if (slot->op == BENCH_FLUSH)
		return;
	job->bytes[slot->op] += job->spec->bs;
	atomic_store_explicit(&job->shown_bytes,
		job->bytes[BENCH_READ] + job->bytes[BENCH_WRITE],
		memory_order_relaxed);
	atomic_store_explicit(&job->shown_ios,
		job->latency[BENCH_READ].count +
			job->latency[BENCH_WRITE].count,
		memory_order_relaxed);
}

static int completed(void *user_data, int *error)
{
	struct bench_slot *slot = user_data;
	struct bench_job *job = slot->job;

	job->now_ns = clock_ns();
	if (*error)
		bench_job_fail(job, "%s of %llu bytes at offset %llu: %s",
			op_names[slot->op],
			slot->op == BENCH_FLUSH
				? 0ULL
				: (unsigned long long)job->spec->bs,
			(unsigned long long)(job->offset +
				slot->block * job->spec->bs),
			strerror(*error));
	else if (!job->checking)
		count(job, slot);
	if (!*error && slot->op == BENCH_READ && job->spec->verify &&
		(job->checking || job->spec->read_percent == 100))
		check_block(job, slot);
	job->inflight--;
	slot->next_idle = job->idle;
	job->idle = slot;
	return 1;
}

/* What a write carries; the buffer is this slot's alone. */
static void fill(struct bench_job *job, struct bench_slot *slot)
{
	const struct bench_spec *spec = job->spec;
	struct bench_pattern p = {
		.offset = job->offset + slot->block * spec->bs,
		.seed = spec->seed,
		.version = job->latency[BENCH_WRITE].count + 1};

	if (!spec->verify) {
		bench_pattern_stamp(slot->buf, spec->bs, &p);
		return;
	}
	p.version = ++job->versions[slot->block];
	bench_pattern_fill(slot->buf, spec->bs, &p);
}

void bench_queue_submit(struct bench_job *job, enum bench_op op, uint64_t block)
{
	struct bench_slot *slot = job->idle;
	uint64_t offset = job->offset + block * job->spec->bs;
	size_t bs = job->spec->bs;
	nbd_completion_callback done = {
		.callback = completed, .user_data = slot};
	int64_t cookie;

	job->idle = slot->next_idle;
	slot->op = op;
	slot->block = block;
	if (op == BENCH_WRITE)
		fill(job, slot);
	job->inflight++;
	slot->start_ns = clock_ns();
	if (op == BENCH_READ)
		cookie =
			nbd_aio_pread(job->nbd, slot->buf, bs, offset, done, 0);
	else if (op == BENCH_WRITE)
		cookie = nbd_aio_pwrite(
			job->nbd, slot->buf, bs, offset, done, 0);
	else
		cookie = nbd_aio_flush(job->nbd, done, 0);
	if (cookie >= 0)
		return;
	/* Not queued: `done` was not and will not be called. */
	job->inflight--;
	slot->next_idle = job->idle;
	job->idle = slot;
	bench_job_fail(job, "%s at offset %llu: %s", op_names[op],
		(unsigned long long)offset, nbd_get_error());
}

static int poll_once(
	struct bench_job *job, struct pollfd *fd, uint64_t until_ns)
{
	unsigned direction = nbd_aio_get_direction(job->nbd);
	struct timespec timeout;
	uint64_t left = 0;

	fd->fd = nbd_aio_get_fd(job->nbd);
	fd->revents = 0;
	fd->events = 0;
	if (direction & LIBNBD_AIO_DIRECTION_READ)
		fd->events |= POLLIN;
	if (direction & LIBNBD_AIO_DIRECTION_WRITE)
		fd->events |= POLLOUT;
	if (until_ns) {
		job->now_ns = clock_ns();
		if (until_ns > job->now_ns)
			left = until_ns - job->now_ns;
		timeout.tv_sec = (time_t)(left / 1000000000U);
		timeout.tv_nsec = (long)(left % 1000000000U);
	}
	return ppoll(fd, 1, until_ns ? &timeout : NULL, NULL);
}

static int notify(struct nbd_handle *nbd, int revents)
{
	if (revents & (POLLIN | POLLHUP | POLLERR))
		return nbd_aio_notify_read(nbd);
	return nbd_aio_notify_write(nbd);
}

/* A server that hangs must not keep ^C out: look up now and then. */
#define STOP_CHECK_NS 200000000

void bench_queue_wait(struct bench_job *job, uint64_t until_ns)
{
	unsigned before = job->inflight;

	while (job->inflight == before && !job->failure.failed) {
		uint64_t look = clock_ns() + STOP_CHECK_NS;
		bool last = until_ns && until_ns <= look;
		struct pollfd fd;
		int n;

		n = poll_once(job, &fd, last ? until_ns : look);
		if (n < 0 && errno != EINTR)
			bench_job_fail(job, "poll: %s", strerror(errno));
		if ((!n && last) || atomic_load(job->stop))
			return;
		if (n <= 0)
			continue;
		if (notify(job->nbd, fd.revents))
			bench_job_fail(job, "connection: %s", nbd_get_error());
	}
}

void bench_queue_drain(struct bench_job *job)
{
	while (job->inflight && !job->failure.failed && !atomic_load(job->stop))
		bench_queue_wait(job, 0);
}
