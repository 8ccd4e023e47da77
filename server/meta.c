/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meta.c: metadata contexts: what BLOCK_STATUS can be asked about.
 *
 * Data of both options: export name length, export name, number of queries,
 * and for each its length and text. To list, no query asks for all and
 * "base:" for a namespace; to set, a query is a whole name.
 */
#include "handshake.h"

static const char allocation[] = "base:allocation";

/* Reads the option from front to end. */
struct reader {
	const unsigned char *p;
	uint32_t left;
};

static bool read32(struct reader *r, uint32_t *v)
{
	if (r->left < 4)
		return false;
	*v = nbd_get32(r->p);
	r->p += 4;
	r->left -= 4;
	return true;
}

/* A length and that many bytes. */
static bool read_string(struct reader *r, const char **s, uint32_t *n)
{
	if (!read32(r, n) || *n > r->left)
		return false;
	*s = (const char *)r->p;
	r->p += *n;
	r->left -= *n;
	return true;
}

static bool equal(const char *s, uint32_t n, const char *to)
{
	return n == strlen(to) && !memcmp(s, to, n);
}

/* Read the queries to the end: does one of them mean base:allocation? False
 * if the lengths do not fit. */
static bool read_queries(struct reader *r, uint32_t n, bool list, bool *match)
{
	*match = list && !n;
	for (; n; n--) {
		const char *s;
		uint32_t length;

		if (!read_string(r, &s, &length))
			return false;
		if (equal(s, length, allocation) ||
			(list && equal(s, length, "base:")))
			*match = true;
	}
	return r->left == 0;
}

static void answer(struct conn *c, const struct option *o, bool match)
{
	unsigned char a[4 + sizeof(allocation) - 1];
	bool set = o->number == NBD_OPT_SET_META_CONTEXT;

	/* When listing, the id means nothing and is sent as 0. */
	nbd_put32(a, set ? NBD_CONTEXT_ALLOCATION : 0);
	memcpy(a + 4, allocation, sizeof(allocation) - 1);
	if (match)
		handshake_reply(
			c, o->number, NBD_REP_META_CONTEXT, a, sizeof(a));
	handshake_reply(c, o->number, NBD_REP_ACK, NULL, 0);
}

void meta_answer(struct conn *c, const struct option *o)
{
	struct reader r = {o->data, o->length};
	bool set = o->number == NBD_OPT_SET_META_CONTEXT;
	struct server_export *x;
	const char *name;
	uint32_t length, n;
	bool match;

	/* Whatever comes of it, an earlier choice is gone. */
	if (set)
		c->meta_allocation = false;
	if (!c->structured) {
		handshake_refuse(c, o->number, NBD_REP_ERR_INVALID,
			"structured replies come first");
		return;
	}
	if (!read_string(&r, &name, &length) || !read32(&r, &n) ||
		!read_queries(&r, n, !set, &match)) {
		handshake_refuse(c, o->number, NBD_REP_ERR_INVALID,
			"lengths in the option do not fit");
		return;
	}
	x = length > NBD_MAX_STRING ? NULL
				    : export_get(c->server, name, length);
	if (!x) {
		handshake_refuse(
			c, o->number, NBD_REP_ERR_UNKNOWN, "no such export");
		return;
	}
	if (set) {
		c->meta_allocation = match;
		c->handshake->meta_export = x->id;
	}
	export_put(x);
	answer(c, o, match);
}
