/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * store.c: from a spec to an open store.
 *
 * 1. An error names the innermost spec that failed, once.
 * 2. An inner store belongs to its wrapper as soon as that is open, and is
 *    closed here if it does not come to that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cleanup.h"
#include "kind.h"

static const struct store_kind *const store_kinds[] = {
	&store_kind_raw,
	&store_kind_mem,
	&store_kind_null,
	&store_kind_sim,
	&store_kind_stripe,
	&store_kind_fault,
	&store_kind_volatile,
	&store_kind_nbd,
	&store_kind_nbds,
	&store_kind_nbd_unix,
	&store_kind_nbds_unix,
	&store_kind_nbd_vsock,
	&store_kind_nbds_vsock,
	&store_kind_exec,
};

#define STORE_KINDS (sizeof store_kinds / sizeof store_kinds[0])

static int spec_error(const char *spec, int err, struct error *error)
{
	char what[200];
	size_t n = strlen(spec);

	/* A long spec is cut in the middle, so that both ends can be seen. */
	if (n < 180)
		snprintf(what, sizeof what, "store %s", spec);
	else
		snprintf(what, sizeof what, "store %.90s...%s", spec,
			&spec[n - 80]);
	return error_prefix(error, err, what);
}

/* The kind a spec names, and where the rest of it begins. */
static int store_find_kind(const char *spec, const struct store_kind **kind,
	const char **rest, struct error *error)
{
	size_t length = spec_kind_length(spec);

	*kind = &store_kind_raw;
	*rest = spec;
	if (!length)
		return 0;
	*rest = spec + length + 1;
	for (size_t i = 0; i < STORE_KINDS; i++) {
		*kind = store_kinds[i];
		if (strlen((*kind)->name) == length &&
			!strncmp((*kind)->name, spec, length))
			return 0;
	}
	if (!strncmp(spec, "pool:", 5))
		return error_set(error, -EINVAL,
			"a pool is no part of another store: it comes first, "
			"like pool:[stripe:64K,[raw:/a],[raw:/b]]");
	return error_set(error, -EINVAL,
		"unknown kind \"%.*s\" (for a file of that name write "
		"raw:%s)",
		(int)length, spec, spec);
}

/* Cut up the rest; the last part has to be an inner store. */
static int store_cut(const struct store_kind *kind,
	struct store_open_args *args, struct error *error)
{
	const char *last;
	int err;

	if (!*args->rest)
		return error_set(error, -EINVAL,
			"no inner store (such as %s:%s[mem:8G])", kind->name,
			kind->wraps == STORE_WRAPS_MANY ? "64K," : "");
	err = spec_split(args->rest, &args->parts, error);
	if (err)
		return err;
	last = args->parts.part[args->parts.count - 1];
	if (kind->wraps == STORE_WRAPS_MANY ? args->parts.count < 2
					    : kind->knows && kind->knows(last))
		return error_set(error, -EINVAL,
			"no inner store after \"%s\" (such as %s,[mem:8G]; a "
			"file of that name is raw:%s)",
			last, last, last);
	return 0;
}

/* The inner stores from part `first` on. */
static int store_open_members(
	struct store_open_args *args, unsigned first, struct error *error)
{
	char what[32];

	for (unsigned i = first; i < args->parts.count; i++) {
		int err = store_open_on(args->parts.part[i], args->flags,
			args->home, &args->member[args->members], error);

		if (err && args->parts.count - first > 1) {
			snprintf(what, sizeof what, "member %u",
				args->members + 1);
			return error_prefix(error, err, what);
		}
		if (err)
			return err;
		args->members++;
	}
	while (args->parts.count > first)
		free(args->parts.part[--args->parts.count]);
	return 0;
}

/* Cut up the rest and open what is a store of it. Errors come out with their
 * spec. */
static int store_open_inner(const struct store_kind *kind,
	struct store_open_args *args, const char *spec, struct error *error)
{
	int err = store_cut(kind, args, error);

	if (err)
		return spec_error(spec, err, error);
	return store_open_members(args,
		kind->wraps == STORE_WRAPS_MANY ? 1 : args->parts.count - 1,
		error);
}

static int store_open_kind(const struct store_kind *kind,
	struct store_open_args *args, const char *spec, struct store **out,
	struct error *error)
{
	char *copy = strdup(spec);
	int err;

	if (copy)
		err = kind->open(args, out, error);
	else
		err = error_set(error, -ENOMEM, "out of memory");
	if (err) {
		free(copy);
		return spec_error(spec, err, error);
	}
	(*out)->spec = copy;
	return 0;
}

int store_open(const char *spec, unsigned flags, struct store **out,
	struct error *error)
{
	return store_open_on(spec, flags, NULL, out, error);
}

int store_open_on(const char *spec, unsigned flags, struct reactor *home,
	struct store **out, struct error *error)
{
	struct store_open_args args = {
		.spec = spec,
		.flags = flags,
		.home = home,
	};
	const struct store_kind *kind;
	int err;

	*out = NULL;
	err = store_find_kind(spec, &kind, &args.rest, error);
	if (err)
		return spec_error(spec, err, error);
	if (kind->wraps)
		err = store_open_inner(kind, &args, spec, error);
	if (!err)
		err = store_open_kind(kind, &args, spec, out, error);
	while (err && args.members)
		store_close(args.member[--args.members]);
	spec_list_free(&args.parts);
	return err;
}

void store_rest(struct store *s)
{
	struct store *inner;

	if (s->ops->rest)
		s->ops->rest(s);
	for (unsigned i = 0; (inner = store_member(s, i)); i++)
		store_rest(inner);
}

void store_close(struct store *s)
{
	char *spec;

	if (!s)
		return;
	spec = s->spec;
	s->ops->close(s);
	free(spec);
}

static void io_posted(struct reactor_task *task)
{
	struct store_io *io = container_of(task, struct store_io, task);

	io->done(io);
}

void store_io_post(struct store_io *io, int error)
{
	io->error = error;
	io->task.fn = io_posted;
	reactor_post(io->reactor, &io->task);
}
