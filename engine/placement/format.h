/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format.h: a pool as it lies on its store. weir-pool(5) has the same in
 * words.
 *
 *   0        superblock 0, 4K
 *   64K      superblock 1, 4K
 *   128K     the journal: a ring of entries
 *   then     units of 4K: data, checkpoint chunks, free
 *
 * 1. Every number is little-endian; every structure has a fixed size and no
 *    padding; what is reserved is zero.
 * 2. The superblock with the higher generation of those whose checksum holds
 *    is the pool's. It names a checkpoint, a chain of chunks that holds the
 *    map as it was, and the journal entry to replay from on top of it.
 * 3. A checksum is the CRC-32C of the whole structure, to its stated length,
 *    with the checksum itself as zero.
 *
 * Offsets and sizes on the store are bytes, multiples of 4096.
 */
#ifndef WEIR_PLACEMENT_FORMAT_H
#define WEIR_PLACEMENT_FORMAT_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define POOL_UNIT 4096U
#define POOL_VERSION 1U
#define POOL_SUPER_SIZE 4096U
#define POOL_SUPER_SPACING (64U << 10) /* from one to the other */
#define POOL_JOURNAL_OFFSET (128U << 10)
#define POOL_JOURNAL_MIN (256U << 10)
#define POOL_JOURNAL_MAX (64U << 20)
#define POOL_ENTRY_MAX (64U << 10) /* the longest journal entry */
#define POOL_CHUNK_MAX (256U << 10)

/* A feature of the superblock's `compatible`: the store's space was allocated
 * beforehand and is to stay so: freed space is not punched out of it. */
#define POOL_PREALLOCATED 1U

#define POOL_MAGIC_SUPER "weirpool"
#define POOL_MAGIC_ENTRY "weirjrnl"
#define POOL_MAGIC_CHUNK "weirchkp"

/* Numbers as they lie there: no alignment, no use by accident. */
typedef struct {
	uint8_t byte[2];
} le16;
typedef struct {
	uint8_t byte[4];
} le32;
typedef struct {
	uint8_t byte[8];
} le64;

static inline uint16_t get16(le16 v)
{
	uint16_t n;

	memcpy(&n, &v, sizeof(n));
	return le16toh(n);
}

static inline uint32_t get32(le32 v)
{
	uint32_t n;

	memcpy(&n, &v, sizeof(n));
	return le32toh(n);
}

static inline uint64_t get64(le64 v)
{
	uint64_t n;

	memcpy(&n, &v, sizeof(n));
	return le64toh(n);
}

static inline le16 put16(uint16_t n)
{
	le16 v;

	n = htole16(n);
	memcpy(&v, &n, sizeof(v));
	return v;
}

static inline le32 put32(uint32_t n)
{
	le32 v;

	n = htole32(n);
	memcpy(&v, &n, sizeof(v));
	return v;
}

static inline le64 put64(uint64_t n)
{
	le64 v;

	n = htole64(n);
	memcpy(&v, &n, sizeof(v));
	return v;
}

struct disk_super {
	uint8_t magic[8];
	le32 crc;
	le32 version;
	/* Feature bits this reader must know: to open it at all, to write to
	 * it, not at all. */
	le64 incompatible, readonly_compatible, compatible;
	uint8_t uuid[16];
	le64 generation; /* one more at each write; its parity is the slot */
	le64 logical_size, physical_size;
	le64 journal_offset, journal_size;
	/* The first entry to replay: its number, where it begins from the
	 * start of the journal, the checksum of the entry before it. */
	le64 replay_sequence, replay_position;
	le32 replay_chain;
	le32 unit;
	le64 checkpoint_offset; /* the first chunk; 0: the map is empty */
	le32 checkpoint_length; /* its bytes */
	le32 checkpoint_chunks;
	le64 checkpoint_extents;
	le32 volumes, next_volume;
	uint8_t reserved[POOL_SUPER_SIZE - 152];
};

