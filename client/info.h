/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info.h: the parts of `weir info`: info.c (a server), info-store.c.
 */
#ifndef WEIR_CLIENT_INFO_H
#define WEIR_CLIENT_INFO_H

#include <stdbool.h>

/* Describe the store of a spec, on standard output; an exit code, with what is
 * wrong said. Blocks. */
int info_store(const char *command, const char *spec, bool json);

#endif
