/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-session.h: what the files of TLS share; for tls*.c only.
 */
#ifndef WEIR_SERVER_TLS_SESSION_H
#define WEIR_SERVER_TLS_SESSION_H

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tls.h"

#define TLS_RECORD 16384U /* bytes of content, at most */
/* A record, with its header, padding and tag, at most. */
#define TLS_SEALED (TLS_RECORD + 512U)
/* Room for what OpenSSL says on its own: alerts, an answered KeyUpdate. */
#define TLS_RESERVE 2048U
/* Four records go to the socket, or come from it, in one call. */
#define TLS_WIRE (4U * TLS_SEALED + TLS_RESERVE)

struct tls_keys;

/* Certificates and keys, as they were read once. */
struct tls_context {
	_Atomic unsigned refs;
	SSL_CTX *ctx;
	struct tls_keys *keys; /* or NULL */
	const struct tls_options *options;
	bool certified; /* it has a certificate to show */
};

struct tls {
	const struct tls_options *options;
	char *certificates, *psk; /* absolute: the directory is left later */
	BIO_METHOD *wire;
	pthread_mutex_t lock; /* guards `context`, the pointer */
	struct tls_context *context;
};

/* Encrypted bytes; the memory is there only while there are some. */
struct tls_wire {
	unsigned char *data;
	size_t begin, end;
};

struct tls_session {
	SSL *ssl;
	struct tls_context *context;
	const char *peer;
	int fd;
	struct tls_wire in, out;
	bool hold;    /* do not read the socket */
	bool drained; /* the socket has no more just now */
	bool eof;     /* the socket's */
	bool up;      /* the handshake is done */
	bool ended;   /* nothing can be read any more: `result` says why */
	int result;   /* 0: the end of the stream, else a negative errno */
	int io_error; /* the socket's, a negative errno */
	bool greeted; /* a first byte has come: */
	unsigned char first_byte;
	bool key_unknown;  /* `key_name` is in no file */
	char key_name[64]; /* printable; "" if no key was named */
	char identity[128];
};

/* --- tls-context.c -------------------------------------------------------- */

struct tls_context *tls_context_get(struct tls *tls);
void tls_context_put(struct tls_context *x);

/* The first reason OpenSSL gave for a failure, in this thread. */
const char *tls_reason(void);

/* --- tls-psk.c ------------------------------------------------------------ */

/* Read a file of lines NAME:HEXKEY. Blocks. -errno with `error` filled. */
int tls_keys_read(const char *path, struct tls_keys **out, struct error *error);
void tls_keys_free(struct tls_keys *keys);

/* Have clients of `ctx` find their keys. */
void tls_keys_use(SSL_CTX *ctx);

/* --- tls-peer.c ----------------------------------------------------------- */

/* Have clients show a certificate. */
void tls_peer_verify(SSL_CTX *ctx);

/* The handshake is done: fill in `identity`. */
void tls_peer_identify(struct tls_session *s);

/* Why the stream broke, in words: from OpenSSL's errors of this thread. */
void tls_peer_why(const struct tls_session *s, char *text, size_t size);

/* --- tls-wire.c ----------------------------------------------------------- */

/* The kind of BIO; NULL: no memory. */
BIO_METHOD *tls_wire_method(void);

/* Give a session's SSL its BIO. -ENOMEM. */
int tls_wire_attach(struct tls_session *s, BIO_METHOD *method);

/* Room for one more record, and the reserve? */
bool tls_wire_has_room(const struct tls_session *s);

/* Send what the socket takes; true if nothing is left. Sets io_error. */
bool tls_wire_flush(struct tls_session *s);

/* Give back memory that holds nothing. */
void tls_wire_trim(struct tls_wire *w);
void tls_wire_free(struct tls_wire *w);

#endif
