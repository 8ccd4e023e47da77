/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-shadow.h: what a correct device may hold, while requests overlap.
 *
 * Data is a function of (writer's id, byte offset), so any byte tells who
 * wrote it and where it belongs. Id 0 is zeroes.
 *
 * For each block the shadow keeps every content the block may have now: a
 * change in flight may have taken effect or not, in any order with the
 * others, but as a whole (rule 3 of engine.h). When a change is answered,
 * the contents without it go. A read must match, block by block, a content
 * that was possible at some moment between its start and its end.
 *
 * Contents that are no longer possible are kept with the moment they went:
 * until a flush covers a later one they may be what the store holds after a
 * power cut, a sector (512 bytes) at a time.
 *
 * Nothing here knows of the engine.
 */
#ifndef WEIR_TESTS_MODEL_SHADOW_H
#define WEIR_TESTS_MODEL_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECTOR 512U

/* --- data ---------------------------------------------------------------- */

/* Fill with what writer `id` puts at [offset, offset + length). */
void data_fill(void *buf, uint32_t id, uint64_t offset, uint64_t length);
bool data_is(const void *buf, uint32_t id, uint64_t offset, uint64_t length);
/* Who wrote the eight bytes at this aligned offset, and for which offset?
 * False if it is no writer's word. */
bool data_decode(const void *word, uint32_t *id, uint64_t *offset);

/* --- content of one block ------------------------------------------------ */

struct piece {
	uint32_t end; /* bytes from the block's start */
	uint32_t id;
};

/* Immutable, counted; pieces ascend and neighbours differ. */
struct content {
	unsigned refs, npieces;
	struct piece piece[];
};

struct content *content_new(uint32_t length, uint32_t id);
struct content *content_get(struct content *c);
void content_put(struct content *c);
bool content_equal(const struct content *a, const struct content *b);
/* `c` with [from, to) written by `id`. */
struct content *content_write(
	const struct content *c, uint32_t from, uint32_t to, uint32_t id);
/* `c` with [from, to) as it is in `other`. */
struct content *content_merge(const struct content *c,
	const struct content *other, uint32_t from, uint32_t to);
/* Are the bytes `buf`, which lie at [from, to) of the block at `base`, this
 * content's? */
bool content_matches(const struct content *c, uint64_t base, uint32_t from,
	uint32_t to, const unsigned char *buf);
/* "0 7@512 9@1000": ids and where they begin; for people. */
void content_print(const struct content *c, char *buf, size_t size);

/* --- the device ---------------------------------------------------------- */

#define SHADOW_OVERLAP 4U /* changes in flight on one block */

/* A change in flight. */
struct change {
	uint32_t id;     /* of the data; 0: zeroes */
	uint64_t number; /* unique, the shadow's */
	uint64_t offset, length;
	bool trim;      /* the store may bring back what was there before */
	bool fragile;   /* may be seen, or left, half done */
	uint64_t begun; /* the shadow's */
};

enum change_end {
	CHANGE_DONE,    /* took effect */
	CHANGE_DURABLE, /* and is durable: FUA */
	CHANGE_MAYBE,   /* each block has it or not */
	CHANGE_MIXED,   /* each sector has it or not */
	CHANGE_NOT,     /* refused, had no effect */
};

struct shadow;

struct shadow *shadow_new(uint64_t size, uint32_t block_size, uint32_t id);
void shadow_free(struct shadow *s);

/* The moment now; later moments are larger. */
uint64_t shadow_tick(struct shadow *s);

/* Would a change of the range be one too many on some block? */
bool shadow_crowded(const struct shadow *s, uint64_t offset, uint64_t length);
void shadow_begin(struct shadow *s, struct change *c);
void shadow_end(struct shadow *s, struct change *c, enum change_end how);

/*
 * May a read that began at `begun` and ends now have seen `buf`? If not,
 * false, and `why` says which bytes. What it saw narrows what later reads
 * may see.
 */
bool shadow_read(struct shadow *s, uint64_t begun, uint64_t offset,
	uint64_t length, const unsigned char *buf, char *why, size_t size);

/* May the range have been all zeroes at a moment since `begun`? */
bool shadow_may_be_zero(
	struct shadow *s, uint64_t begun, uint64_t offset, uint64_t length);

/* A flush that began at `begun` succeeded. `oldest`: when the oldest request
 * still in flight began; what is older may be forgotten. */
void shadow_flushed(struct shadow *s, uint64_t begun, uint64_t oldest);

/* May `image` (the whole device) be what is durable now? */
bool shadow_durable(
	struct shadow *s, const unsigned char *image, char *why, size_t size);

/* Is `image` exactly what the device now holds? */
bool shadow_exact(
	struct shadow *s, const unsigned char *image, char *why, size_t size);

/* Power was lost with nothing in flight any more: the device now holds
 * `image`, which shadow_durable() has accepted. */
void shadow_reset(struct shadow *s, const unsigned char *image);

#endif
