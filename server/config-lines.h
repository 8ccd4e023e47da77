/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config-lines.h: the lines of a configuration file, with their numbers.
 */
#ifndef WEIR_SERVER_CONFIG_LINES_H
#define WEIR_SERVER_CONFIG_LINES_H

#include "errors.h"

struct config_events {
	/* "[NAME]"; NULL: it cannot be read, and is in the errors. */
	void (*section)(void *arg, const char *name, unsigned line);
	/* "KEY = VALUE", below it. */
	void (*key)(
		void *arg, const char *key, const char *value, unsigned line);
	void *arg;
};

/*
 * Read a file and tell of its lines in their order. What is no line of such a
 * file is in `errors`, as "FILE:LINE: what". Blocks. 0, or a negative errno
 * if it could not be read to its end.
 */
int config_read_lines(const char *path, const struct config_events *events,
	struct errors *errors);

#endif
