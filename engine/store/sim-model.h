/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-model.h: what a device is made of, and how long it takes. Arithmetic
 * only: no clock, no lock, no memory of its own. For the sim store and tests.
 *
 *   position ─> copy (erase blocks) ─> transfer       the medium: one at a time
 *                                          └─> latency     `depth` at once
 *
 * 1. Going on where the last access ended costs nothing. A short gap ahead is
 *    waited for while it passes under the head, if that is sooner than to
 *    seek. Else the head seeks, and then half a revolution passes on average:
 *
 *       seek(d) = settle + k * sqrt(d / size)
 *
 *    The square root is an arm that speeds up half the way and brakes the
 *    other half. k is chosen so that the mean over two random places is
 *    `seek`: the mean of sqrt(d / size) is then 8/15. The whole stroke is the
 *    size of the store, whatever that is.
 * 2. Flash writes only forward within an erase block, into a fresh one, and
 *    holds `open` of those. What is skipped is copied from the old block: what
 *    lies before the first write when a block is opened, gaps, and the rest
 *    when it is closed, because the write went back or another block needs
 *    its place (the one that was written longest ago). A copied byte is read
 *    and written at the device's own rates. Blocks written from end to end
 *    copy nothing; a scattered write comes to a read-modify-write of its
 *    erase block.
 * 3. Trims and zeroes cost the medium nothing.
 */
#ifndef WEIR_STORE_SIM_MODEL_H
#define WEIR_STORE_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

#define SIM_MAX_OPEN 64
#define SIM_SETTLE_AUTO UINT64_MAX /* an eighth of `seek` */

struct sim_model {
	uint64_t read_bandwidth, write_bandwidth; /* bytes/s; 0: no limit */
	uint64_t read_latency_ns, write_latency_ns;
	uint64_t depth;       /* commands in the device at once */
	uint64_t seek_ns;     /* on average */
	uint64_t settle_ns;   /* the shortest seek */
	uint64_t rotation_ns; /* a revolution */
	uint64_t cache;       /* of writes, bytes; 0: none */
	uint64_t erase_block; /* bytes; 0: any place can be written */
	uint64_t open_blocks; /* 1..SIM_MAX_OPEN */
	bool elevator;        /* the medium takes its work in order of offset */
	bool battery;         /* the cache survives: a flush need not wait */
	uint64_t size;        /* of the store: the whole stroke, bytes */
};

/* Where an erase block has been written up to. */
struct sim_open_block {
	uint64_t block; /* its number */
	uint64_t end;   /* bytes from its start */
};

/* The state of a medium. Zero-initialise. */
struct sim_head {
	uint64_t position; /* bytes: where the last access ended */
	unsigned nopen;
	struct sim_open_block open[SIM_MAX_OPEN]; /* the last written first */
};

/* Does it matter where an access is? */
static inline bool sim_model_moves(const struct sim_model *m)
{
	return m->seek_ns || m->rotation_ns;
}

/* A seek over so many bytes, ns. */
uint64_t sim_model_seek(const struct sim_model *m, uint64_t distance);

/* Do an access; returns how long the medium takes, ns. */
uint64_t sim_model_access(const struct sim_model *m, struct sim_head *head,
	bool write, uint64_t offset, uint64_t length);

/* What follows the medium's part, ns. */
uint64_t sim_model_latency(const struct sim_model *m, enum store_op op);

/* What a pattern takes, ns: see store_model_time(). */
uint64_t sim_model_time(
	const struct sim_model *m, const struct store_pattern *p);

#endif
