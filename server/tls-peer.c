/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-peer.c: who the client is, and why one was refused.
 *
 * A client is who its certificate says, or the name of its key. --tls-allow
 * NAME is compared with the subject's common name and with the alternative
 * names that are a DNS name, an e-mail address or a URI.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "tls-session.h"

#define HANDSHAKE_RECORD 22 /* the first byte of a client's TLS */

/* --- names ---------------------------------------------------------------- */

static bool allowed(const struct tls_options *o, const ASN1_STRING *name)
{
	const char *text = (const char *)ASN1_STRING_get0_data(name);
	size_t n = (size_t)ASN1_STRING_length(name);

	for (unsigned i = 0; i < o->nallow; i++) {
		if (strlen(o->allow[i]) == n &&
			!strncasecmp(o->allow[i], text, n))
			return true;
	}
	return false;
}

static bool subject_allowed(const struct tls_options *o, const X509 *cert)
{
	const X509_NAME *subject = X509_get_subject_name(cert);
	int at = -1;

	while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >=
		0) {
		if (allowed(o,
			    X509_NAME_ENTRY_get_data(
				    X509_NAME_get_entry(subject, at))))
			return true;
	}
	return false;
}

static bool alternative_allowed(const struct tls_options *o, const X509 *cert)
{
	GENERAL_NAMES *names =
		X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	bool found = false;

	for (int i = 0; i < sk_GENERAL_NAME_num(names) && !found; i++) {
		int type;
		void *value = GENERAL_NAME_get0_value(
			sk_GENERAL_NAME_value(names, i), &type);

		if (type == GEN_DNS || type == GEN_EMAIL || type == GEN_URI)
			found = allowed(o, value);
	}
	GENERAL_NAMES_free(names);
	return found;
}

/* --- who it is ------------------------------------------------------------ */

/* A subject too long is cut, and told from others by its hash. */
static void subject_text(const X509 *cert, char *text, size_t size)
{
	const X509_NAME *subject = X509_get_subject_name(cert);
	BIO *b = BIO_new(BIO_s_mem());
	char *all = NULL;
	long n = 0;

	if (b && X509_NAME_print_ex(b, subject, 0, XN_FLAG_RFC2253) >= 0)
		n = BIO_get_mem_data(b, &all);
	if (n > 0 && (size_t)n < size)
		snprintf(text, size, "%.*s", (int)n, all);
	else
		snprintf(text, size, "%.*s#%08lx", n > 100 ? 100 : (int)n,
			all ? all : "",
			X509_NAME_hash_ex(subject, NULL, NULL, NULL));
	BIO_free(b);
}

/* OpenSSL has judged one certificate of the chain; the client's is the one of
 * depth 0. */
static int judge(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(
		store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls_session *s = SSL_get_app_data(ssl);
	const struct tls_options *o = s->context->options;
	const X509 *cert = X509_STORE_CTX_get0_cert(store);

	if (ok && !X509_STORE_CTX_get_error_depth(store) && o->nallow &&
		!subject_allowed(o, cert) && !alternative_allowed(o, cert)) {
		X509_STORE_CTX_set_error(
			store, X509_V_ERR_APPLICATION_VERIFICATION);
		ok = 0;
	}
	/* When it is refused, OpenSSL does not keep it. */
	if (!ok)
		subject_text(cert, s->identity, sizeof(s->identity));
	return ok;
}

void tls_peer_verify(SSL_CTX *ctx)
{
	SSL_CTX_set_verify(
		ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, judge);
}

void tls_peer_identify(struct tls_session *s)
{
	X509 *cert = SSL_get1_peer_certificate(s->ssl);

	if (cert)
		subject_text(cert, s->identity, sizeof(s->identity));
	else if (*s->key_name && !s->key_unknown)
		snprintf(s->identity, sizeof(s->identity), "psk %s",
			s->key_name);
	X509_free(cert);
}

/* --- why ------------------------------------------------------------------ */

static void why_certificate(
	const struct tls_session *s, char *text, size_t size)
{
	long verdict = SSL_get_verify_result(s->ssl);

	snprintf(text, size, "the client's certificate, %s: %s", s->identity,
		verdict == X509_V_ERR_APPLICATION_VERIFICATION
			? "not a name of --tls-allow"
			: X509_verify_cert_error_string(verdict));
}

static const char *why_reason(const struct tls_session *s, int reason)
{
	switch (reason) {
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return "the client shows no certificate";
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
		return "the client knows no version from TLS 1.2 on";
	case SSL_R_BINDER_DOES_NOT_VERIFY:
		return "the client's key is another one";
	case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
	case SSL_R_BLOCK_CIPHER_PAD_IS_WRONG:
		if (*s->key_name)
			return "the client's key is another one";
		break;
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
		if (!s->context->keys)
			break;
		return "the client has no key that is known";
	default:
		break;
	}
	return NULL;
}

static void why_openssl(const struct tls_session *s, char *text, size_t size)
{
	unsigned long e = ERR_peek_error();
	int reason = ERR_GET_REASON(e);
	const char *known = why_reason(s, reason);

	if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
		why_certificate(s, text, size);
	else if (known)
		snprintf(text, size, "%s", known);
	else if (reason > SSL_AD_REASON_OFFSET)
		snprintf(text, size, "the client says: %s",
			ERR_reason_error_string(e));
	else
		snprintf(text, size, "%s",
			e ? ERR_reason_error_string(e) : "broken off");
}

/* It broke off. Many clients say nothing when they do not like a certificate:
 * they go. */
static void why_gone(const struct tls_session *s, char *text, size_t size)
{
	const char *how =
		s->io_error ? strerror(-s->io_error) : "the client hung up";
	bool shown = !s->up && s->greeted && s->context->certified;

	snprintf(text, size, "%s%s", how,
		shown ? "; does it trust this certificate, and for this name?"
		      : "");
}

void tls_peer_why(const struct tls_session *s, char *text, size_t size)
{
	if (!s->up && s->greeted && s->first_byte != HANDSHAKE_RECORD)
		snprintf(text, size, "what came is not TLS: plain bytes");
	else if (!s->up && s->key_unknown)
		snprintf(text, size, "no key of the name \"%s\"", s->key_name);
	else if (s->io_error || s->eof)
		why_gone(s, text, size);
	else
		why_openssl(s, text, size);
}
