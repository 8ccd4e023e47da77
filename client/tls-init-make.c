/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-init-make.c: a key and a certificate, with nothing but libcrypto: no
 * openssl.cnf is read, and no program is run.
 *
 * Keys are of the curve P-256, which everything knows. A certificate is valid
 * from an hour ago, for clocks that differ, for a year.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <string.h>

#include "tls-init.h"

#define BEGIN_S (-3600)
#define END_S (365 * 24 * 3600L)
#define SERIAL_BYTES 16

/* --- extensions ----------------------------------------------------------- */

static bool add(X509 *cert, X509V3_CTX *v3, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, v3, nid, value);
	bool ok = e && X509_add_ext(cert, e, -1) == 1;

	X509_EXTENSION_free(e);
	return ok;
}

static bool add_host(GENERAL_NAMES *names, const char *host)
{
	unsigned char address[16];
	int length = 0;
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_STRING *value;

	if (inet_pton(AF_INET, host, address) == 1)
		length = 4;
	else if (inet_pton(AF_INET6, host, address) == 1)
		length = 16;
	value = ASN1_STRING_type_new(
		length ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
	if (!name || !value ||
		!ASN1_STRING_set(value, length ? (void *)address : host,
			length ? length : (int)strlen(host)) ||
		!sk_GENERAL_NAME_push(names, name)) {
		GENERAL_NAME_free(name);
		ASN1_STRING_free(value);
		return false;
	}
	GENERAL_NAME_set0_value(name, length ? GEN_IPADD : GEN_DNS, value);
	return true;
}

static bool add_hosts(X509 *cert, const char *const *hosts, unsigned n)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	bool ok = names;

	for (unsigned i = 0; i < n && ok; i++)
		ok = add_host(names, hosts[i]);
	ok = ok &&
		X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, 0) == 1;
	GENERAL_NAMES_free(names);
	return ok;
}

static bool add_extensions(X509 *cert, const X509 *issuer, enum tls_kind kind,
	const char *const *hosts, unsigned nhosts)
{
	static const char *const usage[] = {
		[TLS_AUTHORITY] = "critical,keyCertSign,cRLSign",
		[TLS_SERVER] = "critical,digitalSignature",
		[TLS_CLIENT] = "critical,digitalSignature",
	};
	static const char *const purpose[] = {
		[TLS_SERVER] = "serverAuth",
		[TLS_CLIENT] = "clientAuth",
	};
	X509V3_CTX v3;

	X509V3_set_ctx(&v3, (X509 *)issuer, cert, NULL, NULL, 0);
	return add(cert, &v3, NID_basic_constraints,
		       kind == TLS_AUTHORITY ? "critical,CA:TRUE"
					     : "critical,CA:FALSE") &&
		add(cert, &v3, NID_key_usage, usage[kind]) &&
		add(cert, &v3, NID_subject_key_identifier, "hash") &&
		add(cert, &v3, NID_authority_key_identifier, "keyid") &&
		(kind == TLS_AUTHORITY ||
			add(cert, &v3, NID_ext_key_usage, purpose[kind])) &&
		(!nhosts || add_hosts(cert, hosts, nhosts));
}

/* --- a certificate -------------------------------------------------------- */

static bool set_serial(X509 *cert)
{
	unsigned char bytes[SERIAL_BYTES];
	BIGNUM *n = NULL;
	bool ok = RAND_bytes(bytes, sizeof(bytes)) == 1;

	bytes[0] &= 0x7f; /* positive */
	if (ok)
		n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return ok;
}

static bool set_names(X509 *cert, const X509 *issuer, const char *name)
{
	X509_NAME *subject = X509_get_subject_name(cert);

	return X509_NAME_add_entry_by_NID(subject, NID_commonName,
		       MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
		       0) == 1 &&
		X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1;
}

static bool fill(struct identity *id, const struct identity *by,
	enum tls_kind kind, const char *name, const char *const *hosts,
	unsigned nhosts)
{
	X509 *cert = id->certificate;

	return X509_set_version(cert, X509_VERSION_3) == 1 &&
		set_serial(cert) &&
		X509_gmtime_adj(X509_getm_notBefore(cert), BEGIN_S) &&
		X509_gmtime_adj(X509_getm_notAfter(cert), END_S) &&
		X509_set_pubkey(cert, id->key) == 1 &&
		set_names(cert, by->certificate, name) &&
		add_extensions(cert, by->certificate, kind, hosts, nhosts) &&
		X509_sign(cert, by->key, EVP_sha256()) > 0;
}

const char *tls_identity_make(struct identity *id, const struct identity *by,
	enum tls_kind kind, const char *name, const char *const *hosts,
	unsigned nhosts)
{
	const char *why;

	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	ERR_clear_error();
	id->key = EVP_EC_gen("P-256");
	id->certificate = X509_new();
	if (id->key && id->certificate &&
		fill(id, by ? by : id, kind, name, hosts, nhosts))
		return NULL;
	why = ERR_reason_error_string(ERR_peek_error());
	return why ? why : "no memory";
}

void tls_identity_free(struct identity *id)
{
	EVP_PKEY_free(id->key);
	X509_free(id->certificate);
}

/* --- out ------------------------------------------------------------------ */

static int put(int written)
{
	if (written == 1)
		return 0;
	if (!errno)
		errno = EIO;
	return -1;
}

int tls_identity_put_key(FILE *f, const struct identity *id)
{
	return put(PEM_write_PrivateKey(f, id->key, NULL, NULL, 0, NULL, NULL));
}

int tls_identity_put_certificate(FILE *f, const struct identity *id)
{
	return put(PEM_write_X509(f, id->certificate));
}
