/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-sim-live.c: one device model under two live loops: its times are right
 * in real time too, shared by the loops, and nobody spins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "loop.h"
#include "store/store.h"

#define LOOPS 2U
#define WRITERS 4U /* of a loop */
#define COUNT 10U  /* writes of a writer */
#define LENGTH (256U << 10)
#define TOTAL ((uint64_t)LOOPS * WRITERS * COUNT * LENGTH)

static char data[LENGTH];

struct writer {
	struct store_io io;
	struct iovec iov;
	struct store *s;
	unsigned left;
	atomic_uint *failed;
	atomic_uint *running;
	struct call *call;
};

struct side {
	struct loop *l;
	struct store *s;
	unsigned id;
	atomic_uint running, failed;
	struct writer writer[WRITERS];
};

static void writer_done(struct store_io *io)
{
	struct writer *w = container_of(io, struct writer, io);

	if (io->error)
		atomic_fetch_add(w->failed, 1);
	if (w->left) {
		/* The writers of both loops stand in turn. */
		w->left--;
		w->io.offset += (uint64_t)LOOPS * WRITERS * LENGTH;
		store_submit(w->s, &w->io);
	} else if (w->io.op == STORE_WRITE) {
		w->io.op = STORE_FLUSH;
		w->io.length = 0;
		store_submit(w->s, &w->io);
	} else if (atomic_fetch_sub(w->running, 1) == 1) {
		call_done(w->call);
	}
}

static void side_begin(struct call *c)
{
	struct side *side = c->arg;

	atomic_store(&side->running, WRITERS);
	for (unsigned i = 0; i < WRITERS; i++) {
		struct writer *w = &side->writer[i];

		w->s = side->s;
		w->left = COUNT - 1;
		w->failed = &side->failed;
		w->running = &side->running;
		w->call = c;
		w->iov = (struct iovec){data, LENGTH};
		w->io.op = STORE_WRITE;
		w->io.offset = (uint64_t)(i * LOOPS + side->id) * LENGTH;
		w->io.length = LENGTH;
		w->io.iov = &w->iov;
		w->io.niov = 1;
		w->io.reactor = c->loop->r;
		w->io.done = writer_done;
		store_submit(w->s, &w->io);
	}
}

static void *side_thread(void *arg)
{
	struct side *side = arg;

	call(side->l, side_begin, side);
	return NULL;
}

static uint64_t now_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Write TOTAL and flush, from both loops; returns how long it took. */
static uint64_t write_from_two_loops(const char *spec)
{
	uint64_t cpu, wall, took;
	struct side side[LOOPS] = {0};
	pthread_t thread[LOOPS];
	void *loop[LOOPS];
	struct error error = {""};
	struct store *s;

	if (store_open(spec, 0, &s, &error))
		fail_msg("%s", error.text);
	for (unsigned i = 0; i < LOOPS; i++) {
		assert_int_equal(loop_setup(&loop[i], REACTOR_AUTO, 0), 0);
		side[i].l = loop[i];
		side[i].s = s;
		side[i].id = i;
	}
	wall = now_of(CLOCK_MONOTONIC);
	cpu = now_of(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; i < LOOPS; i++)
		pthread_create(&thread[i], NULL, side_thread, &side[i]);
	for (unsigned i = 0; i < LOOPS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(atomic_load(&side[i].failed), 0);
	}
	took = now_of(CLOCK_MONOTONIC) - wall;
	cpu = now_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	for (unsigned i = 0; i < LOOPS; i++)
		loop_teardown(&loop[i]);
	store_close(s);
	print_message("# %s: %.1f ms, of which %.1f ms of CPU\n", spec,
		(double)took / 1e6, (double)cpu / 1e6);
	assert_true(cpu < took / 2);
	return took;
}

/* Never sooner than the model says; what is later is this machine's. */
static void assert_takes(const char *spec, uint64_t ns)
{
	uint64_t took = write_from_two_loops(spec);

	assert_in_range(took, ns, 2 * ns + 50 * NSEC_PER_MSEC);
}

static void loops_share_the_bandwidth(void **state)
{
	(void)state;
	assert_takes("sim:bandwidth=100M,latency=1ms,null:1G",
		TOTAL * NSEC_PER_SEC / (100 << 20));
}

static void loops_share_the_arm(void **state)
{
	(void)state;
	/* A seek is short against the 2.5 ms of a transfer. */
	assert_takes("sim:bandwidth=100M,seek=200us,depth=8,null:1G",
		TOTAL * NSEC_PER_SEC / (100 << 20));
	assert_takes("sim:bandwidth=100M,seek=200us,depth=3,null:1G",
		TOTAL * NSEC_PER_SEC / (100 << 20));
}

static void loops_share_the_cache_and_wait_for_its_drain(void **state)
{
	(void)state;
	assert_takes("sim:bandwidth=100M,seek=200us,cache=1M,null:1G",
		TOTAL * NSEC_PER_SEC / (100 << 20));
	assert_takes("sim:bandwidth=100M,cache=8M,depth=5,null:1G",
		TOTAL * NSEC_PER_SEC / (100 << 20));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_share_the_bandwidth),
		cmocka_unit_test(loops_share_the_arm),
		cmocka_unit_test(loops_share_the_cache_and_wait_for_its_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
