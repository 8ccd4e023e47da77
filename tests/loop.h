/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h: for the unit tests of what runs on live loops: each test with
 * io_uring, with threads, and with a loop that polls, and each time with a
 * loop that runs on a thread of its own. Include after cmocka.h.
 */
#ifndef WEIR_TESTS_LOOP_H
#define WEIR_TESTS_LOOP_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/reactor.h"

struct loop {
	struct reactor *r;
	pthread_t thread;
	int fd; /* a file of 1 MiB */
};

static inline void *loop_thread(void *arg)
{
	reactor_run(arg);
	return NULL;
}

static inline int loop_setup(
	void **state, enum reactor_backend backend, uint64_t poll_ns)
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
	reactor_live_poll(l->r, poll_ns);
	l->fd = mkstemp(path);
	unlink(path);
	if (l->fd < 0 || ftruncate(l->fd, 1 << 20))
		return -1;
	*state = l;
	return pthread_create(&l->thread, NULL, loop_thread, l->r);
}

static inline int loop_setup_uring(void **state)
{
	return loop_setup(state, REACTOR_URING, 0);
}

static inline int loop_setup_threads(void **state)
{
	return loop_setup(state, REACTOR_THREADS, 0);
}

static inline int loop_setup_polling(void **state)
{
	return loop_setup(state, REACTOR_AUTO, NSEC_PER_MSEC);
}

static inline int loop_teardown(void **state)
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

static inline struct loop *loop_of(void **state)
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

static inline void call_done(struct call *c)
{
	pthread_mutex_lock(&c->lock);
	c->done = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static inline void call_begin(struct reactor_task *task)
{
	struct call *c = container_of(task, struct call, task);

	c->fn(c);
}

/* Run fn on the loop; return when call_done() was called. */
static inline void call(struct loop *l, void (*fn)(struct call *c), void *arg)
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

#define EACH_LOOP(test)                                                        \
	{#test " (io_uring)", test, loop_setup_uring, loop_teardown, NULL},    \
		{#test " (threads)", test, loop_setup_threads, loop_teardown,  \
			NULL},                                                 \
	{                                                                      \
#test " (polling)", test, loop_setup_polling, loop_teardown,   \
			NULL                                                   \
	}

#endif
