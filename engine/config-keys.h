/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config-keys.h: the one table of the keys. The parser, the help text and the
 * suggestions are made from it, so they cannot disagree. Included only at the
 * root of engine/.
 *
 * A new key is one row here, a member of struct engine_config and, if that is
 * not 0, its default in engine_config_init().
 */
#ifndef WEIR_CONFIG_KEYS_H
#define WEIR_CONFIG_KEYS_H

#include "engine.h"

#define PAGE_SIZE_MIN (4U << 10)
#define PAGE_SIZE_MAX (1U << 20)
#define BLOCK_SIZE_MIN 512U

enum key_kind {
	KIND_TEXT,
	KIND_ENUM,
	KIND_BOOL,
	KIND_SIZE,
	KIND_POWER,
	KIND_SHARE,
	KIND_TIME,
};

/* --- what a value may be, and the type of the member it fills ------------- */

#define TEXT .kind = KIND_TEXT /* char *, owned */
/* An enum whose values count from 0 in the order of these words. */
#define ENUM(...)                                                              \
	.kind = KIND_ENUM, .words = (const char *const[])                      \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}
#define BOOL .kind = KIND_BOOL           /* bool; on|off, yes|no, … */
#define SIZE .kind = KIND_SIZE, .min = 1 /* uint64_t, not 0 */
#define SIZE_OR_0 .kind = KIND_SIZE      /* uint64_t */
/* uint32_t, a power of two in [lo, PAGE_SIZE_MAX] */
#define POWER(lo) .kind = KIND_POWER, .min = (lo)
/* uint64_t, or a share of cache-size: the percentage to another member */
#define SHARE(percent)                                                         \
	.kind = KIND_SHARE,                                                    \
	.percent_at = offsetof(struct engine_config, percent)
#define TIME .kind = KIND_TIME /* uint64_t of nanoseconds */
/* One of these, or "off", which is 0. */
#define OR_OFF(type) type, .off = true
/* One of these that engine_set() may change (set.c). */
#define LIVE(type) type, .live = true
/* One of these that is the default of an export's own. */
#define OF_EXPORT(type) type, .of_export = true

/* --- the table ------------------------------------------------------------ */

#define IND "\n        "

/* X(member, key, argument, what it may be, help) */
#define KEYS(X)                                                                \
	X(store, "store", "SPEC", TEXT,                                        \
		"where the blocks end up: raw:PATH or just PATH, "             \
		"mem:SIZE," IND "null:SIZE, sim:PROFILE,OPTIONS,INNER (hdd, "  \
		"usb, ssd, nvme," IND "msa), fault:OPTIONS,INNER, "            \
		"pool:SPEC," IND "stripe:CHUNK,[A],[B],..., an NBD URI (a "    \
		"remote export)," IND "exec:COMMAND (an NBD server to "        \
		"start); see weir-stores(7)")                                  \
	X(cache, "cache", "MODE",                                              \
		OF_EXPORT(ENUM("writeback", "writethrough", "none")),          \
		"writeback (default), writethrough or none")                   \
	X(detect_zeroes, "detect-zeroes", "off|on|unmap",                      \
		LIVE(ENUM("off", "on", "unmap")),                              \
		"make writes of zeroes what write-zeroes is; unmap: the" IND   \
		"store may free the space (default off)")                      \
	X(cache_size, "cache-size", "SIZE", LIVE(SIZE),                        \
		"memory for cached data (default 1G, or a quarter of" IND      \
		"memory if that is less)")                                     \
	X(page_size, "page-size", "SIZE", POWER(PAGE_SIZE_MIN),                \
		"unit of lookup, 4K to 1M (default 64K)")                      \
	X(block_size, "block-size", "SIZE", POWER(BLOCK_SIZE_MIN),             \
		"unit of state, 512 to page-size (default 4K)")                \
	X(subpage, "subpage", "on|off", LIVE(BOOL),                            \
		"read what is there of a page, off: only when all of" IND      \
		"it is, for comparison (default on)")                          \
	X(multipage, "multipage", "on|off", LIVE(BOOL),                        \
		"write to a run of pages at once, off: a block at a" IND       \
		"time, for comparison (default on)")                           \
	X(throttle, "throttle", "MODE", LIVE(ENUM("ioless", "legacy", "off")), \
		"how writers are slowed: ioless (default): they pause" IND     \
		"before dirty-limit is met; legacy: they write back" IND       \
		"themselves, for comparison; off: they wait at the limit")     \
	X(placement, "placement", "delalloc|immediate",                        \
		ENUM("delalloc", "immediate"),                                 \
		"when a pool chooses where blocks go: when they are" IND       \
		"written back (default), or as they arrive, for" IND           \
		"comparison")                                                  \
	X(append, "append", "async|serial", ENUM("async", "serial"),           \
		"durable writes beyond the end of what a pool holds: at" IND   \
		"once, with shared commits (default), or one at a time," IND   \
		"for comparison")                                              \
	X(dirty_limit, "dirty-limit", "SIZE|N%",                               \
		LIVE(SHARE(dirty_limit_percent)),                              \
		"most data not yet durable, N% is of cache-size" IND           \
		"(default 50%)")                                               \
	X(dirty_background, "dirty-background", "SIZE|N%",                     \
		LIVE(SHARE(dirty_background_percent)),                         \
		"write back above this, N% is of cache-size" IND               \
		"(default half of dirty-limit)")                               \
	X(dirty_time_ns, "dirty-time", "TIME|off", LIVE(OR_OFF(TIME)),         \
		"most data not yet durable, as the time the store needs" IND   \
		"to write it, measured; dirty-limit still holds" IND           \
		"(default off)")                                               \
	X(dirty_expire_ns, "dirty-expire", "TIME", LIVE(TIME),                 \
		"write back what is dirty for longer (default 30s)")           \
	X(writeback_inflight, "writeback-inflight", "SIZE", LIVE(SIZE),        \
		"most that is being written back at once; a read that" IND     \
		"misses may wait for it (default 4M)")                         \
	X(readahead, "readahead", "SIZE|off", LIVE(OR_OFF(SIZE_OR_0)),         \
		"how far to read ahead of a sequential reader (default 2M)")   \
	X(readonly, "readonly", "BOOL", BOOL,                                  \
		"refuse to change the store (default no)")                     \
	X(error_timeout_ns, "error-timeout", "TIME", LIVE(TIME),               \
		"when the store has refused a range for longer, writes to "    \
		"it" IND "answer EIO at once (default 10m)")                   \
	X(inflight_bytes, "inflight-bytes", "SIZE", SIZE,                      \
		"payload in flight of one connection (default 32M)")

struct key {
	const char *name;
	size_t at; /* of the member, in struct engine_config */
	enum key_kind kind;
	const char *const *words; /* ENUM; NULL ends it */
	size_t percent_at;        /* SHARE; of the other member */
	uint32_t min;             /* POWER and SIZE: bytes */
	bool off, live, of_export;
};

/* --- config-parse.c ------------------------------------------------------- */

/* May the key be changed while the store is open? 0, or -EINVAL with `error`
 * filled, naming the nearest if there is no such key. */
int config_check_live(const char *key, const char *value, struct error *error);

/* Are the values of a key the same? */
bool config_same(const struct key *k, const struct engine_config *a,
	const struct engine_config *b);

/* Take over the value of a key that is no text, and whether it was given. */
void config_copy(const struct key *k, struct engine_config *to,
	const struct engine_config *from);

/* The n-th key, or NULL after the last. */
const struct key *config_key(unsigned n);

#endif
