/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-target.c: what the spec of a remote store says.
 *
 *   nbd://HOST/EXPORT?KEY=VALUE&...     keys of the NBD URI and of ours
 *   nbd:KEY=VALUE,...,URI               ours before it, as of other stores
 *
 * libnbd reads the URI; the keys it does not know are taken out of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/cleanup.h"
#include "../base/size.h"
#include "../base/spell.h"
#include "nbd.h"

static const char *const target_keys[] = {"connections", "reconnect-timeout",
	"tls-certificates", "tls-psk-file", "tls-username", "tls-verify-peer"};

#define TARGET_KEYS (sizeof target_keys / sizeof target_keys[0])

void target_init(struct remote_target *t)
{
	*t = (struct remote_target){
		.connections = REMOTE_CONNECTIONS,
		.timeout_ns = REMOTE_TIMEOUT_NS,
	};
}

void target_free(struct remote_target *t)
{
	for (char **word = t->argv; word && *word; word++)
		free(*word);
	free(t->argv);
	free(t->name);
	free(t->uri);
	free(t->tls_certificates);
	free(t->tls_psk_file);
	free(t->tls_username);
	*t = (struct remote_target){0};
}

/* --- keys ---------------------------------------------------------------- */

static int bad_value(const char *key, const char *value, const char *wanted,
	struct error *error)
{
	return error_set(
		error, -EINVAL, "bad %s \"%s\" (%s)", key, value, wanted);
}

static int replace(char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : -ENOMEM;
}

static int set_connections(
	struct remote_target *t, const char *value, struct error *error)
{
	uint64_t n;

	if (size_parse(value, &n) || !n || n > REMOTE_CONNECTIONS_MAX)
		return bad_value("connections", value, "1 to 16", error);
	t->connections = (unsigned)n;
	return 0;
}

static int set_verify(
	struct remote_target *t, const char *value, struct error *error)
{
	bool yes = !strcmp(value, "1") || !strcmp(value, "yes") ||
		!strcmp(value, "true") || !strcmp(value, "on");
	bool no = !strcmp(value, "0") || !strcmp(value, "no") ||
		!strcmp(value, "false") || !strcmp(value, "off");

	if (!yes && !no)
		return bad_value("tls-verify-peer", value, "yes or no", error);
	t->tls_insecure = no;
	return 0;
}

int target_option(struct remote_target *t, const char *key, const char *value,
	struct error *error)
{
	int err = 0;

	if (!strcmp(key, "connections"))
		return set_connections(t, value, error);
	if (!strcmp(key, "tls-verify-peer"))
		return set_verify(t, value, error);
	if (!strcmp(key, "reconnect-timeout")) {
		if (time_parse(value, &t->timeout_ns))
			return bad_value(key, value, "such as 10m", error);
	} else if (!strcmp(key, "tls-certificates")) {
		err = replace(&t->tls_certificates, value);
	} else if (!strcmp(key, "tls-psk-file")) {
		err = replace(&t->tls_psk_file, value);
	} else if (!strcmp(key, "tls-username")) {
		err = replace(&t->tls_username, value);
	} else {
		return -ENOENT;
	}
	return err ? error_set(error, err, "out of memory") : 0;
}

static int unknown_key(const char *key, struct error *error)
{
	unsigned best = SPELL_FAR;
	const char *meant = NULL;

	for (size_t i = 0; i < TARGET_KEYS; i++) {
		if (spell_nearer(key, target_keys[i], &best))
			meant = target_keys[i];
	}
	if (meant)
		return error_set(error, -EINVAL,
			"unknown option \"%s\" (\"%s\"?)", key, meant);
	return error_set(error, -EINVAL, "unknown option \"%s\"", key);
}

static int set_key(struct remote_target *t, const char *key, const char *value,
	struct error *error)
{
	int err = target_option(t, key, value, error);

	return err == -ENOENT ? unknown_key(key, error) : err;
}

