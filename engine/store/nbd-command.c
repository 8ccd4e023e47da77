/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-command.c: the way of one io.
 *
 *   waiting --> under way (pieces) --> finished --> ended
 *      ^            |    ^                |
 *      +--- lost ---+    +-- the flush ---+   of FUA, where there is none
 *
 * libnbd takes memory in one piece: what is scattered is gathered first.
 */
#include <errno.h>
#include <stdlib.h>

#include "../base/iov.h"
#include "nbd.h"

struct remote_command *command_new(struct remote *r, struct store_io *io)
{
	struct remote_command *c = calloc(1, sizeof *c);
	struct iov_cursor cursor = {.iov = io->iov};
	bool data = io->op == STORE_READ || io->op == STORE_WRITE;

	if (!c)
		return NULL;
	list_init(&c->link);
	c->remote = r;
	c->io = io;
	c->stale = r->stale;
	c->loss = r->loss;
	if (!data || io->niov == 1)
		return c;
	c->flat = malloc(io->length);
	if (!c->flat) {
		free(c);
		return NULL;
	}
	if (io->op == STORE_WRITE)
		iov_gather(c->flat, &cursor, io->length);
	return c;
}

/* --- its beginning --------------------------------------------------------- */

/* An answer that needs no server; 0: there is none. */
static int answer_without(struct remote_command *c)
{
	struct remote *r = c->remote;

	if (c->io->op == STORE_FLUSH && c->stale)
		return -ESTALE;
	if (r->state != REMOTE_UP && (r->expired || c->blocking))
		/* What is not lost yet is not lost by this. */
		return c->io->op == STORE_FLUSH ? -EAGAIN : -EIO;
	return 0;
}

static void command_fail(struct remote_command *c, int error)
{
	c->error = error;
	c->complete = true;
	command_move(c, &c->remote->finished);
}

void command_begin(struct remote_command *c)
{
	int err = answer_without(c);

	if (err)
		command_fail(c, err);
	else if (c->remote->state == REMOTE_UP && !c->remote->broken)
		command_send(c);
	else
		command_move(c, &c->remote->waiting);
}

/* --- the end --------------------------------------------------------------- */

/* Who submits from now on has been told, by this one's answer. */
static void told_stale(struct remote_command *c)
{
	if (c->loss == c->remote->loss)
		c->remote->stale = false;
}

static void command_end(struct remote_command *c, bool inside)
{
	struct store_io *io = c->io;
	struct iov_cursor cursor = {.iov = io->iov};
	int error = c->error;

	if (error == -ESTALE)
		told_stale(c);
	else if (!error && c->remote->attached)
		remote_proven(c->remote);
	if (!error && io->op == STORE_READ && c->flat)
		iov_scatter(&cursor, c->flat, io->length);
	if (!error && io->op == STORE_STATUS)
		command_end_status(c);
	free(c->flat);
	if (c->blocking) {
		c->over = true;
		return;
	}
	free(c);
	if (inside || !reactor_is_current(io->reactor))
		store_io_post(io, error);
	else
		store_io_done(io, error);
}

void commands_finish(struct remote *r, bool inside)
{
	struct list *at;

	while ((at = list_pop_head(&r->finished))) {
		struct remote_command *c =
			list_entry(at, struct remote_command, link);

		if (c->complete)
			command_end(c, inside);
		else if (r->broken)
			list_push_tail(&r->under_way, &c->link);
		else
			command_flush(c);
	}
}

/* --- without a server ------------------------------------------------------ */

/* Answered and not flushed: the next server may know nothing of it. */
static void note_loss(struct remote *r, struct list *commands)
{
	if (r->written == r->durable)
		return;
	r->durable = r->written;
	r->stale = true;
	r->loss++;
	list_for_each (at, commands) {
		struct remote_command *c =
			list_entry(at, struct remote_command, link);

		c->stale = true;
		c->loss = r->loss;
	}
}

void commands_lost(struct remote *r)
{
	struct list all = LIST_INIT(all), *at;

	list_splice_tail(&all, &r->under_way);
	list_splice_tail(&all, &r->waiting);
	note_loss(r, &all);
	while ((at = list_pop_head(&all)))
		command_begin(list_entry(at, struct remote_command, link));
}

void commands_restart(struct remote *r)
{
	struct list all = LIST_INIT(all), *at;

	list_splice_tail(&all, &r->waiting);
	while ((at = list_pop_head(&all)))
		command_begin(list_entry(at, struct remote_command, link));
}

void commands_expire(struct remote *r)
{
	commands_restart(r);
	commands_finish(r, false);
}

/* --- a simulated loop ------------------------------------------------------ */

void command_block(struct remote_command *c)
{
	struct remote *r = c->remote;

	c->blocking = true;
	command_begin(c);
	remote_settle(r, false);
	while (!c->over) {
		if (nbd_poll(r->conn[0].nbd, -1) < 0)
			r->broken = true;
		remote_settle(r, false);
	}
}
