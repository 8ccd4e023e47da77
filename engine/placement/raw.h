/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw.h: the placement that maps one to one. For files of this folder.
 */
#ifndef WEIR_PLACEMENT_RAW_H
#define WEIR_PLACEMENT_RAW_H

#include "placement.h"

/* The store is its own from then on, also when this fails. */
int raw_open(struct store *store, struct placement **out, struct error *error);

#endif
