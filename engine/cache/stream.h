/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h: which reads go on where others ended, and what to read ahead of
 * them. Numbers in, numbers out: no lock, no clock, no I/O.
 *
 *           start            mark             end
 *   ──────────┴────────────────┴────────────────┴───────────> offset
 *              reader ->       │ asked for last │ the next chunk
 *
 * 1. A read whose missing part begins where one that missed before it ended
 *    makes a stream; its first chunk is as long as that read.
 * 2. When the reader comes to the mark, or past it, the next chunk is asked
 *    for, twice as long, up to half of the window: so no more than the window
 *    is ahead of the reader, and half of it is on its way while the other half
 *    is read. A chunk ends at a multiple of its length. (Linux's on-demand
 *    readahead marks a page of its window in the same way.)
 * 3. What does not go on (random, backward, strided) is forgotten.
 *
 * All is in whole units (pages): reads that leave out parts of pages but no
 * page are sequential.
 */
#ifndef WEIR_CACHE_STREAM_H
#define WEIR_CACHE_STREAM_H

#include <stdint.h>

#define STREAMS 64U /* streams known at once */
#define STARTS 64U  /* reads that may turn out to be a stream's first */

struct stream {
	uint64_t start, mark, end; /* bytes; end 0: not in use */
	uint64_t chunk;            /* the last one's length */
	uint64_t used;             /* when it last went on, in events */
};

struct streams {
	struct stream stream[STREAMS];
	uint64_t start[STARTS]; /* where those reads ended; 0: none */
	unsigned next_start;
	uint64_t events; /* how often any stream went on */
};

/* How many streams go on these days; at least 1. */
unsigned streams_active(const struct streams *t);

/*
 * [pos, end), bounds of units, was asked for and not there at pos. Returns
 * how many bytes to read ahead, 0 for none, and sets *from; that many further
 * a call of streams_reached(*from) is due. `window`: bytes, whole pairs of
 * units; 0: no more is read ahead.
 */
uint64_t streams_missed(struct streams *t, uint64_t pos, uint64_t end,
	uint64_t window, uint64_t *from);

/* A reader came to the mark at `pos`. As above. */
uint64_t streams_reached(
	struct streams *t, uint64_t pos, uint64_t window, uint64_t *from);

#endif
