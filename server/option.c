/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option.c: the options of the handshake, one function each.
 */
#include <stdio.h>

#include "base/cleanup.h"
#include "handshake.h"

/* --- the export ----------------------------------------------------------- */

static uint16_t transmission_flags(const struct conn *c)
{
	const struct engine_info *i = &c->export->info;
	unsigned flags = NBD_FLAG_HAS_FLAGS | NBD_FLAG_SEND_FLUSH |
		NBD_FLAG_SEND_FUA | NBD_FLAG_CAN_MULTI_CONN |
		NBD_FLAG_SEND_CACHE;

	if (c->structured)
		flags |= NBD_FLAG_SEND_DF;
	if (i->readonly)
		return (uint16_t)(flags | NBD_FLAG_READ_ONLY);
	if (i->can_trim)
		flags |= NBD_FLAG_SEND_TRIM;
	if (i->can_zero)
		flags |= NBD_FLAG_SEND_WRITE_ZEROES;
	if (i->can_zero && i->can_fast_zero)
		flags |= NBD_FLAG_SEND_FAST_ZERO;
	return (uint16_t)flags;
}

/* From here on the connection counts as the export's, and has it. */
static void choose(struct conn *c, struct server_export *x)
{
	c->export = x;
	atomic_fetch_add(&x->connections, 1);
	c->handshake->done = true;
}

/* There is no way to refuse but to hang up. */
static void export_name(struct conn *c, const struct option *o)
{
	struct server_export *x = NULL;
	unsigned char answer[10 + 124] = {0};

	/* Whoever knows of extended headers can say GO. */
	if (o->length <= NBD_MAX_STRING && !c->extended)
		x = export_get(c->server, (const char *)o->data, o->length);
	if (!x) {
		log_debug("%s: no such export", c->peer);
		c->handshake->closing = true;
		return;
	}
	choose(c, x);
	nbd_put16(nbd_put64(answer, x->info.size), transmission_flags(c));
	handshake_put(c, answer, c->handshake->no_zeroes ? 10 : sizeof(answer));
}

static void list_export(struct conn *c, const struct server_export *x)
{
	unsigned char answer[4 + 2 * NBD_MAX_STRING], *p;
	size_t length = strlen(x->description);

	p = nbd_put32(answer, (uint32_t)x->name_length);
	memcpy(p, x->name, x->name_length);
	/* What follows the name is for people. */
	memcpy(p + x->name_length, x->description, length);
	handshake_reply(c, NBD_OPT_LIST, NBD_REP_SERVER, answer,
		4 + x->name_length + length);
}

static void list_exports(struct conn *c, const struct option *o)
{
	struct server *s = c->server;

	if (o->length) {
		handshake_refuse(c, o->number, NBD_REP_ERR_INVALID,
			"NBD_OPT_LIST takes no data");
		return;
	}
	pthread_mutex_lock(&s->lock);
	list_for_each (node, &s->exports)
		list_export(c, list_entry(node, struct server_export, link));
	pthread_mutex_unlock(&s->lock);
	handshake_reply(c, o->number, NBD_REP_ACK, NULL, 0);
}

static void info_export(struct conn *c, uint32_t option)
{
	unsigned char a[12], *p = a;

	p = nbd_put16(p, NBD_INFO_EXPORT);
	p = nbd_put64(p, c->export->info.size);
	nbd_put16(p, transmission_flags(c));
	handshake_reply(c, option, NBD_REP_INFO, a, sizeof(a));
}

/* NAME or DESCRIPTION. */
static void info_text(
	struct conn *c, uint32_t option, enum nbd_info type, const char *text)
{
	unsigned char a[2 + NBD_MAX_STRING];
	size_t length = strlen(text);

	nbd_put16(a, (uint16_t)type);
	memcpy(a + 2, text, length);
	handshake_reply(c, option, NBD_REP_INFO, a, 2 + length);
}

/* A reload may change it at any moment. */
static void info_description(
	struct conn *c, uint32_t option, const struct server_export *x)
{
	SCOPED_LOCK(&c->server->lock);

	if (x->description[0])
		info_text(c, option, NBD_INFO_DESCRIPTION, x->description);
}

static void info_block_size(struct conn *c, uint32_t option)
{
	const struct engine_info *i = &c->export->info;
	unsigned char a[14], *p = a;

	p = nbd_put16(p, NBD_INFO_BLOCK_SIZE);
	p = nbd_put32(p, i->min_block);
	p = nbd_put32(p, i->preferred_block);
	nbd_put32(p, i->max_block);
	handshake_reply(c, option, NBD_REP_INFO, a, sizeof(a));
}

/* The export is known; `p` are `n` numbers of what the client asks for. */
static void info_answer(struct conn *c, const struct option *o,
	struct server_export *x, const unsigned char *p, unsigned n)
{
	bool name = false, description = false, block_size = false;

