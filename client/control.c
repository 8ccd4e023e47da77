/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c: one question and one answer over a server's control socket.
 *
 * The protocol: the client sends a JSON object on a line, the server answers
 * with a JSON object on a line; {"error": TEXT} if it will not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client.h"

#define CONTROL_TIMEOUT_S 10
#define CONTROL_MAX (16U << 20) /* bytes of an answer */

#define GIVE_CONTROL "give the path of the server's --control PATH"

static void connect_failed(const char *command, const char *path, int err)
{
	struct stat st;

	if (!stat(path, &st) && !S_ISSOCK(st.st_mode))
		client_error(EXIT_IO, command,
			"%s is not a socket; " GIVE_CONTROL, path);
	else
		client_error(EXIT_IO, command, "control socket %s: %s", path,
			strerror(err));
}

static int control_connect(const char *command, const char *path)
{
	struct timeval timeout = {.tv_sec = CONTROL_TIMEOUT_S};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		client_error(EXIT_USAGE, command,
			"%s: too long for a unix socket", path);
		return -1;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		connect_failed(command, path, errno);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return fd;
}

static int send_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t n = send(fd, text, left, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		left -= (size_t)n;
	}
	return 0;
}

/* Read up to a newline or the end; the line, to free(), or NULL and errno. */
static char *receive_line(int fd)
{
	size_t used = 0, room = 0;
	char *line = NULL;

	for (;;) {
		ssize_t n;

		if (room - used < 4096) {
			char *more = realloc(line, room += 65536);

			if (!more || room > CONTROL_MAX) {
				errno = more ? EMSGSIZE : ENOMEM;
				free(more ? more : line);
				return NULL;
			}
			line = more;
		}
		n = recv(fd, line + used, room - used - 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (!n && !used)) {
			errno = n ? errno : ECONNRESET;
			free(line);
			return NULL;
		}
		line[used + (size_t)n] = 0;
		if (!n || memchr(line + used, '\n', (size_t)n))
			return line;
		used += (size_t)n;
	}
}

static int parse_answer(const char *command, const char *path, const char *line,
	json_t **answer)
{
	json_error_t error;
	const char *why;
	int code;

	*answer = json_loads(line, 0, &error);
	why = json_string_value(json_object_get(*answer, "error"));
	if (json_is_object(*answer) && !why)
		return EXIT_OK;
	if (why)
		code = client_error(EXIT_USAGE, command,
			"control socket %s: %s", path, why);
	else if (!strncmp(line, "NBDMAGIC", 8))
		code = client_error(EXIT_IO, command,
			"%s is where NBD clients connect; " GIVE_CONTROL, path);
	else
		code = client_error(EXIT_IO, command,
			"control socket %s: the answer is not a JSON object: "
			"%s",
			path, *answer ? "another value" : error.text);
	json_decref(*answer);
	*answer = NULL;
	return code;
}

int control_ask(const char *command, const char *path, json_t *question,
	json_t **answer)
{
	CLEANUP_CLOSE int fd = control_connect(command, path);
	CLEANUP_FREE char *text = json_dumps(question, JSON_COMPACT);
	CLEANUP_FREE char *line = NULL;
	int r = -ENOMEM;

	json_decref(question);
	*answer = NULL;
	if (fd < 0)
		return EXIT_IO;
	if (text)
		r = send_all(fd, text);
	if (!r)
		r = send_all(fd, "\n");
	/* Who has hung up may have said something first. */
	if (!r || r == -EPIPE || r == -ECONNRESET) {
		line = receive_line(fd);
		r = line ? 0 : r ? r : -errno;
	}
	if (r)
		return client_error(EXIT_IO, command, "control socket %s: %s",
			path, r == -EAGAIN ? "no answer" : strerror(-r));
	return parse_answer(command, path, line, answer);
}

json_t *control_call(const char *command, const char *path, const char *cmd)
{
	json_t *answer;

	control_ask(command, path, json_pack("{s:s}", "cmd", cmd), &answer);
	return answer;
}

/* utime + stime of /proc/PID/stat, the 14th and 15th word; the name before
 * them is in brackets and may hold anything. */
static bool proc_cpu(json_int_t pid, uint64_t *cpu_us)
{
	unsigned long user, system;
	char path[64], text[1024];
	const char *after;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	after = strrchr(text, ')');
	if (!after ||
		sscanf(after,
			") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			&user, &system) != 2)
		return false;
	*cpu_us = (user + system) * 1000000UL /
		(unsigned long)sysconf(_SC_CLK_TCK);
	return true;
}

bool control_cpu(json_t *stats, uint64_t *cpu_us)
{
	json_t *process = json_object_get(stats, "process");
	json_t *user = json_object_get(process, "cpu_user_us");
	json_t *system = json_object_get(process, "cpu_system_us");
	json_t *pid = json_object_get(process, "pid");

	if (json_is_integer(user) && json_is_integer(system)) {
		*cpu_us = (uint64_t)(json_integer_value(user) +
			json_integer_value(system));
		return true;
	}
	return json_is_integer(pid) &&
		proc_cpu(json_integer_value(pid), cpu_us);
}
