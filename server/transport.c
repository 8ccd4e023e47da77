/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport.c: a plain socket, TCP or unix.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport.h"

static ssize_t socket_readv(struct transport *t, const struct iovec *iov, int n)
{
	ssize_t got;

	do
		got = readv(t->fd, iov, n);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static ssize_t socket_writev(
	struct transport *t, const struct iovec *iov, int n)
{
	struct msghdr msg = {
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = (size_t)n,
	};
	ssize_t sent;

	do
		sent = sendmsg(t->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

static void socket_close(struct transport *t)
{
	close(t->fd);
}

static const struct transport_ops socket_ops = {
	.readv = socket_readv,
	.writev = socket_writev,
	.close = socket_close,
};

void transport_init_socket(struct transport *t, int fd)
{
	*t = (struct transport){.ops = &socket_ops, .fd = fd};
}
