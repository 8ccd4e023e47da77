/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control-impl.h: between the control socket and what is said over it.
 */
#ifndef WEIR_CONTROL_IMPL_H
#define WEIR_CONTROL_IMPL_H

#include "control.h"

/* The answer to a line, without its newline, to free(); NULL: no memory. */
char *control_answer(const struct control_config *config, const char *line);

/* What "set" asks for: a list of "[STORE:]KEY=VALUE". 0, or a negative errno
 * with `error` filled and nothing changed. */
int control_set(const struct control_config *config, const struct json_t *list,
	struct error *error);

#endif
