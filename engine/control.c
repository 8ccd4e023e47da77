/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c: the control socket; control.h says what it speaks.
 *
 * 1. Everything here runs on the one loop, and nothing blocks.
 * 2. A client is read only when its last answer has gone: it costs a line and
 *    an answer, however fast it asks.
 * 3. What is said is control-answer.c's business.
 */
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/usock.h"
#include "control-impl.h"

#define CONTROL_CLIENTS 16U
#define CONTROL_LINE 4096U
#define CONTROL_MODE 0600
#define CONTROL_RETRY_NS (200 * NSEC_PER_MSEC)

struct control {
	struct usock listener;
	struct reactor *reactor;
	struct ev_loop *loop;
	ev_io accept;
	struct reactor_timer retry; /* when there was no descriptor left */
	struct list clients;
	unsigned nclients;
	struct control_config config; /* the arrays are owned */
};

struct control_client {
	struct control *ctl;
	struct list link;
	int fd;
	ev_io rd, wr;
	char *out; /* owned; the answer that is being sent */
	size_t nout, sent;
	size_t nin;
	char in[CONTROL_LINE];
};

/* --- a client ------------------------------------------------------------- */

static void client_free(struct control_client *cl)
{
	struct control *ctl = cl->ctl;

	ev_io_stop(ctl->loop, &cl->rd);
	ev_io_stop(ctl->loop, &cl->wr);
	close(cl->fd);
	list_remove(&cl->link);
	free(cl->out);
	free(cl);
	if (ctl->nclients-- == CONTROL_CLIENTS)
		ev_io_start(ctl->loop, &ctl->accept);
}

/* Send; 0 when all has gone, -EAGAIN, or another negative errno. */
static int client_send(struct control_client *cl)
{
	while (cl->out && cl->sent < cl->nout) {
		ssize_t n = send(cl->fd, cl->out + cl->sent,
			cl->nout - cl->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		cl->sent += (size_t)n;
	}
	free(cl->out);
	cl->out = NULL;
	return 0;
}

/* Answer the first line if it is whole. 0: there is none; 1: answered. */
static int client_take_line(struct control_client *cl)
{
	char *end = memchr(cl->in, '\n', cl->nin);
	size_t n;

	if (!end)
		return cl->nin == sizeof(cl->in) ? -EMSGSIZE : 0;
	*end = '\0';
	n = (size_t)(end + 1 - cl->in);
	cl->out = control_answer(&cl->ctl->config, cl->in);
	if (!cl->out)
		return -ENOMEM;
	cl->nout = strlen(cl->out);
	/* The line ends where the text's NUL was. */
	cl->out[cl->nout++] = '\n';
	cl->sent = 0;
	cl->nin -= n;
	memmove(cl->in, cl->in + n, cl->nin);
	return 1;
}

/* Send and answer as far as it goes; a client in error is freed. */
static void client_run(struct control_client *cl)
{
	struct ev_loop *loop = cl->ctl->loop;
	int r;

	do {
		r = client_send(cl);
		if (!r)
			r = client_take_line(cl);
	} while (r > 0);
	if (r == -EAGAIN) {
		ev_io_stop(loop, &cl->rd);
		ev_io_start(loop, &cl->wr);
	} else if (r) {
		client_free(cl);
	} else {
		ev_io_stop(loop, &cl->wr);
		ev_io_start(loop, &cl->rd);
	}
}

static void client_readable(struct ev_loop *loop, ev_io *io, int events)
{
	struct control_client *cl = container_of(io, struct control_client, rd);
	ssize_t n = recv(cl->fd, cl->in + cl->nin, sizeof(cl->in) - cl->nin,
		MSG_DONTWAIT);

	(void)loop;
	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_free(cl);
		return;
	}
	cl->nin += (size_t)n;
	client_run(cl);
}

static void client_writable(struct ev_loop *loop, ev_io *io, int events)
{
	(void)loop;
	(void)events;
	client_run(container_of(io, struct control_client, wr));
}

