/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-reactor-live.c: the live loop, once with io_uring and once with
 * threads: each test gets a loop that runs on a thread of its own.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <ev.h>

#include "base/reactor.h"

struct loop {
	struct reactor *r;
	pthread_t thread;
	int fd; /* a file of 1 MiB */
};

static void *loop_thread(void *arg)
{
	reactor_run(arg);
	return NULL;
}

static int setup(void **state, enum reactor_backend backend)
{
	char path[] = "/tmp/weir-unit-XXXXXX";
	struct loop *l = calloc(1, sizeof *l);
	struct error error = {""};

	if (reactor_live_new(3, backend, &l->r, &error)) {
		print_message("# %s\n", error.text);
		free(l);
		*state = NULL;
		return 0; /* the tests skip */
	}
	l->fd = mkstemp(path);
	unlink(path);
	if (l->fd < 0 || ftruncate(l->fd, 1 << 20))
		return -1;
	*state = l;
	return pthread_create(&l->thread, NULL, loop_thread, l->r);
}

static int setup_uring(void **state)
{
	return setup(state, REACTOR_URING);
}

static int setup_threads(void **state)
{
	return setup(state, REACTOR_THREADS);
}

static int teardown(void **state)
{
	struct loop *l = *state;

	if (!l)
		return 0;
	reactor_stop(l->r);
	pthread_join(l->thread, NULL);
	reactor_free(l->r);
	close(l->fd);
	free(l);
	return 0;
}

static struct loop *loop_of(void **state)
{
	if (!*state)
		skip();
	return *state;
}

/* --- a call on the loop that the test waits for --------------------------- */

struct call {
	struct reactor_task task;
	void (*fn)(struct call *call);
	struct loop *loop;
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
};

static void call_done(struct call *c)
{
	pthread_mutex_lock(&c->lock);
	c->done = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void call_begin(struct reactor_task *task)
{
	struct call *c = container_of(task, struct call, task);

	c->fn(c);
}

/* Run fn on the loop; return when call_done() was called. */
static void call(struct loop *l, void (*fn)(struct call *c), void *arg)
{
	struct call c = {
		.task.fn = call_begin,
		.fn = fn,
		.loop = l,
		.arg = arg,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};

	reactor_post(l->r, &c.task);
	pthread_mutex_lock(&c.lock);
	while (!c.done)
		pthread_cond_wait(&c.changed, &c.lock);
	pthread_mutex_unlock(&c.lock);
}

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
	reactor_timer_arm(r, &all->at[4].timer, 5 * NSEC_PER_MSEC);
	/* 2 is called off, 3 is moved from an hour to before 0. */
	reactor_timer_cancel(r, &all->at[2].timer);
	reactor_timer_cancel(r, &all->at[2].timer);
	reactor_timer_arm(r, &all->at[3].timer, 2 * NSEC_PER_MSEC);
	assert_true(reactor_timer_armed(&all->at[3].timer));
	assert_false(reactor_timer_armed(&all->at[2].timer));
}

static void timers_fire_in_order_of_time_and_never_early(void **state)
{
	struct alarms all = {0};

	call(loop_of(state), alarms_set, &all);
	assert_int_equal(all.at[1].order, 1);
	assert_int_equal(all.at[3].order, 2);
	assert_int_equal(all.at[0].order, 3);
	assert_int_equal(all.at[4].order, 4);
	assert_int_equal(all.at[2].order, 0);
	assert_true(all.at[1].when >= all.armed + NSEC_PER_MSEC);
	assert_true(all.at[4].when >= all.armed + 5 * NSEC_PER_MSEC);
}

/* --- file I/O ------------------------------------------------------------- */

struct io_call {
	struct reactor_io io;
	struct call *call;
	bool inside;
};

static void io_finished(struct reactor_io *io)
{
	struct io_call *c = container_of(io, struct io_call, io);

	assert_false(c->inside);
	assert_true(reactor_is_current(c->call->loop->r));
	call_done(c->call);
}

static void io_begin(struct call *c)
{
	struct io_call *ic = c->arg;

	ic->call = c;
	ic->inside = true;
	reactor_io(c->loop->r, &ic->io);
	ic->inside = false;
}

static int64_t do_io(struct loop *l, enum reactor_io_op op,
	const struct iovec *iov, int niov, uint64_t offset, uint64_t length)
{
	struct io_call c = {.io = {
				    .op = op,
				    .fd = l->fd,
				    .iov = iov,
				    .niov = niov,
				    .offset = offset,
				    .length = length,
				    .done = io_finished,
			    }};

	call(l, io_begin, &c);
	return c.io.result;
}

