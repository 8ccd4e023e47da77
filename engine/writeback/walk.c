/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.c: dirty regions in ascending order, gathered and sorted once for a
 * whole pass over them.
 */
#include <errno.h>
#include <stdlib.h>

#include "writeback-impl.h"

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int walk_begin(struct writeback *wb, struct wb_walk *w, uint64_t before,
	uint64_t epoch)
{
	int err;

	walk_end(w);
	err = cache_dirty_regions(wb->cache, before, &w->region, &w->count);
	if (err)
		return err;
	if (w->count)
		qsort(w->region, w->count, sizeof(*w->region), ascending);
	w->epoch = epoch;
	return 0;
}

void walk_end(struct wb_walk *w)
{
	free(w->region);
	*w = (struct wb_walk){0};
}

/*
 * Find and take a run up to `end`. Of what fails apart by itself, and what
 * waits for its next try is passed over. 0, -ENOENT or -EBUSY.
 */
static int find(struct writeback *wb, struct wb_walk *w, uint64_t end,
	bool skip_failing, struct cache_run *run)
{
	uint64_t max = w->background ? wb_run_background(wb) : wb_run_max(wb);
	uint64_t stop;

	for (;; w->pos = stop) {
		int err = -ENOENT;

		stop = wb_run_stop(wb, w->pos);
		if (!skip_failing || stop == UINT64_MAX ||
			!failing_waits(wb, w->pos, stop))
			err = cache_take_dirty(wb->cache, w->pos,
				stop < end ? stop : end, stop, max, w->epoch,
				run);
		if (err == -EBUSY)
			w->busy = true;
		if (!err || stop >= end)
			return err;
	}
}

/* Take one run of the region that starts at `region`; 0, -ENOENT when there
 * is no more of it, -ENOMEM. */
static int take(struct writeback *wb, struct wb_walk *w, uint64_t region,
	bool skip_failing)
{
	struct wb_io *x = wb_io_get(wb);
	uint64_t from;

	if (!x)
		return -ENOMEM;
	if (w->pos < region)
		w->pos = region;
	from = w->pos;
	if (find(wb, w, region + cache_span(wb->cache), skip_failing,
		    &x->run)) {
		wb_io_put(wb, x);
		return -ENOENT;
	}
	if (x->run.offset != from)
		w->streak = 0;
	w->streak += x->run.end - x->run.offset;
	w->pos = x->run.end;
	w->took = true;
	w->busy |= x->run.skipped;
	wb_io_submit(wb, x);
	return 0;
}

void walk_skip(struct writeback *wb, struct wb_walk *w)
{
	uint64_t span = cache_span(wb->cache);

	w->streak = 0;
	while (w->next + 1 < w->count &&
		w->region[w->next + 1] == w->region[w->next] + span)
		w->next++;
	if (w->next < w->count)
		w->next++;
}

/*
 * The region under `next` is done. If a stretch was taken to its end or past
 * it, into a region that the walk does not know of, that is the next one:
 * once for each run, or it need never end.
 */
static void move_on(struct writeback *wb, struct wb_walk *w)
{
	uint64_t span = cache_span(wb->cache);
	uint64_t region = w->pos - w->pos % span;

	if (w->follow && region > w->region[w->next] &&
		(w->next + 1 == w->count || w->region[w->next + 1] > region)) {
		w->region[w->next] = region;
		w->follow = false;
	} else {
		w->next++;
	}
}

int walk_step(struct writeback *wb, struct wb_walk *w, bool skip_failing)
{
	uint64_t span = cache_span(wb->cache);

	while (w->next < w->count) {
		uint64_t region = w->region[w->next];
		bool skip = w->pos >= region + span;
		int err = -ENOENT;

		if (skip_failing && wb_run_stop(wb, region) == UINT64_MAX &&
			failing_waits(wb, region, region + span))
			skip = true;
		if (!skip)
			err = take(wb, w, region, skip_failing);
		if (err != -ENOENT)
			return err;
		move_on(wb, w);
	}
	return -ENOENT;
}
