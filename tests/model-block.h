/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-block.h: what model-shadow.c and model-check.c share: the possible
 * contents of each block.
 */
#ifndef WEIR_TESTS_MODEL_BLOCK_H
#define WEIR_TESTS_MODEL_BLOCK_H

#include "model-shadow.h"

/* A content the block may have now, if just the changes in `mask` (bits of
 * block.inflight) of those in flight have taken effect. */
struct state {
	struct content *c;
	unsigned mask;
};

/* A change that a past content was without. Once it is known to be durable
 * in sectors [lo, hi) of the block, the content cannot be there any more. */
struct missing {
	uint64_t number;
	uint32_t lo, hi;
};

/* A content the block may have had until a moment: `until` for who reads;
 * `lasting` for the store, which need not have a change that was seen before
 * it was answered. */
struct past {
	struct content *c;
	uint64_t until, lasting;
	unsigned nmissing;
	struct missing missing[SHADOW_OVERLAP];
};

struct block {
	struct state *states;
	unsigned nstates, max_states;
	struct change *inflight[SHADOW_OVERLAP];
	struct past *past;
	unsigned npast, max_past;
	uint64_t touched; /* when the states last changed */
	bool mixed;       /* a change failed half way: each sector for itself */
	uint64_t whole;   /* since when it is not mixed */
};

struct shadow {
	uint64_t size, clock, nblocks;
	uint32_t block_size;
	struct block *block;
	/* Each sector's: */
	uint64_t *floor;   /* the store has what was then, or later */
	uint64_t *trimmed; /* when it was: older data may come back; or 0 */
	uint64_t *solid;   /* when it was last written as a whole */
};

/* The part of [offset, offset + length) that lies in block `i`, counted from
 * its start. */
void block_part(const struct shadow *s, uint64_t i, uint64_t offset,
	uint64_t length, uint32_t *from, uint32_t *to);
uint32_t block_length(const struct shadow *s, uint64_t i);

/* Add what the changes in flight can make of the states. */
void block_close(struct shadow *s, uint64_t i);

/* Drop the states for which `keep` is false; they are past from now on.
 * `seen`: because a read saw so, not because a change was answered. */
void block_keep(struct shadow *s, uint64_t i, const bool *keep, bool seen);

/* The block now has this content and no past. Takes the reference. */
void block_settle(struct shadow *s, uint64_t i, struct content *c);

#endif
