/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count.c: what is asked of the store, and for how long it is busy with it.
 *
 * The clock is read only when the first of several begins and when the last
 * one ends. When the first began is read before the own end is counted: after
 * that another may be the first. Loops that begin and end at the very same
 * moment may still count a rest as busy: it is a figure for people.
 */
#include "placement.h"

static void passed(struct store_io *io)
{
	struct placement *p = io->passed_by;
	struct placement_counts *k = &p->counts;
	uint64_t since =
		atomic_load_explicit(&k->busy_since_ns, memory_order_relaxed);

	if (atomic_fetch_sub(&k->depth, 1) == 1)
		atomic_fetch_add_explicit(&k->busy_ns,
			reactor_now(io->reactor) - since, memory_order_relaxed);
	io->done = io->passed_done;
	io->done(io);
}

void placement_submit(struct placement *p, struct store_io *io)
{
	struct placement_counts *k = &p->counts;

	atomic_fetch_add_explicit(&k->ops[io->op], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&k->bytes[io->op], io->length, memory_order_relaxed);
	if (atomic_fetch_add(&k->depth, 1) == 0)
		atomic_store_explicit(&k->busy_since_ns,
			reactor_now(io->reactor), memory_order_relaxed);
	io->passed_by = p;
	io->passed_done = io->done;
	io->done = passed;
	p->ops->submit(p, io);
}

uint64_t placement_busy_ns(const struct placement *p, uint64_t now_ns)
{
	const struct placement_counts *k = &p->counts;
	uint64_t busy = atomic_load(&k->busy_ns);
	uint64_t since = atomic_load(&k->busy_since_ns);

	if (atomic_load(&k->depth) && now_ns > since)
		busy += now_ns - since;
	return busy;
}
