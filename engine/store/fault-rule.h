/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault-rule.h: which commands go wrong, and how. No lock, no clock: the
 * fault store holds its lock around these.
 */
#ifndef WEIR_STORE_FAULT_RULE_H
#define WEIR_STORE_FAULT_RULE_H

#include "fault.h"

struct fault_rules {
	unsigned count;
	struct {
		struct store_fault_rule rule;
		uint64_t seen, hit; /* commands it matched, and took */
	} at[STORE_FAULT_RULES];
};

/* What all rules together do to one command. */
struct fault_verdict {
	int error;         /* 0: none */
	bool part;         /* do the first part before the error */
	bool hang;         /* wait for the release */
	uint64_t delay_ns; /* wait that long */
};

/* `random` is what a rate draws from. */
struct fault_verdict fault_rules_judge(
	struct fault_rules *rules, const struct store_io *io, uint64_t *random);

/* Add a rule, or narrow the last one. -ENOENT: the key is not a rule's. */
int fault_rules_option(struct fault_rules *rules, const char *key,
	const char *value, struct error *error);

#endif
