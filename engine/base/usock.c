/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usock.c: a unix socket to listen on, at a path that may be left over.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cleanup.h"
#include "usock.h"

static int usock_address(
	const char *path, struct sockaddr_un *sun, struct error *error)
{
	size_t n = strlen(path);

	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n == 0 || n >= sizeof(sun->sun_path))
		return error_set(error, -ENAMETOOLONG,
			"%s: a unix socket's path has 1 to %zu bytes", path,
			sizeof(sun->sun_path) - 1);
	memcpy(sun->sun_path, path, n);
	return 0;
}

static int usock_bind(int fd, const struct sockaddr_un *sun)
{
	if (bind(fd, (const struct sockaddr *)sun, sizeof(*sun)))
		return -errno;
	return 0;
}

/* Does someone listen there? A full backlog is an answer too. */
static bool usock_alive(const struct sockaddr_un *sun)
{
	CLEANUP_CLOSE int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return true;
	if (!connect(fd, (const struct sockaddr *)sun, sizeof(*sun)))
		return true;
	return errno != ECONNREFUSED && errno != ENOENT;
}

static int usock_replace(
	int fd, const struct sockaddr_un *sun, struct error *error)
{
	const char *path = sun->sun_path;
	struct stat st;
	int r;

	if (!lstat(path, &st) && !S_ISSOCK(st.st_mode))
		return error_set(
			error, -EEXIST, "%s: exists and is not a socket", path);
	if (usock_alive(sun))
		return error_set(error, -EADDRINUSE,
			"%s: in use: another process listens there", path);
	if (unlink(path) && errno != ENOENT)
		return error_set(error, -errno,
			"%s: cannot remove the old socket: %s", path,
			strerror(errno));
	r = usock_bind(fd, sun);
	if (r)
		error_set(error, r, "%s: cannot bind: %s", path, strerror(-r));
	return r;
}

/* Bind and listen; `path` is told where to look when leaving. */
static int usock_open(
	int fd, const char *path, mode_t mode, struct error *error)
{
	struct sockaddr_un sun;
	int r = usock_address(path, &sun, error);

	if (r)
		return r;
	/* Linux: the mode of the descriptor becomes the mode of the name. */
	if (fchmod(fd, mode))
		return error_set(error, -errno, "%s: cannot set the mode: %s",
			path, strerror(errno));
	r = usock_bind(fd, &sun);
	if (r == -EADDRINUSE)
		r = usock_replace(fd, &sun, error);
	else if (r)
		error_set(error, r, "%s: cannot bind: %s", path, strerror(-r));
	if (r)
		return r;
	if (listen(fd, SOMAXCONN))
		return error_set(error, -errno, "%s: cannot listen: %s", path,
			strerror(errno));
	return 0;
}

int usock_listen(
	struct usock *u, const char *path, mode_t mode, struct error *error)
{
	CLEANUP_CLOSE int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	int r;

	*u = (struct usock)USOCK_INIT;
	if (fd < 0)
		return error_set(error, -errno, "cannot make a socket: %s",
			strerror(errno));
	r = usock_open(fd, path, mode, error);
	if (r)
		return r;
	/* The process may change its directory before it leaves. */
	u->path = realpath(path, NULL);
	if (!u->path || stat(u->path, &st))
		return error_set(
			error, -errno, "%s: %s", path, strerror(errno));
	u->dev = st.st_dev;
	u->ino = st.st_ino;
	u->fd = fd;
	fd = -1;
	return 0;
}

void usock_close(struct usock *u)
{
	struct stat st;

	if (u->fd < 0)
		return;
	if (!lstat(u->path, &st) && st.st_dev == u->dev && st.st_ino == u->ino)
		unlink(u->path);
	close(u->fd);
	free(u->path);
	*u = (struct usock)USOCK_INIT;
}
