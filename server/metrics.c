/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics.c: HTTP for Prometheus.
 *
 *   the thread of libmicrohttpd          loop 0
 *     request -> ask ------------------->  make the JSON text
 *     parse, format, answer  <-----------
 *
 *  1. Loop 0 does what `weir stats` would have it do, ten times a second at
 *     most however many ask, and waits for nobody.
 *  2. The thread waits ANSWER_NS for it and no longer; then the server is not
 *     healthy.
 *  3. A slow reader costs its connection, of which there are
 *     METRICS_CONNECTIONS.
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "metrics.h"

#ifdef HAVE_METRICS
#include <jansson.h>
#include <microhttpd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"

#define IDLE_S 10U
#define FRESH_NS (100 * NSEC_PER_MSEC)
#define ANSWER_NS (3 * NSEC_PER_SEC)

struct metrics {
	struct MHD_Daemon *daemon;
	struct metrics_source source;

	/* The thread's. */
	json_t *stats;
	uint64_t made_ns;

	struct reactor_task task;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool asked, closing; /* under the lock */
	char *text;          /* loop 0's answer; under the lock */
};

/* --- asking loop 0 -------------------------------------------------------- */

static void make_text(struct reactor_task *task)
{
	struct metrics *m = container_of(task, struct metrics, task);
	char *text = m->source.make(m->source.arg);

	SCOPED_LOCK(&m->lock);
	free(m->text);
	m->text = text;
	m->asked = false;
	pthread_cond_signal(&m->cond);
}

/* The text, to free(); NULL if loop 0 does not answer. */
static char *ask(struct metrics *m)
{
	uint64_t end = clock_ns() + ANSWER_NS;
	const struct timespec until = {
		.tv_sec = (time_t)(end / NSEC_PER_SEC),
		.tv_nsec = (long)(end % NSEC_PER_SEC),
	};
	char *text;
	int r = 0;

	SCOPED_LOCK(&m->lock);
	/* What is asked already, of a loop that was late, will do. */
	if (!m->asked)
		reactor_post(m->source.reactor, &m->task);
	m->asked = true;
	while (m->asked && !m->closing && !r)
		r = pthread_cond_timedwait(&m->cond, &m->lock, &until);
	text = m->text;
	m->text = NULL;
	return text;
}

/* The stats, the thread's own; NULL if there are none to be had. */
static const json_t *stats(struct metrics *m)
{
	char *text;

	if (m->stats && clock_ns() - m->made_ns < FRESH_NS)
		return m->stats;
	json_decref(m->stats);
	text = ask(m);
	m->stats = text ? json_loads(text, 0, NULL) : NULL;
	m->made_ns = clock_ns();
	free(text);
	return m->stats;
}

/* --- answers -------------------------------------------------------------- */

static enum MHD_Result answer(struct MHD_Connection *c, unsigned code,
	const char *type, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(
			response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	r = MHD_queue_response(c, code, response);
	MHD_destroy_response(response);
	return r;
}

#define PLAIN "text/plain; charset=utf-8"

static enum MHD_Result answer_metrics(
	struct metrics *m, struct MHD_Connection *c)
{
	const json_t *j = stats(m);
	char *text = j ? metrics_text(j) : NULL;
	enum MHD_Result r;

	if (text)
		r = answer(c, MHD_HTTP_OK,
			"text/plain; version=0.0.4; charset=utf-8", text);
	else
		r = answer(c, MHD_HTTP_SERVICE_UNAVAILABLE, PLAIN,
			"the server does not answer\n");
	free(text);
	return r;
}

static enum MHD_Result answer_health(
	struct metrics *m, struct MHD_Connection *c)
{
	const json_t *j = stats(m);
	char why[512] = "the server does not answer\n";

	if (j && metrics_healthy(j, why, sizeof(why)))
		return answer(c, MHD_HTTP_OK, PLAIN, "ok\n");
	return answer(c, MHD_HTTP_SERVICE_UNAVAILABLE, PLAIN, why);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c,
	const char *url, const char *method, const char *version,
	const char *upload, size_t *upload_size, void **state)
{
	(void)version;
	(void)upload;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		*upload_size = 0;
		return answer(
			c, MHD_HTTP_METHOD_NOT_ALLOWED, PLAIN, "GET or HEAD\n");
	}
	/* The first call is of the headers alone: let what follows come. */
	if (!*state) {
		*state = arg;
		return MHD_YES;
	}
	*upload_size = 0;
	if (!strcmp(url, "/metrics"))
		return answer_metrics(arg, c);
	if (!strcmp(url, "/healthz"))
		return answer_health(arg, c);
	return answer(c, MHD_HTTP_NOT_FOUND, PLAIN,
		"there are /metrics and /healthz\n");
}

