/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls.c: the encrypted stream of a connection.
 *
 * OpenSSL never touches the socket: tls-wire.c stands between. What a call of
 * it may say, and what is done then:
 *
 *   call       says         because                    then
 *   SSL_read   WANT_READ    no whole record is here    wait until readable
 *              WANT_WRITE   it has to answer (the      `stalled`: wait until
 *                           handshake, a KeyUpdate)    writable, read nothing
 *                           and `out` is full          till then, then again
 *              ZERO_RETURN  close_notify               the end of the stream
 *              SSL, SYSCALL refused, broken, hung up   the end, with a reason
 *   SSL_write  WANT_WRITE   never: a record is begun only when there is room
 *                           for it in `out`
 *              WANT_READ    never: nothing is written before the handshake is
 *                           done, and there is no renegotiation
 *              SSL, SYSCALL broken                     the end
 *
 *  1. Bytes count as taken when they are encrypted: they lie in `out`, bounded,
 *     and `unsent` says that the socket has not had all of them. Since
 *     SSL_write never fails half-way, nothing has ever to be offered again with
 *     the same arguments; SSL_MODE_ENABLE_PARTIAL_WRITE only bounds what one
 *     call may take.
 *  2. Pieces are put together into full records: a large piece is encrypted
 *     from where it lies, small ones are copied together first.
 *  3. A read that stopped because the caller's memory was full leaves bytes no
 *     readiness comes for, in `in` or in OpenSSL: `more` says so. With `hold`
 *     a reader takes those and does not touch the socket: bounded work.
 *  4. Why a stream broke is logged once, with the peer's address.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tls-session.h"

/* --- ends ----------------------------------------------------------------- */

static void end(struct tls_session *s, int result)
{
	s->ended = true;
	s->result = result;
}

/* OpenSSL will not go on. */
static void broken(struct tls_session *s)
{
	char why[512];

	tls_peer_why(s, why, sizeof(why));
	if (!s->up)
		log_warning("%s: TLS refused: %s", s->peer, why);
	else if (s->eof || s->io_error)
		log_debug("%s: TLS: %s", s->peer, why);
	else
		log_warning("%s: TLS broken: %s", s->peer, why);
	ERR_clear_error();
	if (s->io_error)
		end(s, s->io_error);
	else
		end(s, s->up && s->eof ? 0 : -EPROTO);
}

static void check_up(struct tls_session *s)
{
	if (s->up || !SSL_is_init_finished(s->ssl))
		return;
	s->up = true;
	tls_peer_identify(s);
	log_debug("%s: %s, %s%s%s", s->peer, SSL_get_version(s->ssl),
		SSL_get_cipher_name(s->ssl), *s->identity ? ", " : "",
		s->identity);
}

/* Send, and say what is left. */
static void push(struct transport *t)
{
	struct tls_session *s = t->tls;

	t->unsent = !tls_wire_flush(s) && !s->io_error;
	if (s->io_error && !s->ended)
		end(s, s->io_error);
	if (t->unsent)
		return;
	tls_wire_trim(&s->out);
	if (t->stalled)
		t->more = true;
	t->stalled = false;
}

/* --- reading -------------------------------------------------------------- */

/* SSL_read() brought nothing. */
static void read_stopped(struct transport *t, int r)
{
	struct tls_session *s = t->tls;

	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		break;
	case SSL_ERROR_WANT_WRITE:
		t->stalled = true;
		break;
	case SSL_ERROR_ZERO_RETURN:
		end(s, 0);
		break;
	default:
		broken(s);
		break;
	}
}

/* Fill one piece; false when there is no more just now. */
static bool read_piece(
	struct transport *t, const struct iovec *iov, size_t *got)
{
	struct tls_session *s = t->tls;

	for (size_t off = 0; off < iov->iov_len;) {
		size_t n;
		int r = SSL_read_ex(s->ssl, (char *)iov->iov_base + off,
			iov->iov_len - off, &n);

		if (r <= 0) {
			read_stopped(t, r);
			return false;
		}
		off += n;
		*got += n;
	}
	return true;
}

