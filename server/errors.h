/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errors.h: all that is wrong with what the server is told, not the first only.
 *
 * One thread at a time.
 */
#ifndef WEIR_SERVER_ERRORS_H
#define WEIR_SERVER_ERRORS_H

#include "base/log.h"

#define ERRORS_MAX 50U /* kept; of what is beyond, the number */

/* Zero-initialise before use. */
struct errors {
	struct error *all; /* owned */
	unsigned n;        /* there are; it may be more than are kept */
};

/* One more. Returns `err`, a negative errno. */
__attribute__((format(printf, 3, 4))) int errors_add(
	struct errors *e, int err, const char *fmt, ...);

/* Log each, as an error. */
void errors_log(const struct errors *e);

void errors_free(struct errors *e);

#endif