	for (; n; n--, p += 2) {
		name |= nbd_get16(p) == NBD_INFO_NAME;
		description |= nbd_get16(p) == NBD_INFO_DESCRIPTION;
		block_size |= nbd_get16(p) == NBD_INFO_BLOCK_SIZE;
	}
	c->export = x;
	info_export(c, o->number);
	if (name)
		info_text(c, o->number, NBD_INFO_NAME, x->name);
	if (description)
		info_description(c, o->number, x);
	if (block_size)
		info_block_size(c, o->number);
	handshake_reply(c, o->number, NBD_REP_ACK, NULL, 0);
	c->export = NULL;
	if (o->number == NBD_OPT_GO)
		choose(c, x);
	else
		export_put(x);
}

/* INFO and GO: name length, name, count, that many numbers. */
static void info_or_go(struct conn *c, const struct option *o)
{
	struct server_export *x;
	uint32_t name, n;

	if (o->length < 6)
		goto bad;
	name = nbd_get32(o->data);
	if (name > o->length - 6)
		goto bad;
	n = nbd_get16(o->data + 4 + name);
	if (o->length != 6 + name + 2 * n)
		goto bad;
	if (name > NBD_MAX_STRING) {
		handshake_refuse(c, o->number, NBD_REP_ERR_TOO_BIG,
			"export name too long");
		return;
	}
	x = export_get(c->server, (const char *)o->data + 4, name);
	if (!x) {
		handshake_refuse(
			c, o->number, NBD_REP_ERR_UNKNOWN, "no such export");
		return;
	}
	info_answer(c, o, x, o->data + 6 + name, n);
	return;
bad:
	handshake_refuse(c, o->number, NBD_REP_ERR_INVALID,
		"lengths in the option do not fit");
}

/* --- the rest ------------------------------------------------------------- */

static void structured_reply(struct conn *c, const struct option *o)
{
	if (o->length) {
		handshake_refuse(c, o->number, NBD_REP_ERR_INVALID,
			"NBD_OPT_STRUCTURED_REPLY takes no data");
		return;
	}
	if (c->extended) {
		handshake_refuse(c, o->number, NBD_REP_ERR_EXT_HEADER_REQD,
			"extended headers are negotiated already");
		return;
	}
	c->structured = true;
	handshake_reply(c, o->number, NBD_REP_ACK, NULL, 0);
}

/* Every answer is structured then. */
static void extended_headers(struct conn *c, const struct option *o)
{
	if (o->length || c->extended) {
		handshake_refuse(c, o->number, NBD_REP_ERR_INVALID,
			o->length ? "NBD_OPT_EXTENDED_HEADERS takes no data"
				  : "extended headers are negotiated already");
		return;
	}
	c->extended = true;
	c->structured = true;
	handshake_reply(c, o->number, NBD_REP_ACK, NULL, 0);
}

static void starttls(struct conn *c, const struct option *o)
{
	const char *why = NULL;
	uint32_t type = NBD_REP_ERR_INVALID;

	if (!c->server->tls) {
		why = "this server has no TLS";
		type = NBD_REP_ERR_UNSUP;
	} else if (!c->handshake->fixed) {
		why = "TLS is for fixed newstyle clients";
		type = NBD_REP_ERR_POLICY;
	} else if (c->transport.tls) {
		why = "TLS is on already";
	} else if (o->length) {
		why = "NBD_OPT_STARTTLS takes no data";
	}
	if (why) {
		handshake_refuse(c, o->number, type, why);
		return;
	}
	handshake_reply(c, o->number, NBD_REP_ACK, NULL, 0);
	c->handshake->starttls = true;
}

/* With --tls=require nothing is said in the clear; true if it was refused. */
static bool needs_tls(struct conn *c, const struct option *o)
{
	if (c->server->options->tls.mode != TLS_REQUIRE || c->transport.tls ||
		o->number == NBD_OPT_STARTTLS || o->number == NBD_OPT_ABORT)
		return false;
	/* Who cannot have it is not told to. */
	if (o->number == NBD_OPT_EXPORT_NAME || !c->handshake->fixed) {
		log_debug("%s: no TLS: refused", c->peer);
		c->handshake->closing = true;
	} else {
		handshake_refuse(c, o->number, NBD_REP_ERR_TLS_REQD,
			"this server requires TLS");
	}
	return true;
}

void option_answer(struct conn *c, const struct option *o)
{
	if (needs_tls(c, o))
		return;
	switch (o->number) {
	case NBD_OPT_EXPORT_NAME:
		export_name(c, o);
		break;
	case NBD_OPT_ABORT:
		handshake_reply(c, o->number, NBD_REP_ACK, NULL, 0);
		c->handshake->closing = true;
		break;
	case NBD_OPT_LIST:
		list_exports(c, o);
		break;
	case NBD_OPT_INFO:
	case NBD_OPT_GO:
		info_or_go(c, o);
		break;
	case NBD_OPT_STARTTLS:
		starttls(c, o);
		break;
	case NBD_OPT_STRUCTURED_REPLY:
		structured_reply(c, o);
		break;
	case NBD_OPT_EXTENDED_HEADERS:
		extended_headers(c, o);
		break;
	case NBD_OPT_LIST_META_CONTEXT:
	case NBD_OPT_SET_META_CONTEXT:
		meta_answer(c, o);
		break;
	default:
		handshake_refuse(
			c, o->number, NBD_REP_ERR_UNSUP, "unknown option");
		break;
	}
}
