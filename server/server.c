/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.c: open, run, and the order of the end.
 *
 *   signal -> no more accepting -> every loop reads no more requests
 *     -> engine_shutdown: requests finish, dirty data is written
 *     -> clients take their last answers, GRACE_NS at most -> loops stop
 *
 * A second signal ends the process where it stands, and says what is lost.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "metrics.h"
#include "server.h"
#include "tls.h"

#define GRACE_NS (2 * NSEC_PER_SEC)

/* --- open ----------------------------------------------------------------- */

static unsigned usable_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

static int open_workers(struct server *s, struct error *error)
{
	unsigned n = s->options->threads, cpus = usable_cpus();
	uint64_t poll_ns = cpus > 1 ? s->options->poll_ns : 0;
	int r;

	if (!n)
		n = cpus;
	r = descriptors_prepare(s->options, n, error);
	if (r)
		return r;
	s->workers = calloc(n, sizeof(*s->workers));
	if (!s->workers)
		return error_set(error, -ENOMEM, "no memory");
	for (; s->nworkers < n; s->nworkers++) {
		r = worker_open(
			&s->workers[s->nworkers], s, s->nworkers, error);
		if (r)
			return r;
		reactor_live_poll(s->workers[s->nworkers].reactor, poll_ns);
	}
	return 0;
}

static int open_store(
	struct server *s, const struct store_options *o, struct error *error)
{
	struct server_store *st;
	int r = server_store_open(s, o, &st, error);

	if (!r)
		server_store_add(st);
	return r;
}

static int open_exports(struct server *s, struct error *error)
{
	const struct options *o = s->options;
	int r = 0;

	for (unsigned i = 0; i < o->nstores && !r; i++)
		r = open_store(s, o->stores[i], error);
	for (unsigned i = 0; i < o->nexports && !r; i++)
		r = export_open(s,
			server_store_find(s, o->exports[i]->store->name),
			o->exports[i], error);
	return r;
}

int server_open(struct server *s, struct options *o, struct error *error)
{
	int r;

	*s = (struct server){.options = o, .wanted = o, .usock = USOCK_INIT};
	pthread_mutex_init(&s->lock, NULL);
	list_init(&s->all);
	list_init(&s->stores);
	list_init(&s->exports);
	list_init(&s->leaving);
	list_init(&s->gone);
	r = 0;
	if (o->tls.mode != TLS_OFF)
		r = tls_open(&o->tls, &s->tls, error);
	if (!r)
		r = open_workers(s, error);
	/* The address before the store: to be refused there costs nothing. */
	if (!r)
		r = listen_open(s, error);
	if (!r)
		r = open_exports(s, error);
	if (!r)
		r = status_open(s, error);
	if (!r)
		r = snapshot_open(s, error);
	if (!r)
		descriptors_settle(s);
	return r;
}

/* What a client has to say to be served. */
static const char *scheme(const struct server *s)
{
	return s->options->tls.mode == TLS_REQUIRE ? "nbds" : "nbd";
}

static void describe_tcp(const struct server *s, char *text, size_t size)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	char addr[INET6_ADDRSTRLEN] = "?";
	unsigned port = 0;

	getsockname(s->listeners[0].fd, (struct sockaddr *)&ss, &len);
	if (ss.ss_family == AF_INET6) {
		const struct sockaddr_in6 *sin6 = (const void *)&ss;

		inet_ntop(AF_INET6, &sin6->sin6_addr, addr, sizeof(addr));
		port = ntohs(sin6->sin6_port);
		snprintf(text, size, "%s://[%s]:%u/%s", scheme(s), addr, port,
			export_first(s)->name);
		return;
	}
	if (ss.ss_family == AF_INET) {
		const struct sockaddr_in *sin = (const void *)&ss;

		inet_ntop(AF_INET, &sin->sin_addr, addr, sizeof(addr));
		port = ntohs(sin->sin_port);
	}
	snprintf(text, size, "%s://%s:%u/%s", scheme(s), addr, port,
		export_first(s)->name);
}

void server_describe(const struct server *s, char *text, size_t size)
{
	if (s->options->unix_path)
		snprintf(text, size, "%s+unix:///%s?socket=%s", scheme(s),
			export_first(s)->name, s->options->unix_path);
	else
		describe_tcp(s, text, size);
}

int server_write_pidfile(struct server *s, struct error *error)
{
	const char *path = s->options->pidfile;
	FILE *f = fopen(path, "we");

	if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fflush(f)) {
		int r = -errno;

		if (f)
			fclose(f);
		return error_set(
			error, r, "%s: cannot write: %s", path, strerror(-r));
	}
	fclose(f);
	/* The directory may be changed before it is removed. */
	s->pidfile = realpath(path, NULL);
	return 0;
}