static void what_is_written_is_read_back(void **state)
{
	struct loop *l = loop_of(state);
	char a[] = "absorbs the ", b[] = "writes", c[32] = "";
	struct iovec out[] = {{a, 12}, {b, 6}}, in = {c, sizeof c};

	assert_int_equal(do_io(l, REACTOR_WRITE, out, 2, 4096, 0), 18);
	assert_int_equal(do_io(l, REACTOR_FSYNC, NULL, 0, 0, 0), 0);
	assert_int_equal(do_io(l, REACTOR_READ, &in, 1, 4096, 0), 32);
	assert_string_equal(c, "absorbs the writes");
}

static void a_read_at_the_end_is_short(void **state)
{
	char buf[4096];
	struct iovec in = {buf, sizeof buf};

	assert_int_equal(
		do_io(loop_of(state), REACTOR_READ, &in, 1, (1 << 20) - 100, 0),
		100);
}

static void a_bad_descriptor_is_an_error(void **state)
{
	struct loop *l = loop_of(state);
	char buf[1];
	struct iovec in = {buf, 1};
	struct loop bad = *l;

	bad.fd = -1;
	assert_int_equal(do_io(&bad, REACTOR_READ, &in, 1, 0, 0), -EBADF);
}

static void a_punched_range_reads_as_zeroes(void **state)
{
	struct loop *l = loop_of(state);
	char buf[8192];
	struct iovec iov = {buf, sizeof buf};
	int64_t err;

	memset(buf, 'x', sizeof buf);
	assert_int_equal(do_io(l, REACTOR_WRITE, &iov, 1, 0, 0), 8192);
	err = do_io(l, REACTOR_PUNCH, NULL, 0, 4096, 4096);
	if (err == -EOPNOTSUPP)
		skip();
	assert_int_equal(err, 0);
	assert_int_equal(do_io(l, REACTOR_READ, &iov, 1, 0, 0), 8192);
	assert_int_equal(buf[4095], 'x');
	assert_int_equal(buf[4096], 0);
	assert_int_equal(buf[8191], 0);
}

#define STORM 3000

struct storm {
	struct reactor_io io[STORM];
	struct iovec iov[STORM];
	uint32_t word[STORM];
	unsigned left;
	struct call *call;
	enum reactor_io_op op;
};

static struct storm *storm; /* of the test that runs: there is one at a time */

static void storm_done(struct reactor_io *io)
{
	assert_int_equal(io->result, 4);
	if (!--storm->left)
		call_done(storm->call);
}

static void storm_begin(struct call *c)
{
	storm->call = c;
	storm->left = STORM;
	for (unsigned i = 0; i < STORM; i++) {
		storm->iov[i] = (struct iovec){&storm->word[i], 4};
		storm->io[i] = (struct reactor_io){
			.op = storm->op,
			.fd = c->loop->fd,
			.iov = &storm->iov[i],
			.niov = 1,
			.offset = i * 4,
			.done = storm_done,
		};
		reactor_io(c->loop->r, &storm->io[i]);
	}
}

static void more_io_than_the_ring_holds_all_completes(void **state)
{
	struct loop *l = loop_of(state);

	storm = calloc(1, sizeof *storm);
	for (uint32_t i = 0; i < STORM; i++)
		storm->word[i] = i * 7919;
	storm->op = REACTOR_WRITE;
	call(l, storm_begin, NULL);
	memset(storm->word, 0, sizeof storm->word);
	storm->op = REACTOR_READ;
	call(l, storm_begin, NULL);
	for (uint32_t i = 0; i < STORM; i++)
		assert_int_equal(storm->word[i], i * 7919);
	free(storm);
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
	struct io_call io;
	struct iovec iov;
	char buf[16];
	unsigned left;
	int pipe[2];
};

/* The I/O came through although every work waits: let them go. */
static void blocked_io_done(struct reactor_io *io)
{
	struct blocked *b = container_of(io, struct blocked, io.io);
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
	b->io.io = (struct reactor_io){
		.op = REACTOR_READ,
		.fd = c->loop->fd,
		.iov = &b->iov,
		.niov = 1,
		.done = blocked_io_done,
	};
	reactor_io(c->loop->r, &b->io.io);
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

#define BOTH(test)                                                             \
	{#test " (io_uring)", test, setup_uring, teardown, NULL},              \
	{                                                                      \
#test " (threads)", test, setup_threads, teardown, NULL        \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_task_runs_on_the_loops_thread),
		BOTH(posts_of_each_thread_run_once_and_in_order),
		BOTH(a_task_may_post_itself_again),
		BOTH(timers_fire_in_order_of_time_and_never_early),
		BOTH(what_is_written_is_read_back),
		BOTH(a_read_at_the_end_is_short),
		BOTH(a_bad_descriptor_is_an_error),
		BOTH(a_punched_range_reads_as_zeroes),
		BOTH(more_io_than_the_ring_holds_all_completes),
		BOTH(a_work_runs_beside_the_loop),
		BOTH(works_that_block_do_not_hold_up_file_io),
		cmocka_unit_test(a_stop_before_run_is_not_lost),
		cmocka_unit_test(auto_always_gives_a_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
