/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-reactor-live.c: tasks, timers and works of the live loop.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loop.h"

/* --- tasks ---------------------------------------------------------------- */

static void look_around(struct call *c)
{
	bool *current = c->arg;

	*current = reactor_is_current(c->loop->r);
	call_done(c);
}

static void a_task_runs_on_the_loops_thread(void **state)
{
	struct loop *l = loop_of(state);
	bool current = false;

	assert_false(reactor_is_current(l->r));
	call(l, look_around, &current);
	assert_true(current);
	assert_int_equal(l->r->id, 3);
	assert_non_null(reactor_ev_loop(l->r));
}

#define POSTERS 4
#define POSTS 5000

struct numbered {
	struct reactor_task task;
	unsigned *last; /* of its poster: what ran before */
	unsigned number;
	atomic_uint *ran, *wrong;
};

static void numbered_run(struct reactor_task *task)
{
	struct numbered *n = container_of(task, struct numbered, task);

	if (*n->last + 1 != n->number)
		atomic_fetch_add(n->wrong, 1);
	*n->last = n->number;
	atomic_fetch_add(n->ran, 1);
}

struct poster {
	struct reactor *r;
	pthread_t thread;
	unsigned last;
	atomic_uint *ran, *wrong;
	struct numbered posts[POSTS];
};

static void *poster_thread(void *arg)
{
	struct poster *p = arg;

	for (unsigned i = 0; i < POSTS; i++) {
		p->posts[i] = (struct numbered){
			.task.fn = numbered_run,
			.last = &p->last,
			.number = i + 1,
			.ran = p->ran,
			.wrong = p->wrong,
		};
		reactor_post(p->r, &p->posts[i].task);
	}
	return NULL;
}

static void posts_of_each_thread_run_once_and_in_order(void **state)
{
	struct loop *l = loop_of(state);
	struct poster *p = calloc(POSTERS, sizeof *p);
	atomic_uint ran = 0, wrong = 0;

	for (int i = 0; i < POSTERS; i++) {
		p[i].r = l->r;
		p[i].ran = &ran;
		p[i].wrong = &wrong;
		pthread_create(&p[i].thread, NULL, poster_thread, &p[i]);
	}
	for (int i = 0; i < POSTERS; i++)
		pthread_join(p[i].thread, NULL);
	while (atomic_load(&ran) < POSTERS * POSTS)
		usleep(1000);
	assert_int_equal(atomic_load(&wrong), 0);
	free(p);
}

struct chain {
	struct reactor_task task;
	struct call *call;
	unsigned left;
	bool inside; /* post() */
};

static void chain_next(struct reactor_task *task)
{
	struct chain *c = container_of(task, struct chain, task);

	assert_false(c->inside);
	if (!c->left--) {
		call_done(c->call);
		return;
	}
	c->inside = true;
	reactor_post(c->call->loop->r, &c->task);
	c->inside = false;
}

static void chain_start(struct call *c)
{
	struct chain *chain = c->arg;

	chain->call = c;
	chain_next(&chain->task);
}

static void a_task_may_post_itself_again(void **state)
{
	struct chain chain = {.task.fn = chain_next, .left = 1000};

	call(loop_of(state), chain_start, &chain);
}

/* --- timers --------------------------------------------------------------- */

struct alarm {
	struct reactor_timer timer;
	struct alarms *all;
	unsigned order; /* in which it went off; 0: it did not */
	uint64_t when;
};

struct alarms {
	struct call *call;
	uint64_t armed;
	unsigned n;
	struct alarm at[5];
};

static void alarm_went_off(struct reactor_timer *t)
{
	struct alarm *a = container_of(t, struct alarm, timer);

	assert_false(reactor_timer_armed(t));
	a->order = ++a->all->n;
	a->when = reactor_now(a->all->call->loop->r);
	if (a == &a->all->at[4])
		call_done(a->all->call);
}

static void alarms_set(struct call *c)
{
	struct reactor *r = c->loop->r;
	struct alarms *all = c->arg;

	all->call = c;
	all->armed = reactor_now(r);
	for (int i = 0; i < 5; i++) {
		all->at[i].all = all;
		all->at[i].timer.fn = alarm_went_off;
	}
	reactor_timer_arm(r, &all->at[0].timer, 3 * NSEC_PER_MSEC);
	reactor_timer_arm(r, &all->at[1].timer, NSEC_PER_MSEC);
	reactor_timer_arm(r, &all->at[2].timer, 2 * NSEC_PER_MSEC);
	reactor_timer_arm(r, &all->at[3].timer, 3600 * NSEC_PER_SEC);
	/* 2 is called off, 3 is moved from an hour to before 0. */
	reactor_timer_cancel(r, &all->at[2].timer);
	reactor_timer_cancel(r, &all->at[2].timer);
	reactor_timer_arm(r, &all->at[3].timer, 2 * NSEC_PER_MSEC);
	/* The last, whatever held up this function meanwhile. */
	reactor_timer_arm(r, &all->at[4].timer, 5 * NSEC_PER_MSEC);
	assert_true(reactor_timer_armed(&all->at[3].timer));
	assert_false(reactor_timer_armed(&all->at[2].timer));
}

