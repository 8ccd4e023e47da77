/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failing.c: ranges whose writes fail: when to try again, and since when.
 *
 * A short array, searched from front to back: it is empty but in trouble.
 * When it is full, new trouble widens the last entry. Of a store with members
 * (store.h) an entry is of one member, and the others are none of its trouble.
 */
#include <string.h>

#include "writeback-impl.h"

/* Is part of [offset, end) on that member? */
static bool touches(const struct writeback *wb, unsigned member,
	uint64_t offset, uint64_t end)
{
	const struct store_info *info = &wb->placement->info;
	uint64_t first, count;

	if (info->members < 2)
		return true;
	first = offset / info->chunk;
	count = (end - 1) / info->chunk - first + 1;
	return (member + info->members - first % info->members) %
		info->members <
		count;
}

static bool overlap(const struct writeback *wb, const struct wb_failing *f,
	uint64_t offset, uint64_t end)
{
	if (f->offset >= end || offset >= f->end)
		return false;
	return touches(wb, f->member, offset > f->offset ? offset : f->offset,
		end < f->end ? end : f->end);
}

static void widen(struct wb_failing *f, uint64_t offset, uint64_t end)
{
	if (offset < f->offset)
		f->offset = offset;
	if (end > f->end)
		f->end = end;
}

static void back_off(struct wb_failing *f, uint64_t now)
{
	/* Runs of one try fail one after the other: that is one failure. */
	if (now < f->retry_ns)
		return;
	f->delay_ns =
		2 * f->delay_ns < RETRY_MAX_NS ? 2 * f->delay_ns : RETRY_MAX_NS;
	f->retry_ns = now + f->delay_ns;
}

/* Where trouble of a member is noted; NULL: apart. */
static struct wb_failing *entry_for(
	struct writeback *wb, unsigned member, uint64_t offset, uint64_t end)
{
	unsigned n = atomic_load(&wb->nfailing);
	struct wb_failing *same = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct wb_failing *f = &wb->failing[i];

		if (f->member != member)
			continue;
		same = f;
		if (overlap(wb, f, offset, end))
			return f;
	}
	if (n < FAILING_MAX)
		return NULL;
	return same ? same : &wb->failing[n - 1];
}

static void add_member(
	struct writeback *wb, unsigned member, uint64_t offset, uint64_t end)
{
	struct wb_failing *f = entry_for(wb, member, offset, end);
	uint64_t now = reactor_now(wb->loop);
	unsigned n = atomic_load(&wb->nfailing);

	if (f) {
		widen(f, offset, end);
		back_off(f, now);
		return;
	}
	wb->failing[n] = (struct wb_failing){
		.offset = offset,
		.end = end,
		.member = member,
		.since_ns = now,
		.retry_ns = now + RETRY_FIRST_NS,
		.delay_ns = RETRY_FIRST_NS,
	};
	atomic_store(&wb->nfailing, n + 1);
}

/* Of all members that the range is on, any may be who fails: the next try is
 * for each by itself (wb_run_stop()). */
void failing_add(struct writeback *wb, uint64_t offset, uint64_t end)
{
	unsigned members = wb->placement->info.members;
	SCOPED_LOCK(&wb->failing_lock);

	for (unsigned m = 0; m < (members ? members : 1); m++)
		if (touches(wb, m, offset, end))
			add_member(wb, m, offset, end);
}

/* Take [offset, end) out of entry i; true if nothing is left of it. A hole in
 * its middle leaves the longer side: what fails there says so again. */
static bool cut(struct wb_failing *f, uint64_t offset, uint64_t end)
{
	uint64_t before = offset > f->offset ? offset - f->offset : 0;
	uint64_t after = f->end > end ? f->end - end : 0;

	if (before >= after)
		f->end = f->offset + before;
	else
		f->offset = end;
	return f->offset >= f->end;
}

void failing_clear(struct writeback *wb, uint64_t offset, uint64_t end)
{
	unsigned n;

	if (!atomic_load(&wb->nfailing))
		return;

	SCOPED_LOCK(&wb->failing_lock);

	n = atomic_load(&wb->nfailing);
	if (!n)
		return; /* another loop cleared the last one */
	for (unsigned i = 0; i < n;) {
		struct wb_failing *f = &wb->failing[i];

		if (overlap(wb, f, offset, end) &&
			(cut(f, offset, end) ||
				!touches(wb, f->member, f->offset, f->end)))
			*f = wb->failing[--n];
		else
			i++;
	}
	atomic_store(&wb->nfailing, n);
	if (!n)
		log_info("store %s: what could not be written is written",
			wb->name);
}

bool failing_waits(struct writeback *wb, uint64_t offset, uint64_t end)
{
	uint64_t now;

	if (!atomic_load(&wb->nfailing))
		return false;
	now = reactor_now(wb->loop);

	SCOPED_LOCK(&wb->failing_lock);

	for (unsigned i = 0; i < atomic_load(&wb->nfailing); i++) {
		if (overlap(wb, &wb->failing[i], offset, end) &&
			now < wb->failing[i].retry_ns)
			return true;
	}
	return false;
}

bool writeback_torn(struct writeback *wb, uint64_t offset, uint64_t end)
{
	if (!atomic_load(&wb->nfailing))
		return false;

	SCOPED_LOCK(&wb->failing_lock);

	for (unsigned i = 0; i < atomic_load(&wb->nfailing); i++) {
		if (overlap(wb, &wb->failing[i], offset, end))
			return true;
	}
	return false;
}

uint64_t failing_due(struct writeback *wb, bool *ready)
{
	SCOPED_LOCK(&wb->failing_lock);
	uint64_t now = reactor_now(wb->loop), due = UINT64_MAX;

	*ready = false;
	for (unsigned i = 0; i < atomic_load(&wb->nfailing); i++) {
		uint64_t retry = wb->failing[i].retry_ns;

		if (retry <= now)
			*ready = true;
		else if (retry < due)
			due = retry;
	}
	return due;
}

/* Apart, so that who finds nothing failing pays no frame for it. */
static __attribute__((noinline)) bool failing_for_long(
	struct writeback *wb, uint64_t offset, uint64_t end)
{
	SCOPED_LOCK(&wb->failing_lock);
	uint64_t flush = atomic_load(&wb->flush_failing_ns), now;
	uint64_t timeout = atomic_load(&wb->error_timeout_ns);

	now = reactor_now(wb->loop); /* no entry is younger than that */
	if (flush && now - flush >= timeout)
		return true;
	for (unsigned i = 0; i < atomic_load(&wb->nfailing); i++) {
		const struct wb_failing *f = &wb->failing[i];

		if (overlap(wb, f, offset, end) && now - f->since_ns >= timeout)
			return true;
	}
	return false;
}

bool writeback_failing(struct writeback *wb, uint64_t offset, uint64_t end)
{
	if (!atomic_load(&wb->flush_failing_ns) && !atomic_load(&wb->nfailing))
		return false;
	return failing_for_long(wb, offset, end);
}
