/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault-rule.c: see fault-rule.h and the options in fault.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../base/random.h"
#include "../base/size.h"
#include "fault-rule.h"

#define OPS_MODIFY                                                             \
	(STORE_FAULT_OP(STORE_WRITE) | STORE_FAULT_OP(STORE_TRIM) |            \
		STORE_FAULT_OP(STORE_ZERO))

static bool rule_matches(
	const struct store_fault_rule *rule, const struct store_io *io)
{
	if (rule->ops && !(rule->ops & STORE_FAULT_OP(io->op)))
		return false;
	if (!rule->length)
		return true;
	return io->op != STORE_FLUSH &&
		io->offset < rule->offset + rule->length &&
		io->offset + io->length > rule->offset;
}

static void verdict_add(
	struct fault_verdict *v, const struct store_fault_rule *rule)
{
	switch (rule->action) {
	case STORE_FAULT_ERROR:
	case STORE_FAULT_SHORT:
		if (!v->error)
			v->part = rule->action == STORE_FAULT_SHORT;
		v->error = rule->error ? rule->error : -EIO;
		break;
	case STORE_FAULT_DELAY:
		v->delay_ns += rule->delay_ns;
		break;
	case STORE_FAULT_HANG:
		v->hang = true;
		break;
	}
}

struct fault_verdict fault_rules_judge(
	struct fault_rules *rules, const struct store_io *io, uint64_t *random)
{
	struct fault_verdict v = {0};

	for (unsigned i = 0; i < rules->count; i++) {
		const struct store_fault_rule *rule = &rules->at[i].rule;
		uint64_t every = rule->every ? rule->every : 1;

		if (!rule_matches(rule, io))
			continue;
		rules->at[i].seen++;
		if (rules->at[i].seen <= rule->skip ||
			(rules->at[i].seen - rule->skip) % every ||
			(rule->count && rules->at[i].hit == rule->count))
			continue;
		if (rule->chance &&
			random_below(random, 1000000) >= rule->chance)
			continue;
		rules->at[i].hit++;
		verdict_add(&v, rule);
	}
	return v;
}

/* --- options ------------------------------------------------------------- */

static const struct {
	const char *key;
	enum store_fault_action action;
	unsigned ops;
} rule_keys[] = {
	{"read-error", STORE_FAULT_ERROR, STORE_FAULT_OP(STORE_READ)},
	{"write-error", STORE_FAULT_ERROR, STORE_FAULT_OP(STORE_WRITE)},
	{"flush-error", STORE_FAULT_ERROR, STORE_FAULT_OP(STORE_FLUSH)},
	{"trim-error", STORE_FAULT_ERROR, STORE_FAULT_OP(STORE_TRIM)},
	{"zero-error", STORE_FAULT_ERROR, STORE_FAULT_OP(STORE_ZERO)},
	{"error", STORE_FAULT_ERROR, 0},
	{"short-write", STORE_FAULT_SHORT, OPS_MODIFY},
	{"delay", STORE_FAULT_DELAY, 0},
	{"hang", STORE_FAULT_HANG, 0},
};

struct name {
	const char *name;
	int value;
};

static const struct name op_names[] = {
	{"read", STORE_READ},
	{"write", STORE_WRITE},
	{"flush", STORE_FLUSH},
	{"trim", STORE_TRIM},
	{"zero", STORE_ZERO},
	{NULL, 0},
};

static const struct name errno_names[] = {
	{"EIO", EIO},
	{"ESTALE", ESTALE},
	{"ENOSPC", ENOSPC},
	{"ETIMEDOUT", ETIMEDOUT},
	{NULL, 0},
};

static int name_parse(const struct name *names, const char *text, int *value)
{
	for (; names->name; names++) {
		if (strcmp(names->name, text))
			continue;
		*value = names->value;
		return 0;
	}
	return -EINVAL;
}

