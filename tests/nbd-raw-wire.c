/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-raw-wire.c: see nbd-raw.h.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "nbd-raw.h"

#define OPT_MAGIC UINT64_C(0x49484156454f5054)

void raw_die(const char *what)
{
	fflush(stdout);
	fprintf(stderr, "nbd-raw: %s\n", what);
	exit(1);
}

/* --- bytes ---------------------------------------------------------------- */

void raw_put(struct raw *r, const void *data, size_t n)
{
	while (r->nout + n > r->room) {
		r->room = r->room ? 2 * r->room : 65536;
		r->out = realloc(r->out, r->room);
		if (!r->out)
			raw_die("no memory");
	}
	memcpy(r->out + r->nout, data, n);
	r->nout += n;
}

void raw_put16(struct raw *r, unsigned v)
{
	uint16_t be = htobe16((uint16_t)v);

	raw_put(r, &be, sizeof(be));
}

void raw_put32(struct raw *r, uint32_t v)
{
	v = htobe32(v);
	raw_put(r, &v, sizeof(v));
}

void raw_put64(struct raw *r, uint64_t v)
{
	v = htobe64(v);
	raw_put(r, &v, sizeof(v));
}

void raw_put_hex(struct raw *r, const char *hex)
{
	for (; hex && hex[0] && hex[1]; hex += 2) {
		char digits[3] = {hex[0], hex[1], '\0'};
		unsigned char byte = (unsigned char)strtoul(digits, NULL, 16);

		raw_put(r, &byte, 1);
	}
}

void raw_put_fill(struct raw *r, size_t n, unsigned byte)
{
	unsigned char block[4096];

	memset(block, (int)byte, sizeof(block));
	for (size_t part; n; n -= part) {
		part = n < sizeof(block) ? n : sizeof(block);
		raw_put(r, block, part);
	}
}

/* A server that has hung up is found when reading. */
void raw_flush_out(struct raw *r)
{
	size_t sent = 0;

	while (sent < r->nout) {
		ssize_t n = raw_send(r, r->out + sent, r->nout - sent);

		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			break;
		if (n < 0)
			raw_die("cannot send");
		sent += (size_t)n;
	}
	r->nout = 0;
}

static void get(struct raw *r, void *data, size_t n)
{
	size_t have = 0;

	raw_flush_out(r);
	while (have < n) {
		ssize_t got = raw_recv(r, (char *)data + have, n - have);

		if (got == 0 || (got < 0 && errno == ECONNRESET))
			raw_die("the server has hung up");
		if (got < 0)
			raw_die("no answer in time");
		have += (size_t)got;
	}
}

uint16_t raw_get16(struct raw *r)
{
	uint16_t v;

	get(r, &v, sizeof(v));
	return be16toh(v);
}

static uint32_t get32(struct raw *r)
{
	uint32_t v;

	get(r, &v, sizeof(v));
	return be32toh(v);
}

uint64_t raw_get64(struct raw *r)
{
	uint64_t v;

	get(r, &v, sizeof(v));
	return be64toh(v);
}

/* Read `n` bytes and say what they are: "4096 of 0x55", "4096 mixed". */
static void get_data(struct raw *r, size_t n)
{
	unsigned char *data = malloc(n ? n : 1);
	size_t same = 0;

	if (!data)
		raw_die("no memory");
	get(r, data, n);
	while (same < n && data[same] == data[0])
		same++;
	if (n && same == n)
		printf(" %zu of 0x%02x", n, data[0]);
	else
		printf(" %zu mixed", n);
	free(data);
}

/* --- handshake ------------------------------------------------------------ */

void raw_greet(struct raw *r, uint32_t flags)
{
	uint64_t magic = raw_get64(r), version = raw_get64(r);

	printf("greeting %s flags %#x\n",
		magic == UINT64_C(0x4e42444d41474943) && version == OPT_MAGIC
			? "newstyle"
			: "bad",
		raw_get16(r));
	raw_put32(r, flags);
}

void raw_option(struct raw *r, uint32_t number, uint32_t length)
{
	raw_put64(r, OPT_MAGIC);
	raw_put32(r, number);
	raw_put32(r, length);
}

static const char *reply_name(uint32_t type)
{
	static const struct {
		uint32_t type;
		const char *name;
	} names[] = {{1, "ack"}, {2, "server"}, {3, "info"}, {4, "meta"},
		{0x80000001, "unsup"}, {0x80000002, "policy"},
		{0x80000003, "invalid"}, {0x80000006, "unknown"},
		{0x80000007, "shutdown"}, {0x80000009, "too-big"},
		{0x8000000a, "ext-header-required"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].type == type)
			return names[i].name;
	}
	return "?";
}

static void get_text(struct raw *r, uint32_t length)
{
	char text[8192];

	if (length > sizeof(text))
		raw_die("a reply too long");
	get(r, text, length);
	printf(" %.*s", (int)length, text);
}

/* One INFO: 0 is the export, 3 the block sizes. */
static void get_info(struct raw *r, uint32_t length)
{
	unsigned type = raw_get16(r);

	printf(" %u", type);
	if (type == 0 && length == 12) {
		printf(" size %" PRIu64, raw_get64(r));
		printf(" flags %#x", raw_get16(r));
	} else if (type == 3 && length == 14) {
		printf(" min %u", get32(r));
		printf(" preferred %u", get32(r));
		printf(" max %u", get32(r));
	} else if (type == 1 || type == 2) {
		get_text(r, length - 2);
	} else {
		get_data(r, length - 2);
	}
}

