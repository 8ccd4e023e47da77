/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bitmap.h: ranges of bits in arrays of 64-bit words.
 *
 * Every operation on a range [first, first + count) works a word at a time.
 * Nothing here allocates or locks. Bits past the end of a map are the
 * caller's to keep zero.
 */
#ifndef WEIR_BASE_BITMAP_H
#define WEIR_BASE_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#define BITMAP_WORDS(bits) (((bits) + 63) / 64)

/* The part of a range that lies in one word: `mask` of map[word]. */
struct bitmap_part {
	unsigned word;
	uint64_t mask;
	unsigned next, end; /* bits still to come */
};

static inline struct bitmap_part bitmap_range(unsigned first, unsigned count)
{
	return (struct bitmap_part){.next = first, .end = first + count};
}

/* Step to the part in the next word; false after the last. */
static inline bool bitmap_next(struct bitmap_part *p)
{
	unsigned from = p->next % 64;
	unsigned left = p->end - p->next;
	unsigned n = left < 64 - from ? left : 64 - from;

	if (!left)
		return false;
	p->word = p->next / 64;
	p->mask = ~UINT64_C(0) >> (64 - n) << from;
	p->next += n;
	return true;
}

/* Walk a range a word at a time; `p` is a struct bitmap_part. */
#define bitmap_for_each_part(p, first, count)                                  \
	for (struct bitmap_part p = bitmap_range(first, count);                \
		bitmap_next(&p);)

static inline bool bitmap_test(const uint64_t *map, unsigned bit)
{
	return map[bit / 64] >> (bit % 64) & 1;
}

static inline void bitmap_set(uint64_t *map, unsigned first, unsigned count)
{
	bitmap_for_each_part (p, first, count)
		map[p.word] |= p.mask;
}

static inline void bitmap_clear(uint64_t *map, unsigned first, unsigned count)
{
	bitmap_for_each_part (p, first, count)
		map[p.word] &= ~p.mask;
}

/* Are all bits of the range set? */
static inline bool bitmap_all(
	const uint64_t *map, unsigned first, unsigned count)
{
	bitmap_for_each_part (p, first, count) {
		if ((map[p.word] & p.mask) != p.mask)
			return false;
	}
	return true;
}

/* Is any bit of the range set? */
static inline bool bitmap_any(
	const uint64_t *map, unsigned first, unsigned count)
{
	bitmap_for_each_part (p, first, count) {
		if (map[p.word] & p.mask)
			return true;
	}
	return false;
}

/* The bits that are set, in pairs, fours, eights: a call into libgcc is what
 * the builtin makes on a machine that may have no instruction for it. */
static inline unsigned bitmap_weight(uint64_t w)
{
	w -= w >> 1 & UINT64_C(0x5555555555555555);
	w = (w & UINT64_C(0x3333333333333333)) +
		(w >> 2 & UINT64_C(0x3333333333333333));
	w = (w + (w >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (unsigned)(w * UINT64_C(0x0101010101010101) >> 56);
}

/* How many bits of the range are set? */
static inline unsigned bitmap_count(
	const uint64_t *map, unsigned first, unsigned count)
{
	unsigned n = 0;

	bitmap_for_each_part (p, first, count) {
		uint64_t w = map[p.word] & p.mask;

		if (w)
			n += w & (w - 1) ? bitmap_weight(w) : 1;
	}
	return n;
}

/* The first bit equal to `value` at or after `from`; `end` if none. */
static inline unsigned bitmap_find(
	const uint64_t *map, unsigned from, unsigned end, bool value)
{
	uint64_t flip = value ? 0 : ~UINT64_C(0);

	if (from >= end)
		return end;
	bitmap_for_each_part (p, from, end - from) {
		uint64_t hit = (map[p.word] ^ flip) & p.mask;

		if (hit)
			return p.word * 64 + (unsigned)__builtin_ctzll(hit);
	}
	return end;
}

#endif
