/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c: from an NBD URI to a connected libnbd handle.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "client.h"

int connect_error(const char *command, const char *what)
{
	const char *why = nbd_get_error();

	return client_error(
		EXIT_IO, command, "%s: %s", what, why ? why : "unknown error");
}

static bool known_scheme(const char *uri)
{
	static const char *const schemes[] = {"nbd", "nbds", "nbd+unix",
		"nbds+unix", "nbd+vsock", "nbds+vsock", "nbd+ssh", "nbds+ssh"};
	const char *end = strstr(uri, "://");

	for (size_t i = 0; end && i < sizeof(schemes) / sizeof(schemes[0]);
		i++) {
		size_t n = strlen(schemes[i]);

		if ((size_t)(end - uri) == n &&
			!strncasecmp(uri, schemes[i], n))
			return true;
	}
	return false;
}

bool connect_check_uri(const char *command, const char *uri)
{
	if (known_scheme(uri))
		return true;
	client_error(EXIT_USAGE, command,
		"%s: not an NBD URI; try nbd://HOST/ or "
		"nbd+unix:///?socket=PATH",
		uri);
	return false;
}

/* The exports a server lists, for a message. */
struct exports {
	const char *wanted;
	bool has_wanted;
	unsigned count;
	char text[400];
	size_t used;
};

static int note_export(void *user, const char *name, const char *description)
{
	struct exports *e = user;
	size_t room = sizeof(e->text) - e->used;
	int n;

	(void)description;
	if (e->wanted && !strcmp(name, e->wanted))
		e->has_wanted = true;
	e->count++;
	n = snprintf(
		e->text + e->used, room, "%s\"%s\"", e->used ? ", " : "", name);
	if (n > 0 && (size_t)n < room)
		e->used += (size_t)n;
	else
		e->text[e->used] = '\0'; /* no more than fits */
	return 0;
}

/* Ask on a connection of its own. False: it does not say. */
static bool list_exports(const char *uri, struct exports *e)
{
	nbd_list_callback callback = {.callback = note_export, .user_data = e};
	struct nbd_handle *nbd = nbd_create();
	char *wanted = NULL;
	bool listed = false;

	if (nbd && !nbd_set_uri_allow_local_file(nbd, true) &&
		!nbd_set_opt_mode(nbd, true) && !nbd_connect_uri(nbd, uri)) {
		wanted = nbd_get_export_name(nbd);
		e->wanted = wanted;
		listed = nbd_aio_is_negotiating(nbd) &&
			nbd_opt_list(nbd, callback) >= 0;
	}
	free(wanted);
	nbd_close(nbd);
	return listed;
}

/* The same URI, with TLS. */
static int tls_wanted(const char *command, const char *uri)
{
	return client_error(EXIT_IO, command,
		"%s: the server demands TLS; try 'nbds%s%ctls-certificates="
		"DIR', or tls-psk-file=FILE and a user's name",
		uri, uri + strlen("nbd"), strchr(uri, '?') ? '&' : '?');
}

int connect_refused(const char *command, const char *uri)
{
	struct exports e = {.used = 0};
	bool refused = nbd_get_errno() == ENOTSUP;
	char *why = strdup(nbd_get_error() ? nbd_get_error() : "");

	/* That is what libnbd makes of NBD_REP_ERR_TLS_REQD. */
	if (refused && strncasecmp(uri, "nbds", 4))
		tls_wanted(command, uri);
	else if (list_exports(uri, &e) && !e.has_wanted && e.count)
		client_error(EXIT_IO, command,
			"%s: no such export; the server has %s", uri, e.text);
	else
		client_error(EXIT_IO, command, "%s: %s", uri,
			why && *why ? why : "unknown error");
	free(why);
	return EXIT_IO;
}

struct nbd_handle *connect_open(
	const char *command, const char *uri, bool negotiate)
{
	struct nbd_handle *nbd = nbd_create();

	if (!nbd) {
		connect_error(command, uri);
		return NULL;
	}
	/* The user wrote the URI: key files named in it are the user's. */
	if (nbd_set_uri_allow_local_file(nbd, true) ||
		nbd_set_opt_mode(nbd, negotiate) || nbd_connect_uri(nbd, uri)) {
		connect_refused(command, uri);
		nbd_close(nbd);
		return NULL;
	}
	return nbd;
}