/* "3" or "always" */
static int count_parse(const char *text, uint64_t *count)
{
	*count = 0;
	if (!strcmp(text, "always"))
		return 0;
	return size_parse(text, count) || !*count ? -EINVAL : 0;
}

/* "0.5%", to millionths */
static int chance_parse(const char *text, unsigned *chance)
{
	char *end;
	double percent = strtod(text, &end);

	if (*text < '0' || *text > '9' || strcmp(end, "%") ||
		percent < 0.0001 || percent > 100)
		return -EINVAL;
	*chance = (unsigned)(percent * 10000 + 0.5);
	return 0;
}

/* "write" or "write+zero" */
static int ops_parse(const char *text, unsigned *ops)
{
	unsigned sum = 0;

	for (const char *at = text;; at++) {
		size_t n = strcspn(at, "+");
		char word[8] = "";
		int op;

		if (n >= sizeof word)
			return -EINVAL;
		memcpy(word, at, n);
		if (name_parse(op_names, word, &op))
			return -EINVAL;
		sum |= STORE_FAULT_OP(op);
		at += n;
		if (!*at)
			break;
	}
	*ops = sum;
	return 0;
}

/* "OFFSET+LENGTH" */
static int range_parse(const char *text, struct store_fault_rule *rule)
{
	const char *plus = strchr(text, '+');
	char offset[32];

	if (!plus || plus - text >= (ptrdiff_t)sizeof offset)
		return -EINVAL;
	memcpy(offset, text, (size_t)(plus - text));
	offset[plus - text] = '\0';
	if (size_parse(offset, &rule->offset) ||
		size_parse(plus + 1, &rule->length) || !rule->length)
		return -EINVAL;
	return 0;
}

static int rule_narrow(
	struct store_fault_rule *rule, const char *key, const char *value)
{
	int n = 0, err;

	if (!strcmp(key, "every"))
		return count_parse(value, &rule->every);
	if (!strcmp(key, "skip"))
		return count_parse(value, &rule->skip);
	if (!strcmp(key, "range"))
		return range_parse(value, rule);
	if (!strcmp(key, "rate"))
		return chance_parse(value, &rule->chance);
	if (!strcmp(key, "op"))
		return ops_parse(value, &rule->ops);
	if (!strcmp(key, "errno")) {
		err = name_parse(errno_names, value, &n);
		rule->error = -n;
		return err;
	}
	return -ENOENT;
}

/* -ENOENT: not one of rule_keys */
static int rule_start(
	struct store_fault_rule *rule, const char *key, const char *value)
{
	for (size_t i = 0; i < sizeof rule_keys / sizeof rule_keys[0]; i++) {
		if (strcmp(rule_keys[i].key, key))
			continue;
		*rule = (struct store_fault_rule){
			.action = rule_keys[i].action,
			.ops = rule_keys[i].ops,
		};
		if (rule->action == STORE_FAULT_DELAY)
			return time_parse(value, &rule->delay_ns);
		return count_parse(value, &rule->count);
	}
	return -ENOENT;
}

int fault_rules_option(struct fault_rules *rules, const char *key,
	const char *value, struct error *error)
{
	struct store_fault_rule rule = {0};
	struct store_fault_rule *last = &rule;
	int err = rule_start(&rule, key, value);

	if (!err && rules->count == STORE_FAULT_RULES)
		return error_set(error, -EINVAL, "more than %d rules",
			STORE_FAULT_RULES);
	if (!err) {
		rules->at[rules->count++].rule = rule;
	} else if (err == -ENOENT) {
		if (rules->count)
			last = &rules->at[rules->count - 1].rule;
		err = rule_narrow(last, key, value);
		if (err != -ENOENT && !rules->count)
			return error_set(error, -EINVAL,
				"\"%s\" comes after the rule it narrows", key);
	}
	if (err && err != -ENOENT)
		return error_set(error, -EINVAL, "bad %s \"%s\"", key, value);
	return err;
}
