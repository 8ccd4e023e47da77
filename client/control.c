/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c: one question and one answer over a server's control socket, and
 * the error if there is none.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "base/clock.h"
#include "client.h"

#define CONTROL_TIMEOUT_MS 10000U
#define CONTROL_RETRY_US 50000U

/* Wait for the socket, or a moment for a place. -ETIMEDOUT. */
static int wait_for(const struct ask *a, uint64_t end_ms)
{
	struct pollfd fd = {.fd = a->fd, .events = a->events};
	uint64_t now = clock_ms();

	if (now >= end_ms)
		return -ETIMEDOUT;
	if (poll(&fd, a->fd >= 0, (int)(end_ms - now)) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static int begin(struct ask *a, const char *path, const json_t *question,
	uint64_t end_ms)
{
	for (;;) {
		int r = ask_begin(a, path, question);

		if (r != -EAGAIN || clock_ms() >= end_ms)
			return r;
		ask_end(a);
		usleep(CONTROL_RETRY_US);
	}
}

int control_ask(const char *command, const char *path, json_t *question,
	json_t **answer)
{
	uint64_t end_ms = clock_ms() + CONTROL_TIMEOUT_MS;
	struct ask a;
	int r = begin(&a, path, question, end_ms);
	int code = EXIT_OK;

	json_decref(question);
	*answer = NULL;
	while (!r) {
		r = ask_step(&a, answer);
		if (r != -EAGAIN)
			break;
		r = wait_for(&a, end_ms);
	}
	if (r == -ETIMEDOUT)
		code = client_error(
			EXIT_IO, command, "control socket %s: no answer", path);
	else if (r)
		code = client_error(r == -EPERM ? EXIT_USAGE : EXIT_IO, command,
			"%s", a.why);
	ask_end(&a);
	return code;
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
