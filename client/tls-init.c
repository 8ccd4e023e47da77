/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-init.c: weir tls-init: certificates for a trial, in the layout that
 * weir-server, nbdkit and libnbd have in common.
 *
 *   DIR/ca-cert.pem      the authority, made for this; its key in
 *   DIR/ca-key.pem       is what everything hangs on
 *   DIR/server-cert.pem  for the host names that are given
 *   DIR/server-key.pem
 *   DIR/client-cert.pem  for --tls-verify-peer
 *   DIR/client-key.pem
 *
 *  1. Nothing that is there is overwritten: if one of the files exists, none
 *     is made.
 *  2. A key is never readable by others, not for a moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "tls-init.h"

static const char *const files[] = {"ca-cert.pem", "ca-key.pem",
	"server-cert.pem", "server-key.pem", "client-cert.pem",
	"client-key.pem"};

#define NFILES (sizeof(files) / sizeof(files[0]))

/* --- files ---------------------------------------------------------------- */

/* None of them is there yet. */
static int check_absent(const char *command, const char *dir)
{
	for (size_t i = 0; i < NFILES; i++) {
		char *path = client_format("%s/%s", dir, files[i]);
		int found = !access(path, F_OK);

		if (found)
			client_error(EXIT_USAGE, command,
				"%s: is there already; give another directory",
				path);
		free(path);
		if (found)
			return EXIT_USAGE;
	}
	return EXIT_OK;
}

static int make_directory(const char *command, const char *dir)
{
	if (!mkdir(dir, 0755) || errno == EEXIST)
		return EXIT_OK;
	return client_error(EXIT_USAGE, command, "%s: cannot make it: %s", dir,
		strerror(errno));
}

/* A new file of that mode, to be written as `kind` says. */
static int write_file(const char *command, const char *dir, const char *name,
	mode_t mode, int (*put)(FILE *f, const struct identity *id),
	const struct identity *id)
{
	char *path = client_format("%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	int r = EXIT_OK;

	if (!f || put(f, id) || fflush(f))
		r = client_error(EXIT_USAGE, command, "%s: cannot write: %s",
			path, strerror(errno));
	if (f)
		fclose(f);
	free(path);
	return r;
}

static int write_identity(const char *command, const char *dir, const char *who,
	const struct identity *id)
{
	char *cert = client_format("%s-cert.pem", who);
	char *key = client_format("%s-key.pem", who);
	int r = write_file(command, dir, key, 0600, tls_identity_put_key, id);

	if (!r)
		r = write_file(command, dir, cert, 0644,
			tls_identity_put_certificate, id);
	free(cert);
	free(key);
	return r;
}

/* --- making them ---------------------------------------------------------- */

static int make_all(const char *command, const char *dir,
	const char *const *hosts, unsigned nhosts)
{
	struct identity ca = {.certificate = NULL}, server = ca, client = ca;
	const char *why = tls_identity_make(
		&ca, NULL, TLS_AUTHORITY, "weir trial authority", NULL, 0);
	int r = EXIT_OK;

	if (!why)
		why = tls_identity_make(
			&server, &ca, TLS_SERVER, hosts[0], hosts, nhosts);
	if (!why)
		why = tls_identity_make(
			&client, &ca, TLS_CLIENT, "weir client", NULL, 0);
	if (why)
		r = client_error(EXIT_USAGE, command,
			"cannot make a certificate: %s", why);
	if (!r)
		r = write_identity(command, dir, "ca", &ca);
	if (!r)
		r = write_identity(command, dir, "server", &server);
	if (!r)
		r = write_identity(command, dir, "client", &client);
	tls_identity_free(&ca);
	tls_identity_free(&server);
	tls_identity_free(&client);
	return r;
}

static void say_what_now(const char *dir, const char *host)
{
	printf("Certificates for a trial, valid for a year. The server:\n"
	       "  weir-server --tls=require --tls-certificates=%s ...\n"
	       "and a client, which needs ca-cert.pem and, with "
	       "--tls-verify-peer,\nclient-cert.pem and client-key.pem:\n"
	       "  weir info 'nbds://%s/?tls-certificates=%s'\n",
		dir, host, dir);
}

/* --- command line --------------------------------------------------------- */

static void help(void)
{
	printf("usage: weir tls-init [OPTIONS] DIR\n\n"
	       "Make an authority and certificates for a server and a client, "
	       "to try TLS.\n\n"
	       "  --host NAME    a name or address of the server, repeatable\n"
	       "                 (default: localhost, 127.0.0.1 and ::1)\n"
	       "  --help         this\n");
}

int cmd_tls_init(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"host", required_argument, NULL, 'H'},
		{NULL, 0, NULL, 0},
	};
	const char *hosts[TLS_MAX_HOSTS] = {"localhost", "127.0.0.1", "::1"};
	const char *dir;
	unsigned nhosts = 0;
	int c, r;

	while ((c = client_getopt(argc, argv, ":h", options)) != -1) {
		if (c == 'h')
			help();
		if (c != 'H')
			return c == 'h' ? EXIT_OK : EXIT_USAGE;
		if (nhosts == TLS_MAX_HOSTS || !*optarg)
			return client_error(EXIT_USAGE, argv[0],
				"--host %s: a name, and %d of them at most",
				optarg, TLS_MAX_HOSTS);
		hosts[nhosts++] = optarg;
	}
	if (!nhosts)
		nhosts = 3;
	dir = client_one_argument(argc, argv, "DIR");
	if (!dir)
		return EXIT_USAGE;
	r = check_absent(argv[0], dir);
	if (!r)
		r = make_directory(argv[0], dir);
	if (!r)
		r = make_all(argv[0], dir, hosts, nhosts);
	if (!r)
		say_what_now(dir, hosts[0]);
	return r;
}
