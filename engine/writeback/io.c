/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io.c: store writes under way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "writeback-impl.h"

struct wb_io *wb_io_get(struct writeback *wb)
{
	struct list *at = list_pop_head(&wb->spare);
	struct wb_io *x =
		at ? list_entry(at, struct wb_io, link) : malloc(sizeof(*x));

	if (!x)
		return NULL;
	x->wb = wb;
	x->sync = NULL;
	x->stable = false;
	x->suspect = 0;
	list_init(&x->link);
	x->run = (struct cache_run){.iov = x->iov, .max_iov = RUN_IOV};
	return x;
}

void wb_io_put(struct writeback *wb, struct wb_io *x)
{
	list_push_head(&wb->spare, &x->link);
}

void wb_io_free_all(struct writeback *wb)
{
	struct list *at;

	while ((at = list_pop_head(&wb->spare)))
		free(list_entry(at, struct wb_io, link));
}

static uint64_t power_of_two(uint64_t n)
{
	return UINT64_C(1) << (63 - __builtin_clzll(n | 512));
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t run_most(const struct writeback *wb, uint64_t share)
{
	uint64_t run = less(share, RUN_MAX);

	run = less(run, wb->placement->info.max_io);
	return power_of_two(less(run, atomic_load(&wb->inflight_max)));
}

/*
 * How many bytes the background keeps under way. What is under way can't be
 * dirtied, so of a small limit it is only a share: the rest gathers for long
 * runs.
 */
static uint64_t wb_depth(const struct writeback *wb)
{
	uint64_t share = atomic_load(&wb->limit) / 32;
	uint64_t depth = less(share, atomic_load(&wb->depth));

	return less(depth, atomic_load(&wb->inflight_max));
}

/* A run no longer than an eighth of the limit, so that a small limit still
 * has some written while some is filled; and not longer than all that may be
 * under way. */
uint64_t wb_run_max(const struct writeback *wb)
{
	return run_most(wb, atomic_load(&wb->limit) / 8);
}

/* In the background two fit in what may be under way. */
uint64_t wb_run_background(const struct writeback *wb)
{
	return run_most(wb, wb_depth(wb) / 2);
}

uint64_t wb_run_stop(const struct writeback *wb, uint64_t at)
{
	const struct store_info *info = &wb->placement->info;

	if (info->members < 2 || !atomic_load(&wb->nfailing) ||
		cache_block_size(wb->cache) > info->chunk)
		return UINT64_MAX;
	return (at / info->chunk + 1) * info->chunk;
}

/*
 * A store serves what it is given first first. So what is dirty waits here,
 * and no more than inflight_max is ahead of a read that comes now. (A block
 * may be longer than a run.)
 */
bool wb_room(const struct writeback *wb)
{
	return !wb->ninflight ||
		(wb->ninflight < INFLIGHT_MAX &&
			wb->inflight_bytes + wb_run_max(wb) <=
				atomic_load(&wb->inflight_max));
}

bool wb_room_background(const struct writeback *wb)
{
	return !wb->ninflight ||
		(wb->ninflight < INFLIGHT_MAX &&
			wb->inflight_bytes + wb_run_background(wb) <=
				wb_depth(wb));
}

static void count(struct writeback *wb, const struct wb_io *x)
{
	uint64_t took = reactor_now(wb->loop) - x->start_ns;

	atomic_fetch_add(&wb->writes, 1);

	atomic_fetch_add(&wb->write_us, took / NSEC_PER_USEC);
}

static void failed(struct writeback *wb, const struct wb_io *x)
{
	if (!atomic_load(&wb->nfailing))
		log_error("store %s: cannot write %llu bytes at %llu: %s; kept "
			  "in memory, will be tried again",
			wb->name, (unsigned long long)x->io.length,
			(unsigned long long)x->io.offset,
			strerror(-x->io.error));
	atomic_fetch_add(&wb->errors, 1);
	failing_add(wb, x->run.offset, x->run.end);
	ranges_failed(wb, x->run.offset, x->run.end);
}

static void write_done(struct store_io *io)
{
	struct wb_io *x = container_of(io, struct wb_io, io);
	struct writeback *wb = x->wb;
	int lost = x->stable ? 0 : x->suspect;
	int error = io->error ? io->error : lost;
	bool written = !error;

	count(wb, x);
	list_remove(&x->link);
	wb->ninflight--;
	wb->inflight_bytes -= io->length;
	if (error && error != -ESTALE)
		error = -EIO;
	if (io->error && error != -ESTALE)
		failed(wb, x);
	else if (!io->error)
		failing_clear(wb, x->run.offset, x->run.end);
	if (!io->error)
		wb->written += io->length;
	if (wb->progress)
		wb->progress(wb->progress_arg);
	if (x->in_pass) {
		wb->pass_writes--;
		wb->pass_error = wb_worse(wb->pass_error, error);
	}
	if (x->sync) {
		x->sync->writes--;
		x->sync->error = wb_worse(x->sync->error, error);
	}
	if (!io->error && !x->stable)
		atomic_fetch_add(&wb->unflushed, 1);
	if (written)
		redo_written(wb, x->run.offset, x->run.end, !x->stable);
	cache_run_done(wb->cache, &x->run, written ? 0 : -EIO, x->stable);
	wb_io_put(wb, x);
	wb_advance(wb);
}

void wb_io_submit(struct writeback *wb, struct wb_io *x)
{
	x->io = (struct store_io){
		.op = STORE_WRITE,
		.flags = x->stable ? STORE_FUA : 0,
		.offset = x->run.offset,
		.length = x->run.end - x->run.offset,
		.iov = x->iov,
		.niov = x->run.niov,
		.reactor = wb->loop,
		.done = write_done,
	};
	x->start_ns = reactor_now(wb->loop);
	wb_busy(wb);
	x->in_pass = wb->phase == PASS_WRITE;
	if (x->in_pass)
		wb->pass_writes++;
	list_push_tail(&wb->inflight, &x->link);
	wb->ninflight++;
	wb->inflight_bytes += x->io.length;
	placement_submit(wb->placement, &x->io);
}
