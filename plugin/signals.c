/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals.c: write back as soon as nbdkit is told to end.
 *
 * nbdkit ends only when every client has gone or sent one more request: a
 * mounted disk that is idle holds it up until somebody loses patience and
 * sends SIGKILL. nbdkit has no callback for that moment, so its handlers are
 * called through one of ours.
 *
 *   signal ─> handler ─> nbdkit's own
 *               └─ ev_async ─> loop 0: FLUSH
 *
 * The handler may run on any thread and does only what a handler may.
 */
#include <errno.h>
#include <string.h>

#include "plugin.h"

static const int ends[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP};

#define NENDS (sizeof(ends) / sizeof(ends[0]))
_Static_assert(NENDS == SIGNALS_MAX, "room for each");

static bool hooked(const struct sigaction *old)
{
	return !(old->sa_flags & SA_SIGINFO) && old->sa_handler != SIG_DFL &&
		old->sa_handler != SIG_IGN;
}

void signals_caught(struct signals *s, int sig)
{
	for (unsigned i = 0; i < NENDS; i++) {
		if (ends[i] == sig)
			s->old[i].sa_handler(sig);
	}
	ev_async_send(s->loop, &s->wake);
}

static void flush_done(struct engine_request *req)
{
	struct signals *s = container_of(req, struct signals, flush);

	s->flushing = false;
	/* nbdkit may be quicker and have shut the engine down. */
	if (req->error && req->error != -ESHUTDOWN)
		nbdkit_error("flush at the end: %s", strerror(-req->error));
}

/* On loop 0. */
static void flush_start(struct ev_loop *loop, ev_async *w, int events)
{
	struct signals *s = container_of(w, struct signals, wake);

	(void)loop;
	(void)events;
	if (s->flushing)
		return;
	s->flushing = true;
	engine_request_init(&s->flush);
	s->flush.op = ENGINE_FLUSH;
	s->flush.flags = 0;
	s->flush.offset = s->flush.length = 0;
	s->flush.export = s->export;
	s->flush.client = NULL;
	s->flush.buf = NULL;
	s->flush.reactor = s->reactor;
	s->flush.done = flush_done;
	if (engine_submit(&s->flush))
		flush_done(&s->flush);
}

void signals_open(struct signals *s, struct reactor *reactor,
	struct engine_export *export, void (*handler)(int sig))
{
	s->reactor = reactor;
	s->loop = reactor_ev_loop(reactor);
	s->export = export;
	ev_async_init(&s->wake, flush_start);
	ev_async_start(s->loop, &s->wake);
	for (unsigned i = 0; i < NENDS; i++) {
		struct sigaction ours;

		sigaction(ends[i], NULL, &s->old[i]);
		if (!hooked(&s->old[i]))
			continue;
		ours = s->old[i];
		ours.sa_handler = handler;
		sigaction(ends[i], &ours, NULL);
	}
}

void signals_restore(struct signals *s)
{
	for (unsigned i = 0; i < NENDS; i++) {
		if (hooked(&s->old[i]))
			sigaction(ends[i], &s->old[i], NULL);
	}
}

void signals_close(struct signals *s)
{
	ev_async_stop(s->loop, &s->wake);
}