static void timers_fire_in_order_of_time_and_never_early(void **state)
{
	struct alarms all = {0};

	call(loop_of(state), alarms_set, &all);
	assert_int_equal(all.at[2].order, 0);
	assert_int_equal(all.n, 4);
	for (int i = 0; i < 5; i++) {
		const struct alarm *a = &all.at[i];

		if (i == 2)
			continue;
		assert_true(a->when >= a->timer.due_ns);
		assert_true(a->timer.due_ns >= all.armed + NSEC_PER_MSEC);
		for (int j = 0; j < 5; j++) {
			if (j != 2 && a->timer.due_ns < all.at[j].timer.due_ns)
				assert_true(a->order < all.at[j].order);
		}
	}
}

/* --- works ---------------------------------------------------------------- */

struct job {
	struct reactor_work work;
	struct call *call;
	bool on_loop;   /* while it ran */
	int *to_unlock; /* a pipe: reads a byte if not NULL */
	unsigned *left;
};

static void job_run(struct reactor_work *work)
{
	struct job *j = container_of(work, struct job, work);
	char c;

	j->on_loop = reactor_is_current(j->call->loop->r);
	if (j->to_unlock && read(j->to_unlock[0], &c, 1) != 1)
		abort();
}

static void job_done(struct reactor_work *work)
{
	struct job *j = container_of(work, struct job, work);

	assert_true(reactor_is_current(j->call->loop->r));
	if (!--*j->left)
		call_done(j->call);
}

static void job_begin(struct call *c)
{
	struct job *j = c->arg;

	j->call = c;
	reactor_work(c->loop->r, &j->work);
}

static void a_work_runs_beside_the_loop(void **state)
{
	unsigned left = 1;
	struct job j = {
		.work = {.run = job_run, .done = job_done},
		.on_loop = true,
		.left = &left,
	};

	call(loop_of(state), job_begin, &j);
	assert_false(j.on_loop);
}

#define BLOCKED 12

struct blocked {
	struct job job[BLOCKED];
	struct reactor_io io;
	struct iovec iov;
	char buf[16];
	unsigned left;
	int pipe[2];
};

/* The I/O came through although every work waits: let them go. */
static void blocked_io_done(struct reactor_io *io)
{
	struct blocked *b = container_of(io, struct blocked, io);
	char go[BLOCKED] = {0};

	assert_int_equal(io->result, 16);
	assert_int_equal(b->left, BLOCKED);
	assert_int_equal(write(b->pipe[1], go, BLOCKED), BLOCKED);
}

static void blocked_begin(struct call *c)
{
	struct blocked *b = c->arg;

	for (int i = 0; i < BLOCKED; i++) {
		b->job[i].call = c;
		reactor_work(c->loop->r, &b->job[i].work);
	}
	b->iov = (struct iovec){b->buf, sizeof b->buf};
	b->io = (struct reactor_io){
		.op = REACTOR_READ,
		.fd = c->loop->fd,
		.iov = &b->iov,
		.niov = 1,
		.done = blocked_io_done,
	};
	reactor_io(c->loop->r, &b->io);
}

static void works_that_block_do_not_hold_up_file_io(void **state)
{
	struct loop *l = loop_of(state);
	struct blocked b = {.left = BLOCKED};

	assert_int_equal(pipe(b.pipe), 0);
	for (int i = 0; i < BLOCKED; i++)
		b.job[i] = (struct job){
			.work = {.run = job_run, .done = job_done},
			.to_unlock = b.pipe,
			.left = &b.left,
		};
	call(l, blocked_begin, &b);
	close(b.pipe[0]);
	close(b.pipe[1]);
}

/* --- stop ------------------------------------------------------------------ */

static void a_stop_before_run_is_not_lost(void **state)
{
	struct reactor *r;
	struct error error;

	(void)state;
	assert_int_equal(reactor_live_new(0, REACTOR_THREADS, &r, &error), 0);
	assert_int_equal(reactor_live_backend(r), REACTOR_THREADS);
	reactor_stop(r);
	reactor_run(r);
	reactor_free(r);
}

static void auto_always_gives_a_loop(void **state)
{
	enum reactor_backend backend;
	struct reactor *r;
	struct error error;

	(void)state;
	assert_int_equal(reactor_live_new(0, REACTOR_AUTO, &r, &error), 0);
	backend = reactor_live_backend(r);
	assert_true(backend == REACTOR_URING || backend == REACTOR_THREADS);
	reactor_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH_LOOP(a_task_runs_on_the_loops_thread),
		EACH_LOOP(posts_of_each_thread_run_once_and_in_order),
		EACH_LOOP(a_task_may_post_itself_again),
		EACH_LOOP(timers_fire_in_order_of_time_and_never_early),
		EACH_LOOP(a_work_runs_beside_the_loop),
		EACH_LOOP(works_that_block_do_not_hold_up_file_io),
		cmocka_unit_test(a_stop_before_run_is_not_lost),
		cmocka_unit_test(auto_always_gives_a_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
