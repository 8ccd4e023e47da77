/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-link.c: opening connections to a server. Blocks, for LINK_NS at most and
 * for the time that resolving a name takes; looks at `quit` meanwhile.
 */
#include <errno.h>
#include <string.h>

#include "../base/clock.h"
#include "../base/tcp.h"
#include "nbd.h"

#define LINK_NS (30 * NSEC_PER_SEC)
#define LINK_STEP_MS 100
#define LINK_BYE_NS NSEC_PER_SEC
/* A machine that is gone without a word is noticed after so long. */
#define LINK_SILENCE_S 30
#define LINK_PROBE_S 10
#define LINK_MOST (32U << 20) /* bytes; if the server does not say */

const char *link_error(void)
{
	const char *text = nbd_get_error();
	const char *colon;

	if (!text)
		return "the connection is lost";
	/* "nbd_connect_uri: connect: Connection refused" */
	while (!strncmp(text, "nbd_", 4) && (colon = strstr(text, ": ")))
		text = colon + 2;
	return text;
}

static int link_failed(const char *what, struct error *error)
{
	int err = nbd_get_errno();

	return error_set(error, err ? -err : -ECONNABORTED, "%s: %s", what,
		link_error());
}

/* A server that does not like our certificate or key just hangs up. */
static int connect_failed(const struct remote_target *t, struct error *error)
{
	bool tls = t->uri && !strncmp(t->uri, "nbds", 4);

	if (tls && strstr(link_error(), "gnutls_record"))
		return error_set(error, -EACCES,
			"cannot connect: the server hung up after the TLS "
			"handshake: it may want a certificate or key that it "
			"knows (tls-certificates, tls-psk-file)");
	return link_failed("cannot connect", error);
}

/* --- one connection ------------------------------------------------------- */

/* -1: libnbd has an error. */
static int set_up(struct nbd_handle *nbd, const struct remote_target *t)
{
	return nbd_set_uri_allow_local_file(nbd, true) ||
			nbd_set_pread_initialize(nbd, false) ||
			nbd_add_meta_context(
				nbd, LIBNBD_CONTEXT_BASE_ALLOCATION) ||
			(t->tls_certificates &&
				nbd_set_tls_certificates(
					nbd, t->tls_certificates)) ||
			(t->tls_psk_file &&
				nbd_set_tls_psk_file(nbd, t->tls_psk_file)) ||
			(t->tls_username &&
				nbd_set_tls_username(nbd, t->tls_username)) ||
			(t->tls_insecure && nbd_set_tls_verify_peer(nbd, false))
		? -1
		: 0;
}

static int wait_connected(struct nbd_handle *nbd, const struct remote_target *t,
	const atomic_bool *quit, struct error *error)
{
	uint64_t end = clock_ns() + LINK_NS;

	while (nbd_aio_is_connecting(nbd) > 0) {
		if (atomic_load(quit))
			return error_set(error, -ECANCELED, "given up");
		if (clock_ns() > end)
			return error_set(error, -ETIMEDOUT,
				"no answer within %u seconds",
				(unsigned)(LINK_NS / NSEC_PER_SEC));
		if (nbd_poll(nbd, LINK_STEP_MS) < 0)
			break;
	}
	return nbd_aio_is_ready(nbd) > 0 ? 0 : connect_failed(t, error);
}

/* Notice a peer that is gone: with data under way, and without. */
static const struct tcp_watch watch = {
	.idle_s = LINK_PROBE_S,
	.interval_s = LINK_PROBE_S,
	.probes = 2,
	.unacked_ms = LINK_SILENCE_S * 1000,
};

static int connect_one(struct remote *r, const atomic_bool *quit,
	struct nbd_handle **out, struct error *error)
{
	const struct remote_target *t = &r->target;
	struct nbd_handle *nbd = nbd_create();
	int err;

