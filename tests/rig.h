/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h: an engine on a simulated loop over a recording store in memory, for
 * tests of what the engine promises.
 *
 *   rig -> engine -> fault (records, fails) -> volatile -> a memory file
 *
 * Data is model-shadow.h's: a function of (id, offset). The map shows what
 * is durable at any moment.
 */
#ifndef WEIR_TESTS_RIG_H
#define WEIR_TESTS_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "engine.h"
#include "model-shadow.h"
#include "stat.h"
#include "store/fault.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define RIG_RECORDS 4096U

struct rig {
	struct engine_config config; /* change it before rig_open() */
	uint64_t size;
	int fd;
	unsigned char *map;
	struct reactor *loop;
	struct engine *engine;
	struct engine_export *export; /* writeback */
	struct store *store;
	bool down;
	int down_error;
	struct store_fault_record log[RIG_RECORDS];
	size_t nlog; /* after rig_log() */
};

/* A request of a test. */
struct ask {
	struct engine_request req;
	bool answered, inline_hit;
	unsigned char *buf;
};

/* A device of `size` bytes written by id 1; cache of 1M, pages of 64K, blocks
 * of 4K, a limit of half; no expiry in the time of a test. */
struct rig *rig_new(uint64_t size);
void rig_open(struct rig *r);
/* Shut down in order, which must succeed, close and free. */
void rig_free(struct rig *r);
/* Shut down; the error it ended with. */
int rig_shutdown(struct rig *r, uint64_t timeout_ns);
/* Close and free after a shutdown that the test did itself. */
void rig_close(struct rig *r);

/* Ask and go on; ask_end() waits, frees and returns the error. */
struct ask *ask(struct rig *r, enum engine_op op, uint32_t id, unsigned flags,
	uint64_t offset, uint64_t length);
struct ask *ask_of(struct rig *r, struct engine_export *x, enum engine_op op,
	uint32_t id, unsigned flags, uint64_t offset, uint64_t length);
/* With a buffer of the caller's making, to be freed with it. */
struct ask *ask_with(struct rig *r, struct engine_export *x, enum engine_op op,
	unsigned flags, uint64_t offset, uint64_t length, unsigned char *buf);
int ask_end(struct rig *r, struct ask *a);

/* Ask and wait: 0 or a negative errno. */
int rig_write(struct rig *r, uint32_t id, uint64_t offset, uint64_t length);
int rig_do(struct rig *r, enum engine_op op, unsigned flags, uint64_t offset,
	uint64_t length);
int rig_flush(struct rig *r);

/* Does a read see just what `id` wrote there? It must succeed. */
bool rig_sees(struct rig *r, uint32_t id, uint64_t offset, uint64_t length);
bool rig_sees_through(struct rig *r, struct engine_export *x, uint32_t id,
	uint64_t offset, uint64_t length);
/* Is that durable? */
bool rig_durable(struct rig *r, uint32_t id, uint64_t offset, uint64_t length);

/* Let simulated time go by. */
void rig_run(struct rig *r, uint64_t ns);

/* Start a new log of the store; count what is in it. */
void rig_record(struct rig *r);
unsigned rig_count(struct rig *r, enum store_op op);
uint64_t rig_bytes(struct rig *r, enum store_op op);
/* Do all commands of the kind lie in the range? */
bool rig_within(
	struct rig *r, enum store_op op, uint64_t offset, uint64_t length);

/* Make the store fail: the next `count` (0: all) of an op, -EIO. */
void rig_break(struct rig *r, enum store_op op, uint64_t count);
void rig_break_range(
	struct rig *r, enum store_op op, uint64_t offset, uint64_t length);
/* Make commands of an op hang until rig_mend(). */
void rig_hang(struct rig *r, enum store_op op);
void rig_mend(struct rig *r);

#endif
