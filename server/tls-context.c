/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-context.c: certificates, keys, and what is acceptable.
 *
 * Files have the names and the format they have for nbdkit: ca-cert.pem,
 * server-cert.pem, server-key.pem, and ca-crl.pem if there is one.
 *
 * TLS 1.2 and 1.3. Ciphers are forward-secret and authenticated: in 1.2 the
 * list below, in 1.3 all are, and a pre-shared key is used with a
 * Diffie-Hellman exchange (psk_dhe_ke) only, which is OpenSSL's default. AES
 * with 128 bits first: it costs least where there are instructions for it.
 * A connection that is silent keeps no buffer of OpenSSL's.
 * No tickets and no session cache: a connection lives for days, its handshake
 * need not be cheap, and nothing has to be kept secret for longer than it.
 */
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "tls-session.h"

#define CIPHERS_12                                                             \
	"ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20:"                     \
	"kECDHEPSK+CHACHA20:kECDHEPSK+AES:!SHA1:!aNULL"
#define CIPHERS_13                                                             \
	"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"                       \
	"TLS_CHACHA20_POLY1305_SHA256"

/* --- files ---------------------------------------------------------------- */

const char *tls_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	return reason ? reason : "no reason given";
}

static int file_error(
	struct error *error, const char *dir, const char *name, const char *why)
{
	int r = error_set(error, -EINVAL, "%s/%s: %s", dir, name, why);

	ERR_clear_error();
	return r;
}

/* Its path, if it can be read. */
static int find_file(
	const char *dir, const char *name, char *path, struct error *error)
{
	snprintf(path, PATH_MAX, "%s/%s", dir, name);
	if (access(path, R_OK))
		return error_set(
			error, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

static void warn_of_dates(const char *dir, const X509 *cert)
{
	if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
		log_warning("%s/server-cert.pem: has expired", dir);
	else if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		log_warning("%s/server-cert.pem: is not valid yet", dir);
}

static int load_certificate(SSL_CTX *ctx, const char *dir, struct error *error)
{
	char path[PATH_MAX];
	int r = find_file(dir, "server-cert.pem", path, error);

	if (r)
		return r;
	if (SSL_CTX_use_certificate_chain_file(ctx, path) != 1)
		return file_error(error, dir, "server-cert.pem", tls_reason());
	warn_of_dates(dir, SSL_CTX_get0_certificate(ctx));
	return 0;
}

/* For a key that is encrypted: nobody is there to be asked. */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)arg;
	return -1;
}

static int load_key(SSL_CTX *ctx, const char *dir, struct error *error)
{
	static const char name[] = "server-key.pem";
	char path[PATH_MAX];
	EVP_PKEY *key = NULL;
	FILE *f;
	int r = find_file(dir, name, path, error);

	if (r)
		return r;
	f = fopen(path, "re");
	if (f) {
		key = PEM_read_PrivateKey(f, NULL, no_password, NULL);
		fclose(f);
	}
	if (!key)
		return file_error(error, dir, name, tls_reason());
	if (X509_check_private_key(SSL_CTX_get0_certificate(ctx), key) != 1)
		r = file_error(error, dir, name,
			"the key does not belong to server-cert.pem");
	else if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
		r = file_error(error, dir, name, tls_reason());
	EVP_PKEY_free(key);
	return r;
}

/* Of whom clients have their certificates, and which of them are revoked. */
static int load_authority(SSL_CTX *ctx, const char *dir, struct error *error)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	char path[PATH_MAX];
	int r = find_file(dir, "ca-cert.pem", path, error);

	if (r)
		return r;
	/* Its name is not sent: a client with another authority's certificate
	 * then shows that, and the log can say so. */
	if (SSL_CTX_load_verify_locations(ctx, path, NULL) != 1)
		return file_error(error, dir, "ca-cert.pem", tls_reason());
	if (find_file(dir, "ca-crl.pem", path, NULL))
		return 0;
	if (SSL_CTX_load_verify_locations(ctx, path, NULL) != 1)
		return file_error(error, dir, "ca-crl.pem", tls_reason());
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
	return 0;
}

/* --- a context ------------------------------------------------------------ */