	if (!nbd)
		return error_set(error, -ENOMEM, "out of memory");
	if (set_up(nbd, t))
		err = link_failed("cannot connect", error);
	else if (t->uri ? nbd_aio_connect_uri(nbd, t->uri)
			: nbd_aio_connect_unix(nbd, r->child.path))
		err = link_failed("cannot connect", error);
	else
		err = wait_connected(nbd, t, quit, error);
	if (err) {
		nbd_close(nbd);
		return err;
	}
	tcp_watch(nbd_aio_get_fd(nbd), &watch);
	*out = nbd;
	return 0;
}

/* --- what the server can do ----------------------------------------------- */

static uint32_t block_size(struct nbd_handle *nbd, int type, uint32_t unknown)
{
	int64_t n = nbd_get_block_size(nbd, type);

	return n > 0 && n <= UINT32_MAX ? (uint32_t)n : unknown;
}

static uint32_t most_of(struct nbd_handle *nbd, uint32_t min)
{
	uint32_t n = block_size(nbd, LIBNBD_SIZE_MAXIMUM, LINK_MOST);

	if (n > STORE_MAX_IO)
		n = STORE_MAX_IO;
	n -= n % min;
	return n ? n : min;
}

static int ask_caps(
	struct nbd_handle *nbd, struct remote_caps *c, struct error *error)
{
	int64_t size = nbd_get_size(nbd);

	if (size < 0)
		return link_failed("no size", error);
	c->size = (uint64_t)size;
	c->min = block_size(nbd, LIBNBD_SIZE_MINIMUM, size % 512 ? 1 : 512);
	c->preferred = block_size(nbd, LIBNBD_SIZE_PREFERRED, 4096);
	c->most = most_of(nbd, c->min);
	c->readonly = nbd_is_read_only(nbd) > 0;
	c->multi_conn = nbd_can_multi_conn(nbd) > 0;
	c->flush = nbd_can_flush(nbd) > 0;
	c->fua = nbd_can_fua(nbd) > 0;
	c->trim = nbd_can_trim(nbd) > 0;
	c->zero = nbd_can_zero(nbd) > 0;
	c->fast_zero = nbd_can_fast_zero(nbd) > 0;
	c->status =
		nbd_can_meta_context(nbd, LIBNBD_CONTEXT_BASE_ALLOCATION) > 0;
	/* What lies behind the last whole block cannot be addressed. */
	c->size -= c->size % c->min;
	return 0;
}

/* --- all connections ------------------------------------------------------ */

static int open_connections(struct remote *r, const atomic_bool *quit,
	struct remote_link *out, struct error *error)
{
	struct error ignored;
	int err;

	err = connect_one(r, quit, &out->nbd[0], error);
	if (err)
		return err;
	out->n = 1;
	err = ask_caps(out->nbd[0], &out->caps, error);
	if (err) {
		link_close(out);
		return err;
	}
	while (out->caps.multi_conn && out->n < r->target.connections &&
		!connect_one(r, quit, &out->nbd[out->n], &ignored))
		out->n++;
	return 0;
}

int link_open(struct remote *r, const atomic_bool *quit,
	struct remote_link *out, struct error *error)
{
	int err = r->target.argv ? exec_start(r, error) : 0;

	*out = (struct remote_link){0};
	if (err)
		return err;
	err = open_connections(r, quit, out, error);
	if (err && r->target.argv)
		exec_explain(r, err, error);
	return err;
}

/* Say goodbye, where somebody listens. */
static void disconnect(struct nbd_handle *nbd)
{
	uint64_t end = clock_ns() + LINK_BYE_NS;

	if (nbd_aio_is_ready(nbd) > 0 && !nbd_aio_disconnect(nbd, 0)) {
		while (!nbd_aio_is_closed(nbd) && !nbd_aio_is_dead(nbd) &&
			clock_ns() < end && nbd_poll(nbd, LINK_STEP_MS) >= 0)
			;
	}
	nbd_close(nbd);
}

void link_close(struct remote_link *l)
{
	while (l->n)
		disconnect(l->nbd[--l->n]);
}
