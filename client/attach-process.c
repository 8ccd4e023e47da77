/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach-process.c: the programs behind an attachment: started, waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach.h"
#include "base/cleanup.h"

/* In the child: never returns. */
static void become(const char *const *argv, int out)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	dup2(null, 0);
	dup2(out, 1);
	dup2(out, 2);
	execvp(argv[0], (char *const *)argv);
	dprintf(2, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

int attach_spawn(const char *command, const char *const *argv, const char *log,
	pid_t *pid)
{
	CLEANUP_CLOSE int out =
		open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (out < 0)
		return client_error(EXIT_USAGE, command, "cannot make %s: %s",
			log, strerror(errno));
	*pid = fork();
	if (!*pid)
		become(argv, out);
	if (*pid < 0)
		return client_error(EXIT_USAGE, command, "cannot start %s: %s",
			argv[0], strerror(errno));
	return EXIT_OK;
}

/* What the program wrote, on one line. */
static void read_output(int fd, char *text, size_t room)
{
	ssize_t n = pread(fd, text, room - 1, 0);

	text[n > 0 ? n : 0] = 0;
	for (char *p = text; (p = strchr(p, '\n')); p++)
		*p = p[1] ? ' ' : 0;
}

/* Its output goes to memory, not a pipe: nbd-client may leave a child that
 * holds it open. */
int attach_run(const char *command, const char *const *argv)
{
	CLEANUP_CLOSE int out = memfd_create("output", MFD_CLOEXEC);
	char text[768];
	int status;
	pid_t pid;

	pid = out < 0 ? -1 : fork();
	if (!pid)
		become(argv, out);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return client_error(EXIT_USAGE, command, "cannot start %s: %s",
			argv[0], strerror(errno));
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return EXIT_OK;
	read_output(out, text, sizeof(text));
	return client_error(EXIT_IO, command, "%s failed: %s", argv[0], text);
}

uint64_t attach_pid_start(pid_t pid)
{
	unsigned long long start;
	char path[64], text[1024];
	const char *after;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = pid > 0 ? fopen(path, "re") : NULL;
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	after = strrchr(text, ')');
	if (!after ||
		sscanf(after,
			") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
			"%*u %*u %*d %*d %*d %*d %*d %*d %llu",
			&start) != 1)
		return 0;
	return start;
}

bool attach_pid_wait(pid_t pid, uint64_t start, int timeout_ms)
{
	CLEANUP_CLOSE int fd = pid > 0 ? pidfd_open(pid, 0) : -1;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	if (fd < 0 || attach_pid_start(pid) != start)
		return true;
	if (poll(&poll_fd, 1, timeout_ms) != 1)
		return false;
	waitpid(pid, NULL, WNOHANG); /* it may be a child of ours */
	return true;
}

bool attach_have_program(const char *name)
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");
		CLEANUP_FREE char *file =
			client_format("%.*s/%s", (int)n, path, name);

		if (!access(file, X_OK))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}
