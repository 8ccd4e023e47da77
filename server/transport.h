/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport.h: the bytes of one connection, in and out.
 *
 * The one place that knows what the stream is made of; the rest of the server
 * sees readv() and writev() that never block. An encrypted stream is another
 * set of operations over the same descriptor.
 *
 * Loop thread of the connection only.
 */
#ifndef WEIR_SERVER_TRANSPORT_H
#define WEIR_SERVER_TRANSPORT_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tls_session;
struct transport;

struct transport_ops {
	ssize_t (*readv)(struct transport *t, const struct iovec *iov, int n);
	ssize_t (*writev)(struct transport *t, const struct iovec *iov, int n);
	int (*flush)(struct transport *t); /* or NULL: it keeps nothing */
	void (*close)(struct transport *t);
};

struct transport {
	const struct transport_ops *ops;
	int fd; /* to watch; -1 once closed */
	struct tls_session *tls;
	/* What an encrypted stream says, after each call: */
	bool more;    /* to be read, with no readiness to come for it */
	bool unsent;  /* bytes were taken that the socket has not: flush */
	bool stalled; /* nothing can be read until those have gone */
	/* Set by the reader: take what has come already, no more. */
	bool hold;
};

/* A plain socket. The transport owns `fd`. */
void transport_init_socket(struct transport *t, int fd);

/* Bytes read, 0 at the end of the stream, or a negative errno; -EAGAIN when
 * there is nothing yet. */
static inline ssize_t transport_readv(
	struct transport *t, const struct iovec *iov, int n)
{
	return t->ops->readv(t, iov, n);
}

/* Bytes taken, maybe not all, or a negative errno; -EAGAIN when the peer has
 * to read first. */
static inline ssize_t transport_writev(
	struct transport *t, const struct iovec *iov, int n)
{
	return t->ops->writev(t, iov, n);
}

/* The socket is writable: send what was taken. 0, and `unsent` says whether
 * all has gone, or a negative errno. */
static inline int transport_flush(struct transport *t)
{
	return t->ops->flush ? t->ops->flush(t) : 0;
}

/* Close; a second time does nothing. */
static inline void transport_close(struct transport *t)
{
	if (t->fd >= 0)
		t->ops->close(t);
	t->fd = -1;
}

#endif
