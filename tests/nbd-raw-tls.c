/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-raw-tls.c: bytes of nbd-raw, in the clear or by TLS, which believes in
 * any certificate.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nbd-raw.h"

#ifdef WITH_TLS
#include <openssl/ssl.h>

void raw_tls(struct raw *r)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;

	raw_flush_out(r);
	if (!ssl || SSL_set_fd(ssl, r->fd) != 1)
		raw_die("no TLS");
	r->ssl = ssl;
	SSL_CTX_free(ctx); /* the connection holds it */
	if (SSL_connect(ssl) != 1)
		raw_die("the TLS handshake fails");
	printf("%s\n", SSL_get_version(ssl));
}

void raw_close(struct raw *r)
{
	SSL_free(r->ssl);
	close(r->fd);
}

ssize_t raw_send(struct raw *r, const void *data, size_t n)
{
	if (r->ssl)
		return SSL_write(r->ssl, data, (int)n);
	return send(r->fd, data, n, MSG_NOSIGNAL);
}

ssize_t raw_recv(struct raw *r, void *data, size_t n)
{
	if (r->ssl)
		return SSL_read(r->ssl, data, (int)n);
	return recv(r->fd, data, n, 0);
}
#else
void raw_tls(struct raw *r)
{
	(void)r;
	raw_die("built without TLS");
}

void raw_close(struct raw *r)
{
	close(r->fd);
}

ssize_t raw_send(struct raw *r, const void *data, size_t n)
{
	return send(r->fd, data, n, MSG_NOSIGNAL);
}

ssize_t raw_recv(struct raw *r, void *data, size_t n)
{
	return recv(r->fd, data, n, 0);
}
#endif
