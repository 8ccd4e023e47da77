/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-load.h: one kind of request over an engine, `depth` of them at
 * once, in simulated time or over real files.
 *
 * Writes share one buffer by reference, so that no data is copied before it
 * is in the engine. Single-threaded: the loop runs on the caller's thread.
 */
#ifndef WEIR_CLIENT_EXPERIMENT_LOAD_H
#define WEIR_CLIENT_EXPERIMENT_LOAD_H

#include "engine.h"

struct load_config {
	const char *store;             /* a spec */
	const char *key[4], *value[4]; /* more keys; NULL ends them */
	const char *pool; /* a file to make an empty pool of first; or NULL */
	const char *pool_store; /* which that store has */
	bool live;              /* real time */
	enum engine_op op;
	unsigned flags; /* ENGINE_FUA */
	uint64_t bs;    /* bytes of a request */
	unsigned depth;
	bool random;
	uint64_t bytes;   /* in all */
	uint64_t seconds; /* at most, even if it is less; 0: no limit */
};

struct load_result {
	uint64_t bytes;
	uint64_t ns; /* with the flush after the last write, unless FUA */
};

/* Open, run, close. 0, or -errno with `error`. Blocks. */
int load_run(const struct load_config *config, struct load_result *out,
	struct error *error);

#endif
