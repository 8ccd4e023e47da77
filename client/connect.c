/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect.c: from an NBD URI to a connected libnbd handle.
 */
#include <stdio.h>
#include <string.h>

#include "client.h"

int connect_error(const char *command, const char *what)
{
	const char *why = nbd_get_error();

	return client_error(
		EXIT_IO, command, "%s: %s", what, why ? why : "unknown error");
}

bool connect_check_uri(const char *command, const char *uri)
{
	if (strstr(uri, "://"))
		return true;
	client_error(EXIT_USAGE, command,
		"%s: not an NBD URI; try nbd://HOST/ or "
		"nbd+unix:///?socket=PATH",
		uri);
	return false;
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
		connect_error(command, uri);
		nbd_close(nbd);
		return NULL;
	}
	return nbd;
}
