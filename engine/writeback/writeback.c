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
	list_init(&wb->zeroes);
	list_init(&wb->zeroes_flushing);
	list_init(&wb->redo);
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
	wb->expire_ns = config->dirty_expire_ns;
	wb->error_timeout_ns = config->error_timeout_ns;
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
		.inflight = atomic_load(&wb->inflight_now),
	};
}

#define LOG_RANGES 16 /* the most that are named one by one */

void writeback_log_dirty(struct writeback *wb)
{
	uint64_t *region = NULL, start, stop, seen;
	size_t count = 0;
	unsigned named = 0;
	char text[16];

	if (cache_dirty_regions(wb->cache, UINT64_MAX, &region, &count))
		return;
	for (size_t i = 0; i < count && named < LOG_RANGES; i++) {
		uint64_t end = region[i] + cache_span(wb->cache);

		if (end > wb->placement->info.size)
			end = wb->placement->info.size;
		for (uint64_t at = region[i]; at < end && named < LOG_RANGES;
			at = seen) {
			if (!cache_next_busy(wb->cache, at, end, 16, &start,
				    &stop, &seen))
				continue;
			log_error("store %s: not written: bytes %llu to %llu",
				wb->name, (unsigned long long)start,
				(unsigned long long)stop);
			named++;
		}
	}
	free(region);
	if (count)
		log_error("store %s: %s not written in all", wb->name,
			size_format(cache_charged(wb->cache), text));
}
