/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * super.c: see super.h; and making a pool.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../base/cleanup.h"
#include "../base/crc32c.h"
#include "../base/size.h"
#include "extent-map.h"
#include "placement.h"
#include "super.h"

/* All structures have magic, crc and length (or version) in front. */
#define CRC_AT offsetof(struct disk_super, crc)
#define LENGTH_AT offsetof(struct disk_entry, length)

_Static_assert(offsetof(struct disk_entry, crc) == CRC_AT &&
		offsetof(struct disk_chunk, crc) == CRC_AT &&
		offsetof(struct disk_chunk, length) == LENGTH_AT,
	"one place for what all have");

uint32_t format_checksum(const void *block, uint32_t length)
{
	static const char zero[4];
	const char *at = block;
	uint32_t crc = crc32c(0, at, CRC_AT);

	crc = crc32c(crc, zero, sizeof(zero));
	return crc32c(crc, at + CRC_AT + 4, length - CRC_AT - 4);
}

bool format_holds(const void *block, uint32_t length, const char *magic)
{
	const struct disk_super *d = block;

	return !memcmp(d->magic, magic, sizeof(d->magic)) &&
		get32(d->crc) == format_checksum(block, length);
}

void format_seal(void *block, uint32_t length, const char *magic)
{
	struct disk_entry *d = block;

	memcpy(d->magic, magic, sizeof(d->magic));
	d->length = put32(length);
	d->crc = put32(format_checksum(block, length));
}

/* --- the superblock ------------------------------------------------------ */

uint64_t super_pool(const struct super *s)
{
	le64 half;

	memcpy(&half, s->uuid, sizeof(half));
	return get64(half);
}

uint64_t super_offset(uint64_t generation)
{
	return generation % 2 * POOL_SUPER_SPACING;
}

void super_encode(const struct super *s, void *block)
{
	struct disk_super *d = block;

	*d = (struct disk_super){
		.version = put32(POOL_VERSION),
		.incompatible = put64(s->incompatible),
		.readonly_compatible = put64(s->readonly_compatible),
		.compatible = put64(s->compatible),
		.generation = put64(s->generation),
		.logical_size = put64(s->logical_size),
		.physical_size = put64(s->physical_size),
		.journal_offset = put64(s->journal_offset),
		.journal_size = put64(s->journal_size),
		.replay_sequence = put64(s->replay_sequence),
		.replay_position = put64(s->replay_position),
		.replay_chain = put32(s->replay_chain),
		.unit = put32(POOL_UNIT),
		.checkpoint_offset = put64(s->checkpoint_offset),
		.checkpoint_length = put32(s->checkpoint_length),
		.checkpoint_chunks = put32(s->checkpoint_chunks),
		.checkpoint_extents = put64(s->checkpoint_extents),
		.volumes = put32(s->volumes),
		.next_volume = put32(s->next_volume),
	};
	memcpy(d->uuid, s->uuid, sizeof(d->uuid));
	memcpy(d->magic, POOL_MAGIC_SUPER, sizeof(d->magic));
	d->crc = put32(format_checksum(d, sizeof(*d)));
}

static void decode(const struct disk_super *d, struct super *s)
{
	*s = (struct super){
		.incompatible = get64(d->incompatible),
		.readonly_compatible = get64(d->readonly_compatible),
		.compatible = get64(d->compatible),
		.generation = get64(d->generation),
		.logical_size = get64(d->logical_size),
		.physical_size = get64(d->physical_size),
		.journal_offset = get64(d->journal_offset),
		.journal_size = get64(d->journal_size),
		.replay_sequence = get64(d->replay_sequence),
		.replay_position = get64(d->replay_position),
		.replay_chain = get32(d->replay_chain),
		.checkpoint_offset = get64(d->checkpoint_offset),
		.checkpoint_length = get32(d->checkpoint_length),
		.checkpoint_chunks = get32(d->checkpoint_chunks),
		.checkpoint_extents = get64(d->checkpoint_extents),
		.volumes = get32(d->volumes),
		.next_volume = get32(d->next_volume),
	};
	memcpy(s->uuid, d->uuid, sizeof(s->uuid));
}

