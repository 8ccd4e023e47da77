/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-send.c: a command in pieces that the server takes.
 *
 * A piece is no longer than the server takes, and ends at its preferred block
 * size. What cannot be asked for is done another way: zeroes are written, the
 * durable write is a write and a flush. libnbd calls piece_done() inside any of
 * its calls; what is done there is only counted, and looked at by
 * remote_settle().
 */
#include <errno.h>
#include <string.h>

#include "nbd.h"

#define PIECE_LONG (1U << 30) /* bytes; of what carries no data */
#define PIECE_ZEROES (1U << 20)

static const char zeroes[PIECE_ZEROES];

/* --- what it is ------------------------------------------------------------ */

/* Is it to be durable when it is answered? */
static bool is_durable(const struct store_io *io)
{
	return io->op == STORE_ZERO ||
		(store_io_modifies(io) && io->flags & STORE_FUA);
}

/* Does that take a flush of its own? */
static bool needs_flush(const struct remote_command *c)
{
	const struct remote_caps *caps = &c->remote->caps;

	return is_durable(c->io) && !caps->fua && caps->flush;
}

static uint32_t fua_flag(const struct remote_command *c)
{
	return is_durable(c->io) && c->remote->caps.fua ? LIBNBD_CMD_FLAG_FUA
							: 0;
}

/* --- pieces ---------------------------------------------------------------- */

void command_move(struct remote_command *c, struct list *to)
{
	list_remove(&c->link);
	list_push_tail(to, &c->link);
}

/* What an answered write adds to what may be lost, and a flush takes off. */
static void account(struct remote_command *c)
{
	struct remote *r = c->remote;

	if (c->error)
		return;
	if (c->flushing || (c->io->op == STORE_FLUSH && r->caps.flush))
		r->durable = c->covers > r->durable ? c->covers : r->durable;
	else if (store_io_modifies(c->io) &&
		!(is_durable(c->io) && r->caps.fua))
		r->written++; /* with a flush of its own: that comes later */
}

static void piece_put(struct remote_command *c)
{
	if (--c->pieces)
		return;
	c->complete = c->error || c->flushing || !needs_flush(c);
	account(c);
	command_move(c, &c->remote->finished);
}

static int piece_done(void *user, int *error)
{
	struct remote_command *c = user;

	/* It died, or is about to: what was asked will be asked again. */
	if (*error == ENOTCONN || *error == ESHUTDOWN) {
		c->remote->broken = true;
		return 1;
	}
	if (*error && !c->error)
		c->error = -*error;
	piece_put(c);
	return 1;
}

static nbd_completion_callback completion(struct remote_command *c)
{
	c->pieces++;
	return (nbd_completion_callback){
		.callback = piece_done, .user_data = c};
}

/* libnbd refused a piece, and calls nobody. */
static void piece_sent(
	struct remote_command *c, struct nbd_handle *nbd, int64_t cookie)
{
	if (cookie >= 0)
		return;
	/* Of a dead connection it stays under way, as those that went. */
	if (nbd_aio_is_ready(nbd) <= 0 && nbd_aio_is_processing(nbd) <= 0) {
		c->remote->broken = true;
		return;
	}
	if (!c->error)
		c->error = nbd_get_errno() ? -nbd_get_errno() : -EIO;
	c->pieces--;
}

static struct nbd_handle *next_handle(struct remote_command *c)
{
	struct remote *r = c->remote;

	if (c->blocking)
		return r->conn[0].nbd;
	return r->conn[r->turn++ % r->nconn].nbd;
}

/* --- reads and writes ------------------------------------------------------ */

static char *data_of(const struct remote_command *c)
{
	return c->flat ? c->flat : c->io->iov[0].iov_base;
}

/* Where the piece from `at` on ends. */
static uint64_t piece_end(
	const struct remote_command *c, uint64_t at, uint32_t most)
{
	uint64_t end = c->io->offset + c->io->length, cut = at + most;
	uint32_t preferred = c->remote->caps.preferred;

	if (cut >= end)
		return end;
	if (preferred <= most / 2)
		cut -= cut % preferred;
	return cut > at ? cut : at + most;
}

static void send_data(struct remote_command *c)
{
	struct store_io *io = c->io;
	uint64_t end = io->offset + io->length, next;
	uint32_t flags = fua_flag(c);

	for (uint64_t at = io->offset; at < end; at = next) {
		struct nbd_handle *nbd = next_handle(c);
		char *data = data_of(c) + (at - io->offset);

		next = piece_end(c, at, c->remote->caps.most);
		if (io->op == STORE_READ)
			piece_sent(c, nbd,
				nbd_aio_pread(nbd, data, next - at, at,
					completion(c), 0));
		else
			piece_sent(c, nbd,
				nbd_aio_pwrite(nbd, data, next - at, at,
					completion(c), flags));
	}
}

/* --- zeroes and trims ------------------------------------------------------ */