static ssize_t tls_readv(struct transport *t, const struct iovec *iov, int n)
{
	struct tls_session *s = t->tls;
	size_t got = 0;
	bool full = true;

	t->more = false;
	if (s->ended)
		return s->result;
	ERR_clear_error();
	s->hold = t->hold;
	s->drained = false;
	for (int i = 0; i < n && full; i++)
		full = read_piece(t, &iov[i], &got);
	check_up(s);
	push(t);
	tls_wire_trim(&s->in);
	if (s->ended)
		t->more = true;
	else if (full)
		t->more = s->in.data || SSL_has_pending(s->ssl);
	if (got)
		return (ssize_t)got;
	return s->ended ? s->result : -EAGAIN;
}

/* --- writing -------------------------------------------------------------- */

/* Where in the caller's pieces the next record begins. */
struct gather {
	const struct iovec *iov;
	int n;
	size_t off;
};

static void gather_skip_empty(struct gather *g)
{
	while (g->n && g->off == g->iov->iov_len) {
		g->iov++;
		g->n--;
		g->off = 0;
	}
}

/* The next record's content: where it is, and how long; 0 at the end. */
static size_t gather_record(
	struct gather *g, unsigned char *scratch, const void **data)
{
	size_t have = 0;

	gather_skip_empty(g);
	if (g->n && g->iov->iov_len - g->off >= TLS_RECORD) {
		*data = (const char *)g->iov->iov_base + g->off;
		g->off += TLS_RECORD;
		return TLS_RECORD;
	}
	while (g->n && have < TLS_RECORD) {
		size_t part = g->iov->iov_len - g->off;

		if (part > TLS_RECORD - have)
			part = TLS_RECORD - have;
		memcpy(scratch + have, (const char *)g->iov->iov_base + g->off,
			part);
		g->off += part;
		have += part;
		gather_skip_empty(g);
	}
	*data = scratch;
	return have;
}

static ssize_t tls_writev(struct transport *t, const struct iovec *iov, int n)
{
	struct tls_session *s = t->tls;
	unsigned char record[TLS_RECORD]; /* small pieces become one */
	struct gather g = {iov, n, 0};
	size_t taken = 0;

	if (s->ended && s->result)
		return s->result;
	ERR_clear_error();
	for (;;) {
		const void *data;
		size_t length, done;
		int r;

		if (!tls_wire_has_room(s))
			push(t);
		if (s->io_error || !tls_wire_has_room(s))
			break;
		length = gather_record(&g, record, &data);
		if (!length)
			break;
		r = SSL_write_ex(s->ssl, data, length, &done);
		if (r <= 0) {
			broken(s);
			break;
		}
		taken += done;
	}
	push(t);
	if (s->io_error)
		return s->io_error;
	if (s->ended && s->result)
		return s->result;
	return taken ? (ssize_t)taken : -EAGAIN;
}

static int tls_flush(struct transport *t)
{
	push(t);
	return t->tls->io_error;
}

/* --- the life of it ------------------------------------------------------- */

static void session_free(struct tls_session *s)
{
	SSL_free(s->ssl);
	tls_wire_free(&s->in);
	tls_wire_free(&s->out);
	if (s->context)
		tls_context_put(s->context);
	free(s);
}

static void tls_close_stream(struct transport *t)
{
	struct tls_session *s = t->tls;

	if (s->up && !s->io_error && !(s->ended && s->result)) {
		ERR_clear_error();
		SSL_shutdown(s->ssl);
		tls_wire_flush(s);
		ERR_clear_error();
	}
	t->tls = NULL;
	t->more = false;
	t->unsent = false;
	t->stalled = false;
	close(s->fd);
	session_free(s);
}

static const struct transport_ops tls_ops = {
	.readv = tls_readv,
	.writev = tls_writev,
	.flush = tls_flush,
	.close = tls_close_stream,
};

int tls_start(struct tls *tls, struct transport *t, const char *peer)
{
	struct tls_session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->context = tls_context_get(tls);
	s->peer = peer;
	s->fd = t->fd;
	s->ssl = SSL_new(s->context->ctx);
	if (!s->ssl || tls_wire_attach(s, tls->wire)) {
		session_free(s);
		ERR_clear_error();
		return -ENOMEM;
	}
	SSL_set_app_data(s->ssl, s);
	SSL_set_accept_state(s->ssl);
	t->tls = s;
	t->ops = &tls_ops;
	return 0;
}

bool tls_is_up(const struct transport *t)
{
	return t->tls && t->tls->up;
}

bool tls_identity(const struct transport *t, char *text, size_t size)
{
	if (!t->tls || !*t->tls->identity)
		return false;
	snprintf(text, size, "%s", t->tls->identity);
	return true;
}
