/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zero.h: is memory all zeroes?
 */
#ifndef WEIR_BASE_ZERO_H
#define WEIR_BASE_ZERO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Data mostly shows itself in its first words; then it is zeroes if it is the
 * same as itself sixteen bytes on, which memcmp() is quick at. */
static inline bool memory_is_zero(const void *p, size_t n)
{
	const unsigned char *b = p;
	uint64_t word[2] = {0};

	memcpy(word, b, n < sizeof(word) ? n : sizeof(word));
	if (word[0] | word[1])
		return false;
	return n <= sizeof(word) ||
		!memcmp(b, b + sizeof(word), n - sizeof(word));
}

#endif
