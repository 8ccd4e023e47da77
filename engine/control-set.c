/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control-set.c: {"cmd":"set","set":["STORE:KEY=VALUE", …]}.
 *
 * All of it or nothing: every store is asked whether it would before any is
 * changed. Without STORE: it is for each store there is. A store's name may
 * hold anything, so it is looked for rather than cut off.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "control-impl.h"

#define SET_MAX 64U /* of a line */

struct change {
	const struct control_store *store; /* NULL: each */
	char *text;                        /* owned: "KEY\0VALUE" */
	struct engine_setting setting;     /* in text */
};

struct changes {
	struct change change[SET_MAX];
	unsigned n;
};

static const struct control_store *named_store(
	const struct control_config *ctl, const char *text)
{
	for (unsigned i = 0; i < ctl->nstores; i++) {
		size_t n = strlen(ctl->stores[i].name);

		if (!strncmp(text, ctl->stores[i].name, n) && text[n] == ':')
			return &ctl->stores[i];
	}
	return NULL;
}

static int parse(const struct control_config *ctl, const char *text,
	struct change *c, struct error *error)
{
	char *equals;

	c->store = named_store(ctl, text);
	if (c->store)
		text += strlen(c->store->name) + 1;
	c->text = strdup(text);
	if (!c->text)
		return error_set(error, -ENOMEM, "no memory");
	equals = strchr(c->text, '=');
	if (!equals)
		return error_set(
			error, -EINVAL, "%s: expected KEY=VALUE", text);
	*equals = '\0';
	if (strchr(c->text, ':'))
		return error_set(error, -EINVAL, "%s: no such store", text);
	c->setting = (struct engine_setting){c->text, equals + 1};
	return 0;
}

static int parse_all(const struct control_config *ctl, const json_t *list,
	struct changes *all, struct error *error)
{
	size_t n = json_array_size(list);

	if (!n || n > SET_MAX)
		return error_set(error, -EINVAL,
			"expected \"set\":[\"KEY=VALUE\"], 1 to %u of them",
			SET_MAX);
	while (all->n < n) {
		const char *text =
			json_string_value(json_array_get(list, all->n));
		int err;

		if (!text)
			return error_set(error, -EINVAL,
				"expected KEY=VALUE as a string");
		err = parse(ctl, text, &all->change[all->n++], error);
		if (err)
			return err;
	}
	return 0;
}

/* Put what is for a store to it, by `put`. */
static int for_store(const struct changes *all, const struct control_store *s,
	int (*put)(struct engine *e, const struct engine_setting *settings,
		unsigned n, struct error *error),
	struct error *error)
{
	struct engine_setting settings[SET_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < all->n; i++) {
		const struct change *c = &all->change[i];

		if (!c->store || c->store == s)
			settings[n++] = c->setting;
	}
	return n ? put(s->engine, settings, n, error) : 0;
}

int control_set(const struct control_config *ctl, const json_t *list,
	struct error *error)
{
	struct changes all = {.n = 0};
	int err = parse_all(ctl, list, &all, error);

	for (unsigned i = 0; i < ctl->nstores && !err; i++)
		err = for_store(&all, &ctl->stores[i], engine_set_check, error);
	for (unsigned i = 0; i < ctl->nstores && !err; i++)
		err = for_store(&all, &ctl->stores[i], engine_set, error);
	for (unsigned i = 0; i < all.n; i++)
		free(all.change[i].text);
	return err;
}
