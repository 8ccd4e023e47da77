/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info-store.c: `weir info --store`: what a store is, without serving it.
 *
 * It is opened for reading, so that it may be in use by other readers, and
 * closed again. What it has inside is described the same way.
 */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "client.h"
#include "info.h"
#include "placement/placement.h"

static json_t *gather(const char *kind, const char *spec,
	const struct store_info *i, struct store *inner_of)
{
	json_t *store = json_pack("{s:s s:s s:I s:I s:I s:I s:b s:b s:b s:b}",
		"kind", kind, "spec", spec, "size_bytes", (json_int_t)i->size,
		"align_bytes", (json_int_t)i->align, "memory_align_bytes",
		(json_int_t)i->mem_align, "max_request_bytes",
		(json_int_t)i->max_io, "trim", i->can_trim, "zero", i->can_zero,
		"fua", i->can_fua, "direct", i->direct);
	json_t *inner = json_array();
	struct store *s;

	for (unsigned n = 0; inner_of && (s = store_member(inner_of, n)); n++)
		json_array_append_new(
			inner, gather(s->ops->kind, s->spec, &s->info, s));
	json_object_set_new(store, "inner", inner);
	return store;
}

static json_t *describe(const struct placement *p, const char *spec)
{
	struct store *s = p->store;
	json_t *inner = gather(s->ops->kind, s->spec, &s->info, s), *pool;

	if (strcmp(p->ops->kind, "pool"))
		return inner;
	pool = gather("pool", spec, &p->info, NULL);
	json_array_append_new(json_object_get(pool, "inner"), inner);
	return pool;
}

static void print(const json_t *store, int depth)
{
	static const char *const can[] = {"trim", "zero", "fua", "direct"};
	uint64_t size = (uint64_t)json_integer_value(
		json_object_get(store, "size_bytes"));
	const json_t *inner;
	char text[16];
	size_t n;

	printf("%*s%s: %s (%llu bytes), align %lld, can", 2 * depth, "",
		json_string_value(json_object_get(store, "spec")),
		size_format(size, text), (unsigned long long)size,
		(long long)json_integer_value(
			json_object_get(store, "align_bytes")));
	for (size_t k = 0; k < sizeof(can) / sizeof(can[0]); k++)
		if (json_is_true(json_object_get(store, can[k])))
			printf(" %s", can[k]);
	puts("");
	json_array_foreach(json_object_get(store, "inner"), n, inner)
		print(inner, depth + 1);
}

static void quiet(void *arg)
{
	*(bool *)arg = true;
}

/* Let what it began by itself end, and close it. */
static void close_all(struct placement *p, struct reactor *home)
{
	bool done = false;

	placement_quiesce(p, quiet, &done);
	while (!done && reactor_sim_step(home))
		;
	placement_close(p);
	reactor_free(home);
}

int info_store(const char *command, const char *spec, bool json)
{
	struct placement_config config = {
		.spec = spec,
		.flags = STORE_OPEN_READONLY,
		.home = reactor_sim_new(1),
	};
	struct error error = {0};
	struct placement *p;
	json_t *store;

	if (!config.home)
		return client_error(EXIT_IO, command, "out of memory");
	if (placement_open(&config, &p, &error)) {
		reactor_free(config.home);
		return client_error(EXIT_USAGE, command, "%s", error.text);
	}
	store = describe(p, spec);
	close_all(p, config.home);
	if (json)
		return client_print_json(command, store);
	print(store, 0);
	json_decref(store);
	return EXIT_OK;
}