static void client_new(struct control *ctl, int fd)
{
	struct control_client *cl = calloc(1, sizeof(*cl));

	if (!cl) {
		close(fd);
		return;
	}
	cl->ctl = ctl;
	cl->fd = fd;
	ev_io_init(&cl->rd, client_readable, fd, EV_READ);
	ev_io_init(&cl->wr, client_writable, fd, EV_WRITE);
	list_push_tail(&ctl->clients, &cl->link);
	ev_io_start(ctl->loop, &cl->rd);
	/* The others wait in the backlog. */
	if (++ctl->nclients == CONTROL_CLIENTS)
		ev_io_stop(ctl->loop, &ctl->accept);
}

/* --- the socket ----------------------------------------------------------- */

static void control_retry(struct reactor_timer *timer)
{
	struct control *ctl = container_of(timer, struct control, retry);

	if (ctl->nclients < CONTROL_CLIENTS)
		ev_io_start(ctl->loop, &ctl->accept);
}

static void control_accept(struct ev_loop *loop, ev_io *io, int events)
{
	struct control *ctl = container_of(io, struct control, accept);
	int fd = accept4(
		ctl->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd >= 0) {
		client_new(ctl, fd);
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		errno == ENOMEM) {
		/* The client stays in the backlog: do not spin on it. */
		ev_io_stop(loop, io);
		reactor_timer_arm(ctl->reactor, &ctl->retry, CONTROL_RETRY_NS);
	}
}

static void *copy(const void *from, size_t n, size_t size)
{
	void *to = calloc(n ? n : 1, size);

	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

int control_open(struct control **out, const struct control_config *config,
	struct error *error)
{
	struct control *ctl = calloc(1, sizeof(*ctl));
	int r = -ENOMEM;

	if (!ctl)
		return error_set(error, -ENOMEM, "no memory");
	list_init(&ctl->clients);
	ctl->listener.fd = -1;
	ctl->config = *config;
	ctl->config.stores =
		copy(config->stores, config->nstores, sizeof(*config->stores));
	ctl->config.sections = copy(
		config->sections, config->nsections, sizeof(*config->sections));
	if (!ctl->config.stores || !ctl->config.sections)
		error_set(error, r, "no memory");
	else
		r = usock_listen(
			&ctl->listener, config->path, CONTROL_MODE, error);
	if (r) {
		control_close(ctl);
		return r;
	}
	ctl->reactor = config->reactor;
	ctl->loop = reactor_ev_loop(config->reactor);
	ctl->retry.fn = control_retry;
	ev_io_init(&ctl->accept, control_accept, ctl->listener.fd, EV_READ);
	ev_io_start(ctl->loop, &ctl->accept);
	*out = ctl;
	return 0;
}

int control_add(struct control *ctl, const struct control_store *store)
{
	struct control_store *all;

	if (!ctl)
		return 0;
	all = reallocarray((void *)ctl->config.stores, ctl->config.nstores + 1,
		sizeof(*all));
	if (!all)
		return -ENOMEM;
	all[ctl->config.nstores++] = *store;
	ctl->config.stores = all;
	return 0;
}

void control_forget(struct control *ctl, const struct engine *e)
{
	struct control_store *all;
	unsigned n = 0;

	if (!ctl)
		return;
	all = (struct control_store *)ctl->config.stores;
	for (unsigned i = 0; i < ctl->config.nstores; i++) {
		if (all[i].engine != e)
			all[n++] = all[i];
	}
	ctl->config.nstores = n;
}

void control_close(struct control *ctl)
{
	if (!ctl)
		return;
	list_for_each_safe (node, &ctl->clients)
		client_free(list_entry(node, struct control_client, link));
	if (ctl->loop) {
		ev_io_stop(ctl->loop, &ctl->accept);
		reactor_timer_cancel(ctl->reactor, &ctl->retry);
	}
	usock_close(&ctl->listener);
	free((void *)ctl->config.stores);
	free((void *)ctl->config.sections);
	free(ctl);
}
