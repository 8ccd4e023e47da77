/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-reactor-fork.c: the live loop where io_uring is refused, and in the
 * child of a fork.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/reactor.h"

/* --- io_uring refused -------------------------------------------------------- */

/* From now on io_uring_setup() answers EPERM, as in many containers. */
static int refuse_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof code[0], code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* In a child: 0 if all is as it should be, 77 if it cannot be tried. */
static int child_without_uring(void)
{
	struct error error = {""};
	struct reactor *r;

	if (refuse_uring())
		return 77;
	if (reactor_live_new(0, REACTOR_URING, &r, &error) >= 0)
		return 1;
	if (strncmp(error.text, "io_uring is not to be had: ", 27))
		return 2;
	if (reactor_live_new(0, REACTOR_AUTO, &r, &error))
		return 3;
	if (reactor_live_backend(r) != REACTOR_THREADS)
		return 4;
	reactor_free(r);
	return 0;
}

static void where_io_uring_is_refused_auto_takes_threads(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid)
		_exit(child_without_uring());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- a fork before the loop runs ---------------------------------------------- */

/* A task, a timer and a read: the last of them to come stops the loop. */
struct forked {
	struct reactor *r;
	struct reactor_task task;
	struct reactor_timer timer;
	struct reactor_io io;
	struct iovec iov;
	char buf[4];
	unsigned left;
};

static void forked_came(struct forked *f)
{
	if (!--f->left)
		reactor_stop(f->r);
}

static void forked_task(struct reactor_task *task)
{
	forked_came(container_of(task, struct forked, task));
}

static void forked_timer(struct reactor_timer *timer)
{
	forked_came(container_of(timer, struct forked, timer));
}

static void forked_io(struct reactor_io *io)
{
	if (io->result == 4)
		forked_came(container_of(io, struct forked, io));
}

static void forked_ask(struct forked *f, int fd)
{
	f->left = 3;
	f->task.fn = forked_task;
	reactor_post(f->r, &f->task);
	f->timer.fn = forked_timer;
	reactor_timer_arm(f->r, &f->timer, NSEC_PER_MSEC);
	f->iov = (struct iovec){f->buf, sizeof f->buf};
	f->io = (struct reactor_io){
		.op = REACTOR_READ,
		.fd = fd,
		.iov = &f->iov,
		.niov = 1,
		.done = forked_io,
	};
	reactor_io(f->r, &f->io);
}

/* Ask in the parent or in the child; the child runs the loop. */
static void fork_and_run(enum reactor_backend backend, bool ask_before)
{
	FILE *file = tmpfile();
	struct forked f = {0};
	struct iovec fixed = {f.buf, sizeof f.buf};
	struct error error;
	int status;
	pid_t pid;

	assert_int_equal(write(fileno(file), "weir", 4), 4);
	if (reactor_live_new(0, backend, &f.r, &error))
		skip();
	/* The child's own memory is what its loop must read to. */
	assert_int_equal(reactor_fix(f.r, &fixed), 0);
	if (ask_before)
		forked_ask(&f, fileno(file));
	pid = fork();
	if (!pid) {
		alarm(20);
		reactor_live_after_fork(f.r);
		if (!ask_before)
			forked_ask(&f, fileno(file));
		reactor_run(f.r);
		_exit(memcmp(f.buf, "weir", 4) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* The parent's loop is as it was. */
	if (ask_before)
		reactor_run(f.r);
	reactor_free(f.r);
	fclose(file);
}

static void a_loop_can_run_in_the_child_of_a_fork(void **state)
{
	(void)state;
	fork_and_run(REACTOR_AUTO, false);
	fork_and_run(REACTOR_THREADS, false);
}

static void what_was_asked_before_a_fork_comes_after_it(void **state)
{
	(void)state;
	fork_and_run(REACTOR_URING, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_io_uring_is_refused_auto_takes_threads),
		cmocka_unit_test(a_loop_can_run_in_the_child_of_a_fork),
		cmocka_unit_test(what_was_asked_before_a_fork_comes_after_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
