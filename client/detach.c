/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * detach.c: `weir detach`: flushes a device, takes it apart and waits until
 * the last piece is gone, so that after it the server has everything.
 *
 * Every step does nothing where its thing is not there: a half-made or
 * half-taken attachment goes the same way as a whole one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "base/cleanup.h"

#define DETACH_END_MS 60000     /* for nbdfuse to end */
#define DETACH_UMOUNT_TRIES 100 /* of 100 ms */

static int say_busy(const char *command, const char *device)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *m = NULL;
	int r;

	while (mounts && (m = getmntent(mounts)) &&
		strcmp(m->mnt_fsname, device))
		;
	r = m ? client_error(EXIT_USAGE, command,
			"%s is mounted on %s; umount it first", device,
			m->mnt_dir)
	      : client_error(EXIT_USAGE, command,
			"%s is in use (swap, another device on it?)", device);
	if (mounts)
		endmntent(mounts);
	return r;
}

/* Everything written to the device goes to the server, and is durable. */
static int flush(const char *command, const char *device)
{
	CLEANUP_CLOSE int fd = open(device, O_RDONLY | O_EXCL | O_CLOEXEC);

	if (fd < 0 && errno == EBUSY)
		return say_busy(command, device);
	if (fd < 0 || fsync(fd) || ioctl(fd, BLKFLSBUF, 0))
		return client_error(EXIT_IO, command,
			"%s: cannot flush: %s; still attached, try again, or "
			"--force to lose what is not written",
			device, strerror(errno));
	return EXIT_OK;
}

/* Is the device this attachment's, and bound? A loop device may have been
 * given to another since. */
static bool holds_device(const struct attachment *a)
{
	CLEANUP_FREE char *file = NULL;

	if (!a->device || a->via == ATTACH_NBD)
		return a->device != NULL;
	file = attach_loop_file(a->device);
	return file && !strncmp(file, a->dir, strlen(a->dir)) &&
		file[strlen(a->dir)] == '/';
}

static int clear_device(const char *command, const struct attachment *a)
{
	if (!holds_device(a))
		return EXIT_OK;
	return a->via == ATTACH_NBD ? attach_nbd_clear(command, a->device)
				    : attach_loop_clear(command, a->device);
}

/* EINVAL: not mounted (any more). */
static int unmount(const char *command, const struct attachment *a, bool force)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	CLEANUP_FREE char *disk = attach_path(a, "disk");
	int flags = UMOUNT_NOFOLLOW | (force ? MNT_DETACH : 0);

	for (int try = 0; umount2(disk, flags); try++) {
		if (errno == EINVAL || errno == ENOENT)
			return EXIT_OK;
		if (errno != EBUSY || try == DETACH_UMOUNT_TRIES)
			return client_error(EXIT_IO, command,
				"cannot unmount %s: %s", disk, strerror(errno));
		nanosleep(&pause, NULL);
	}
	return EXIT_OK;
}

/* Is nbdfuse there to take what is flushed? */
static bool is_served(const struct attachment *a)
{
	return a->via == ATTACH_NBD ||
		!attach_pid_wait(a->pid, a->pid_start, 0);
}

static int end_server(const char *command, const struct attachment *a)
{
	if (attach_pid_wait(a->pid, a->pid_start, DETACH_END_MS))
		return EXIT_OK;
	return client_error(EXIT_IO, command,
		"nbdfuse (pid %d) has not ended after %d s", (int)a->pid,
		DETACH_END_MS / 1000);
}

int detach_teardown(const char *command, struct attachment *a, bool force)
{
	bool lost = false;
	int r = EXIT_OK;

	if (!is_served(a) && holds_device(a) && !force) {
		client_error(EXIT_IO, command,
			"%s: nbdfuse is gone, what was not flushed is lost",
			a->device);
		lost = force = true;
	} else if (holds_device(a) && !force) {
		r = flush(command, a->device);
	}
	if (force && is_served(a) && a->pid > 0)
		kill(a->pid, SIGKILL); /* its I/O fails, nothing hangs */
	if (!r)
		r = clear_device(command, a);
	if (!r && a->via != ATTACH_NBD)
		r = unmount(command, a, force);
	if (!r && a->via != ATTACH_NBD)
		r = end_server(command, a);
	if (!r)
		r = attach_state_remove(command, a);
	return r ? r : lost ? EXIT_IO : EXIT_OK;
}

/* A device that nbd-client attached without us. */
static int detach_foreign(const char *command, const char *device, bool force)
{
	int r;

	if (strncmp(device, "/dev/nbd", 8))
		return client_error(EXIT_USAGE, command,
			"%s: not attached by weir (nothing in the run "
			"directory names it)",
			device);
	r = force ? EXIT_OK : flush(command, device);
	return r ? r : attach_nbd_clear(command, device);
}

static int detach_device(const char *command, const char *name, bool force)
{
	CLEANUP_FREE char *device = realpath(name, NULL);
	struct attachment a;
	int r;

	if (!device)
		return client_error(
			EXIT_USAGE, command, "%s: %s", name, strerror(errno));
	r = attach_state_find(command, device, &a);
	if (!r)
		r = a.dir ? detach_teardown(command, &a, force)
			  : detach_foreign(command, device, force);
	attach_state_free(&a);
	return r;
}

static int detach_all(const char *command, bool force)
{
	CLEANUP_FREE char *run = attach_run_dir();
	DIR *stream = opendir(run);
	struct attachment a;
	int worst = EXIT_OK;

	while (stream && attach_state_next(stream, &a)) {
		int r = detach_teardown(command, &a, force);

		worst = r > worst ? r : worst;
		attach_state_free(&a);
	}
	if (stream)
		closedir(stream);
	return worst;
}

static void help(void)
{
	puts("usage: weir detach [OPTIONS] DEVICE\n"
	     "       weir detach --all\n\n"
	     "Flush a device made by 'weir attach', take it apart, and wait\n"
	     "until that is done. Needs root; the device must not be mounted."
	     "\n\n"
	     "  -a, --all      all of them, and what a broken attach left\n"
	     "      --force    without flushing: unwritten data is lost\n"
	     "      --help     this");
}

static int detach(int argc, char **argv, bool all, bool force)
{
	const char *device = NULL;

	if (geteuid())
		return client_error(EXIT_USAGE, argv[0],
			"needs root; try 'sudo weir detach'");
	if (all && optind < argc)
		return client_error(EXIT_USAGE, argv[0],
			"%s: --all takes no device", argv[optind]);
	if (all)
		return detach_all(argv[0], force);
	device = client_one_argument(argc, argv, "DEVICE");
	return device ? detach_device(argv[0], device, force) : EXIT_USAGE;
}

int cmd_detach(int argc, char **argv)
{
	static const struct option options[] = {
		{"all", no_argument, NULL, 'a'},
		{"force", no_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	bool all = false, force = false;
	int c;

	while ((c = client_getopt(argc, argv, ":ah", options)) != -1) {
		switch (c) {
		case 'a':
			all = true;
			break;
		case 'f':
			force = true;
			break;
		case 'h':
			help();
			return EXIT_OK;
		default:
			return EXIT_USAGE;
		}
	}
	return detach(argc, argv, all, force);
}