static int set_policy(SSL_CTX *ctx, struct error *error)
{
	SSL_CTX_set_options(ctx,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
			SSL_OP_NO_COMPRESSION |
			SSL_OP_CIPHER_SERVER_PREFERENCE |
			SSL_OP_PRIORITIZE_CHACHA);
	SSL_CTX_set_mode(ctx,
		SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
			SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* Without the name of a session's context, OpenSSL refuses a
	 * pre-shared key where certificates are asked for. */
	if (SSL_CTX_set_session_id_context(
		    ctx, (const unsigned char *)"weir", 4) != 1 ||
		SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_num_tickets(ctx, 0) != 1 ||
		SSL_CTX_set_cipher_list(ctx, CIPHERS_12) != 1 ||
		SSL_CTX_set_ciphersuites(ctx, CIPHERS_13) != 1)
		return error_set(error, -EINVAL, "OpenSSL: %s", tls_reason());
	return 0;
}

static int load_x509(
	struct tls_context *x, const char *dir, struct error *error)
{
	int r = load_certificate(x->ctx, dir, error);

	x->certified = true;
	if (!r)
		r = load_key(x->ctx, dir, error);
	if (!r && x->options->verify_peer) {
		r = load_authority(x->ctx, dir, error);
		tls_peer_verify(x->ctx);
	}
	return r;
}

static void context_free(struct tls_context *x)
{
	SSL_CTX_free(x->ctx);
	tls_keys_free(x->keys);
	free(x);
}

static int context_fill(
	struct tls_context *x, const struct tls *tls, struct error *error)
{
	int r = set_policy(x->ctx, error);

	if (!r && tls->certificates)
		r = load_x509(x, tls->certificates, error);
	if (!r && tls->psk) {
		r = tls_keys_read(tls->psk, &x->keys, error);
		tls_keys_use(x->ctx);
	}
	return r;
}

static int context_new(
	const struct tls *tls, struct tls_context **out, struct error *error)
{
	struct tls_context *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return error_set(error, -ENOMEM, "no memory");
	x->refs = 1;
	x->options = tls->options;
	x->ctx = SSL_CTX_new(TLS_server_method());
	if (x->ctx)
		r = context_fill(x, tls, error);
	else
		r = error_set(error, -ENOMEM, "OpenSSL: %s", tls_reason());
	ERR_clear_error();
	if (r)
		context_free(x);
	else
		*out = x;
	return r;
}

struct tls_context *tls_context_get(struct tls *tls)
{
	SCOPED_LOCK(&tls->lock);

	atomic_fetch_add(&tls->context->refs, 1);
	return tls->context;
}

void tls_context_put(struct tls_context *x)
{
	if (atomic_fetch_sub(&x->refs, 1) == 1)
		context_free(x);
}

/* --- all of it ------------------------------------------------------------ */

static int absolute(const char *path, char **out, struct error *error)
{
	if (!path)
		return 0;
	*out = realpath(path, NULL);
	if (!*out)
		return error_set(
			error, -errno, "%s: %s", path, strerror(errno));
	return 0;
}

int tls_open(const struct tls_options *o, struct tls **out, struct error *error)
{
	struct tls *tls = calloc(1, sizeof(*tls));
	int r;

	if (!tls)
		return error_set(error, -ENOMEM, "no memory");
	pthread_mutex_init(&tls->lock, NULL);
	tls->options = o;
	tls->wire = tls_wire_method();
	r = tls->wire ? 0 : error_set(error, -ENOMEM, "no memory");
	if (!r)
		r = absolute(o->certificates, &tls->certificates, error);
	if (!r)
		r = absolute(o->psk, &tls->psk, error);
	if (!r)
		r = context_new(tls, &tls->context, error);
	if (r)
		tls_close(tls);
	else
		*out = tls;
	return r;
}

int tls_reload(struct tls *tls, struct error *error)
{
	struct tls_context *fresh, *old;
	int r = context_new(tls, &fresh, error);

	if (r)
		return r;
	pthread_mutex_lock(&tls->lock);
	old = tls->context;
	tls->context = fresh;
	pthread_mutex_unlock(&tls->lock);
	tls_context_put(old);
	return 0;
}

void tls_close(struct tls *tls)
{
	if (!tls)
		return;
	if (tls->context)
		tls_context_put(tls->context);
	BIO_meth_free(tls->wire);
	pthread_mutex_destroy(&tls->lock);
	free(tls->certificates);
	free(tls->psk);
	free(tls);
}
