/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-reactor-sim.c: the simulated loop and the heap under it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/random.h"
#include "base/reactor.h"

/* --- the heap ------------------------------------------------------------- */

#define ENTRIES 500

static void the_heap_gives_out_by_time_then_tie(void **state)
{
	size_t pos[ENTRIES] = {0};
	uint64_t seed = 5, due = 0, tie = 0;
	unsigned removed = 0;
	struct heap h = {0};

	(void)state;
	for (size_t i = 0; i < ENTRIES; i++)
		heap_push(&h,
			(struct heap_entry){
				.due = random_below(&seed, 50),
				.tie = i,
				.item = &pos[i],
				.pos = &pos[i],
			});
	for (size_t i = 0; i < ENTRIES; i += 3, removed++) {
		assert_ptr_equal(heap_remove(&h, pos[i]).item, &pos[i]);
		assert_int_equal(pos[i], 0);
	}
	for (size_t n = ENTRIES - removed; n; n--) {
		struct heap_entry e = heap_remove(&h, 1);

		assert_true(e.due > due || (e.due == due && e.tie >= tie));
		assert_int_equal(*(size_t *)e.item, 0);
		due = e.due;
		tie = e.tie;
	}
	assert_null(heap_first(&h));
	heap_free(&h);
}

/* --- order ---------------------------------------------------------------- */

#define NAMES 12

struct named {
	struct reactor_task task;
	char name;
	char *out;
};

static void named_run(struct reactor_task *task)
{
	struct named *n = container_of(task, struct named, task);

	n->out[strlen(n->out)] = n->name;
}

/* Post tasks a, b, c ... at once; `order` is how they ran. */
static void run_tasks(uint64_t seed, char order[NAMES + 1])
{
	struct reactor *r = reactor_sim_new(seed);
	struct named n[NAMES];

	memset(order, 0, NAMES + 1);
	for (int i = 0; i < NAMES; i++) {
		n[i] = (struct named){
			.task.fn = named_run,
			.name = (char)('a' + i),
			.out = order,
		};
		reactor_post(r, &n[i].task);
	}
	assert_int_equal(*order, 0); /* not inside the post */
	while (reactor_sim_step(r))
		;
	assert_int_equal(strlen(order), NAMES);
	reactor_free(r);
}

static void the_same_seed_gives_the_same_order(void **state)
{
	char a[NAMES + 1], b[NAMES + 1];

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		run_tasks(seed, a);
		run_tasks(seed, b);
		assert_string_equal(a, b);
	}
}

static void another_seed_gives_another_order(void **state)
{
	char a[NAMES + 1], b[NAMES + 1];
	int differ = 0;

	(void)state;
	run_tasks(0, a);
	for (uint64_t seed = 1; seed < 20; seed++) {
		run_tasks(seed, b);
		differ += strcmp(a, b) != 0;
	}
	assert_true(differ >= 18); /* of 12! orders */
}

/* --- the clock ------------------------------------------------------------ */

struct alarm {
	struct reactor_timer timer;
	struct reactor *r;
	uint64_t when; /* it went off; 0: it did not */
	unsigned again;
};

static void alarm_went_off(struct reactor_timer *t)
{
	struct alarm *a = container_of(t, struct alarm, timer);

	assert_false(reactor_timer_armed(t));
	a->when = reactor_now(a->r);
	if (a->again) {
		a->again--;
		reactor_timer_arm(a->r, t, NSEC_PER_SEC);
	}
}

static void the_clock_jumps_from_timer_to_timer(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct alarm a = {.timer.fn = alarm_went_off, .r = r};
	struct alarm b = a, c = a;

	(void)state;
	assert_int_equal(reactor_now(r), NSEC_PER_SEC);
	reactor_timer_arm(r, &a.timer, 600 * NSEC_PER_SEC);
	reactor_timer_arm(r, &b.timer, 5);
	reactor_timer_arm(r, &c.timer, 5);
	reactor_timer_arm(r, &c.timer, 7); /* moved */
	assert_true(reactor_sim_step(r));
	assert_int_equal(b.when, NSEC_PER_SEC + 5);
	assert_int_equal(c.when, 0);
	assert_true(reactor_sim_step(r));
	assert_int_equal(c.when, NSEC_PER_SEC + 7);
	assert_true(reactor_sim_step(r));
	assert_int_equal(a.when, 601 * NSEC_PER_SEC);
	assert_false(reactor_sim_step(r));
	reactor_free(r);
}

