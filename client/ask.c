/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ask.c: a question to a control socket, and its answer, without waiting.
 *
 * The protocol: the client sends a JSON object on a line, the server answers
 * with a JSON object on a line. Whoever asks waits for the socket (a->fd,
 * a->events) with poll(2) in between, so a screen stays alive meanwhile.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ask.h"

#define ANSWER_MAX (16U << 20) /* bytes */
#define GIVE_CONTROL "give the path of the server's --control PATH"

__attribute__((format(printf, 3, 4))) static int failed(
	struct ask *a, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->why, sizeof(a->why), fmt, ap);
	va_end(ap);
	return error;
}

/* What a system call said. */
static int refused(struct ask *a, int error)
{
	struct stat st;

	if (error == -ECONNREFUSED && !stat(a->path, &st) &&
		!S_ISSOCK(st.st_mode))
		return failed(
			a, error, "%s is not a socket; " GIVE_CONTROL, a->path);
	return failed(a, error, "control socket %s: %s", a->path,
		error == -EAGAIN ? "too many ask at once" : strerror(-error));
}

int ask_begin(struct ask *a, const char *path, const json_t *question)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char *text;

	*a = (struct ask){.fd = -1, .events = POLLOUT, .path = path};
	if (strlen(path) >= sizeof(addr.sun_path))
		return failed(a, -ENAMETOOLONG,
			"%s: too long for a unix socket", path);
	strcpy(addr.sun_path, path);
	text = json_dumps(question, JSON_COMPACT);
	if (!text || asprintf(&a->out, "%s\n", text) < 0)
		a->out = NULL;
	free(text);
	if (!a->out)
		return refused(a, -ENOMEM);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0 || connect(a->fd, (struct sockaddr *)&addr, sizeof(addr)))
		return refused(a, -errno);
	return 0;
}

/* 0 when the question has gone. */
static int send_question(struct ask *a)
{
	size_t length = strlen(a->out);

	while (a->sent < length) {
		ssize_t n = send(a->fd, a->out + a->sent, length - a->sent,
			MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		a->sent += (size_t)n;
	}
	a->events = POLLIN;
	return 0;
}

static int more_room(struct ask *a)
{
	char *more;

	if (a->room - a->used >= 4096)
		return 0;
	if (a->room >= ANSWER_MAX)
		return -EMSGSIZE;
	more = realloc(a->line, a->room + 65536);
	if (!more)
		return -ENOMEM;
	a->line = more;
	a->room += 65536;
	return 0;
}

/* 0 when a line is there, or as much as there ever will be. */
static int receive_line(struct ask *a)
{
	for (;;) {
		int r = more_room(a);
		ssize_t n;

		if (r)
			return r;
		n = recv(a->fd, a->line + a->used, a->room - a->used - 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n && !a->used)
			return -ECONNRESET;
		a->line[a->used + (size_t)n] = '\0';
		if (!n || memchr(a->line + a->used, '\n', (size_t)n))
			return 0;
		a->used += (size_t)n;
	}
}

static int parse(struct ask *a, json_t **answer)
{
	json_error_t error;
	const char *refusal;
	int r = 0;

	*answer = json_loads(a->line, 0, &error);
	refusal = json_string_value(json_object_get(*answer, "error"));
	if (refusal)
		r = failed(
			a, -EPERM, "control socket %s: %s", a->path, refusal);
	else if (!strncmp(a->line, "NBDMAGIC", 8))
		r = failed(a, -EPROTO,
			"%s is where NBD clients connect; " GIVE_CONTROL,
			a->path);
	else if (!json_is_object(*answer))
		r = failed(a, -EPROTO,
			"control socket %s: the answer is not a JSON object: "
			"%s",
			a->path, *answer ? "another value" : error.text);
	if (r) {
		json_decref(*answer);
		*answer = NULL;
	}
	return r;
}

int ask_step(struct ask *a, json_t **answer)
{
	int r = send_question(a), received;

	*answer = NULL;
	/* Who has hung up may have said something first. */
	if (!r || r == -EPIPE || r == -ECONNRESET) {
		received = receive_line(a);
		r = received && r ? r : received;
	}
	if (r == -EAGAIN)
		return r;
	if (r)
		return refused(a, r);
	return parse(a, answer);
}

void ask_end(struct ask *a)
{
	if (a->fd >= 0)
		close(a->fd);
	free(a->out);
	free(a->line);
	*a = (struct ask){.fd = -1};
}
