/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-init.h: a key and a certificate, made for a trial; for tls-init*.c.
 */
#ifndef WEIR_CLIENT_TLS_INIT_H
#define WEIR_CLIENT_TLS_INIT_H

#include <stdio.h>
#include <openssl/x509.h>

#define TLS_MAX_HOSTS 16

enum tls_kind {
	TLS_AUTHORITY,
	TLS_SERVER,
	TLS_CLIENT,
};

struct identity {
	EVP_PKEY *key;
	X509 *certificate;
};

/*
 * Fill `id`, signed by `by`, or by itself if that is NULL. `name` is its common
 * name; `hosts` are DNS names or addresses. NULL, or why it cannot be. End with
 * tls_identity_free() in each case.
 */
const char *tls_identity_make(struct identity *id, const struct identity *by,
	enum tls_kind kind, const char *name, const char *const *hosts,
	unsigned nhosts);

void tls_identity_free(struct identity *id);

/* In PEM format; the key without a password. 0, or -1 with errno. */
int tls_identity_put_key(FILE *f, const struct identity *id);
int tls_identity_put_certificate(FILE *f, const struct identity *id);

#endif