/* --- the query of a URI -------------------------------------------------- */

static int hex(char c)
{
	const char *digits = "0123456789abcdef0123456789ABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)((at - digits) % 16) : -1;
}

/* Undo "%41", in place. */
static void decode(char *text)
{
	char *to = text;

	for (; *text; text++) {
		int high = *text == '%' ? hex(text[1]) : -1;
		int low = high >= 0 ? hex(text[2]) : -1;

		*to++ = low >= 0 ? (char)(high * 16 + low) : *text;
		if (low >= 0)
			text += 2;
	}
	*to = '\0';
}

static int parse_parameter(
	struct remote_target *t, char *parameter, struct error *error)
{
	char *value;
	char *equals = strchr(parameter, '=');

	if (!equals)
		return error_set(error, -EINVAL,
			"\"%s\" is not KEY=VALUE, after the \"?\"", parameter);
	*equals = '\0';
	value = equals + 1;
	decode(value);
	return set_key(t, parameter, value, error);
}

/* Take our parameters out of the URI; "socket" stays. */
static int parse_query(struct remote_target *t, struct error *error)
{
	char *query = strchr(t->uri, '?'), *save, *end;
	CLEANUP_FREE char *copy = NULL;
	char joint = '?';

	if (!query)
		return 0;
	copy = strdup(query + 1);
	if (!copy)
		return error_set(error, -ENOMEM, "out of memory");
	end = query;
	*end = '\0';
	for (char *p = strtok_r(copy, "&", &save); p;
		p = strtok_r(NULL, "&", &save)) {
		int err = 0;

		if (!strncmp(p, "socket=", 7)) {
			/* Not longer than where it came from. */
			end += sprintf(end, "%c%s", joint, p);
			joint = '&';
			continue;
		}
		err = parse_parameter(t, p, error);
		if (err)
			return err;
	}
	return 0;
}

/* --- the whole ----------------------------------------------------------- */

static bool is_uri(const char *text)
{
	static const char *const schemes[] = {"nbd://", "nbds://",
		"nbd+unix://", "nbds+unix://", "nbd+vsock://", "nbds+vsock://"};

	for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
		if (!strncmp(text, schemes[i], strlen(schemes[i])))
			return true;
	}
	return false;
}

static int set_uri(
	struct remote_target *t, const char *uri, struct error *error)
{
	bool tls = !strncmp(uri, "nbds", 4);
	int err;

	if (!is_uri(uri))
		return error_set(error, -EINVAL,
			"\"%s\" is no NBD URI (such as nbd://HOST/EXPORT or "
			"nbd+unix:///EXPORT?socket=PATH)",
			uri);
	if (replace(&t->uri, uri) || replace(&t->name, uri))
		return error_set(error, -ENOMEM, "out of memory");
	err = parse_query(t, error);
	if (err)
		return err;
	if (!tls && (t->tls_certificates || t->tls_psk_file || t->tls_username))
		return error_set(error, -EINVAL,
			"tls-certificates, tls-psk-file and tls-username need "
			"nbds instead of nbd in \"%s\"",
			t->uri);
	return 0;
}

static int parse_options(struct remote_target *t, const char *rest,
	struct spec_list *parts, struct error *error)
{
	int err = spec_split(rest, parts, error);

	for (unsigned i = 0; !err && i + 1 < parts->count; i++) {
		char *value;

		err = spec_option(parts->part[i], &value, error);
		if (!err)
			err = set_key(t, parts->part[i], value, error);
	}
	return err ? err : set_uri(t, parts->part[parts->count - 1], error);
}

int target_parse_uri(const struct store_open_args *args,
	struct remote_target *t, struct error *error)
{
	struct spec_list parts = {0};
	int err;

	if (strncmp(args->spec, "nbd:", 4) || !strncmp(args->rest, "//", 2))
		return set_uri(t, args->spec, error);
	err = parse_options(t, args->rest, &parts, error);
	spec_list_free(&parts);
	return err;
}