static void send_zeroes(struct remote_command *c)
{
	const struct remote_caps *caps = &c->remote->caps;
	uint64_t end = c->io->offset + c->io->length, next;
	uint32_t most = caps->most < PIECE_ZEROES ? caps->most : PIECE_ZEROES;

	for (uint64_t at = c->io->offset; at < end; at = next) {
		struct nbd_handle *nbd = next_handle(c);

		next = piece_end(c, at, most);
		piece_sent(c, nbd,
			nbd_aio_pwrite(nbd, zeroes, next - at, at,
				completion(c), fua_flag(c)));
	}
}

static uint32_t zero_flags(const struct remote_command *c)
{
	uint32_t flags = fua_flag(c);

	if (c->io->flags & STORE_NO_HOLE)
		flags |= LIBNBD_CMD_FLAG_NO_HOLE;
	if (c->io->flags & STORE_FAST)
		flags |= LIBNBD_CMD_FLAG_FAST_ZERO;
	return flags;
}

static void send_long(struct remote_command *c)
{
	uint64_t end = c->io->offset + c->io->length, next;

	for (uint64_t at = c->io->offset; at < end; at = next) {
		struct nbd_handle *nbd = next_handle(c);

		next = piece_end(c, at, PIECE_LONG);
		if (c->io->op == STORE_TRIM)
			piece_sent(c, nbd,
				nbd_aio_trim(nbd, next - at, at, completion(c),
					fua_flag(c)));
		else
			piece_sent(c, nbd,
				nbd_aio_zero(nbd, next - at, at, completion(c),
					zero_flags(c)));
	}
}

static void send_zero(struct remote_command *c)
{
	const struct remote_caps *caps = &c->remote->caps;

	if (c->io->flags & STORE_FAST && !(caps->zero && caps->fast_zero))
		c->error = -ENOTSUP;
	else if (caps->zero)
		send_long(c);
	else
		send_zeroes(c);
}

/* --- status ---------------------------------------------------------------- */

static int add_extents(void *user, const char *context, uint64_t offset,
	uint32_t *entries, size_t n, int *error)
{
	struct remote_command *c = user;
	struct store_io *io = c->io;

	(void)offset;
	(void)error;
	if (strcmp(context, LIBNBD_CONTEXT_BASE_ALLOCATION))
		return 0;
	for (size_t i = 0; i + 1 < n && c->extents < io->nextents; i += 2)
		io->extents[c->extents++] = (struct store_extent){
			.length = entries[i],
			.flags =
				(entries[i + 1] & LIBNBD_STATE_HOLE ? STORE_HOLE
								    : 0) |
				(entries[i + 1] & LIBNBD_STATE_ZERO
						? STORE_ZEROES
						: 0),
		};
	return 0;
}

static void send_status(struct remote_command *c)
{
	struct nbd_handle *nbd = next_handle(c);
	nbd_extent_callback extents = {.callback = add_extents, .user_data = c};

	c->extents = 0;
	if (c->remote->caps.status)
		piece_sent(c, nbd,
			nbd_aio_block_status(nbd,
				piece_end(c, c->io->offset, PIECE_LONG) -
					c->io->offset,
				c->io->offset, extents, completion(c), 0));
}

/* What the server said reaches no further than we asked. */
void command_end_status(struct remote_command *c)
{
	struct store_io *io = c->io;
	uint64_t left = io->length;
	int n = 0;

	for (; n < c->extents && left; n++) {
		if (io->extents[n].length > left)
			io->extents[n].length = left;
		left -= io->extents[n].length;
	}
	if (!n)
		io->extents[n++] = (struct store_extent){.length = io->length};
	io->nextents = n;
}

/* --- flush ----------------------------------------------------------------- */

static void send_flush(struct remote_command *c)
{
	struct nbd_handle *nbd = next_handle(c);

	c->covers = c->remote->written;
	if (c->stale)
		c->error = -ESTALE;
	else if (c->remote->caps.flush)
		piece_sent(c, nbd, nbd_aio_flush(nbd, completion(c), 0));
}

/* --- the whole ------------------------------------------------------------- */

void command_send(struct remote_command *c)
{
	c->error = 0;
	c->complete = c->flushing = false;
	c->pieces = 1; /* until all are sent */
	command_move(c, &c->remote->under_way);
	switch (c->io->op) {
	case STORE_READ:
	case STORE_WRITE:
		send_data(c);
		break;
	case STORE_FLUSH:
		send_flush(c);
		break;
	case STORE_TRIM:
		if (c->remote->caps.trim)
			send_long(c);
		break;
	case STORE_ZERO:
		send_zero(c);
		break;
	case STORE_STATUS:
		send_status(c);
		break;
	}
	piece_put(c);
}

/* The data is there: now the flush that makes it durable. */
void command_flush(struct remote_command *c)
{
	c->flushing = true;
	c->pieces = 1;
	command_move(c, &c->remote->under_way);
	send_flush(c);
	piece_put(c);
}