/* One change of the map; also one extent of a checkpoint, as POOL_OP_MAP. */
struct disk_record {
	le64 logical;  /* bytes */
	le64 physical; /* bytes; 0 for UNMAP */
	le32 units;
	le16 volume;
	uint8_t op;
	uint8_t flags;
};

#define POOL_OP_MAP 1U
#define POOL_OP_UNMAP 2U

#define POOL_RECORD_UNWRITTEN 1U /* MAP: allocated, reads as zeroes */

struct disk_entry {
	uint8_t magic[8];
	le32 crc;
	le32 length;   /* bytes, a multiple of POOL_UNIT, zeroes at the end */
	le64 pool;     /* the first half of the uuid */
	le64 sequence; /* one more than the entry before */
	/* Entries up to this one were durable when it was written: one of
	 * them that does not check is damage, not a torn end. */
	le64 durable;
	le32 chain; /* the checksum of the entry before */
	le32 count; /* records that follow */
	uint8_t reserved[16];
};

struct disk_chunk {
	uint8_t magic[8];
	le32 crc;
	le32 length; /* bytes, a multiple of POOL_UNIT, zeroes at the end */
	le64 pool;
	le64 generation;  /* of the superblock that names the chain */
	le32 index;       /* in the chain, from 0 */
	le32 count;       /* extents that follow */
	le64 next_offset; /* 0: the last */
	le32 next_length;
	uint8_t reserved[12];
};

#define DISK_AT(type, member, at)                                              \
	_Static_assert(offsetof(struct type, member) == (at), #member)

_Static_assert(sizeof(struct disk_super) == POOL_SUPER_SIZE, "superblock");
_Static_assert(sizeof(struct disk_record) == 24, "record");
_Static_assert(sizeof(struct disk_entry) == 64, "journal entry");
_Static_assert(sizeof(struct disk_chunk) == 64, "checkpoint chunk");
DISK_AT(disk_super, version, 12);
DISK_AT(disk_super, incompatible, 16);
DISK_AT(disk_super, uuid, 40);
DISK_AT(disk_super, generation, 56);
DISK_AT(disk_super, logical_size, 64);
DISK_AT(disk_super, journal_offset, 80);
DISK_AT(disk_super, replay_sequence, 96);
DISK_AT(disk_super, replay_chain, 112);
DISK_AT(disk_super, unit, 116);
DISK_AT(disk_super, checkpoint_offset, 120);
DISK_AT(disk_super, checkpoint_length, 128);
DISK_AT(disk_super, checkpoint_extents, 136);
DISK_AT(disk_super, volumes, 144);
DISK_AT(disk_super, reserved, 152);
DISK_AT(disk_record, physical, 8);
DISK_AT(disk_record, units, 16);
DISK_AT(disk_record, volume, 20);
DISK_AT(disk_record, op, 22);
DISK_AT(disk_entry, pool, 16);
DISK_AT(disk_entry, sequence, 24);
DISK_AT(disk_entry, durable, 32);
DISK_AT(disk_entry, chain, 40);
DISK_AT(disk_entry, count, 44);
DISK_AT(disk_chunk, pool, 16);
DISK_AT(disk_chunk, generation, 24);
DISK_AT(disk_chunk, index, 32);
DISK_AT(disk_chunk, next_offset, 40);
DISK_AT(disk_chunk, next_length, 48);

/* How many records an entry or chunk of `length` bytes has room for. */
static inline uint32_t pool_records_in(uint32_t length)
{
	return (length - 64) / (uint32_t)sizeof(struct disk_record);
}

/* The bytes an entry or chunk of `count` records takes. */
static inline uint64_t pool_bytes_for(uint64_t count)
{
	return (64 + count * sizeof(struct disk_record) + POOL_UNIT - 1) /
		POOL_UNIT * POOL_UNIT;
}

#endif
