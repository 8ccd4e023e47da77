/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h: one event a line, to standard error or a sink the front end sets.
 *
 * The sink is the one thing in weir that is set per process, before any
 * thread starts, and never changed after: nbdkit has one log too.
 * Any thread may log. A log call may block on the sink.
 */
#ifndef WEIR_BASE_LOG_H
#define WEIR_BASE_LOG_H

#include <stddef.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

typedef void (*log_sink_fn)(void *arg, enum log_level level, const char *line);

/*
 * Set where lines go (NULL: standard error, as "PROGRAM: line"), the
 * program's name, and the least important level to show. A line has no
 * control characters, whatever a client has put in a name: they are '?'.
 */
void log_setup(
	const char *program, enum log_level max, log_sink_fn sink, void *arg);

__attribute__((format(printf, 2, 3))) void log_line(
	enum log_level level, const char *fmt, ...);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/*
 * A caller's buffer for one clear line of error text. error_set() formats
 * into it (if it is not NULL) and returns `err`, a negative errno, so that
 * a failing function can end with `return error_set(e, -EINVAL, "...")`.
 */
struct error {
	char text[512];
};

__attribute__((format(printf, 3, 4))) int error_set(
	struct error *error, int err, const char *fmt, ...);

/* Put "what: " in front of the text that is there; returns `err`. */
int error_prefix(struct error *error, int err, const char *what);

#endif
