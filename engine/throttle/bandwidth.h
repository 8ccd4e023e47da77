/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth.h: how fast the store writes, from how much it has written.
 *
 * Numbers in, numbers out: no lock, no clock. After wb_update_bandwidth() of
 * Linux's mm/page-writeback.c, in its units: pages of 4 KiB, per second. Two
 * filters: one that weighs the last four seconds or so, one that follows it
 * only when it moves on in the same direction, so that a ripple is not taken
 * for a change.
 *
 * Time is of a clock that stands still while nothing is asked of the store
 * (writeback.h has it). So a rest is no slowness, however long; Linux, which
 * has no such clock, begins anew after a second of it.
 */
#ifndef WEIR_THROTTLE_BANDWIDTH_H
#define WEIR_THROTTLE_BANDWIDTH_H

#include <stdbool.h>
#include <stdint.h>

#define BANDWIDTH_PAGE_SHIFT 12
#define BANDWIDTH_START (UINT64_C(100) << 8) /* 100 MB/s, in pages */

struct bandwidth {
	uint64_t rate;     /* pages per second: the first filter's */
	uint64_t average;  /* the second's: the estimate; never 0 */
	uint64_t stamp_ns; /* of the last update */
	uint64_t written;  /* pages, then */
};

void bandwidth_init(struct bandwidth *b, uint64_t now_ns, uint64_t written);

/*
 * `written` pages in all had been written at `now_ns`. True if that changed
 * the estimate: at most every 200 ms it does.
 */
bool bandwidth_update(struct bandwidth *b, uint64_t now_ns, uint64_t written);

/*
 * The dirty limit, bytes, that is `limit` at most and no more than the store
 * writes in `time_ns` (0: as much as you like), but a MiB in any case.
 */
uint64_t bandwidth_limit(
	const struct bandwidth *b, uint64_t limit, uint64_t time_ns);

#endif
