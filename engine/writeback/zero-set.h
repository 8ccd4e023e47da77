/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * zero-set.h: ranges that were zeroed, in order, none over the other. For
 * redo.c. Pure: no lock, no clock.
 */
#ifndef WEIR_WRITEBACK_ZERO_SET_H
#define WEIR_WRITEBACK_ZERO_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zero_range {
	uint64_t offset, end; /* bytes */
	unsigned flags; /* ranges that touch are one if these are the same */
};

struct zero_set {
	struct zero_range *range;
	size_t count, room;
};

/* [offset, end) was zeroed just now: what was there before gives way. 0, or
 * -ENOMEM with nothing changed. */
int zero_set_add(
	struct zero_set *s, uint64_t offset, uint64_t end, unsigned flags);
/* Take [offset, end) out. 0, or -ENOMEM with nothing changed. */
int zero_set_cut(struct zero_set *s, uint64_t offset, uint64_t end);
/* Take out every range that [offset, end) touches, the whole of it. */
void zero_set_drop(struct zero_set *s, uint64_t offset, uint64_t end);
/* Would zero_set_cut() make two of one? */
bool zero_set_splits(const struct zero_set *s, uint64_t offset, uint64_t end);
void zero_set_free(struct zero_set *s); /* it is empty then */

#endif
