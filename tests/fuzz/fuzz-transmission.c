/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz-transmission.c: requests, after a handshake that is as it should be.
 *
 * The first byte of an input is the style of the answers, the second the size
 * of the pieces, the rest is said. Where answers say how long they are, which
 * structured ones do, each has to be whole and what its head says it is.
 */
#include <stdlib.h>
#include <string.h>

#include "../../server/nbd.h"
#include "fuzz.h"

enum style {
	SIMPLE,
	STRUCTURED,
	EXTENDED,
	STYLES,
};

#define GREETING 18U
#define OPTION_REPLY 20U

struct answers {
	enum style style;
	unsigned char head[NBD_EXTENDED_CHUNK_SIZE];
	size_t nhead;
	uint64_t skip; /* bytes of a payload */
	bool greeted, open;
};

/* --- the answers ---------------------------------------------------------- */

static void expect(bool right)
{
	if (!right)
		abort();
}

static size_t head_size(const struct answers *a)
{
	if (!a->greeted)
		return GREETING;
	if (!a->open)
		return OPTION_REPLY;
	return a->style == EXTENDED ? NBD_EXTENDED_CHUNK_SIZE
				    : NBD_SIMPLE_REPLY_SIZE;
}

static void option_reply(struct answers *a)
{
	uint32_t option = nbd_get32(a->head + 8);

	expect(nbd_get64(a->head) == NBD_REP_MAGIC);
	expect(!(nbd_get32(a->head + 12) & 0x80000000U));
	a->skip = nbd_get32(a->head + 16);
	a->open =
		option == NBD_OPT_GO && nbd_get32(a->head + 12) == NBD_REP_ACK;
}

static void chunk(struct answers *a)
{
	bool extended = a->style == EXTENDED;
	uint16_t flags = nbd_get16(a->head + 4), type = nbd_get16(a->head + 6);

	expect(nbd_get32(a->head) ==
		(extended ? NBD_EXTENDED_REPLY_MAGIC
			  : NBD_STRUCTURED_REPLY_MAGIC));
	expect(flags <= NBD_REPLY_FLAG_DONE);
	expect(type != NBD_REPLY_TYPE_NONE || flags == NBD_REPLY_FLAG_DONE);
	a->skip = extended ? nbd_get64(a->head + 24) : nbd_get32(a->head + 16);
	expect(a->skip <= (1 << 20) + 8);
}

/* A head is whole, or looks so. */
static void head(struct answers *a)
{
	if (!a->greeted) {
		expect(nbd_get64(a->head) == NBD_MAGIC);
		a->greeted = true;
	} else if (!a->open) {
		option_reply(a);
	} else if (a->style == STRUCTURED &&
		nbd_get32(a->head) == NBD_STRUCTURED_REPLY_MAGIC) {
		if (a->nhead < NBD_CHUNK_SIZE)
			return; /* the length is still to come */
		chunk(a);
	} else if (a->style == EXTENDED) {
		chunk(a);
	} else {
		expect(nbd_get32(a->head) == NBD_SIMPLE_REPLY_MAGIC);
	}
	a->nhead = 0;
}

static void answer(void *arg, const uint8_t *p, size_t n)
{
	struct answers *a = arg;

	while (n) {
		size_t part = n;

		/* The data of a simple answer has no length. */
		if (a->open && a->style == SIMPLE && !a->skip)
			return;
		if (a->skip) {
			part = part < a->skip ? part : (size_t)a->skip;
			a->skip -= part;
		} else {
			part = 1;
			a->head[a->nhead++] = *p;
			if (a->nhead >= head_size(a))
				head(a);
		}
		p += part;
		n -= part;
	}
}

/* --- the handshake -------------------------------------------------------- */

static unsigned char *option(
	unsigned char *p, uint32_t number, const void *data, uint32_t length)
{
	p = nbd_put64(p, NBD_OPT_MAGIC);
	p = nbd_put32(p, number);
	p = nbd_put32(p, length);
	return (unsigned char *)memcpy(p, data, length) + length;
}

static size_t handshake(unsigned char *to, enum style style)
{
	static const unsigned char go[6];
	static const char meta[] = "\0\0\0\0\0\0\0\2"
				   "\0\0\0\17base:allocation"
				   "\0\0\0\14x-weir:cache";
	unsigned char *p = nbd_put32(to, 3);

	if (style == STRUCTURED)
		p = option(p, NBD_OPT_STRUCTURED_REPLY, "", 0);
	if (style == EXTENDED)
		p = option(p, NBD_OPT_EXTENDED_HEADERS, "", 0);
	if (style != SIMPLE)
		p = option(p, NBD_OPT_SET_META_CONTEXT, meta, sizeof(meta) - 1);
	return (size_t)(option(p, NBD_OPT_GO, go, sizeof(go)) - to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answers a = {.style = SIMPLE};
	unsigned char prelude[256];

	if (size < 2)
		return 0;
	a.style = data[0] % STYLES;
	fuzz_talk(&(struct fuzz_talk){
		.prelude = prelude,
		.nprelude = handshake(prelude, a.style),
		.data = data + 2,
		.size = size - 2,
		.piece = fuzz_piece(data[1]),
		.answer = answer,
		.arg = &a,
	});
	expect(a.open);
	return 0;
}
