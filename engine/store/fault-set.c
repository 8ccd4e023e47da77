/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault-set.c: new rules for fault stores that are open, as text: for those
 * that a store has anywhere inside, or for those of a name.
 *
 * All of the text is understood before any of it is done. Any thread.
 */
#include <errno.h>
#include <string.h>

#include "../base/size.h"
#include "fault-rule.h"
#include "kind.h"

struct orders {
	struct fault_rules rules;
	char name[64]; /* "": for all there are */
	bool cut;
	uint64_t seed; /* of the cut */
};

static int orders_name(struct orders *o, const char *value)
{
	if (!*value || strlen(value) >= sizeof o->name)
		return -EINVAL;
	strcpy(o->name, value);
	return 0;
}

static int orders_part(struct orders *o, char *part, struct error *error)
{
	char *value;
	int err = spec_option(part, &value, error);

	if (err)
		return err;
	err = fault_rules_option(&o->rules, part, value, error);
	if (err != -ENOENT)
		return err;
	if (!strcmp(part, "power-cut"))
		err = size_parse(value, &o->seed);
	else if (!strcmp(part, "name"))
		err = orders_name(o, value);
	else
		return error_set(error, -EINVAL,
			"unknown option \"%s\" of new rules, see "
			"weir-stores(7)",
			part);
	if (err)
		return error_set(error, -EINVAL, "bad %s \"%s\"", part, value);
	o->cut |= !strcmp(part, "power-cut");
	return 0;
}

static int orders_parse(struct orders *o, const char *text, struct error *error)
{
	struct spec_list parts;
	int err = spec_split(text, &parts, error);

	if (err)
		return err;
	for (unsigned i = 0; i < parts.count && !err; i++)
		if (strcmp(parts.part[i], "off"))
			err = orders_part(o, parts.part[i], error);
	spec_list_free(&parts);
	return err;
}

static void orders_take(struct store *s, const struct orders *o)
{
	struct store_fault_rule rules[STORE_FAULT_RULES];

	for (unsigned i = 0; i < o->rules.count; i++)
		rules[i] = o->rules.at[i].rule;
	store_fault_set(s, rules, o->rules.count);
	store_fault_release(s);
	if (o->cut)
		store_fault_power_cut(s, o->seed);
}

/* How many stores they are for. */
static unsigned orders_give(
	struct store *s, const struct orders *o, bool really)
{
	struct store *inner;
	unsigned n = 0;

	if (store_fault_is(s, o->name)) {
		n++;
		if (really)
			orders_take(s, o);
	}
	for (unsigned i = 0; (inner = store_member(s, i)); i++)
		n += orders_give(inner, o, really);
	return n;
}

int store_set_fault(
	struct store *s, const char *rules, bool really, struct error *error)
{
	struct orders o = {.cut = false};
	int err = orders_parse(&o, rules, error);

	if (!err && !orders_give(s, &o, false))
		err = o.name[0]
			? error_set(error, -EINVAL,
				  "store %s has no fault: inside called %s",
				  s->spec, o.name)
			: error_set(error, -EINVAL,
				  "store %s has no fault: inside", s->spec);
	if (err)
		return error_prefix(error, err, "fault");
	if (really)
		orders_give(s, &o, true);
	return 0;
}
