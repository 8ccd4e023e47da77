/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iov.h: walk scattered memory as if it were one piece.
 *
 * A cursor stands at a byte of an iovec array and only moves forward. The
 * caller keeps within the array. Nothing here allocates or locks.
 */
#ifndef WEIR_BASE_IOV_H
#define WEIR_BASE_IOV_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

struct iov_cursor {
	const struct iovec *iov; /* the piece it stands in */
	size_t skip;             /* bytes of that piece gone by */
};

static inline size_t iov_length(const struct iovec *iov, int niov)
{
	size_t length = 0;

	for (int i = 0; i < niov; i++)
		length += iov[i].iov_len;
	return length;
}

/* The next bytes that lie in one piece, at most `max`; moves past them.
 * Returns how many, 0 only for max 0. */
static inline size_t iov_take(struct iov_cursor *c, size_t max, void **piece)
{
	size_t n;

	while (max && c->skip == c->iov->iov_len) {
		c->iov++;
		c->skip = 0;
	}
	if (!max)
		return 0;
	n = c->iov->iov_len - c->skip;
	if (n > max)
		n = max;
	*piece = (char *)c->iov->iov_base + c->skip;
	c->skip += n;
	return n;
}

static inline void iov_skip(struct iov_cursor *c, size_t n)
{
	void *piece;

	while (n)
		n -= iov_take(c, n, &piece);
}

/* Copy `n` bytes out of the scattered memory, into it, or zero them. */
static inline void iov_gather(void *to, struct iov_cursor *from, size_t n)
{
	void *piece;

	for (size_t at = 0, len; (len = iov_take(from, n - at, &piece));
		at += len)
		memcpy((char *)to + at, piece, len);
}

static inline void iov_scatter(
	struct iov_cursor *to, const void *from, size_t n)
{
	void *piece;

	for (size_t at = 0, len; (len = iov_take(to, n - at, &piece));
		at += len)
		memcpy(piece, (const char *)from + at, len);
}

static inline void iov_zero(struct iov_cursor *to, size_t n)
{
	void *piece;

	for (size_t at = 0, len; (len = iov_take(to, n - at, &piece));
		at += len)
		memset(piece, 0, len);
}

/* Fill out[0..max) with the next bytes, at most `n`, as an iovec array;
 * moves past them. Returns how many entries, and their bytes in *bytes. */
static inline int iov_slice(struct iov_cursor *c, size_t n, struct iovec *out,
	int max, size_t *bytes)
{
	int used = 0;
	size_t len;

	*bytes = 0;
	while (used < max &&
		(len = iov_take(c, n - *bytes, &out[used].iov_base))) {
		out[used++].iov_len = len;
		*bytes += len;
	}
	return used;
}

#endif