static bool in_units(uint64_t n)
{
	return n % POOL_UNIT == 0;
}

/* Are the numbers of a superblock whose checksum holds possible at all? */
static bool sane(const struct disk_super *d, const struct super *s)
{
	return get32(d->unit) == POOL_UNIT && s->logical_size &&
		s->logical_size <= EXTENT_LOGICAL_END &&
		s->physical_size <= EXTENT_PHYSICAL_END &&
		in_units(s->logical_size) && in_units(s->physical_size) &&
		in_units(s->journal_offset) && in_units(s->journal_size) &&
		s->journal_offset >= POOL_JOURNAL_OFFSET &&
		s->journal_size >= POOL_ENTRY_MAX &&
		s->journal_offset < s->physical_size &&
		s->journal_size < s->physical_size - s->journal_offset &&
		in_units(s->replay_position) &&
		s->replay_position < s->journal_size &&
		in_units(s->checkpoint_offset) &&
		in_units(s->checkpoint_length) && s->volumes == 1;
}

int super_decode(
	const void *block, bool write, struct super *s, struct error *error)
{
	const struct disk_super *d = block;

	if (!format_holds(block, sizeof(*d), POOL_MAGIC_SUPER))
		return -ENOENT;
	if (get32(d->version) != POOL_VERSION)
		return error_set(error, -EINVAL,
			"a pool of version %" PRIu32
			": this program knows version %u",
			get32(d->version), POOL_VERSION);
	decode(d, s);
	if (s->incompatible)
		return error_set(error, -EINVAL,
			"a pool with features this program does not know "
			"(incompatible bits 0x%" PRIx64 ")",
			s->incompatible);
	if (write && s->readonly_compatible)
		return error_set(error, -EINVAL,
			"a pool with features this program can only read "
			"(bits 0x%" PRIx64 "): open it with readonly=yes",
			s->readonly_compatible);
	if (!sane(d, s))
		return error_set(error, -EINVAL,
			"damaged: a superblock whose checksum holds makes no "
			"sense");
	return 0;
}

/* --- waiting ------------------------------------------------------------- */

struct waited {
	struct store_io io;
	bool done;
};

static void io_done(struct store_io *io)
{
	container_of(io, struct waited, io)->done = true;
}

int super_io(struct store *s, struct reactor *r, enum store_op op,
	uint64_t offset, uint64_t length, void *data)
{
	struct iovec iov = {data, length};
	struct waited w = {.io = {.op = op,
				   .offset = offset,
				   .length = length,
				   .iov = &iov,
				   .niov = 1,
				   .reactor = r,
				   .done = io_done}};

	store_submit(s, &w.io);
	while (!w.done) {
		if (!reactor_sim_step(r))
			return -EIO; /* hangs: nothing will ever happen */
	}
	return w.io.error;
}

/* --- reading them -------------------------------------------------------- */

static int check_store(
	const struct store *s, const struct super *found, struct error *error)
{
	char is[16], was[16];

	if (found->physical_size <= s->info.size)
		return 0;
	return error_set(error, -EINVAL,
		"the store is %s, the pool on it was made for %s",
		size_format(s->info.size, is),
		size_format(found->physical_size, was));
}

/* One slot. As super_decode(), or the store's error. */
static int read_slot(struct store *s, struct reactor *r, void *block,
	uint64_t slot, struct super *out, struct error *error)
{
	uint64_t at = super_offset(slot);
	int err = super_io(s, r, STORE_READ, at, POOL_SUPER_SIZE, block);

	if (err)
		return error_set(error, err,
			"cannot read the superblock at %" PRIu64 ": %s", at,
			strerror(-err));
	return super_decode(block, !s->info.readonly, out, error);
}

int super_read(struct store *s, struct reactor *r, struct super *out,
	struct error *error)
{
	CLEANUP_FREE void *block = aligned_alloc(POOL_UNIT, POOL_SUPER_SIZE);
	bool found = false;

