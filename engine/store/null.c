/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * null.c: "null:SIZE", a store that keeps nothing: writes vanish, reads are
 * zeroes. It measures what everything above it costs. Any loops at once.
 */
#include <errno.h>
#include <stdlib.h>

#include "../base/iov.h"
#include "../base/size.h"
#include "kind.h"

static void null_submit(struct store *s, struct store_io *io)
{
	struct iov_cursor c = {.iov = io->iov};
	int error = 0;

	if (store_io_modifies(io) && s->info.readonly) {
		error = -EROFS;
	} else if (io->op == STORE_READ) {
		iov_zero(&c, io->length);
	} else if (io->op == STORE_STATUS) {
		io->extents[0] = (struct store_extent){
			.length = io->length,
			.flags = STORE_HOLE | STORE_ZEROES,
		};
		io->nextents = 1;
	}
	store_io_post(io, error);
}

static void null_close(struct store *s)
{
	free(s);
}

static const struct store_ops null_ops = {
	.kind = "null",
	.submit = null_submit,
	.close = null_close,
};

static int null_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	struct store *s;
	uint64_t size;

	if (size_parse(args->rest, &size) || !size || size > INT64_MAX)
		return error_set(error, -EINVAL,
			"bad size \"%s\" (such as 512M)", args->rest);
	s = calloc(1, sizeof *s);
	if (!s)
		return error_set(error, -ENOMEM, "out of memory");
	s->ops = &null_ops;
	s->info = store_info_able(size, args->flags);
	*out = s;
	return 0;
}

const struct store_kind store_kind_null = {.name = "null", .open = null_open};
