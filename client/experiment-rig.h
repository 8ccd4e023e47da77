/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-rig.h: writers over an engine in simulated time.
 *
 *   writers --> engine --> sim: (a device model) --> null:
 *
 * A writer is a dd: it writes one request after the other, from the start of
 * its own part of the device on, or at random places of it, as fast as it may
 * or at a rate. All write one shared buffer by reference, so that no data is
 * copied anywhere: an hour of a disk takes seconds. At the end of its part a
 * writer begins anew; on a pool it trims what it comes to, ROLL bytes at a
 * time, as one that removes an old file for each new one.
 *
 * Several beds may share a loop: devices side by side. Single-threaded;
 * a seed repeats a run exactly.
 */
#ifndef WEIR_CLIENT_EXPERIMENT_RIG_H
#define WEIR_CLIENT_EXPERIMENT_RIG_H

#include "engine.h"

struct bed_config {
	const char *store;    /* a spec, like "sim:hdd,null:64G" */
	const char *throttle; /* its value: ioless, legacy, off */
	uint64_t limit;       /* bytes */
	uint64_t background;  /* bytes; 0: the default */
	unsigned writers;
	uint64_t bs; /* bytes of a request */
	const uint64_t
		*rate; /* of each writer, bytes/s, 0: no limit; or NULL */
	bool random;
	uint64_t pool;    /* the store is a new pool of such a device; 0: raw */
	uint64_t span;    /* bytes that are written, of all writers; 0: all */
	uint64_t late_ns; /* the last writer starts so much later */
};

struct bed_writer {
	struct bed *bed;
	struct engine_client *client;
	struct engine_request req;
	struct reactor_timer timer;
	uint64_t start, end; /* its part of the device, bytes */
	uint64_t pos;        /* of the next request */
	uint64_t trimmed;    /* up to where, in laps after the first */
	bool again;          /* it has been through its part */
	uint64_t rate;       /* bytes/s; 0: no limit */
	uint64_t due_ns;     /* of the next request, with a rate */
	uint64_t asked_ns;   /* when the present request was */
	uint64_t burst;      /* bytes since it last waited */
	uint64_t written;    /* bytes answered */
	uint64_t longest_ns; /* the longest wait for an answer */
	bool stopping, stopped;
};

struct bed {
	struct bed_config config;
	struct reactor *loop;
	struct engine *engine;
	struct engine_export *export;
	struct engine_request buffer; /* its payload is what all write */
	struct bed_writer *writer;
	char *stats; /* of bed_look() */
	bool down;
};

/* Build it on `loop`; the writers start when the loop runs. 0, or -errno with
 * `error` filled. Blocks. */
int bed_open(struct bed *b, const struct bed_config *config,
	struct reactor *loop, struct error *error);

/* Stop the writers, shut the engine down and free all. Runs the loop. */
void bed_close(struct bed *b);

/* Take the engine's counters now; bed_counter() tells one of them. 0 if there
 * is none of that name. */
void bed_look(struct bed *b);
double bed_counter(const struct bed *b, const char *name);

/* Bytes answered to all writers. */
uint64_t bed_written(const struct bed *b);

/* Has every writer been through its part? */
bool bed_filled(const struct bed *b);

#endif
