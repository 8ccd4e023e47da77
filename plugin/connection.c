/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.c: one client: who it is, what it may do, its goodbye.
 *
 *  1. A connection that wrote flushes when it closes, so that a client which
 *     just disconnects loses nothing; one that only read returns at once,
 *     whatever others have dirty.
 *  2. Who a client is for the throttle: the process at the other end of a
 *     unix socket, else its IP address. All connections of one client share.
 *     What nbdkit cannot say (a filter that opens the plugin on its own)
 *     is no client, and not throttled apart.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "plugin.h"

static bool peer_of_unix(char identity[IDENTITY_SIZE])
{
	int64_t pid = nbdkit_peer_pid();

	if (pid <= 0)
		return false;
	snprintf(identity, IDENTITY_SIZE, "pid %" PRId64, pid);
	return true;
}

static bool peer_identity(char identity[IDENTITY_SIZE])
{
	struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(peer);
	const void *address;

	if (nbdkit_peer_name((struct sockaddr *)&peer, &len) == -1)
		return false;
	switch (peer.ss_family) {
	case AF_UNIX:
		return peer_of_unix(identity);
	case AF_INET:
		address = &((struct sockaddr_in *)&peer)->sin_addr;
		break;
	case AF_INET6:
		address = &((struct sockaddr_in6 *)&peer)->sin6_addr;
		break;
	default:
		return false;
	}
	return inet_ntop(peer.ss_family, address, identity, IDENTITY_SIZE);
}

/* Find out who it is; nbdkit has said so if it cannot be known. */
static void identify(struct connection *c)
{
	struct plugin *p = c->plugin;

	if (p->single)
		snprintf(c->identity, IDENTITY_SIZE, "stdin");
	else if (!peer_identity(c->identity))
		return;
	c->client = engine_client_get(p->engine, c->identity);
}

struct connection *connection_new(struct plugin *p, bool readonly)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->plugin = p;
	c->export = readonly ? p->export_ro : p->export_rw;
	engine_export_info(c->export, &c->info);
	identify(c);
	pthread_mutex_lock(&p->lock);
	list_push_tail(&p->connections, &c->link);
	pthread_mutex_unlock(&p->lock);
	return c;
}

void connection_free(struct connection *c)
{
	if (atomic_load(&c->wrote))
		data_flush(c, 0);
	pthread_mutex_lock(&c->plugin->lock);
	list_remove(&c->link);
	pthread_mutex_unlock(&c->plugin->lock);
	if (c->client)
		engine_client_put(c->client);
	free(c);
}

int64_t connection_get_size(void *handle)
{
	const struct connection *c = handle;

	return (int64_t)c->info.size;
}

int connection_block_size(
	void *handle, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
	const struct connection *c = handle;

	*minimum = c->info.min_block;
	*preferred = c->info.preferred_block;
	*maximum = c->info.max_block;
	return 0;
}

int connection_can_write(void *handle)
{
	const struct connection *c = handle;

	return !c->info.readonly;
}

int connection_can_trim(void *handle)
{
	const struct connection *c = handle;

	return c->info.can_trim;
}

int connection_can_zero(void *handle)
{
	const struct connection *c = handle;

	return c->info.can_zero ? 1 : 0;
}

int connection_can_fast_zero(void *handle)
{
	const struct connection *c = handle;

	return c->info.can_fast_zero;
}
