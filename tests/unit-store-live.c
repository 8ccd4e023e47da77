/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-store-live.c: stores under two live loops at once, with io_uring and
 * with threads: each loop writes, trims and reads back its own half.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "loop.h"
#include "store/fault.h"
#include "store/store.h"

#define LOOPS 2U
#define SLOTS 4U
#define SLOT_SIZE 65536U
#define STORE_SIZE (4U << 20)
#define STEPS 60U

/* Something that does one io after the other on its loop, in its own range:
 * write, read back and compare, sometimes zero or flush. */
struct walker {
	struct store_io io;
	struct iovec iov;
	struct store *s;
	char *buf;
	uint64_t seed, offset, length;
	uint64_t from; /* its range is SLOT_SIZE * 4 from there */
	unsigned left;
	char letter; /* what was written */
	struct call *call;
	atomic_uint *running, *failed;
};

static void walker_next(struct walker *w);

static void walker_submit(struct walker *w, enum store_op op)
{
	w->iov = (struct iovec){w->buf, w->length};
	w->io.op = op;
	w->io.offset = w->offset;
	w->io.length = op == STORE_FLUSH ? 0 : w->length;
	w->io.iov = &w->iov;
	w->io.niov = 1;
	store_submit(w->s, &w->io);
}

static void walker_read(struct store_io *io)
{
	struct walker *w = container_of(io, struct walker, io);

	for (uint64_t i = 0; !io->error && i < w->length; i++) {
		if (w->buf[i] != w->letter) {
			atomic_fetch_add(w->failed, 1);
			break;
		}
	}
	walker_next(w);
}

static void walker_changed(struct store_io *io)
{
	struct walker *w = container_of(io, struct walker, io);

	if (io->op == STORE_ZERO)
		w->letter = 0;
	if (io->op == STORE_WRITE && random_below(&w->seed, 4) == 0) {
		walker_submit(w,
			random_below(&w->seed, 2) ? STORE_ZERO : STORE_FLUSH);
		return;
	}
	w->io.done = walker_read;
	walker_submit(w, STORE_READ);
}

static void walker_next(struct walker *w)
{
	if (w->io.error)
		atomic_fetch_add(w->failed, 1);
	if (!w->left--) {
		if (atomic_fetch_sub(w->running, 1) == 1)
			call_done(w->call);
		return;
	}
	w->offset =
		w->from + random_below(&w->seed, 2 * SLOT_SIZE) / 4096 * 4096;
	w->length = 4096 * (1 + random_below(&w->seed, 8));
	w->letter = (char)('a' + random_below(&w->seed, 26));
	memset(w->buf, w->letter, w->length);
	w->io.done = walker_changed;
	w->io.flags = 0;
	walker_submit(w, STORE_WRITE);
}

struct run {
	struct store *s;
	unsigned loop;
	atomic_uint running, failed;
	struct walker walker[SLOTS];
};

static void run_begin(struct call *c)
{
	struct run *run = c->arg;

	atomic_store(&run->running, SLOTS);
	for (unsigned i = 0; i < SLOTS; i++) {
		unsigned n = run->loop * SLOTS + i;

		run->walker[i] = (struct walker){
			.io.reactor = c->loop->r,
			.s = run->s,
			.buf = aligned_alloc(4096, SLOT_SIZE),
			.seed = n,
			.from = (uint64_t)n * 4 * SLOT_SIZE,
			.left = STEPS,
			.call = c,
			.running = &run->running,
			.failed = &run->failed,
		};
		walker_next(&run->walker[i]);
	}
}

/* --- two loops --------------------------------------------------------------- */

struct side {
	struct loop *l;
	struct run run;
};

static void *side_thread(void *arg)
{
	struct side *side = arg;

	call(side->l, run_begin, &side->run);
	return NULL;
}

static void run_on_two_loops(
	void **state, enum reactor_backend backend, const char *spec)
{
	struct side side[LOOPS] = {0};
	pthread_t thread[LOOPS];
	void *loop[LOOPS];
	struct error error;
	struct store *s;

	(void)state;
	for (unsigned i = 0; i < LOOPS; i++)
		assert_int_equal(loop_setup(&loop[i], backend, 0), 0);
	if (!loop[0]) {
		print_message("# no such loop here\n");
		return;
	}
	if (store_open(spec, 0, &s, &error))
		fail_msg("%s", error.text);
	for (unsigned i = 0; i < LOOPS; i++) {
		side[i].l = loop[i];
		side[i].run.s = s;
		side[i].run.loop = i;
		pthread_create(&thread[i], NULL, side_thread, &side[i]);
	}
	for (unsigned i = 0; i < LOOPS; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(atomic_load(&side[i].run.failed), 0);
		for (unsigned n = 0; n < SLOTS; n++)
			free(side[i].run.walker[n].buf);
	}
	for (unsigned i = 0; i < LOOPS; i++)
		loop_teardown(&loop[i]);
	store_close(s);
}

static void run_on_both(void **state, const char *spec)
{
	run_on_two_loops(state, REACTOR_URING, spec);
	run_on_two_loops(state, REACTOR_THREADS, spec);
}

/* --- tests ---------------------------------------------------------------------- */

static void memory_serves_two_loops(void **state)
{
	run_on_both(state, "mem:4M");
}

static void a_device_model_serves_two_loops(void **state)
{
	run_on_both(state, "sim:latency=10us,depth=3,mem:4M");
	run_on_both(state,
		"sim:hdd,seek=100us,rotation=0,latency=10us,depth=4,mem:4M");
	run_on_both(state,
		"sim:bandwidth=1G,seek=80us,latency=10us,depth=3,cache=128K,"
		"erase-block=64K,open-blocks=2,mem:4M");
}

static void faults_serve_two_loops(void **state)
{
	run_on_both(state, "fault:record=on,delay=10us,every=3,mem:4M");
}

static void a_stripe_serves_two_loops(void **state)
{
	run_on_both(state, "stripe:16K,[mem:1M],[mem:1M],[mem:1M],[mem:1M]");
	run_on_both(state,
		"stripe:4K,[sim:latency=10us,depth=3,mem:2M],"
		"[fault:delay=10us,every=3,mem:2M]");
}

static void a_file_serves_two_loops(void **state)
{
	char path[] = "/tmp/weir-unit-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, STORE_SIZE), 0);
	close(fd);
	run_on_both(state, path);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_serves_two_loops),
		cmocka_unit_test(a_device_model_serves_two_loops),
		cmocka_unit_test(faults_serve_two_loops),
		cmocka_unit_test(a_stripe_serves_two_loops),
		cmocka_unit_test(a_file_serves_two_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
