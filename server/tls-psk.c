/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-psk.c: pre-shared keys, as psktool(1) writes them: a line NAME:HEXKEY
 * for each client.
 *
 * The same callback serves both versions: ECDHE-PSK in TLS 1.2, and in 1.3 an
 * external key, bound to SHA-256.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "tls-session.h"

#define KEY_MIN 16U  /* bytes: less can be guessed */
#define KEY_MAX 256U /* bytes: what OpenSSL takes */

struct key {
	char *name;
	unsigned char *bytes;
	size_t length;
};

struct tls_keys {
	struct key *keys;
	size_t n;
};

/* --- the file ------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Bytes written to `to`, which has room for half as many as there are digits;
 * 0: not hexadecimal. */
static size_t hex_bytes(const char *hex, unsigned char *to)
{
	size_t n = 0;

	for (; *hex; hex += 2) {
		int high = hex_digit(hex[0]), low = hex_digit(hex[1]);

		if (high < 0 || low < 0)
			return 0;
		to[n++] = (unsigned char)(high << 4 | low);
	}
	return n;
}

static const struct key *find(const struct tls_keys *keys, const char *name)
{
	for (size_t i = 0; i < keys->n; i++) {
		if (!strcmp(keys->keys[i].name, name))
			return &keys->keys[i];
	}
	return NULL;
}

static int add(struct tls_keys *keys, const char *name, const char *hex,
	const char **why)
{
	struct key *all, *k;

	*why = "no memory";
	all = realloc(keys->keys, (keys->n + 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	keys->keys = all;
	k = &all[keys->n];
	k->name = strdup(name);
	k->bytes = malloc(strlen(hex) / 2 + 1);
	if (!k->name || !k->bytes) {
		free(k->name);
		free(k->bytes);
		return -ENOMEM;
	}
	keys->n++;
	k->length = hex_bytes(hex, k->bytes);
	*why = "the key is not hexadecimal";
	if (!k->length)
		return -EINVAL;
	*why = "a key has 16 to 256 bytes";
	return k->length < KEY_MIN || k->length > KEY_MAX ? -EINVAL : 0;
}

static int take_line(struct tls_keys *keys, char *line, const char **why)
{
	char *colon;

	line[strcspn(line, "\r\n")] = '\0';
	if (!*line)
		return 0;
	colon = strchr(line, ':');
	*why = "expected NAME:HEXKEY";
	if (!colon || colon == line || line[0] == '#')
		return -EINVAL;
	*colon = '\0';
	*why = "this name has a key already";
	if (find(keys, line))
		return -EINVAL;
	return add(keys, line, colon + 1, why);
}

static int read_lines(
	struct tls_keys *keys, FILE *f, const char *path, struct error *error)
{
	char *line = NULL;
	size_t room = 0;
	unsigned number = 0;
	const char *why;
	int r = 0;

	while (!r && getline(&line, &room, f) > 0) {
		number++;
		r = take_line(keys, line, &why);
		if (r)
			error_set(
				error, r, "%s: line %u: %s", path, number, why);
	}
	if (!r && ferror(f))
		r = error_set(error, -EIO, "%s: cannot read", path);
	if (line)
		OPENSSL_cleanse(line, room);
	free(line);
	if (!r && !keys->n)
		r = error_set(error, -EINVAL, "%s: no key in it", path);
	return r;
}

int tls_keys_read(const char *path, struct tls_keys **out, struct error *error)
{
	FILE *f = fopen(path, "re");
	int r;

	if (!f)
		return error_set(
			error, -errno, "%s: %s", path, strerror(errno));
	*out = calloc(1, sizeof(**out));
	if (*out)
		r = read_lines(*out, f, path, error);
	else
		r = error_set(error, -ENOMEM, "no memory");
	fclose(f);
	return r;
}

void tls_keys_free(struct tls_keys *keys)
{
	if (!keys)
		return;
	for (size_t i = 0; i < keys->n; i++) {
		struct key *k = &keys->keys[i];

		OPENSSL_cleanse(k->bytes, k->length);
		free(k->bytes);
		free(k->name);
	}
	free(keys->keys);
	free(keys);
}

/* --- the handshake -------------------------------------------------------- */

/* What the client says, fit for a log. */
static void note_name(struct tls_session *s, const char *name)
{
	size_t n = 0;

	for (; name[n] && n < sizeof(s->key_name) - 1; n++) {
		char c = name[n];

		s->key_name[n] = (char)(c < ' ' || c > '~' ? '?' : c);
	}
	s->key_name[n] = '\0';
}

static unsigned find_key(
	SSL *ssl, const char *name, unsigned char *to, unsigned room)
{
	struct tls_session *s = SSL_get_app_data(ssl);
	const struct key *k = find(s->context->keys, name);

	note_name(s, name);
	s->key_unknown = !k;
	if (!k || k->length > room)
		return 0;
	memcpy(to, k->bytes, k->length);
	return (unsigned)k->length;
}

void tls_keys_use(SSL_CTX *ctx)
{
	SSL_CTX_set_psk_server_callback(ctx, find_key);
}
