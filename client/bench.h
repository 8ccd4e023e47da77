/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h: what the files of `weir bench` share.
 *
 *   bench.c          the command: one run, or the short default table
 *   bench-options.c  the command line, in fio's words
 *   bench-run.c      starts the jobs together, waits, adds up
 *   bench-job.c      one job: one thread, one connection; its phases
 *   bench-queue.c    its requests in flight
 *   bench-offset.c   which block is next
 *   bench-pattern.c  what is in a block, and whether it still is
 *   bench-report.c   text and JSON
 *
 *  1. Between start and end a job's thread touches nothing that another
 *     thread writes, but for the stop flag: no lock, no shared line.
 *  2. Connecting, allocating and adding up are outside the measured time;
 *     the final flush is inside.
 *  3. An error of one request ends the run.
 */
#ifndef WEIR_CLIENT_BENCH_H
#define WEIR_CLIENT_BENCH_H

#include <semaphore.h>
#include <stdatomic.h>
#include <pthread.h>

#include "client.h"
#include "hist.h"

enum bench_op {
	BENCH_READ,
	BENCH_WRITE,
	BENCH_FLUSH,
	BENCH_OPS
};

/* What one run does. Sizes in bytes, per job. */
struct bench_spec {
	const char *name; /* for people: "randwrite" */
	bool random;
	unsigned read_percent; /* 100: reads, 0: writes */
	uint64_t bs;
	unsigned iodepth, numjobs;
	uint64_t offset;           /* of the first job's region */
	uint64_t offset_increment; /* from a job's region to the next one's */
	uint64_t size;             /* of a region; 0: to the end */
	uint64_t io_size;          /* to move; 0: size */
	uint64_t runtime_ns;       /* 0: until io_size is moved */
	bool time_based;           /* until runtime, over and over */
	unsigned fsync;            /* flush after so many writes; 0: never */
	bool end_fsync;
	uint64_t rate; /* bytes per second; 0: as fast as it goes */
	uint64_t seed;
	bool verify;
};

struct bench_options {
	const char *command;
	char **uris;
	unsigned nuris;
	struct bench_spec spec;
	const char *control; /* NULL: no server CPU */
	bool json, force;
	bool suite; /* no --rw: the default table */
	bool mixed; /* reads and writes, rwmixread percent of reads */
	unsigned rwmixread;
	uint64_t given; /* which options were, the parser's */
};

/* --- bench-options.c ----------------------------------------------------- */

/* EXIT_OK, or an exit code with the error said; *done: help was printed. */
int bench_options_parse(
	int argc, char **argv, struct bench_options *o, bool *done);

/* --- bench-offset.c: which block is next --------------------------------- */

/* Each block of a region once per pass: in order, or in an order that looks
 * random and is another one each pass. */
struct bench_offset {
	bool random;
	uint64_t blocks, next;
	unsigned half_bits;
	uint64_t seed, pass;
};

void bench_offset_init(
	struct bench_offset *o, bool random, uint64_t blocks, uint64_t seed);
bool bench_offset_at_end(const struct bench_offset *o);
/* The next block's number; starts the next pass by itself. */
uint64_t bench_offset_next(struct bench_offset *o);

/* A well-mixed number from another (splitmix64's finalizer). */
uint64_t bench_mix(uint64_t x);

/* --- bench-pattern.c: what is in a block --------------------------------- */

#define BENCH_PATTERN_ALIGN 512 /* verify: bs is a multiple */

struct bench_pattern {
	uint64_t offset, seed, version;
};

/* Fill a buffer that is written without being verified. */
void bench_pattern_noise(void *buf, size_t n, uint64_t seed);
/* Make it this block's, cheaply. */
void bench_pattern_stamp(void *buf, size_t n, const struct bench_pattern *p);
/* Fill a block from its place, seed and version, with a checksum. */
void bench_pattern_fill(void *buf, size_t n, const struct bench_pattern *p);
/* Is it that? version 0: any. NULL: yes, else what is wrong, in `text`. */
const char *bench_pattern_check(const void *buf, size_t n,
	const struct bench_pattern *p, char text[160]);
/* Does it start like a block written by weir bench? */
bool bench_pattern_is_ours(const void *buf, size_t n);

/* --- bench-job.c --------------------------------------------------------- */

/* A request in flight, or an idle place for one. */
struct bench_slot {
	struct bench_job *job;
	struct bench_slot *next_idle;
	unsigned char *buf; /* bs bytes */
	enum bench_op op;
	uint64_t block; /* of the job's region */
	uint64_t start_ns;
};

struct bench_failure {
	bool failed;
	char text[320];
};

struct bench_job {
	/* Set up by bench-run.c. */
	const struct bench_spec *spec;
	struct nbd_handle *nbd;
	unsigned number;
	uint64_t offset, blocks, limit_bytes;
	bool flushes; /* the server can */
	pthread_barrier_t *start;
	sem_t *ended;
	atomic_bool *stop; /* of all jobs: an error, or ^C */

	/* The job's. */
	pthread_t thread;
	struct bench_offset order;
	struct bench_slot *slots, *idle;
	unsigned char *memory;
	uint32_t *versions; /* verify: of each block; 0: not written */
	uint64_t random;    /* state of the choice between read and write */
	uint64_t issued_bytes;
	unsigned unsynced; /* writes since the last flush */
	unsigned inflight;
	bool checking; /* the read-back of verify, not measured */
	uint64_t now_ns;

	/* The answer. */
	struct hist latency[BENCH_OPS];
	uint64_t bytes[BENCH_OPS];
	uint64_t start_ns, end_ns, end_flush_ns;
	uint64_t verified, corrupt; /* blocks */
	struct bench_failure failure;
	_Atomic uint64_t shown_bytes, shown_ios; /* for the progress line */
};

/* Memory for the requests; -ENOMEM. */
int bench_job_prepare(struct bench_job *job);
void bench_job_free(struct bench_job *job);
/* The thread. */
void *bench_job_thread(void *job);

/* Remember the job's first failure and stop all jobs. */
__attribute__((format(printf, 2, 3))) void bench_job_fail(
	struct bench_job *job, const char *fmt, ...);

/* --- bench-queue.c: of the job's thread ---------------------------------- */

/* Start a request in an idle slot (there must be one). */
void bench_queue_submit(
	struct bench_job *job, enum bench_op op, uint64_t block);
/* Wait for one or more requests to complete, or until `until_ns` (0: no
 * limit). Fails the job if the connection fails. */
void bench_queue_wait(struct bench_job *job, uint64_t until_ns);
/* Wait for all of them. */
void bench_queue_drain(struct bench_job *job);

/* --- bench-run.c --------------------------------------------------------- */

struct bench_result {
	struct bench_spec spec;
	struct hist latency[BENCH_OPS];
	uint64_t bytes[BENCH_OPS];
	uint64_t elapsed_ns, end_flush_ns;
	uint64_t client_cpu_us, server_cpu_us;
	bool have_server_cpu, interrupted;
	uint64_t verified, corrupt;
};

/* EXIT_OK, or an exit code with the error said. The result is filled in as
 * far as the run went. */
int bench_run(const struct bench_options *o, const struct bench_spec *spec,
	struct bench_result *result);

/* --- bench-report.c ------------------------------------------------------ */

void bench_report_text(
	const struct bench_options *o, const struct bench_result *r);
void bench_report_table_head(const struct bench_options *o);
void bench_report_table_row(const struct bench_result *r);
/* A new reference. */
json_t *bench_report_json(const struct bench_result *r);

#endif
