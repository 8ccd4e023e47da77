/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.c: the clients of a throttle: found by identity, counted.
 */
#include <stdlib.h>
#include <string.h>

#include "throttle-impl.h"

static struct throttle_client *find_client(
	struct throttle *t, const char *identity)
{
	list_for_each (at, &t->clients) {
		struct throttle_client *c =
			list_entry(at, struct throttle_client, link);

		if (!strcmp(c->identity, identity))
			return c;
	}
	return NULL;
}

static struct throttle_client *new_client(
	struct throttle *t, const char *identity)
{
	size_t size = strlen(identity) + 1;
	struct throttle_client *c = calloc(1, sizeof(*c) + size);

	if (!c)
		return NULL;
	memcpy(c->identity, identity, size);
	c->throttle = t;
	c->paused_ns = reactor_now(t->loop);
	list_init(&c->ring);
	list_init(&c->parked);
	list_push_tail(&t->clients, &c->link);
	t->nclients++;
	return c;
}

struct throttle_client *throttle_client_get(
	struct throttle *t, const char *identity)
{
	SCOPED_LOCK(&t->lock);
	struct throttle_client *c = find_client(t, identity);

	if (!c)
		c = new_client(t, identity);
	if (c)
		c->refs++;
	return c;
}

void client_put(struct throttle_client *c)
{
	if (--c->refs)
		return;
	list_remove(&c->link);
	turns_forget(c->throttle, c);
	c->throttle->nclients--;
	free(c);
}

void throttle_client_put(struct throttle_client *c)
{
	if (!c)
		return;

	SCOPED_LOCK(&c->throttle->lock);

	client_put(c);
}
