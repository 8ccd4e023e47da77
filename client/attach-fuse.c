/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach-fuse.c: attach where the kernel has no nbd: nbdfuse(1) shows the
 * export as a file, a loop device makes the file a block device.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "base/cleanup.h"

#define FUSE_READY_MS 30000
#define FUSE_TICK_MS 20

static int check(const char *command)
{
	CLEANUP_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (!attach_have_program("nbdfuse"))
		return client_error(EXIT_USAGE, command,
			"the kernel has no nbd and nbdfuse is not installed; "
			"install it (Debian: apt install libnbd-bin fuse3)");
	if (fd < 0)
		return client_error(EXIT_USAGE, command,
			"/dev/fuse: %s; try 'modprobe fuse', or in a container "
			"'--device /dev/fuse'",
			strerror(errno));
	return EXIT_OK;
}

static int start(const char *command, const struct attach_plan *plan,
	struct attachment *a)
{
	CLEANUP_FREE char *log = attach_path(a, "nbdfuse.log");
	CLEANUP_FREE char *pidfile = attach_path(a, "nbdfuse.pid");
	CLEANUP_FREE char *disk = attach_path(a, "disk");
	CLEANUP_FREE char *connections = client_format("%u", plan->connections);
	const char *argv[16] = {"nbdfuse", "-P", pidfile};
	size_t n = 3;
	int r;

	if (plan->readonly)
		argv[n++] = "-r";
	if (plan->connections) {
		argv[n++] = "-C";
		argv[n++] = connections;
	}
	argv[n++] = disk;
	argv[n] = plan->uri;
	r = attach_spawn(command, argv, log, &a->pid);
	if (r)
		return r;
	a->pid_start = attach_pid_start(a->pid);
	return attach_state_save(command, a);
}

/* The last line nbdfuse said. */
static int say_log(const char *command, const struct attachment *a)
{
	CLEANUP_FREE char *path = attach_path(a, "nbdfuse.log");
	FILE *f = fopen(path, "re");
	char line[512], last[512] = "it ended without a word";

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0])
			strcpy(last, line);
	}
	if (f)
		fclose(f);
	return client_error(EXIT_IO, command, "nbdfuse: %s", last);
}

/* True if the user has had enough; the signals are blocked all along. */
static bool interrupted(void)
{
	sigset_t set;

	return !sigpending(&set) &&
		(sigismember(&set, SIGINT) || sigismember(&set, SIGTERM) ||
			sigismember(&set, SIGHUP));
}

static int wait_ready(const char *command, const struct attachment *a)
{
	CLEANUP_FREE char *pidfile = attach_path(a, "nbdfuse.pid");

	for (int ms = 0; access(pidfile, F_OK); ms += FUSE_TICK_MS) {
		if (attach_pid_wait(a->pid, a->pid_start, FUSE_TICK_MS))
			return say_log(command, a);
		if (interrupted())
			return client_error(EXIT_IO, command, "interrupted");
		if (ms > FUSE_READY_MS)
			return client_error(EXIT_IO, command,
				"nbdfuse is not ready after %d s",
				FUSE_READY_MS / 1000);
	}
	return EXIT_OK;
}

int attach_fuse(const char *command, const struct attach_plan *plan,
	struct attachment *a)
{
	CLEANUP_FREE char *file = NULL;
	int r = check(command);

	if (!r)
		r = attach_state_new(command, plan, ATTACH_FUSE, a);
	if (!r)
		r = start(command, plan, a);
	if (!r)
		r = wait_ready(command, a);
	if (r)
		return r;
	file = attach_path(a, "disk/nbd");
	r = attach_loop_bind(command, file, plan, &a->device);
	return r ? r : attach_state_save(command, a);
}