static void a_cancelled_timer_never_fires(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct alarm a = {.timer.fn = alarm_went_off, .r = r};

	(void)state;
	reactor_timer_cancel(r, &a.timer);
	reactor_timer_arm(r, &a.timer, 5);
	assert_true(reactor_timer_armed(&a.timer));
	reactor_timer_cancel(r, &a.timer);
	assert_false(reactor_timer_armed(&a.timer));
	assert_false(reactor_sim_step(r));
	assert_int_equal(a.when, 0);
	reactor_free(r);
}

static void run_until_stops_the_clock_where_it_is_told(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct alarm a = {.timer.fn = alarm_went_off, .r = r, .again = 100};

	(void)state;
	reactor_timer_arm(r, &a.timer, NSEC_PER_SEC);
	reactor_sim_run_until(r, 10 * NSEC_PER_SEC + 3);
	assert_int_equal(a.when, 10 * NSEC_PER_SEC);
	assert_int_equal(a.again, 91);
	assert_int_equal(reactor_now(r), 10 * NSEC_PER_SEC + 3);
	reactor_sim_run_until(r, 5); /* the past */
	assert_int_equal(reactor_now(r), 10 * NSEC_PER_SEC + 3);
	reactor_free(r);
}

/* --- I/O, works, run and stop ---------------------------------------------- */

struct io_wait {
	struct reactor_io io;
	bool done;
};

static void io_done(struct reactor_io *io)
{
	container_of(io, struct io_wait, io)->done = true;
}

static int64_t do_io(struct reactor *r, struct reactor_io io)
{
	struct io_wait w = {.io = io};

	w.io.done = io_done;
	reactor_io(r, &w.io);
	assert_false(w.done);
	while (!w.done)
		assert_true(reactor_sim_step(r));
	return w.io.result;
}

static void file_io_works_on_real_files(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	FILE *f = tmpfile();
	char out[] = "held back and metered", in[64] = "";
	struct iovec iov[] = {{out, 4}, {out + 4, sizeof out - 4}};
	struct reactor_io io = {.fd = fileno(f), .iov = iov, .niov = 2};

	(void)state;
	io.op = REACTOR_WRITE;
	io.offset = 100;
	assert_int_equal(do_io(r, io), sizeof out);
	io.op = REACTOR_FSYNC;
	assert_int_equal(do_io(r, io), 0);
	iov[0] = (struct iovec){in, sizeof in};
	io.op = REACTOR_READ;
	io.niov = 1;
	assert_int_equal(do_io(r, io), sizeof out);
	assert_string_equal(in, out);
	fclose(f);
	reactor_free(r);
}

struct job {
	struct reactor_work work;
	struct reactor *r;
	int step;
};

static void job_run(struct reactor_work *work)
{
	struct job *j = container_of(work, struct job, work);

	assert_int_equal(j->step++, 0);
}

static void job_done(struct reactor_work *work)
{
	struct job *j = container_of(work, struct job, work);

	assert_int_equal(j->step++, 1);
	reactor_stop(j->r);
}

static void a_work_runs_then_is_done_and_stop_ends_run(void **state)
{
	struct reactor *r = reactor_sim_new(1);
	struct job j = {{.run = job_run, .done = job_done}, r, 0};
	struct alarm a = {.timer.fn = alarm_went_off, .r = r};

	(void)state;
	reactor_work(r, &j.work);
	reactor_timer_arm(r, &a.timer, 1);
	assert_int_equal(j.step, 0);
	reactor_run(r);
	assert_int_equal(j.step, 2);
	assert_int_equal(a.when, 0); /* stopped before it */
	reactor_run(r);              /* to the end */
	assert_int_not_equal(a.when, 0);
	assert_true(reactor_is_current(r));
	assert_null(reactor_ev_loop(r));
	reactor_free(r);
}

static void random_numbers_keep_below_their_limit(void **state)
{
	struct reactor *r = reactor_sim_new(9);
	unsigned seen[7] = {0};

	(void)state;
	for (int i = 0; i < 7000; i++) {
		uint64_t n = reactor_sim_random(r, 7);

		assert_true(n < 7);
		seen[n]++;
	}
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 800, 1200);
	assert_int_equal(reactor_sim_random(r, 1), 0);
	reactor_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_heap_gives_out_by_time_then_tie),
		cmocka_unit_test(the_same_seed_gives_the_same_order),
		cmocka_unit_test(another_seed_gives_another_order),
		cmocka_unit_test(the_clock_jumps_from_timer_to_timer),
		cmocka_unit_test(a_cancelled_timer_never_fires),
		cmocka_unit_test(run_until_stops_the_clock_where_it_is_told),
		cmocka_unit_test(file_io_works_on_real_files),
		cmocka_unit_test(a_work_runs_then_is_done_and_stop_ends_run),
		cmocka_unit_test(random_numbers_keep_below_their_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