/* --- the socket ----------------------------------------------------------- */

/* "ADDR:PORT" in two: false if it is not that. */
static bool split(const char *where, char host[256], char port[8])
{
	const char *colon = strrchr(where, ':'), *begin = where, *end = colon;

	if (!colon)
		return false;
	if (*where == '[') {
		begin = where + 1;
		end = colon - 1;
		if (end < begin || *end != ']')
			return false;
	}
	if (end == begin || end - begin > 255 || strlen(colon + 1) > 5 ||
		strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
		!colon[1] || atoi(colon + 1) > 65535)
		return false;
	/* An address with colons of its own needs the brackets. */
	if (*where != '[' && memchr(begin, ':', (size_t)(end - begin)))
		return false;
	snprintf(host, 256, "%.*s", (int)(end - begin), begin);
	snprintf(port, 8, "%s", colon + 1);
	return true;
}

static int listen_at(const struct addrinfo *ai)
{
	const int on = 1;
	int fd = socket(
		ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, 64))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

/* A descriptor, or a negative errno. */
static int listen_where(const char *where, struct error *error)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE,
	};
	char host[256], port[8];
	struct addrinfo *list;
	int r;

	if (!split(where, host, port))
		return error_set(error, -EINVAL,
			"--metrics %s: expected ADDR:PORT, as 127.0.0.1:9809 "
			"or [::1]:9809",
			where);
	r = getaddrinfo(host, port, &hints, &list);
	if (r)
		return error_set(error, -EINVAL, "--metrics %s: %s", where,
			gai_strerror(r));
	r = listen_at(list);
	freeaddrinfo(list);
	if (r < 0)
		error_set(error, r, "--metrics %s: cannot listen: %s", where,
			strerror(-r));
	return r;
}

/* The thread takes no signal of the server's. */
static struct MHD_Daemon *start_daemon(struct metrics *m, int fd)
{
	SCOPED_NO_SIGNALS;

	return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL,
		on_request, m, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, METRICS_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)16384,
		MHD_OPTION_END);
}

static struct metrics *metrics_new(const struct metrics_source *source)
{
	struct metrics *m = calloc(1, sizeof(*m));
	pthread_condattr_t monotonic;

	if (!m)
		return NULL;
	m->source = *source;
	m->task.fn = make_text;
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return m;
}

int metrics_open(struct metrics **out, const char *where,
	const struct metrics_source *source, struct error *error)
{
	int fd = listen_where(where, error);
	struct metrics *m;

	if (fd < 0)
		return fd;
	m = metrics_new(source);
	if (m)
		m->daemon = start_daemon(m, fd);
	if (!m || !m->daemon) {
		close(fd);
		metrics_close(m);
		return error_set(error, -ENOMEM,
			"--metrics %s: cannot start the thread", where);
	}
	*out = m;
	return 0;
}

void metrics_close(struct metrics *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->closing = true;
	pthread_cond_signal(&m->cond);
	pthread_mutex_unlock(&m->lock);
	/* The socket is closed with it. */
	if (m->daemon)
		MHD_stop_daemon(m->daemon);
	json_decref(m->stats);
	free(m->text);
	pthread_cond_destroy(&m->cond);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
#else
int metrics_open(struct metrics **out, const char *where,
	const struct metrics_source *source, struct error *error)
{
	(void)out;
	(void)source;
	return error_set(error, -ENOTSUP,
		"--metrics %s: this weir-server was built without it", where);
}

void metrics_close(struct metrics *m)
{
	(void)m;
}
#endif
