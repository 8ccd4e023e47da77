/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.c: options in, replies out, until transmission begins.
 */
#include <errno.h>
#include <stdlib.h>

#include "handshake.h"
#include "tls.h"

/* --- out ------------------------------------------------------------------ */

static int out_grow(struct handshake *h, size_t n)
{
	size_t room = h->out_room ? h->out_room : 256;
	unsigned char *out;

	while (room < h->nout + n)
		room *= 2;
	if (room == h->out_room)
		return 0;
	out = realloc(h->out, room);
	if (!out)
		return -ENOMEM;
	h->out = out;
	h->out_room = room;
	return 0;
}

void handshake_put(struct conn *c, const void *data, size_t n)
{
	struct handshake *h = c->handshake;

	if (!n)
		return;
	if (out_grow(h, n)) {
		h->closing = true;
		return;
	}
	memcpy(h->out + h->nout, data, n);
	h->nout += n;
}

void handshake_reply(struct conn *c, uint32_t option, uint32_t type,
	const void *data, size_t n)
{
	unsigned char head[20], *p = head;

	p = nbd_put64(p, NBD_REP_MAGIC);
	p = nbd_put32(p, option);
	p = nbd_put32(p, type);
	nbd_put32(p, (uint32_t)n);
	handshake_put(c, head, sizeof(head));
	handshake_put(c, data, n);
}

void handshake_refuse(
	struct conn *c, uint32_t option, uint32_t type, const char *why)
{
	log_debug("%s: option %u refused: %s", c->peer, option, why);
	handshake_reply(c, option, type, why, strlen(why));
}

/* Send; true when all has gone. */
static bool out_send(struct conn *c)
{
	struct handshake *h = c->handshake;

	c->tx_blocked = false;
	while (h->out_sent < h->nout) {
		struct iovec iov = {
			h->out + h->out_sent, h->nout - h->out_sent};
		ssize_t n = transport_writev(&c->transport, &iov, 1);

		if (n == -EAGAIN) {
			c->tx_blocked = true;
			return false;
		}
		if (n < 0) {
			conn_kill(c);
			return false;
		}
		h->out_sent += (size_t)n;
	}
	h->nout = 0;
	h->out_sent = 0;
	return true;
}

/* --- in ------------------------------------------------------------------- */

static void consume(struct handshake *h, size_t n)
{
	h->nin -= n;
	memmove(h->in, h->in + n, h->nin);
}

/* The client's flags. */
static bool take_flags(struct conn *c)
{
	struct handshake *h = c->handshake;
	uint32_t flags;

	if (h->nin < 4)
		return false;
	flags = nbd_get32(h->in);
	consume(h, 4);
	h->has_flags = true;
	h->fixed = flags & NBD_FLAG_FIXED_NEWSTYLE;
	h->no_zeroes = flags & NBD_FLAG_NO_ZEROES;
	if (flags & ~(NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES)) {
		log_debug("%s: unknown client flags %#x", c->peer, flags);
		h->closing = true;
	}
	return true;
}

static bool take_skipped(struct handshake *h)
{
	uint32_t n = h->nin < h->skip ? (uint32_t)h->nin : h->skip;

	consume(h, n);
	h->skip -= n;
	return n > 0;
}

/* An option too long to be true: skipped if that is quick, else the end. */
static void too_long(struct conn *c, uint32_t number, uint32_t length)
{
	struct handshake *h = c->handshake;

	if (number == NBD_OPT_EXPORT_NAME || length > OPTION_SKIP) {
		log_debug("%s: option %u of %u bytes", c->peer, number, length);
		h->closing = true;
		return;
	}
	h->skip = length;
	handshake_refuse(c, number, NBD_REP_ERR_TOO_BIG, "option too long");
}

