/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeback.c: making and ending a flusher; its counters.
 */
#include <errno.h>
#include <stdlib.h>

#include "../base/size.h"
#include "writeback-impl.h"

static void init_lists(struct writeback *wb)
{
	list_init(&wb->incoming);
	list_init(&wb->inflight);
	list_init(&wb->spare);
	list_init(&wb->pass_waiters);
	list_init(&wb->pass_queue);
	list_init(&wb->ranges);
	list_init(&wb->some);
	list_init(&wb->some_incoming);
	list_init(&wb->flush_next);
	list_init(&wb->flush_now);
	list_init(&wb->pass_flush.link);
}

int writeback_new(const struct writeback_config *config, struct cache *c,
	struct placement *p, struct reactor *loop, struct writeback **out)
{
	struct writeback *wb = calloc(1, sizeof(*wb));

	if (!wb)
		return -ENOMEM;
	wb->failing = calloc(FAILING_MAX, sizeof(*wb->failing));
	if (!wb->failing) {
		free(wb);
		return -ENOMEM;
	}
	wb->cache = c;
	wb->placement = p;
	wb->loop = loop;
	wb->name = config->name;
	atomic_init(&wb->limit, config->dirty_limit);
	atomic_init(&wb->background, config->dirty_background);
	atomic_init(&wb->inflight_max, config->inflight);
	atomic_init(&wb->chunk, UINT64_MAX);
	atomic_init(&wb->depth, UINT64_MAX);
	atomic_init(&wb->expire_ns, config->dirty_expire_ns);
	atomic_init(&wb->error_timeout_ns, config->error_timeout_ns);
	pthread_mutex_init(&wb->incoming_lock, NULL);
	pthread_mutex_init(&wb->failing_lock, NULL);
	pthread_mutex_init(&wb->zero_lock, NULL);
	init_lists(wb);
	writeback_init_tasks(wb);
	*out = wb;
	return 0;
}

void writeback_free(struct writeback *wb)
{
	if (!wb)
		return;
	walk_end(&wb->pass);
	walk_end(&wb->back);
	wb_io_free_all(wb);
	redo_free(wb);
	free(wb->failing);
	pthread_mutex_destroy(&wb->incoming_lock);
	pthread_mutex_destroy(&wb->failing_lock);
	pthread_mutex_destroy(&wb->zero_lock);
	free(wb);
}

void writeback_set(struct writeback *wb, const struct writeback_config *config)
{
	atomic_store(&wb->background, config->dirty_background);
	atomic_store(&wb->inflight_max, config->inflight);
	atomic_store(&wb->expire_ns, config->dirty_expire_ns);
	atomic_store(&wb->error_timeout_ns, config->error_timeout_ns);
	wb_wake(wb);
}

void writeback_set_limit(struct writeback *wb, uint64_t limit)
{
	atomic_store(&wb->limit, limit);
	wb_wake(wb);
}

void writeback_set_pace(
	struct writeback *wb, uint64_t chunk, uint64_t depth, uint64_t slack)
{
	atomic_store(&wb->slack, slack);
	if (depth < 2 * RUN_MAX)
		depth = 2 * RUN_MAX;
	atomic_store(&wb->chunk, chunk);
	atomic_store(&wb->depth, depth);
}

void writeback_set_progress(
	struct writeback *wb, void (*progress)(void *arg), void *arg)
{
	wb->progress = progress;
	wb->progress_arg = arg;
}

void writeback_progress(
	const struct writeback *wb, struct writeback_progress *out)
{
	*out = (struct writeback_progress){wb->written, wb->busy_ns};
	if (wb->busy)
		out->busy_ns += reactor_now(wb->loop) - wb->busy_since_ns;
}

void writeback_quiesce(struct writeback *wb, void (*done)(void *arg), void *arg)
{
	wb->quiet_arg = arg;
	wb->quiet = done;
	wb_advance(wb);
}

void writeback_counts(struct writeback *wb, struct writeback_counts *out)
{
	*out = (struct writeback_counts){
		.writes = atomic_load(&wb->writes),

		.passes = atomic_load(&wb->passes),
		.errors = atomic_load(&wb->errors),
		.write_us_total = atomic_load(&wb->write_us),
		.failing = atomic_load(&wb->nfailing),
		.flush_failing = atomic_load(&wb->flush_failing_ns) != 0,
	};
}

#define LOG_RANGES 16 /* the most that are named one by one */

/* What is lost, gathered into ranges as it is found in ascending order. */
struct lost {
	struct writeback *wb;
	uint64_t start, stop; /* bytes; not said yet */
	unsigned named;
};

static void lost_say(struct lost *l)
{
	if (l->start == l->stop || l->named++ >= LOG_RANGES)
		return;
	log_error("store %s: not written: bytes %llu to %llu", l->wb->name,
		(unsigned long long)l->start, (unsigned long long)l->stop);
}

static void lost_region(struct lost *l, uint64_t region)
{
	struct cache *c = l->wb->cache;
	uint64_t end = region + cache_span(c), start, stop, seen;

	if (end > l->wb->placement->info.size)
		end = l->wb->placement->info.size;
	for (uint64_t at = region; at < end; at = seen) {
		if (!cache_next_busy(c, at, end, 16, &start, &stop, &seen))
			continue;
		if (start != l->stop) {
			lost_say(l);
			l->start = start;
		}
		l->stop = stop;
	}
}

static int by_offset(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A write under way is no longer dirty, so that all pages are looked at. */
void writeback_log_dirty(struct writeback *wb)
{
	struct lost lost = {.wb = wb};
	uint64_t *region = NULL;
	size_t count = 0;
	char text[16];

	if (cache_regions(wb->cache, &region, &count))
		return;
	if (count)
		qsort(region, count, sizeof(*region), by_offset);
	for (size_t i = 0; i < count && lost.named < LOG_RANGES; i++)
		lost_region(&lost, region[i]);
	lost_say(&lost);
	free(region);
	if (lost.named)
		log_error("store %s: %s not written in all", wb->name,
			size_format(cache_charged(wb->cache), text));
}
