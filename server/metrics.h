/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.h: what the server counts, for Prometheus over HTTP: /metrics and
 * /healthz, on a thread of their own.
 */
#ifndef WEIR_SERVER_METRICS_H
#define WEIR_SERVER_METRICS_H

#include "engine.h"

struct metrics;
struct json_t;

#define METRICS_CONNECTIONS 64U /* at once, at most */

/* What is asked of the server. */
struct metrics_source {
	/* The stats as JSON text, {"stores":[...],"exports":[...],...}, to
	 * free(); NULL: no memory. On `reactor`. */
	char *(*make)(void *arg);
	void *arg;
	struct reactor *reactor;
};

/*
 * Listen on "ADDR:PORT", "[ADDR]:PORT" and begin to answer. Blocks for a
 * moment. -errno with `error` filled; -ENOTSUP: built without it.
 */
int metrics_open(struct metrics **out, const char *where,
	const struct metrics_source *source, struct error *error);

/* End the thread and its connections. The reactor no longer runs. NULL is
 * fine. */
void metrics_close(struct metrics *m);

/* --- metrics-text.c ------------------------------------------------------- */

/* The stats in Prometheus' text format, to free(); NULL: no memory. Any
 * thread. */
char *metrics_text(const struct json_t *stats);

/* Does it serve, and write? If not, why is in `why`, a line. Any thread. */
bool metrics_healthy(const struct json_t *stats, char *why, size_t size);

#endif
