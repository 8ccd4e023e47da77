/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-content.c: data that tells who wrote it, and blocks made of it.
 *
 * The word of writer `id` at offset 8n is a bijection of (id, n), so that
 * any one of its bytes differs between two writers with a chance of 255 in
 * 256, and a whole word can be turned back into its writer and place.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model-shadow.h"

#define PRIME1 UINT64_C(0xbf58476d1ce4e5b9)
#define PRIME2 UINT64_C(0x94d049bb133111eb)
#define INVERSE1 UINT64_C(0x96de1b173f119089) /* of PRIME1, modulo 2^64 */
#define INVERSE2 UINT64_C(0x319642b2d24d8ec3)

/* --- data ---------------------------------------------------------------- */

/* splitmix64's finish, which can be undone. */
static uint64_t word_of(uint32_t id, uint64_t offset)
{
	uint64_t z = (uint64_t)id << 32 | (uint32_t)(offset / 8);

	if (!id)
		return 0;
	z = (z ^ z >> 30) * PRIME1;
	z = (z ^ z >> 27) * PRIME2;
	return z ^ z >> 31;
}

static uint64_t unshift(uint64_t z, unsigned by)
{
	uint64_t x = z;

	for (unsigned done = by; done < 64; done += by)
		x = z ^ x >> by;
	return x;
}

bool data_decode(const void *word, uint32_t *id, uint64_t *offset)
{
	uint64_t z;

	memcpy(&z, word, sizeof(z));
	z = unshift(z, 31) * INVERSE2;
	z = unshift(z, 27) * INVERSE1;
	z = unshift(z, 30);
	*id = (uint32_t)(z >> 32);
	*offset = (z & UINT32_MAX) * 8;
	return *id < 1U << 24; /* ids are small numbers */
}

/* Bytes up to the next word, at most `length`. */
static size_t head_of(uint64_t offset, uint64_t length)
{
	size_t head = (size_t)(-offset & 7);

	return head < length ? head : (size_t)length;
}

void data_fill(void *buf, uint32_t id, uint64_t offset, uint64_t length)
{
	unsigned char *p = buf, *end = p + length;
	size_t head = head_of(offset, length);
	uint64_t word = word_of(id, offset);

	memcpy(p, (char *)&word + offset % 8, head);
	p += head;
	offset += head;
	for (; end - p >= 8; p += 8, offset += 8) {
		word = word_of(id, offset);
		memcpy(p, &word, 8);
	}
	word = word_of(id, offset);
	memcpy(p, &word, (size_t)(end - p));
}

bool data_is(const void *buf, uint32_t id, uint64_t offset, uint64_t length)
{
	const unsigned char *p = buf, *end = p + length;
	size_t head = head_of(offset, length);
	uint64_t word = word_of(id, offset);

	if (memcmp(p, (char *)&word + offset % 8, head) != 0)
		return false;
	p += head;
	offset += head;
	for (; end - p >= 8; p += 8, offset += 8) {
		word = word_of(id, offset);
		if (memcmp(p, &word, 8) != 0)
			return false;
	}
	word = word_of(id, offset);
	return memcmp(p, &word, (size_t)(end - p)) == 0;
}

/* --- content ------------------------------------------------------------- */

static struct content *alloc_content(unsigned pieces)
{
	struct content *c = malloc(sizeof(*c) + pieces * sizeof(c->piece[0]));

	assert(c);
	c->refs = 1;
	c->npieces = 0;
	return c;
}

struct content *content_new(uint32_t length, uint32_t id)
{
	struct content *c = alloc_content(1);

	c->piece[0] = (struct piece){length, id};
	c->npieces = 1;
	return c;
}

struct content *content_get(struct content *c)
{
	c->refs++;
	return c;
}

void content_put(struct content *c)
{
	if (--c->refs == 0)
		free(c);
}

bool content_equal(const struct content *a, const struct content *b)
{
	return a == b ||
		(a->npieces == b->npieces &&
			memcmp(a->piece, b->piece,
				a->npieces * sizeof(a->piece[0])) == 0);
}

/* Append a piece, or lengthen the last one. */
static void push_piece(struct content *c, uint32_t end, uint32_t id)
{
	uint32_t last = c->npieces ? c->piece[c->npieces - 1].end : 0;

	if (end <= last)
		return;
	if (c->npieces && c->piece[c->npieces - 1].id == id)
		c->piece[c->npieces - 1].end = end;
	else
		c->piece[c->npieces++] = (struct piece){end, id};
}

/* Append what `from` has in [start, end), which is where `to` ends now. */
static void push_part(struct content *to, const struct content *from,
	uint32_t start, uint32_t end)
{
	for (unsigned i = 0; i < from->npieces; i++) {
		const struct piece *r = &from->piece[i];

		if (r->end > start)
			push_piece(to, r->end < end ? r->end : end, r->id);
		if (r->end >= end)
			break;
	}
}

static uint32_t content_length(const struct content *c)
{
	return c->piece[c->npieces - 1].end;
}

struct content *content_merge(const struct content *c,
	const struct content *other, uint32_t from, uint32_t to)
{
	struct content *n = alloc_content(c->npieces + other->npieces + 2);

	if (from)
		push_part(n, c, 0, from);
	push_part(n, other, from, to);
	if (to < content_length(c))
		push_part(n, c, to, content_length(c));
	return n;
}

struct content *content_write(
	const struct content *c, uint32_t from, uint32_t to, uint32_t id)
{
	struct content *whole = content_new(content_length(c), id);
	struct content *n = content_merge(c, whole, from, to);

	content_put(whole);
	return n;
}

bool content_matches(const struct content *c, uint64_t base, uint32_t from,
	uint32_t to, const unsigned char *buf)
{
	uint32_t at = from;

	for (unsigned i = 0; i < c->npieces && at < to; i++) {
		const struct piece *r = &c->piece[i];
		uint32_t end = r->end < to ? r->end : to;

		if (r->end <= at)
			continue;
		if (!data_is(buf + (at - from), r->id, base + at, end - at))
			return false;
		at = end;
	}
	return at == to;
}

void content_print(const struct content *c, char *buf, size_t size)
{
	uint32_t start = 0;
	size_t n = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < c->npieces && n + 32 < size; i++) {
		n += (size_t)snprintf(buf + n, size - n,
			"%s%" PRIu32 "@%" PRIu32, i ? " " : "", c->piece[i].id,
			start);
		start = c->piece[i].end;
	}
}
