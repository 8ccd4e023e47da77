/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volatile.h: "volatile:PATH", an existing file behind a volatile write cache
 * that can lose what was not flushed. For crash tests, driven by fault.h.
 * Any thread.
 */
#ifndef WEIR_STORE_VOLATILE_H
#define WEIR_STORE_VOLATILE_H

#include "store.h"

bool volatile_is(const struct store *s);

/*
 * A flush failed: as on Linux, sectors whose write had completed may never
 * reach the medium although reads still return them and later flushes
 * succeed. Which ones, the seed says.
 */
void volatile_flush_failed(struct store *s, uint64_t seed);

/* See store_fault_power_cut(). */
void volatile_power_cut(struct store *s, uint64_t seed);

/* See store_fault_snapshot(). */
void volatile_snapshot(struct store *s, uint64_t seed, void *image);

#endif
