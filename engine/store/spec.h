/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spec.h: the grammar of store specs.
 *
 *   spec = PATH | kind ":" rest
 *   rest = part *("," part)                 of a kind that wraps another
 *   part = key "=" value | "[" spec "]" | spec
 *
 * The inner spec is the last part, or, of a stripe, all parts but the first;
 * it needs brackets if it has commas. What the parser hands out are copies,
 * brackets taken off. Any thread.
 */
#ifndef WEIR_STORE_SPEC_H
#define WEIR_STORE_SPEC_H

#include <stddef.h>

#include "../base/log.h"

#define SPEC_MAX_PARTS 32

struct spec_list {
	unsigned count;
	char *part[SPEC_MAX_PARTS];
};

/* The length of the "kind" in "kind:rest"; 0 if it has none and is a path. */
size_t spec_kind_length(const char *spec);

/* Cut up at the commas outside brackets. -EINVAL with `error` quoting the bad
 * part, -ENOMEM. */
int spec_split(const char *rest, struct spec_list *out, struct error *error);
void spec_list_free(struct spec_list *list);

/* Cut "key=value" in two, in place. -EINVAL if it is not one. */
int spec_option(char *part, char **value, struct error *error);

#endif