static bool take_option(struct conn *c)
{
	struct handshake *h = c->handshake;
	struct option o;

	if (h->nin < OPTION_HEADER)
		return false;
	if (nbd_get64(h->in) != NBD_OPT_MAGIC) {
		log_debug("%s: not an option: bad magic", c->peer);
		h->closing = true;
		return true;
	}
	o.number = nbd_get32(h->in + 8);
	o.length = nbd_get32(h->in + 12);
	o.data = h->in + OPTION_HEADER;
	if (o.length > OPTION_MAX) {
		consume(h, OPTION_HEADER);
		too_long(c, o.number, o.length);
		return true;
	}
	if (h->nin < OPTION_HEADER + o.length)
		return false;
	if (o.number == NBD_OPT_STARTTLS && h->nin > OPTION_HEADER + o.length) {
		log_warning("%s: TLS refused: plain bytes behind STARTTLS",
			c->peer);
		h->closing = true;
		return true;
	}
	option_answer(c, &o);
	consume(h, OPTION_HEADER + o.length);
	return true;
}

/* Take the next thing the client said; false if it is not whole yet. */
static bool take(struct conn *c)
{
	struct handshake *h = c->handshake;

	if (!h->has_flags)
		return take_flags(c);
	if (h->skip)
		return take_skipped(h);
	return take_option(c);
}

/* --- phases --------------------------------------------------------------- */

int handshake_start(struct conn *c)
{
	struct handshake *h = calloc(1, sizeof(*h));
	unsigned char greeting[18], *p = greeting;

	if (!h)
		return -ENOMEM;
	c->handshake = h;
	p = nbd_put64(p, NBD_MAGIC);
	p = nbd_put64(p, NBD_OPT_MAGIC);
	nbd_put16(p, NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES);
	handshake_put(c, greeting, sizeof(greeting));
	return 0;
}

void handshake_free(struct conn *c)
{
	if (!c->handshake)
		return;
	free(c->handshake->out);
	free(c->handshake);
	c->handshake = NULL;
}

bool handshake_wants_input(const struct conn *c)
{
	return !c->tx_blocked && !c->transport.stalled &&
		c->handshake->nin < sizeof(c->handshake->in);
}

void handshake_input(struct conn *c)
{
	struct handshake *h = c->handshake;
	struct iovec iov = {h->in + h->nin, sizeof(h->in) - h->nin};
	ssize_t n = transport_readv(&c->transport, &iov, 1);

	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		conn_kill(c);
		return;
	}
	h->nin += (size_t)n;
}

/* The export is chosen: from now on the stream is requests. */
static void begin_transmission(struct conn *c)
{
	struct handshake *h = c->handshake;
	struct server_export *x = c->export;

	reactor_timer_cancel(c->worker->reactor, &c->deadline);
	if (h->meta_export != x->id)
		c->contexts = 0;
	/* The control socket reads it. */
	pthread_mutex_lock(&c->server->lock);
	tls_identity(&c->transport, c->identity, sizeof(c->identity));
	pthread_mutex_unlock(&c->server->lock);
	c->client = engine_client_get(x->store->engine, c->identity);
	if (!c->client) {
		conn_kill(c);
		return;
	}
	c->inflight_limit = x->info.inflight_bytes;
	c->state = CONN_OPEN;
	c->handshake = NULL;
	log_debug("%s: serving export \"%s\"", c->peer, x->name);
	transmit_feed(c, h->in, h->nin);
	free(h->out);
	free(h);
}

/*
 * The answer to STARTTLS has gone: what comes now is TLS. Whoever could change
 * the bytes so far could have negotiated in the client's name: forget it.
 */
static void begin_tls(struct conn *c)
{
	struct handshake *h = c->handshake;

	h->starttls = false;
	h->meta_export = 0;
	c->structured = false;
	c->extended = false;
	c->contexts = 0;
	if (tls_start(c->server->tls, &c->transport, c->peer))
		conn_kill(c);
}

void handshake_run(struct conn *c)
{
	struct handshake *h = c->handshake;

	do {
		if (!out_send(c))
			return;
		if (h->closing) {
			conn_kill(c);
			return;
		}
		if (h->done) {
			begin_transmission(c);
			return;
		}
		if (h->starttls) {
			begin_tls(c);
			return;
		}
	} while (take(c));
}
