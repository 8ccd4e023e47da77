/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stripe.c: opening and closing a stripe; see stripe.h. What it does is in
 * stripe-io.c.
 *
 * 1. It addresses memory and members as the pickiest of them wants. Memory is
 *    cut at chunks, so a cut is aligned if `align` is no less than
 *    `mem_align`: where a member wants it otherwise `align` is raised.
 * 2. A request of `max_io` is none longer than a member takes, of any.
 */
#include <errno.h>
#include <stdlib.h>

#include "../base/size.h"
#include "stripe-impl.h"

static void stripe_close(struct store *store)
{
	struct stripe *s = container_of(store, struct stripe, base);

	for (unsigned i = 0; i < s->members; i++)
		store_close(s->member[i]);
	free(s);
}

static struct store *stripe_member(struct store *store, unsigned i)
{
	struct stripe *s = container_of(store, struct stripe, base);

	return i < s->members ? s->member[i] : NULL;
}

static const struct store_ops stripe_ops = {
	.kind = "stripe",
	.submit = stripe_submit,
	.close = stripe_close,
	.member = stripe_member,
};

/* --- what it can do ------------------------------------------------------- */

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void info_add(struct store_info *info, const struct store_info *member)
{
	if (member->size < info->size)
		info->size = member->size;
	info->align = larger(info->align, member->align);
	info->mem_align = larger(info->mem_align, member->mem_align);
	if (member->max_io < info->max_io)
		info->max_io = member->max_io;
	info->can_trim &= member->can_trim;
	info->can_zero &= member->can_zero;
	info->can_fua &= member->can_fua;
	info->direct &= member->direct;
	info->readonly |= member->readonly;
	info->forgets |= member->forgets;
}

/* From what the members can to what the stripe can. */
static void info_end(struct store_info *info, const struct stripe *s)
{
	info->size = info->size / s->chunk * s->chunk * s->members;
	info->align = larger(info->align, info->mem_align);
	info->chunk = s->chunk;
	info->members = s->members;
}

static int stripe_fits(const struct stripe *s, unsigned i, struct error *error)
{
	const struct store *m = s->member[i];
	char chunk[16];

	size_format(s->chunk, chunk);
	if (m->info.size < s->chunk)
		return error_set(error, -EINVAL,
			"member %u, %s, is smaller than a chunk of %s", i + 1,
			m->spec, chunk);
	if (m->info.align > s->chunk)
		return error_set(error, -EINVAL,
			"member %u, %s, can address no less than %u bytes, "
			"more than a chunk of %s",
			i + 1, m->spec, m->info.align, chunk);
	return 0;
}

static int stripe_join(struct stripe *s, struct error *error)
{
	struct store_info *info = &s->base.info;

	*info = store_info_able(UINT64_MAX, 0); /* each member takes from it */
	for (unsigned i = 0; i < s->members; i++) {
		int err = stripe_fits(s, i, error);

		if (err)
			return err;
		info_add(info, &s->member[i]->info);
	}
	if (info->size / s->chunk > UINT64_MAX / 2 / s->chunk / s->members)
		return error_set(error, -EINVAL, "too large all together");
	info_end(info, s);
	return 0;
}

/* --- open ----------------------------------------------------------------- */

static int chunk_parse(const char *text, uint64_t *chunk, struct error *error)
{
	if (size_parse(text, chunk) || *chunk < STRIPE_CHUNK_MIN ||
		*chunk > STRIPE_CHUNK_MAX || (*chunk & (*chunk - 1)))
		return error_set(error, -EINVAL,
			"bad chunk \"%s\": a power of two from 4K to 1G, and "
			"then the members, like stripe:64K,[raw:/a],[raw:/b]",
			text);
	return 0;
}

static int stripe_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	struct stripe *s = calloc(1, sizeof *s);
	int err;

	if (!s)
		return error_set(error, -ENOMEM, "out of memory");
	if (args->members > STRIPE_MAX) {
		free(s);
		return error_set(
			error, -EINVAL, "more than %u members", STRIPE_MAX);
	}
	s->base.ops = &stripe_ops;
	s->members = args->members;
	for (unsigned i = 0; i < s->members; i++)
		s->member[i] = args->member[i];
	err = chunk_parse(args->parts.part[0], &s->chunk, error);
	if (!err)
		err = stripe_join(s, error);
	if (err) {
		free(s); /* the members are closed by who opened them */
		return err;
	}
	*out = &s->base;
	return 0;
}

const struct store_kind store_kind_stripe = {
	.name = "stripe",
	.wraps = STORE_WRAPS_MANY,
	.open = stripe_open,
};
