/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach-nbd.c: attach through the kernel's nbd driver, with nbd-client(8).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "base/cleanup.h"

#define NBD_DEVICES 64
#define NBD_CLEAR_TRIES 300 /* of 100 ms */
#define NBD_SIZE_TRIES 500  /* of 10 ms */

/* Where nbd-client is to connect. */
struct target {
	char *host;   /* NULL: unix */
	char *port;   /* NULL: its default */
	char *socket; /* NULL: TCP */
	char *name;   /* of the export */
};

static void target_free(struct target *t)
{
	free(t->host);
	free(t->port);
	free(t->socket);
	free(t->name);
}

/* n bytes of a URI with %XX decoded, to free(). */
static char *decode(const char *text, size_t n)
{
	char *out = client_format("%.*s", (int)n, text), *to = out;

	for (const char *p = out; *p; p++) {
		unsigned byte;

		if (*p == '%' && sscanf(p + 1, "%2x", &byte) == 1 && p[1] &&
			p[2]) {
			*to++ = (char)byte;
			p += 2;
		} else {
			*to++ = *p;
		}
	}
	*to = 0;
	return out;
}

static void parse_authority(const char *text, size_t n, struct target *t)
{
	const char *end = text + n, *colon;

	if (*text == '[') { /* [::1]:10809 */
		const char *close = memchr(text, ']', n);

		close = close ? close : end;
		t->host = decode(text + 1, (size_t)(close - text) - 1);
		text = close;
		n = (size_t)(end - text);
	}
	colon = memchr(text, ':', n);
	if (!t->host)
		t->host = decode(text, colon ? (size_t)(colon - text) : n);
	if (colon)
		t->port = decode(colon + 1, (size_t)(end - colon) - 1);
}

/* nbd://HOST[:PORT]/NAME or nbd+unix:///NAME?socket=PATH; false: other. */
static bool parse_uri(const char *uri, struct target *t)
{
	const char *rest = strstr(uri, "://"), *socket;
	bool tcp = !strncmp(uri, "nbd://", 6);
	size_t n;

	*t = (struct target){0};
	if (!tcp && strncmp(uri, "nbd+unix://", 11))
		return false;
	rest += 3;
	n = strcspn(rest, "/?");
	if (tcp)
		parse_authority(rest, n, t);
	rest += n;
	rest += *rest == '/';
	n = strcspn(rest, "?");
	t->name = decode(rest, n);
	socket = strstr(rest + n, "socket=");
	if (!tcp && socket)
		t->socket = decode(socket + 7, strcspn(socket + 7, "&"));
	return tcp || t->socket;
}

static bool modprobe(bool dry)
{
	return !system(dry ? "modprobe -n -q nbd >/dev/null 2>&1"
			   : "modprobe -q nbd >/dev/null 2>&1");
}

bool attach_nbd_possible(void)
{
	return attach_have_program("nbd-client") &&
		(!access("/sys/module/nbd", F_OK) ||
			!access("/sys/block/nbd0", F_OK) || modprobe(true));
}

static bool is_bound(const char *device)
{
	CLEANUP_FREE char *path =
		client_format("/sys/block/%s/pid", device + strlen("/dev/"));

	return !access(path, F_OK);
}

static bool exists(const char *device)
{
	CLEANUP_FREE char *path =
		client_format("/sys/block/%s", device + strlen("/dev/"));

	return !access(path, F_OK);
}

static int connect_device(const char *command, const struct attach_plan *plan,
	const struct target *t, const char *device)
{
	CLEANUP_FREE char *connections = client_format("%u", plan->connections);
	CLEANUP_FREE char *block = client_format("%u", plan->block_size);
	const char *argv[20] = {"nbd-client"};
	size_t n = 1;

	if (t->socket) {
		argv[n++] = "-unix";
		argv[n++] = t->socket;
	} else {
		argv[n++] = t->host;
		argv[n++] = t->port ? t->port : "10809";
	}
	argv[n++] = device;
	argv[n++] = "-b";
	argv[n++] = block;
	if (*t->name) {
		argv[n++] = "-N";
		argv[n++] = t->name;
	}
	if (plan->connections) {
		argv[n++] = "-C";
		argv[n++] = connections;
	}
	if (plan->readonly)
		argv[n++] = "-R";
	return attach_run(command, argv);
}

/* nbd-client returns before the kernel has the device's size. */
static int wait_size(const char *command, const char *device)
{
	CLEANUP_FREE char *path =
		client_format("/sys/block/%s/size", device + strlen("/dev/"));
	const struct timespec pause = {.tv_nsec = 10000000};

	for (int try = 0; try < NBD_SIZE_TRIES; try++) {
		unsigned long long sectors = 0;
		FILE *f = fopen(path, "re");

		if (f && fscanf(f, "%llu", &sectors) != 1)
			sectors = 0;
		if (f)
			fclose(f);
		if (sectors)
			return EXIT_OK;
		nanosleep(&pause, NULL);
	}
	return client_error(EXIT_IO, command,
		"%s: nbd-client has ended, but the device has no size", device);
}

/* The state names the device before it is connected; the first free one. */
static int connect_free(const char *command, const struct attach_plan *plan,
	const struct target *t, struct attachment *a)
{
	for (unsigned i = 0; i < NBD_DEVICES; i++) {
		int r;

		free(a->device);
		a->device = client_format("/dev/nbd%u", i);
		if (!exists(a->device))
			break;
		if (is_bound(a->device))
			continue;
		r = attach_state_save(command, a);
		if (!r)
			r = connect_device(command, plan, t, a->device);
		return r ? r : wait_size(command, a->device);
	}
	free(a->device);
	a->device = NULL;
	return client_error(EXIT_USAGE, command,
		"no free /dev/nbdN; try 'modprobe -r nbd; modprobe nbd "
		"nbds_max=64' when none is in use");
}

int attach_nbd(const char *command, const struct attach_plan *plan,
	struct attachment *a)
{
	struct target t;
	int r;

	if (!parse_uri(plan->uri, &t)) {
		target_free(&t);
		return client_error(EXIT_USAGE, command,
			"%s: nbd-client cannot use this URI; try --via nbdfuse",
			plan->uri);
	}
	if (access("/sys/block/nbd0", F_OK) && !modprobe(false)) {
		target_free(&t);
		return client_error(EXIT_USAGE, command,
			"this kernel has no nbd (modprobe nbd failed); "
			"try --via nbdfuse");
	}
	r = attach_state_new(command, plan, ATTACH_NBD, a);
	if (!r)
		r = connect_free(command, plan, &t, a);
	target_free(&t);
	return r;
}

int attach_nbd_clear(const char *command, const char *device)
{
	const char *const argv[] = {"nbd-client", "-d", device, NULL};
	const struct timespec pause = {.tv_nsec = 100000000};
	int r;

	if (!is_bound(device))
		return EXIT_OK;
	r = attach_run(command, argv);
	for (int try = 0; !r && is_bound(device); try++) {
		if (try == NBD_CLEAR_TRIES)
			return client_error(EXIT_IO, command,
				"%s: still in use after nbd-client -d", device);
		nanosleep(&pause, NULL);
	}
	return r;
}
