/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-profile.h: the options of "sim:[PROFILE,]OPTIONS,INNER".
 */
#ifndef WEIR_STORE_SIM_PROFILE_H
#define WEIR_STORE_SIM_PROFILE_H

#include "sim-model.h"
#include "spec.h"

/*
 * Fill `m` from the options, a profile first if there is one; `size` is the
 * store's. -EINVAL with `error` naming the bad part. Cuts up the parts.
 */
int sim_profile_parse(struct sim_model *m, const struct spec_list *parts,
	uint64_t size, struct error *error);

/* Is it a profile or KEY=..., and not the inner store? */
bool sim_profile_knows(const char *part);

#endif
