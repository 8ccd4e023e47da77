/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach-loop.c: a loop device on the file nbdfuse shows, as losetup(8)
 * --direct-io=on makes it: what is written to the device goes to the server
 * at once and is not cached twice.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "base/cleanup.h"

#define LOOP_TRIES 16        /* another may take the free device first */
#define LOOP_CLEAR_TRIES 100 /* of 100 ms */

/* One free loop device, configured, or a negative errno. */
static int bind_one(
	int control, int file, const char *name, const struct attach_plan *plan)
{
	struct loop_config config = {
		.fd = (uint32_t)file, .block_size = plan->block_size};
	CLEANUP_FREE char *device = NULL;
	CLEANUP_CLOSE int fd = -1;
	int n = ioctl(control, LOOP_CTL_GET_FREE);

	if (n < 0)
		return -errno;
	device = client_format("/dev/loop%d", n);
	fd = open(device, (plan->readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	config.info.lo_flags = LO_FLAGS_DIRECT_IO;
	if (plan->readonly)
		config.info.lo_flags |= LO_FLAGS_READ_ONLY;
	snprintf((char *)config.info.lo_file_name, LO_NAME_SIZE, "%s", name);
	return ioctl(fd, LOOP_CONFIGURE, &config) ? -errno : n;
}

int attach_loop_bind(const char *command, const char *file,
	const struct attach_plan *plan, char **device)
{
	CLEANUP_CLOSE int control =
		open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	CLEANUP_CLOSE int fd =
		open(file, (plan->readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	int n = -EBUSY;

	if (control < 0)
		return client_error(EXIT_USAGE, command,
			"no loop devices: /dev/loop-control: %s",
			strerror(errno));
	if (fd < 0)
		return client_error(
			EXIT_IO, command, "%s: %s", file, strerror(errno));
	for (int try = 0; n == -EBUSY && try < LOOP_TRIES; try++)
		n = bind_one(control, fd, file, plan);
	if (n < 0)
		return client_error(EXIT_USAGE, command,
			"cannot set up a loop device: %s", strerror(-n));
	*device = client_format("/dev/loop%d", n);
	return EXIT_OK;
}

char *attach_loop_file(const char *device)
{
	const char *base = strrchr(device, '/');
	CLEANUP_FREE char *path = client_format(
		"/sys/block/%s/loop/backing_file", base ? base + 1 : device);
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;

	if (!f)
		return NULL;
	if (getline(&line, &room, f) < 0) {
		free(line);
		line = NULL;
	} else {
		line[strcspn(line, "\n")] = 0;
	}
	fclose(f);
	return line;
}

static bool is_bound(const char *device)
{
	CLEANUP_FREE char *file = attach_loop_file(device);

	return file != NULL;
}

/* An opener that looks at the device just then (udev) delays the clearing:
 * the kernel does it when the last one closes. */
int attach_loop_clear(const char *command, const char *device)
{
	const struct timespec pause = {.tv_nsec = 100000000};
	int fd = open(device, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return client_error(
			EXIT_IO, command, "%s: %s", device, strerror(errno));
	if (ioctl(fd, LOOP_CLR_FD) && errno != ENXIO) {
		int r = client_error(
			EXIT_IO, command, "%s: %s", device, strerror(errno));

		close(fd);
		return r;
	}
	close(fd);
	for (int try = 0; is_bound(device); try++) {
		if (try == LOOP_CLEAR_TRIES)
			return client_error(EXIT_IO, command,
				"%s: still open by another process", device);
		nanosleep(&pause, NULL);
	}
	return EXIT_OK;
}
