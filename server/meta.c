/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meta.c: metadata contexts: what BLOCK_STATUS can be asked about.
 *
 *   base:allocation   what is allocated and what reads as zeroes
 *   x-weir:cache      what the cache holds (engine_cache_status())
 *
 * Data of both options: export name length, export name, number of queries,
 * and for each its length and text. To list, no query asks for all and a
 * namespace with its colon for all in it; to set, a query is a whole name. A
 * query that means nothing here is passed over.
 */
#include "handshake.h"

static const struct {
	const char *name;
	uint32_t id;
} contexts[NBD_CONTEXTS] = {
	{"base:allocation", NBD_CONTEXT_ALLOCATION},
	{"x-weir:cache", NBD_CONTEXT_CACHE},
};

#define LONGEST_NAME 32U

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

/* Does a query mean the context of that name? */
static bool means(const char *s, uint32_t n, const char *name, bool list)
{
	size_t length = strlen(name);

	if (list && n && n < length && s[n - 1] == ':')
		length = n; /* names have one colon */
	return n == length && !memcmp(s, name, length);
}

/* Read the queries to the end: the contexts they mean, a bit each. False if
 * the lengths do not fit. */
static bool read_queries(struct reader *r, uint32_t n, bool list, uint32_t *set)
{
	*set = list && !n ? UINT32_MAX : 0;
	for (; n; n--) {
		const char *s;
		uint32_t length;

		if (!read_string(r, &s, &length))
			return false;
		for (unsigned i = 0; i < NBD_CONTEXTS; i++) {
			if (means(s, length, contexts[i].name, list))
				*set |= 1U << contexts[i].id;
		}
	}
	return r->left == 0;
}

static void answer(struct conn *c, const struct option *o, uint32_t set)
{
	for (unsigned i = 0; i < NBD_CONTEXTS; i++) {
		unsigned char a[4 + LONGEST_NAME];
		size_t length = strlen(contexts[i].name);

		if (!(set & 1U << contexts[i].id))
			continue;
		/* When listing, the id means nothing and is sent as 0. */
		nbd_put32(a,
			o->number == NBD_OPT_SET_META_CONTEXT ? contexts[i].id
							      : 0);
		memcpy(a + 4, contexts[i].name, length);
		handshake_reply(
			c, o->number, NBD_REP_META_CONTEXT, a, 4 + length);
	}
	handshake_reply(c, o->number, NBD_REP_ACK, NULL, 0);
}

void meta_answer(struct conn *c, const struct option *o)
{
	struct reader r = {o->data, o->length};
	bool set = o->number == NBD_OPT_SET_META_CONTEXT;
	struct server_export *x;
	const char *name;
	uint32_t length, n, chosen;

	/* Whatever comes of it, an earlier choice is gone. */
	if (set)
		c->contexts = 0;
	if (!c->structured) {
		handshake_refuse(c, o->number, NBD_REP_ERR_INVALID,
			"structured replies come first");
		return;
	}
	if (!read_string(&r, &name, &length) || !read32(&r, &n) ||
		!read_queries(&r, n, !set, &chosen)) {
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
		c->contexts = chosen;
		c->handshake->meta_export = x->id;
	}
	export_put(x);
	answer(c, o, chosen);
}
