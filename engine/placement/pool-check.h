/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-check.h: what the files of pool_check() share.
 *
 * They read the format by themselves and not through replay.c, which stops at
 * the first thing that is wrong: two readers that must agree find more than
 * one.
 */
#ifndef WEIR_PLACEMENT_POOL_CHECK_H
#define WEIR_PLACEMENT_POOL_CHECK_H

#include "pool-impl.h"

struct check {
	struct store *store;
	struct reactor *loop;
	const struct pool_visitor *visitor;
	struct pool_summary *out;
	struct error *error;
	struct super super;
	struct extent_map map;
	struct chain chain; /* the chunks that were read */
};

/* Tell of a broken rule. */
__attribute__((format(printf, 3, 4))) void check_found(
	struct check *c, uint64_t offset, const char *fmt, ...);
/* What could not be read is missing in the map. */
void check_incomplete(struct check *c);
int check_no_memory(struct check *c);
/* Read, in pieces the store takes. 0 or an error that was said. */
int check_read(struct check *c, uint64_t offset, uint64_t length, void *buf);

/*
 * The `count` records after the head of an entry or chunk of `length` bytes
 * that lies at `offset`: into the map; those that make no sense are told of.
 */
int check_records(struct check *c, const void *head, uint32_t length,
	uint32_t count, uint64_t offset, bool chunk);
/* Reserved bytes that are not zero. */
void check_zero(struct check *c, const void *head, const uint8_t *from,
	size_t n, uint64_t offset);

/* pool-check-log.c: the checkpoint, then the journal on top of it. */
int check_chain(struct check *c);
int check_journal(struct check *c);

#endif
