/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd.c: "nbd://...", "nbds://...", "nbd+unix://...": a store on another
 * server. See nbd.h.
 *
 * An io is handed to the home loop by its own task, and comes back the same
 * way: libnbd's handles are driven by one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nbd.h"

/* --- submit ---------------------------------------------------------------- */

static void remote_start(struct remote *r, struct store_io *io)
{
	struct remote_command *c;

	if (!r->attached)
		remote_attach(r);
	c = command_new(r, io);
	if (!c) {
		store_io_post(io, -ENOMEM);
		return;
	}
	command_begin(c);
	remote_settle(r, true);
}

static void remote_arrived(struct reactor_task *task)
{
	struct store_io *io = container_of(task, struct store_io, task);

	remote_start(io->priv, io);
}

static void blocking_run(struct reactor_work *work)
{
	command_block(container_of(work, struct remote_command, work));
}

static void blocking_done(struct reactor_work *work)
{
	struct remote_command *c =
		container_of(work, struct remote_command, work);
	struct store_io *io = c->io;
	int error = c->error;

	free(c);
	store_io_done(io, error);
}

/* On a simulated loop, which is how pools are opened and looked at. */
static void remote_block(struct remote *r, struct store_io *io)
{
	struct remote_command *c = command_new(r, io);

	if (!c) {
		store_io_post(io, -ENOMEM);
		return;
	}
	c->work.run = blocking_run;
	c->work.done = blocking_done;
	reactor_work(io->reactor, &c->work);
}

static void remote_submit(struct store *s, struct store_io *io)
{
	struct remote *r = remote_of(s);
	struct reactor *home = NULL;

	if (store_io_modifies(io) && s->info.readonly) {
		store_io_post(io, -EROFS);
	} else if (!reactor_ev_loop(io->reactor)) {
		remote_block(r, io);
	} else {
		/* The first loop that needs it, if none was named. */
		if (atomic_compare_exchange_strong(
			    &r->home, &home, io->reactor))
			home = io->reactor;
		io->priv = r;
		io->task.fn = remote_arrived;
		if (home == io->reactor)
			remote_start(r, io);
		else
			reactor_post(home, &io->task);
	}
}

/* --- open and close -------------------------------------------------------- */

static void remote_close(struct store *s)
{
	struct remote *r = remote_of(s);

	remote_detach(r);
	exec_stop(r);
	target_free(&r->target);
	free(r);
}

static void remote_rest(struct store *s)
{
	remote_leave(remote_of(s));
}

static const struct store_ops remote_ops = {
	.kind = "nbd",
	.submit = remote_submit,
	.close = remote_close,
	.rest = remote_rest,
};

static int check_caps(const struct remote *r, const struct remote_caps *c,
	struct error *error)
{
	bool readonly = r->target.flags & STORE_OPEN_READONLY;

	if (!c->size)
		return error_set(error, -EINVAL, "it is empty");
	if (c->readonly && !readonly)
		return error_set(error, -EROFS,
			"the server exports it read only (readonly=yes asks "
			"for no more)");
	if (c->min & (c->min - 1))
		return error_set(error, -EINVAL,
			"its smallest block of %u bytes is no power of two",
			c->min);
	if (!c->flush && !readonly)
		log_warning("store %s: the server has no flush: what it has "
			    "answered is taken to be durable",
			r->target.name);
	return 0;
}

static void set_info(struct remote *r)
{
	const struct remote_caps *c = &r->caps;

	r->base.info = (struct store_info){
		.size = c->size,
		.align = c->min,
		.mem_align = 1,
		.max_io = c->most,
		.can_trim = c->trim,
		.can_zero = c->zero && c->fast_zero,
		.can_fua = c->fua,
		.direct = true,
		.forgets = true,
		.readonly = r->target.flags & STORE_OPEN_READONLY,
	};
}

static struct remote *remote_new(
	struct remote_target *target, struct reactor *home)
{
	struct remote *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->base.ops = &remote_ops;
	r->target = *target;
	target_init(target);
	r->child.errors = -1;
	atomic_init(&r->home, home);
	list_init(&r->under_way);
	list_init(&r->waiting);
	list_init(&r->finished);
	return r;
}

/* Takes the target over. */
static int open_target(struct remote_target *target, struct reactor *home,
	struct store **out, struct error *error)
{
	struct remote *r = remote_new(target, home);
	struct remote_link link;
	atomic_bool never = false;
	int err;

	if (!r)
		return error_set(error, -ENOMEM, "out of memory");
	err = link_open(r, &never, &link, error);
	if (!err)
		err = check_caps(r, &link.caps, error);
	if (err) {
		link_close(&link);
		remote_close(&r->base);
		return err;
	}
	remote_adopt(r, &link);
	set_info(r);
	*out = &r->base;
	return 0;
}

int remote_open(const struct store_open_args *args, target_parse_fn *parse,
	struct store **out, struct error *error)
{
	struct remote_target target;
	int err;

	target_init(&target);
	target.flags = args->flags;
	err = parse(args, &target, error);
	if (!err)
		err = open_target(&target, args->home, out, error);
	target_free(&target);
	return err;
}

static int nbd_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	return remote_open(args, target_parse_uri, out, error);
}

const struct store_kind store_kind_nbd = {.name = "nbd", .open = nbd_open};
const struct store_kind store_kind_nbds = {.name = "nbds", .open = nbd_open};
const struct store_kind store_kind_nbd_unix = {
	.name = "nbd+unix", .open = nbd_open};
const struct store_kind store_kind_nbds_unix = {
	.name = "nbds+unix", .open = nbd_open};
const struct store_kind store_kind_nbd_vsock = {
	.name = "nbd+vsock", .open = nbd_open};
const struct store_kind store_kind_nbds_vsock = {
	.name = "nbds+vsock", .open = nbd_open};
