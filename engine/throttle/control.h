/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h: the control law of dirty throttling: numbers in, numbers out.
 *
 * From Linux's IO-less balance_dirty_pages() (mm/page-writeback.c, 3.2 on).
 * Units: pages of 4 KiB, pages a second, nanoseconds. The law's constants
 * depend on them; who calls converts.
 *
 * `dirty` is what is dirty, under writeback or unstable. How fast a writer
 * may go is R * P: R, the dirty rate limit, is one rate for all writers of a
 * store, and follows the bandwidth slowly; P, the position ratio, depends on
 * how much is dirty now:
 *
 *    P
 *   2 +- - - - - - - *
 *     |              .\
 *     |              . *
 *     |              .   *
 *   1 +              .      *  *  *
 *     |              .           .   *
 *     |              .           .     *
 *     |   free run   .           .      *
 *   0 +--------------+-----------+-------*----> dirty
 *     0           freerun     setpoint  limit
 *
 * 1. freerun = (thresh + bg) / 2, or what the store writes in 200 ms below the
 *    limit, if that is more; setpoint = (freerun + limit) / 2. At or below
 *    freerun nobody is paced. The second is ours: pacing needs no wider band,
 *    because the limit is exact and who meets it waits for its turn, and what the
 *    band takes is missing to the runs of many writers.
 * 2. P(freerun) = 2, P(setpoint) = 1, P(limit) = 0; P never rises with dirty
 *    in between, and is flat at the setpoint: small deviations are not
 *    answered, large ones are.
 * 3. Below half of thresh P grows as half of thresh over dirty, up to 8 times:
 *    a device that is about to run dry gets more.
 * 4. A limit that was lowered below what is dirty comes down by 1/32 at a
 *    time; so P stays above 0 and the writers are slowed, not stopped.
 * 5. R comes to rest where P = 1 and R = bandwidth / writers, without a count
 *    of the writers: their rate together tells.
 * 6. R moves by an eighth of the error at most, less when the error is small
 *    against R, and only towards the setpoint.
 * 7. A pause is no longer than 200 ms, nor than an eighth of the time the
 *    device needs for all that is dirty. More writers pause for longer, so
 *    that the number of pauses in a second does not grow with them.
 * 8. The time a writer spent elsewhere counts as part of its pause.
 * 9. A limit that the store writes in less than 400 ms is not paced at all: the
 *    wait at the limit is no longer than the pauses would be.
 *
 * Any thread; nothing here waits or keeps state of its own.
 */
#ifndef WEIR_THROTTLE_CONTROL_H
#define WEIR_THROTTLE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_PAGE_SHIFT 12
#define CONTROL_QUOTA_FIRST 32U /* pages; of a writer nobody knows yet */

/* --- limits -------------------------------------------------------------- */

struct control_limits {
	uint64_t thresh;   /* the configured limit, pages */
	uint64_t freerun;  /* pages */
	uint64_t setpoint; /* pages */
	uint64_t limit;    /* thresh, or the smoothed limit above it; pages */
};

/*
 * The limits for a threshold and a background threshold; `smoothed` is the
 * last value of control_smooth(), `bandwidth` that of the store (0: not
 * known).
 */
void control_limits(uint64_t thresh, uint64_t bg, uint64_t smoothed,
	uint64_t bandwidth, struct control_limits *out);

/* Is a writer paced now? */
static inline bool control_paced(const struct control_limits *l, uint64_t dirty)
{
	return dirty > l->freerun && l->freerun < l->limit;
}

/* The smoothed limit's next value; call at most every 200 ms. */
uint64_t control_smooth(uint64_t smoothed, uint64_t thresh, uint64_t dirty);

/* The position ratio, 0 to 16. */
double control_position(const struct control_limits *l, uint64_t dirty);

/* --- the rate ------------------------------------------------------------ */

struct control_rate {
	uint64_t ratelimit; /* R, pages a second */
	uint64_t balanced;  /* what R was last drawn to */
};

#define CONTROL_RATE_INIT                                                      \
	{                                                                      \
		.ratelimit = 25600, .balanced = 25600                          \
	} /* 100 MB/s */

/* One step of R: `position` as it was in force, all writers together went at
 * `dirty_rate`, the store wrote at `bandwidth`. */
void control_rate_step(struct control_rate *r, double position,
	uint64_t dirty_rate, uint64_t bandwidth, bool below_setpoint);

/* --- pauses -------------------------------------------------------------- */

struct control_pause {
	uint64_t max_ns, min_ns;
	uint64_t target_ns;
	uint64_t quota; /* pages to dirty between two pauses */
};

/* How long and how often to pause at a rate of `task_rate` = R * P. */
void control_pause(uint64_t dirty, uint64_t bandwidth, uint64_t ratelimit,
	uint64_t task_rate, struct control_pause *out);

/* --- writing back -------------------------------------------------------- */

#define CONTROL_CHUNK_LEGACY UINT64_C(1024) /* pages */

/*
 * Pages of one stream the flusher writes before it goes on to the next one:
 * half of the limit, 4 MiB at least. Linux has half a second's, and an eighth
 * of the limit at most; but what is not written of a stream has to be come
 * back for, and while N are written evenly none has more than 2/N of the
 * limit.
 */
uint64_t control_chunk(uint64_t thresh);

/* --- a writer ------------------------------------------------------------ */

/* One writer; `dirtied` is in bytes, for blocks may be smaller than pages. */
struct control_writer {
	uint64_t dirtied;   /* bytes since it was last charged */
	uint64_t quota;     /* pages; look at it again after so many */
	uint64_t paused_ns; /* up to when it is charged */
};

/* Nobody is paced: forget what it did, let it do about the square root of
 * what is left before it asks again. */
void control_writer_free(struct control_writer *w,
	const struct control_limits *l, uint64_t dirty, uint64_t now);

/*
 * What the writer dirtied takes so long at `task_rate`: the pause that is
 * left of that, ns, 0 for none. The writer is charged for it.
 */
uint64_t control_writer_pause(struct control_writer *w,
	const struct control_pause *p, uint64_t task_rate, uint64_t now);

#endif
