/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls.h: encrypted connections, with OpenSSL.
 *
 *   tls-context.c  certificates, keys and what is acceptable; read anew on
 *                  SIGHUP
 *   tls-psk.c      pre-shared keys
 *   tls-peer.c     who the client is, and why one was refused
 *   tls-wire.c     the encrypted bytes, between OpenSSL and the socket
 *   tls.c          a connection's stream
 *
 * Rules:
 *  1. A connection keeps the context it began with: what is read anew is for
 *     later ones.
 *  2. What is read anew takes effect as a whole or not at all.
 */
#ifndef WEIR_SERVER_TLS_H
#define WEIR_SERVER_TLS_H

#include "options.h"
#include "transport.h"

struct tls;

/* Read certificates and keys. Blocks. `o` must outlive it. A negative errno
 * with `error` filled: it names the file. */
int tls_open(
	const struct tls_options *o, struct tls **out, struct error *error);

/* Read them again, from the same files. On an error what was read before
 * stays. Blocks; any thread. */
int tls_reload(struct tls *tls, struct error *error);

/* After the last connection. Accepts NULL. */
void tls_close(struct tls *tls);

/* Turn a plain stream, of which everything before the client's first byte of
 * TLS was read, into an encrypted one; the handshake is done by the calls that
 * read. `peer`, for the log, must outlive it. -ENOMEM. Loop thread. */
int tls_start(struct tls *tls, struct transport *t, const char *peer);

/* Is the handshake done? False for a plain stream. */
bool tls_is_up(const struct transport *t);

/* Who the client is: the subject of its certificate, or the name of its key.
 * False if it showed neither, or the stream is plain. */
bool tls_identity(const struct transport *t, char *text, size_t size);

#endif
