/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * super.h: the superblocks of a pool, and waiting for its store while it is
 * opened or made. For files of this folder.
 */
#ifndef WEIR_PLACEMENT_SUPER_H
#define WEIR_PLACEMENT_SUPER_H

#include "../store/store.h"
#include "format.h"

struct super {
	uint64_t incompatible, readonly_compatible, compatible;
	uint8_t uuid[16];
	uint64_t generation;
	uint64_t logical_size, physical_size;  /* bytes */
	uint64_t journal_offset, journal_size; /* bytes */
	uint64_t replay_sequence, replay_position;
	uint32_t replay_chain;
	uint64_t checkpoint_offset, checkpoint_extents;
	uint32_t checkpoint_length, checkpoint_chunks;
	uint32_t volumes, next_volume;
};

/* The first half of the uuid, by which entries and chunks are known. */
uint64_t super_pool(const struct super *s);
/* Where the slot of a generation lies. */
uint64_t super_offset(uint64_t generation);
/* Fill the 4096 bytes at `block`, the checksum as well. */
void super_encode(const struct super *s, void *block);
/*
 * 0; -ENOENT: no superblock, or its checksum is wrong; -EINVAL with `error`:
 * a good one that this version cannot use (`write`: or not write to).
 */
int super_decode(
	const void *block, bool write, struct super *s, struct error *error);

/* A checksum over `length` bytes whose le32 at `crc` counts as zero. */
uint32_t format_checksum(const void *block, uint32_t length);
/* Do the magic and the checksum of these `length` bytes hold? */
bool format_holds(const void *block, uint32_t length, const char *magic);
/* Write magic, checksum and length of an entry or chunk. */
void format_seal(void *block, uint32_t length, const char *magic);

/* Read the pool's superblock: 0, or a negative errno with `error`. */
int super_read(struct store *s, struct reactor *r, struct super *out,
	struct error *error);

/* --- waiting ------------------------------------------------------------- */

/*
 * Do one io and wait for it: `r` is a simulated loop of the caller's own, so
 * that it does not matter which thread this is. 0 or a negative errno.
 */
int super_io(struct store *s, struct reactor *r, enum store_op op,
	uint64_t offset, uint64_t length, void *data);

#endif