	if (!block)
		return error_set(error, -ENOMEM, "out of memory");
	if (s->info.size < POOL_JOURNAL_OFFSET)
		return error_set(error, -EINVAL, "not a pool: too small");
	for (uint64_t slot = 0; slot < 2; slot++) {
		struct super here;
		int err = read_slot(s, r, block, slot, &here, error);

		if (err && err != -ENOENT)
			return err;
		if (err || (found && here.generation < out->generation))
			continue;
		*out = here;
		found = true;
	}
	if (!found)
		return error_set(error, -EINVAL,
			"not a pool (to make one: weir pool create)");
	return check_store(s, out, error);
}

/* --- making one ---------------------------------------------------------- */

static uint64_t journal_size(const struct pool_geometry *g)
{
	uint64_t size = g->journal_size;

	if (!size)
		size = g->physical_size / 256;
	if (size < POOL_JOURNAL_MIN)
		size = POOL_JOURNAL_MIN;
	if (size > POOL_JOURNAL_MAX)
		size = POOL_JOURNAL_MAX;
	return size / POOL_UNIT * POOL_UNIT;
}

static int check_geometry(
	const struct store *s, struct pool_geometry *g, struct error *error)
{
	if (!g->physical_size)
		g->physical_size = s->info.size;
	g->physical_size = g->physical_size / POOL_UNIT * POOL_UNIT;
	if (g->physical_size > s->info.size)
		return error_set(error, -EINVAL, "the store is smaller");
	if (!g->logical_size)
		g->logical_size = g->physical_size;
	if (!in_units(g->logical_size))
		return error_set(error, -EINVAL,
			"the size must be a multiple of %u bytes", POOL_UNIT);
	if (g->physical_size < POOL_SPACE_MIN)
		return error_set(error, -EINVAL,
			"a pool needs a store of %uK or more",
			POOL_SPACE_MIN >> 10);
	if (g->logical_size > EXTENT_LOGICAL_END ||
		g->physical_size > EXTENT_PHYSICAL_END)
		return error_set(error, -EINVAL, "too large");
	if (s->info.readonly)
		return error_set(error, -EROFS, "read-only");
	return 0;
}

/* No entry and no chunk of a pool that was here before may look like one of
 * the new: the uuid sees to that. The second slot is wiped first. */
static int write_supers(struct store *s, struct reactor *r, struct super *super)
{
	CLEANUP_FREE void *block = aligned_alloc(POOL_UNIT, POOL_SUPER_SIZE);
	int err;

	if (!block)
		return -ENOMEM;
	memset(block, 0, POOL_SUPER_SIZE);
	err = super_io(s, r, STORE_WRITE, super_offset(super->generation + 1),
		POOL_SUPER_SIZE, block);
	if (!err)
		err = super_io(s, r, STORE_FLUSH, 0, 0, NULL);
	super_encode(super, block);
	if (!err)
		err = super_io(s, r, STORE_WRITE,
			super_offset(super->generation), POOL_SUPER_SIZE,
			block);
	if (!err)
		err = super_io(s, r, STORE_FLUSH, 0, 0, NULL);
	return err;
}

int pool_format(struct store *s, const struct pool_geometry *geometry,
	struct error *error)
{
	struct pool_geometry g = *geometry;
	int err = check_geometry(s, &g, error);
	struct super super = {
		.compatible = g.preallocated ? POOL_PREALLOCATED : 0,
		.generation = 2,
		.logical_size = g.logical_size,
		.physical_size = g.physical_size,
		.journal_offset = POOL_JOURNAL_OFFSET,
		.journal_size = journal_size(&g),
		.replay_sequence = 1,
		.volumes = 1,
		.next_volume = 1,
	};
	struct reactor *r;

	if (err)
		return err;
	if (getrandom(super.uuid, sizeof(super.uuid), 0) < 0)
		return error_set(error, -errno, "no random numbers: %m");
	super.uuid[6] = (uint8_t)((super.uuid[6] & 0x0f) | 0x40); /* RFC 9562 */
	super.uuid[8] = (uint8_t)((super.uuid[8] & 0x3f) | 0x80);
	r = reactor_sim_new(1);
	err = r ? write_supers(s, r, &super) : -ENOMEM;
	reactor_free(r);
	if (err)
		return error_set(error, err, "cannot write the superblock: %s",
			strerror(-err));
	return 0;
}
