/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec-child.c: the command behind an exec: store, from its start to its end.
 *
 * It gets a listening socket as systemd would hand it over: descriptor 3, and
 * LISTEN_FDS and LISTEN_PID in its environment.
 *
 * 1. No page of ours is copied: with fork() the kernel would copy those that
 *    I/O is under way to, and what a device then delivers would be lost. Hence
 *    vfork(), after which the child only makes system calls.
 * 2. It does not outlive us: the kernel ends it (SIGTERM) when the thread that
 *    started it is gone.
 * 3. What it says on standard error goes to our log, line by line.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "nbd.h"

#define LISTEN_FD 3
#define STOP_STEPS 250 /* until it is killed */
#define STOP_STEP_NS 20000000L

/* --- what it says ----------------------------------------------------------- */

static void say_line(struct remote *r)
{
	struct exec_child *c = &r->child;

	c->part[c->used] = '\0';
	if (c->used) {
		if (!c->first[0])
			memcpy(c->first, c->part, c->used + 1);
		log_info("store %s: %s: %s", r->target.name, r->target.argv[0],
			c->part);
	}
	c->used = 0;
}

bool exec_log(struct remote *r)
{
	struct exec_child *c = &r->child;
	char buf[1024];
	ssize_t n;

	if (c->errors < 0)
		return false;
	while ((n = read(c->errors, buf, sizeof buf)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] == '\n' || c->used == sizeof c->part - 1)
				say_line(r);
			if (buf[i] != '\n')
				c->part[c->used++] = buf[i];
		}
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void exec_reopen(struct remote *r)
{
	struct exec_child *c = &r->child;
	char path[32];
	int fd;

	if (c->errors < 0)
		return;
	/* A duplicate would be watched as well. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", c->errors);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	close(c->errors);
	c->errors = fd;
}

/* --- starting it ------------------------------------------------------------ */

static void remove_socket(struct exec_child *c)
{
	if (c->path[0])
		unlink(c->path);
	if (c->dir[0])
		rmdir(c->dir);
	c->path[0] = c->dir[0] = '\0';
}

static int make_socket(struct exec_child *c, struct error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	snprintf(c->dir, sizeof c->dir, "/tmp/weir-exec.XXXXXX");
	if (!mkdtemp(c->dir)) {
		c->dir[0] = '\0';
		return error_set(error, -errno, "cannot make a folder in /tmp");
	}
	snprintf(c->path, sizeof c->path, "%s/nbd", c->dir);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", c->path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) ||
		listen(fd, SOMAXCONN)) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return error_set(error, err, "cannot listen on %s", c->path);
	}
	return fd;
}

/* "LISTEN_PID=" and room for the number. */
struct listen_pid {
	char text[32];
};

/* Our environment with what the child has to know; to free(). */
static char **environment(struct listen_pid *pid)
{
	size_t n = 0, used = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 3, sizeof *env);
	if (!env)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (strncmp(environ[i], "LISTEN_", 7))
			env[used++] = environ[i];
	}
	strcpy(pid->text, "LISTEN_PID=");
	env[used++] = pid->text;
	env[used++] = (char *)(uintptr_t) "LISTEN_FDS=1";
	return env;
}

