/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kind.h: what the kinds of store share; for files of this folder only.
 *
 * store_open() cuts "kind:rest" off the spec, opens the inner stores of a
 * kind that wraps some, and calls the kind's open. Error text of a kind does
 * not name the spec: store_open() puts it in front.
 */
#ifndef WEIR_STORE_KIND_H
#define WEIR_STORE_KIND_H

#include <stddef.h>

#include "spec.h"
#include "store.h"

enum store_wraps {
	STORE_WRAPS_NONE,
	STORE_WRAPS_ONE,  /* its last part is a store */
	STORE_WRAPS_MANY, /* all of its parts but the first are */
};

struct store_open_args {
	const char *spec;       /* all of it */
	const char *rest;       /* what follows "kind:" */
	struct spec_list parts; /* `wraps`: rest but the inner specs, cut up */
	unsigned flags;         /* STORE_OPEN_* */
	struct reactor *home;   /* store_open_on(); may be NULL */
	/* `wraps`: the new store's, if open succeeds. */
	unsigned members;
	struct store *member[SPEC_MAX_PARTS];
};

struct store_kind {
	const char *name;
	enum store_wraps wraps;
	/* `wraps`, may be NULL: is it an option and not an inner spec? */
	bool (*knows)(const char *part);
	int (*open)(const struct store_open_args *args, struct store **out,
		struct error *error);
};

extern const struct store_kind store_kind_exec;
extern const struct store_kind store_kind_fault;
extern const struct store_kind store_kind_mem;
extern const struct store_kind store_kind_nbd;
extern const struct store_kind store_kind_nbd_unix;
extern const struct store_kind store_kind_nbd_vsock;
extern const struct store_kind store_kind_nbds;
extern const struct store_kind store_kind_nbds_unix;
extern const struct store_kind store_kind_nbds_vsock;
extern const struct store_kind store_kind_null;
extern const struct store_kind store_kind_raw;
extern const struct store_kind store_kind_sim;
extern const struct store_kind store_kind_stripe;
extern const struct store_kind store_kind_volatile;

#define STORE_MAX_IO (32U << 20) /* bytes: no request is longer */

/* Of a store of `size` bytes that can do everything, at any address. */
static inline struct store_info store_info_able(uint64_t size, unsigned flags)
{
	return (struct store_info){
		.size = size,
		.align = 1,
		.mem_align = 1,
		.max_io = STORE_MAX_IO,
		.can_trim = true,
		.can_zero = true,
		.can_fua = true,
		.direct = true,
		.readonly = flags & STORE_OPEN_READONLY,
	};
}

/* Complete an io that is done already, from inside submit: `done` is called
 * from a task on its loop. */
void store_io_post(struct store_io *io, int error);

/* Complete an io from a callback on its loop. */
static inline void store_io_done(struct store_io *io, int error)
{
	io->error = error;
	io->done(io);
}

/* Does it change the store? */
static inline bool store_io_modifies(const struct store_io *io)
{
	return io->op == STORE_WRITE || io->op == STORE_TRIM ||
		io->op == STORE_ZERO;
}

#endif
