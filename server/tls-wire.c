/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-wire.c: the encrypted bytes, between OpenSSL and the socket.
 *
 * OpenSSL asks for a header of 5 bytes, then for the rest of a record, and
 * gives out a record at a time: with a socket under it that is two or three
 * system calls for each 16K. Here a buffer of four records stands between, on
 * either side.
 *
 *   socket --recv--> in  --read-->  OpenSSL
 *   socket <--send-- out <--write-- OpenSSL
 *
 *  1. A read that the socket answered with less than there was room for has
 *     emptied it: it is not asked again in the same call.
 *  2. Who writes leaves TLS_RESERVE free, so that an answer OpenSSL makes
 *     while it reads finds room; if even that is full, OpenSSL hears "try
 *     again", and reading stalls until the peer has read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tls-session.h"

/* --- the buffers ---------------------------------------------------------- */

static int wire_need(struct tls_wire *w)
{
	if (w->data)
		return 0;
	w->data = malloc(TLS_WIRE);
	w->begin = 0;
	w->end = 0;
	return w->data ? 0 : -ENOMEM;
}

void tls_wire_free(struct tls_wire *w)
{
	free(w->data);
	*w = (struct tls_wire){0};
}

void tls_wire_trim(struct tls_wire *w)
{
	if (w->begin == w->end)
		tls_wire_free(w);
}

static void wire_compact(struct tls_wire *w)
{
	if (!w->begin)
		return;
	memmove(w->data, w->data + w->begin, w->end - w->begin);
	w->end -= w->begin;
	w->begin = 0;
}

bool tls_wire_has_room(const struct tls_session *s)
{
	const struct tls_wire *w = &s->out;

	return TLS_WIRE - (w->end - w->begin) >= TLS_SEALED + TLS_RESERVE;
}

/* --- the socket ----------------------------------------------------------- */

/* Fill `in`, which is empty; false: nothing came. */
static bool wire_recv(struct tls_session *s)
{
	struct tls_wire *w = &s->in;
	ssize_t n;

	if (s->hold || s->drained || s->eof || s->io_error)
		return false;
	s->io_error = wire_need(w);
	if (s->io_error)
		return false;
	do
		n = recv(s->fd, w->data, TLS_WIRE, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	s->drained = n < (ssize_t)TLS_WIRE;
	s->eof = n == 0;
	if (n < 0 && errno != EAGAIN)
		s->io_error = -errno;
	w->begin = 0;
	w->end = n > 0 ? (size_t)n : 0;
	if (n > 0 && !s->greeted) {
		s->greeted = true;
		s->first_byte = w->data[0];
	}
	return n > 0;
}

bool tls_wire_flush(struct tls_session *s)
{
	struct tls_wire *w = &s->out;

	while (w->begin < w->end && !s->io_error) {
		ssize_t n = send(s->fd, w->data + w->begin, w->end - w->begin,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0)
			s->io_error = -errno;
		else
			w->begin += (size_t)n;
	}
	if (s->io_error)
		return false;
	w->begin = 0;
	w->end = 0;
	return true;
}

/* --- what OpenSSL calls --------------------------------------------------- */

static int wire_read(BIO *b, char *to, int size)
{
	struct tls_session *s = BIO_get_data(b);
	struct tls_wire *w = &s->in;
	size_t n;

	BIO_clear_retry_flags(b);
	if (w->begin == w->end && !wire_recv(s)) {
		if (s->eof)
			return 0;
		if (!s->io_error)
			BIO_set_retry_read(b);
		return -1;
	}
	n = w->end - w->begin;
	if (n > (size_t)size)
		n = (size_t)size;
	memcpy(to, w->data + w->begin, n);
	w->begin += n;
	return (int)n;
}

static int wire_write(BIO *b, const char *from, int size)
{
	struct tls_session *s = BIO_get_data(b);
	struct tls_wire *w = &s->out;
	size_t n = (size_t)size;

	BIO_clear_retry_flags(b);
	if (wire_need(w))
		return -1;
	if (n > TLS_WIRE - w->end)
		wire_compact(w);
	if (n > TLS_WIRE - w->end) {
		BIO_set_retry_write(b);
		return -1;
	}
	memcpy(w->data + w->end, from, n);
	w->end += n;
	return size;
}

static long wire_ctrl(BIO *b, int command, long arg, void *p)
{
	struct tls_session *s = BIO_get_data(b);

	(void)arg;
	(void)p;
	/* What was written is flushed by who called OpenSSL. */
	if (command == BIO_CTRL_FLUSH)
		return 1;
	if (command == BIO_CTRL_EOF)
		return s->eof && s->in.begin == s->in.end;
	return 0;
}

BIO_METHOD *tls_wire_method(void)
{
	BIO_METHOD *m = BIO_meth_new(
		BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir wire");

	if (!m)
		return NULL;
	BIO_meth_set_read(m, wire_read);
	BIO_meth_set_write(m, wire_write);
	BIO_meth_set_ctrl(m, wire_ctrl);
	return m;
}

int tls_wire_attach(struct tls_session *s, BIO_METHOD *method)
{
	BIO *b = BIO_new(method);

	if (!b)
		return -ENOMEM;
	BIO_set_data(b, s);
	BIO_set_init(b, 1);
	SSL_set_bio(s->ssl, b, b);
	return 0;
}
