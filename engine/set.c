/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * set.c: changing a running engine: limits, policies, what is cached.
 *
 * 1. A change is made in a copy of the configuration, and judged there as a
 *    whole; only one that fits is applied, and applying cannot fail.
 * 2. Each module keeps what it reads in atomics of its own: outside the lock
 *    nobody reads engine.current.
 */
#include <errno.h>
#include <string.h>

#include "base/size.h"
#include "config-keys.h"
#include "engine-impl.h"

/* Not a key: rules for the store, which has them. */
static bool is_fault(const struct engine_setting *s)
{
	return !strcmp(s->key, "fault");
}

/* Give them to it, or see whether it would take them. */
static int set_faults(struct engine *e, const struct engine_setting *s,
	unsigned n, bool really, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++)
		if (is_fault(&s[i]))
			err = store_set_fault(
				e->placement->store, s[i].value, really, error);
	return err;
}

static int change(struct engine_config *c, const struct engine_setting *s,
	unsigned n, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < n && !err; i++) {
		if (is_fault(&s[i]))
			continue;
		err = config_check_live(s[i].key, s[i].value, error);
		if (!err)
			err = engine_config_set(c, s[i].key, s[i].value, error);
	}
	return err ? err : engine_config_check(c, error);
}

/* What the engine as it was built has no room for. */
static int check_room(const struct engine *e, const struct engine_config *c,
	struct error *error)
{
	uint64_t most = cache_budget_max(e->cache);
	char size[16], room[16];

	if (c->cache_size <= most)
		return 0;
	return error_set(error, -EINVAL,
		"cache-size=%s: more than %s, which is as far as it can grow "
		"while the store is open",
		size_format(c->cache_size, size), size_format(most, room));
}

static void apply(struct engine *e)
{
	const struct engine_config *c = &e->current;
	struct writeback_config writeback = {
		.dirty_background = c->dirty_background,
		.dirty_expire_ns = c->dirty_expire_ns,
		.error_timeout_ns = c->error_timeout_ns,
		.inflight = c->writeback_inflight,
	};
	struct throttle_config throttle = engine_throttle_config(c);

	atomic_store(&e->multipage, c->multipage);
	atomic_store(&e->detect_zeroes, c->detect_zeroes);
	cache_set_subpage(e->cache, c->subpage);
	writeback_set(e->writeback, &writeback);
	throttle_set(e->throttle, &throttle);
	cache_set_readahead(e->cache, c->readahead);
	if (!cache_set_budget(e->cache, c->cache_size))
		writeback_press(e->writeback);
}

/* Put a changed copy in place, if it fits. Lock held. */
static int put(struct engine *e, struct engine_config *c, bool really,
	struct error *error)
{
	int err = check_room(e, c, error);

	if (!err && really) {
		e->current = *c;
		apply(e);
	}
	return err;
}

static int refuse_closing(struct engine *e, struct error *error)
{
	if (!atomic_load(&e->closing))
		return 0;
	return error_set(error, -ESHUTDOWN, "store %s: is being closed",
		e->config.store);
}

static int set(struct engine *e, const struct engine_setting *s, unsigned n,
	bool really, struct error *error)
{
	SCOPED_LOCK(&e->lock);
	struct engine_config c = e->current;
	int err = refuse_closing(e, error);

	if (!err)
		err = change(&c, s, n, error);
	if (!err)
		err = set_faults(e, s, n, false, error);
	if (!err)
		err = put(e, &c, really, error);
	if (!err && really)
		set_faults(e, s, n, true, error);
	return err;
}

int engine_set(struct engine *e, const struct engine_setting *s, unsigned n,
	struct error *error)
{
	return set(e, s, n, true, error);
}

int engine_set_check(struct engine *e, const struct engine_setting *s,
	unsigned n, struct error *error)
{
	return set(e, s, n, false, error);
}

int engine_adopt(struct engine *e, const struct engine_config *from,
	const struct engine_config *to, bool really, struct error *error)
{
	SCOPED_LOCK(&e->lock);
	struct engine_config c = e->current;
	const struct key *k;
	int err = refuse_closing(e, error);

	for (unsigned i = 0; (k = config_key(i)); i++) {
		if (k->live && !config_same(k, from, to))
			config_copy(k, &c, to);
	}
	if (!err)
		err = engine_config_check(&c, error);
	return err ? err : put(e, &c, really, error);
}

uint64_t engine_drop(struct engine *e)
{
	return cache_drop_clean(e->cache);
}