/* --- the end -------------------------------------------------------------- */

static void stop_loops(struct server *s)
{
	if (!s->stores_done || s->busy)
		return;
	for (unsigned i = 0; i < s->nworkers; i++)
		reactor_stop(s->workers[i].reactor);
}

static void on_grace(struct reactor_timer *timer)
{
	struct server *s = container_of(timer, struct server, grace);

	for (unsigned i = 0; i < s->nworkers; i++)
		worker_kill(&s->workers[i]);
}

/* End where we stand: the store has not answered, and may never. */
static void leave(struct server *s)
{
	control_close(s->control);
	if (s->pidfile)
		unlink(s->pidfile);
	_exit(SERVER_EXIT_IO);
}

/* No loop reads requests any more: flush, unless a reload is at the stores. */
static void shut_stores_down(struct server *s)
{
	if (s->draining || s->reload || s->shutting_down)
		return;
	s->shutting_down = true;
	server_stores_shutdown(s);
}

void server_check_end(struct server *s)
{
	if (!s->stopping)
		return;
	shut_stores_down(s);
	if (!s->shutting_down || s->stores_done || !server_stores_done(s))
		return;
	if (s->gave_up)
		leave(s);
	s->stores_done = true;
	reactor_timer_arm(s->workers[0].reactor, &s->grace, GRACE_NS);
	stop_loops(s);
}

void server_worker_drained(struct server *s)
{
	s->draining--;
	server_check_end(s);
}

void server_worker_idle(struct server *s)
{
	s->busy--;
	stop_loops(s);
}

static void log_dirty(const struct list *stores)
{
	list_for_each (node, stores) {
		struct server_store *st =
			list_entry(node, struct server_store, link);

		if (st->state != STORE_CLOSING)
			engine_log_dirty(st->engine);
	}
}

static void on_signal(struct ev_loop *loop, ev_signal *sig, int events)
{
	struct server *s = sig->data;

	(void)loop;
	(void)events;
	if (s->stopping) {
		log_error("second signal: ending without a flush");
		log_dirty(&s->stores);
		log_dirty(&s->leaving);
		leave(s);
	}
	log_debug("%s: stopping", strsignal(sig->signum));
	s->stopping = true;
	s->draining = s->nworkers;
	s->busy = s->nworkers;
	listen_close(s);
	for (unsigned i = 0; i < s->nworkers; i++)
		worker_drain(&s->workers[i]);
}

static void on_reload(struct ev_loop *loop, ev_signal *sig, int events)
{
	(void)loop;
	(void)events;
	reload_start(sig->data);
}

/* --- run ------------------------------------------------------------------ */

typedef void signal_fn(struct ev_loop *loop, ev_signal *sig, int events);

static void watch_signal(
	struct server *s, ev_signal *sig, int number, signal_fn *fn)
{
	ev_signal_init(sig, fn, number);
	sig->data = s;
	ev_signal_start(s->workers[0].loop, sig);
}

int server_run(struct server *s)
{
	int r;

	s->grace.fn = on_grace;
	for (unsigned i = 1; i < s->nworkers; i++) {
		r = worker_start(&s->workers[i]);
		if (r) {
			log_error("cannot start a thread: %s", strerror(-r));
			return EXIT_FAILURE;
		}
	}
	watch_signal(s, &s->sigterm, SIGTERM, on_signal);
	watch_signal(s, &s->sigint, SIGINT, on_signal);
	watch_signal(s, &s->sighup, SIGHUP, on_reload);
	listen_start(s);
	reactor_run(s->workers[0].reactor);
	ev_signal_stop(s->workers[0].loop, &s->sigterm);
	ev_signal_stop(s->workers[0].loop, &s->sigint);
	ev_signal_stop(s->workers[0].loop, &s->sighup);
	return s->result;
}

void server_close(struct server *s)
{
	if (!s->options)
		return; /* it was never opened */
	for (unsigned i = 1; i < s->nworkers; i++)
		worker_join(&s->workers[i]);
	if (s->nworkers)
		listen_close(s);
	metrics_close(s->metrics);
	control_close(s->control);
	if (s->nworkers)
		reactor_timer_cancel(s->workers[0].reactor, &s->grace);
	exports_close(s);
	if (s->wanted != s->options) {
		options_free(s->wanted);
		free(s->wanted);
	}
	for (unsigned i = 0; i < s->nworkers; i++)
		worker_close(&s->workers[i]);
	free(s->workers);
	tls_close(s->tls);
	if (s->pidfile)
		unlink(s->pidfile);
	free(s->pidfile);
	pthread_mutex_destroy(&s->lock);
}