/* An export: the length of its name, the name, and maybe what it is. */
static void get_server(struct raw *r, uint32_t length)
{
	uint32_t name = get32(r);

	printf(" %u", name);
	get_text(r, name);
	if (length > name) {
		printf(" --");
		get_text(r, length - name);
	}
}

/* One option reply; returns its type. */
uint32_t raw_reply(struct raw *r)
{
	uint32_t number, type, length;

	if (raw_get64(r) != UINT64_C(0x3e889045565a9))
		raw_die("not an option reply");
	number = get32(r);
	type = get32(r);
	length = get32(r);
	printf("reply %u %s", number, reply_name(type));
	if (type == 3 && length >= 2) {
		get_info(r, length);
	} else if (type == 2 && length >= 4) {
		get_server(r, length - 4);
	} else if (type == 4 && length >= 4) {
		printf(" %u", get32(r));
		get_text(r, length - 4);
	} else if (type < 0x80000000) {
		get_text(r, length);
	} else {
		char text[8192];

		/* For people; not to compare. */
		get(r, text, length < sizeof(text) ? length : sizeof(text));
	}
	printf("\n");
	return type;
}

void raw_replies(struct raw *r)
{
	uint32_t type;

	do
		type = raw_reply(r);
	while (type != 1 && type < 0x80000000);
}

static void put_name(struct raw *r, const char *name)
{
	raw_put32(r, (uint32_t)strlen(name));
	raw_put(r, name, strlen(name));
}

void raw_go(struct raw *r, uint32_t number, const char *name, char **infos)
{
	uint32_t n = 0;

	while (infos[n])
		n++;
	raw_option(r, number, (uint32_t)(6 + strlen(name) + 2 * n));
	put_name(r, name);
	raw_put16(r, n);
	for (; *infos; infos++)
		raw_put16(r, (unsigned)strtoul(*infos, NULL, 0));
	raw_replies(r);
}

void raw_meta(struct raw *r, uint32_t number, const char *name, char **queries)
{
	uint32_t n = 0, length = (uint32_t)(4 + strlen(name) + 4);

	for (; queries[n]; n++)
		length += (uint32_t)(4 + strlen(queries[n]));
	raw_option(r, number, length);
	put_name(r, name);
	raw_put32(r, n);
	for (; *queries; queries++)
		put_name(r, *queries);
	raw_replies(r);
}

/* --- transmission --------------------------------------------------------- */

void raw_request(struct raw *r, unsigned type, unsigned flags, uint64_t cookie,
	uint64_t offset, uint64_t length)
{
	/* With extended headers a write says that its payload follows. */
	if (r->extended && type == 1)
		flags |= 0x20;
	raw_put32(r, r->extended ? 0x21e41c71 : 0x25609513);
	raw_put16(r, flags);
	raw_put16(r, type);
	raw_put64(r, cookie);
	raw_put64(r, offset);
	if (r->extended)
		raw_put64(r, length);
	else
		raw_put32(r, (uint32_t)length);
	r->read_length[cookie % MAX_REQUESTS] =
		type == 0 ? (uint32_t)length : 0;
}

static void simple_answer(struct raw *r)
{
	uint32_t error = get32(r);
	uint64_t cookie = raw_get64(r);
	uint32_t length = r->read_length[cookie % MAX_REQUESTS];

	printf("%" PRIu64 " error %u", cookie, error);
	if (length && !error)
		get_data(r, length);
}

static void get_extents(struct raw *r, uint32_t length)
{
	printf(" context %u:", get32(r));
	for (length -= 4; length >= 8; length -= 8) {
		printf(" %u", get32(r));
		printf("/%u", get32(r));
	}
}

static void get_extents64(struct raw *r)
{
	uint32_t n;

	printf(" context %u:", get32(r));
	for (n = get32(r); n; n--) {
		printf(" %" PRIu64, raw_get64(r));
		printf("/%" PRIu64, raw_get64(r));
	}
}

static void chunk_answer(struct raw *r, int extended)
{
	unsigned flags = raw_get16(r), type = raw_get16(r);
	uint64_t cookie = raw_get64(r);
	uint64_t offset = extended ? raw_get64(r) : 0;
	uint32_t length = extended ? (uint32_t)raw_get64(r) : get32(r);

	printf("%" PRIu64, cookie);
	if (extended)
		printf(" of %" PRIu64 ":", offset);
	if (type == 0) {
		printf(" none");
	} else if (type == 1) {
		printf(" at %" PRIu64, raw_get64(r));
		get_data(r, length - 8);
	} else if (type == 2) {
		printf(" at %" PRIu64, raw_get64(r));
		printf(" %u of hole", get32(r));
	} else if (type == 5) {
		get_extents(r, length);
	} else if (type == 6) {
		get_extents64(r);
	} else if (type & 0x8000) {
		uint32_t error = get32(r);
		char text[4096];

		get(r, text, raw_get16(r));
		printf(" error %u", error);
		if (type == 0x8002)
			printf(" at %" PRIu64, raw_get64(r));
	} else {
		raw_die("a chunk of unknown type");
	}
	printf("%s", flags & 1 ? "" : " ...");
}

void raw_answer(struct raw *r)
{
	uint32_t magic = get32(r);

	if (magic == 0x67446698)
		simple_answer(r);
	else if (magic == 0x668e33ef)
		chunk_answer(r, 0);
	else if (magic == 0x6e8a278c)
		chunk_answer(r, 1);
	else
		raw_die("not an answer: out of step");
	printf("\n");
}