/* In the child, which shares our memory: system calls only. */
static void child_fds(int listener, int errors)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Out of the way of what they are to become. */
	listener = fcntl(listener, F_DUPFD_CLOEXEC, LISTEN_FD + 1);
	errors = fcntl(errors, F_DUPFD_CLOEXEC, LISTEN_FD + 1);
	null = fcntl(null, F_DUPFD_CLOEXEC, LISTEN_FD + 1);
	dup2(null, 0);
	dup2(errors, 1);
	dup2(errors, 2);
	dup2(listener, LISTEN_FD);
	close_range(LISTEN_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

static void child_signals(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		sigaction(i, &standard, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static void child_pid(struct listen_pid *pid)
{
	char digits[12], *to = pid->text + strlen("LISTEN_PID=");
	unsigned n = 0, value = (unsigned)getpid();

	for (; value; value /= 10)
		digits[n++] = (char)('0' + value % 10);
	while (n)
		*to++ = digits[--n];
	*to = '\0';
}

struct start {
	char **argv, **env;
	struct listen_pid *pid;
	int listener, errors; /* descriptors */
	pid_t parent;
	volatile int err; /* why it could not be started */
};

__attribute__((noreturn)) static void child_run(struct start *s)
{
	child_signals();
	child_pid(s->pid);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != s->parent)
		_exit(127);
	child_fds(s->listener, s->errors);
	execvpe(s->argv[0], s->argv, s->env);
	s->err = errno; /* of the parent, which is waiting for us */
	_exit(127);
}

/* Nothing but the call, so that the two share no variable. Signals are blocked
 * meanwhile: a handler in the child would be ours. */
static __attribute__((noinline)) pid_t vfork_child(struct start *s)
{
	pid_t child = vfork();

	if (!child)
		child_run(s);
	return child;
}

static pid_t start_child(struct start *s)
{
	SCOPED_NO_SIGNALS;

	return vfork_child(s);
}

static int spawn(struct remote *r, struct start *s, struct error *error)
{
	pid_t child = start_child(s);
	int err = child < 0 ? errno : s->err;

	if (child > 0 && err)
		waitpid(child, NULL, 0); /* it never was */
	else if (child > 0)
		r->child.pid = child;
	if (err)
		return error_set(error, -err, "cannot start %s: %s", s->argv[0],
			strerror(err));
	return 0;
}

static int start_on(
	struct remote *r, int listener, int errors, struct error *error)
{
	struct listen_pid pid;
	struct start s = {
		.argv = r->target.argv,
		.env = environment(&pid),
		.pid = &pid,
		.listener = listener,
		.errors = errors,
		.parent = getpid(),
	};
	int err;

	if (!s.env)
		return error_set(error, -ENOMEM, "out of memory");
	err = spawn(r, &s, error);
	free(s.env);
	return err;
}

int exec_start(struct remote *r, struct error *error)
{
	struct exec_child *c = &r->child;
	int listener, errors[2], err;

	exec_stop(r);
	c->first[0] = '\0';
	listener = make_socket(c, error);
	if (listener < 0)
		return listener;
	if (pipe2(errors, O_CLOEXEC)) {
		close(listener);
		return error_set(error, -errno, "cannot make a pipe");
	}
	fcntl(errors[0], F_SETFL, O_NONBLOCK);
	c->errors = errors[0];
	err = start_on(r, listener, errors[1], error);
	close(listener);
	close(errors[1]);
	return err;
}

/* --- its end ----------------------------------------------------------------- */

static bool ended(struct exec_child *c, int *status)
{
	return waitpid(c->pid, status, WNOHANG) != 0;
}

/* What became of it, if it did not end as it was told. */
static void describe(const char *command, int status, char buf[100])
{
	buf[0] = '\0';
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM)
		snprintf(buf, 100, "%.50s was killed by signal %d", command,
			WTERMSIG(status));
	else if (WIFEXITED(status) && WEXITSTATUS(status))
		snprintf(buf, 100, "%.50s ended with exit code %d", command,
			WEXITSTATUS(status));
}

static void reap(struct remote *r)
{
	const struct timespec while_ns = {.tv_nsec = STOP_STEP_NS};
	struct exec_child *c = &r->child;
	char what[100];
	int status = 0;
	bool over = ended(c, &status);

	if (!over)
		kill(c->pid, SIGTERM);
	for (unsigned i = 0; !over && i < STOP_STEPS; i++) {
		nanosleep(&while_ns, NULL);
		over = ended(c, &status);
	}
	if (!over) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, &status, 0);
	}
	describe(r->target.argv[0], status, what);
	if (what[0])
		log_warning("store %s: %s", r->target.name, what);
	c->pid = 0;
}

int exec_explain(struct remote *r, int err, struct error *error)
{
	struct exec_child *c = &r->child;
	const struct timespec while_ns = {.tv_nsec = STOP_STEP_NS};
	char what[100] = "";
	int status;

	/* It is on its way out, if that is why nobody answers. */
	for (unsigned i = 0; c->pid && i < STOP_STEPS / 10; i++) {
		if (ended(c, &status)) {
			c->pid = 0;
			describe(r->target.argv[0], status, what);
		}
		nanosleep(&while_ns, NULL);
	}
	exec_log(r);
	if (!what[0])
		return err;
	return error_set(
		error, err, "%s%s%s", what, c->first[0] ? ": " : "", c->first);
}

void exec_stop(struct remote *r)
{
	struct exec_child *c = &r->child;

	if (c->pid)
		reap(r);
	exec_log(r);
	say_line(r);
	if (c->errors >= 0)
		close(c->errors);
	c->errors = -1;
	remove_socket(c);
}
