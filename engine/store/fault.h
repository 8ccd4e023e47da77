/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h: "fault:OPTIONS,INNER", a store that goes wrong on request. For
 * tests.
 *
 * Options, each rule followed by what narrows it:
 *   read-error=N write-error=N flush-error=N trim-error=N zero-error=N
 *                 the next N of them fail (`always`: all), and do nothing
 *   error=N       the next N commands of any kind fail
 *   short-write=N the next N writes, trims or zeroes stop part-way and fail
 *   delay=TIME    every command takes that much longer
 *   hang=N        the next N commands end only at store_fault_release(), or
 *                 when new rules are set
 *     rate=P%     each of them with that chance, down to 0.0001%
 *     every=K     only each Kth of what the rule matches
 *     skip=K      the first K are let through
 *     range=O+L   only what touches L bytes at O (flushes have no range)
 *     op=OP+OP    of read, write, flush, trim and zero
 *     errno=NAME  EIO (default), ENOSPC, ETIMEDOUT
 *   record=on     keep a log from the start
 *   seed=N        of rates, where short writes stop, what a failed flush loses
 *   name=NAME     whom new rules are for, if there are several
 *
 * New rules, as text for store_set_fault(), are a list of these rules, or
 * "off"; before them may stand name=NAME. power-cut=SEED among them is
 * store_fault_power_cut().
 *
 * All rules are looked at for each command and their effects add up. STATUS
 * is never touched. Functions here take a store opened as "fault:..." and may
 * be called from any thread.
 */
#ifndef WEIR_STORE_FAULT_H
#define WEIR_STORE_FAULT_H

#include "store.h"

enum store_fault_action {
	STORE_FAULT_ERROR, /* do nothing, answer `error` */
	STORE_FAULT_SHORT, /* do the first part of it, answer `error` */
	STORE_FAULT_DELAY, /* do it `delay_ns` later */
	STORE_FAULT_HANG,  /* do it when store_fault_release() is called */
};

#define STORE_FAULT_OP(op) (1U << (op))
#define STORE_FAULT_RULES 16

struct store_fault_rule {
	enum store_fault_action action;
	unsigned ops;            /* STORE_FAULT_OP()s; 0: all */
	uint64_t offset, length; /* bytes; length 0: anywhere */
	unsigned chance;         /* of a million; 0: all */
	uint64_t skip;           /* let so many pass first */
	uint64_t every;          /* then take each so-manieth; 0 and 1: each */
	uint64_t count;          /* at most so many; 0: no end */
	int error;               /* negative errno; 0: -EIO */
	uint64_t delay_ns;
};

/* Put these rules, at most STORE_FAULT_RULES, in place of all there were. */
void store_fault_set(
	struct store *s, const struct store_fault_rule *rules, unsigned n);

/* Is it one, and of that name, if that is not ""? */
bool store_fault_is(const struct store *s, const char *name);

/* Let go of the commands that hang; returns how many did. The rule stays. */
unsigned store_fault_release(struct store *s);

/* How many commands hang now. */
unsigned store_fault_hanging(struct store *s);

/* One command, in the order of submission. */
struct store_fault_record {
	enum store_op op;
	unsigned flags;
	uint64_t offset, length;
	int error;
	bool done;
	bool changed; /* WRITE: the caller changed the data in flight */
	uint64_t submitted, completed; /* numbers of one sequence, from 1 */
};

/* Start a new, empty log, or stop. */
void store_fault_record(struct store *s, bool on);

/* Copy the first `max` records; returns how many there are. */
size_t store_fault_log(
	struct store *s, struct store_fault_record *records, size_t max);

/*
 * Cut the power: everything in flight and all that comes later answers -EIO.
 * In front of a "volatile:PATH" store, the file then holds what was flushed
 * and any subset, drawn from the seed, of the sectors that were not. Nothing
 * touches it any more; close the store and open PATH again.
 */
void store_fault_power_cut(struct store *s, uint64_t seed);

/*
 * What a power cut would leave in the file now, to `image`, of the store's
 * size; everything goes on. In front of a "volatile:PATH" store only.
 */
void store_fault_snapshot(struct store *s, uint64_t seed, void *image);

#endif
