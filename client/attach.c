/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach.c: `weir attach`: asks the server about the export, then has the
 * block device made by nbd-client or nbdfuse; prints its name. What was made
 * is taken apart again when a later step fails.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"

struct options {
	struct attach_plan plan;
	enum attach_via via;
};

static void help(void)
{
	puts("usage: weir attach [OPTIONS] URI\n\n"
	     "Make an export a block device of this machine and print the\n"
	     "device's name: /dev/nbdN with nbd-client where the kernel has\n"
	     "nbd, else /dev/loopN on a file shown by nbdfuse. Needs root.\n\n"
	     "  -r, --readonly          the device cannot be written\n"
	     "  -C, --connections N     connections to the server\n"
	     "  -b, --block-size N      sector: 512 (default) to 4096 bytes\n"
	     "      --via nbd|nbdfuse   one of the two ways only\n"
	     "      --help              this");
}

static int parse_number(const char *command, const char *name, const char *text,
	unsigned max, unsigned *out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || !n || n > max)
		return client_error(EXIT_USAGE, command,
			"%s: a number from 1 to %u, not '%s'", name, max, text);
	*out = (unsigned)n;
	return EXIT_OK;
}

static int parse_block(const char *command, const char *text, unsigned *out)
{
	int r = parse_number(command, "--block-size", text, 4096, out);

	if (!r && (*out < 512 || (*out & (*out - 1))))
		r = client_error(EXIT_USAGE, command,
			"--block-size: 512, 1024, 2048 or 4096, not '%s'",
			text);
	return r;
}

static int parse_via(
	const char *command, const char *text, enum attach_via *out)
{
	if (!strcmp(text, "nbd") || !strcmp(text, "nbd-client"))
		*out = ATTACH_NBD;
	else if (!strcmp(text, "nbdfuse") || !strcmp(text, "fuse"))
		*out = ATTACH_FUSE;
	else
		return client_error(EXIT_USAGE, command,
			"--via: nbd or nbdfuse, not '%s'", text);
	return EXIT_OK;
}

/* Fill in the plan from what the server says. */
static int probe(const char *command, struct attach_plan *plan)
{
	struct nbd_handle *nbd = connect_open(command, plan->uri, false);
	int64_t size, block;

	if (!nbd)
		return EXIT_IO;
	size = nbd_get_size(nbd);
	block = nbd_get_block_size(nbd, LIBNBD_SIZE_MINIMUM);
	if (nbd_is_read_only(nbd) > 0)
		plan->readonly = true;
	if (nbd_can_multi_conn(nbd) <= 0)
		plan->connections = 1;
	nbd_shutdown(nbd, 0);
	nbd_close(nbd);
	plan->size = (uint64_t)size;
	if (size <= 0)
		return client_error(
			EXIT_IO, command, "%s: the export is empty", plan->uri);
	if (block > (int64_t)plan->block_size)
		plan->block_size = (unsigned)block;
	if (plan->size < plan->block_size)
		return client_error(EXIT_IO, command,
			"%s: its %llu bytes are less than one sector of %u, "
			"which is the least a block device has",
			plan->uri, (unsigned long long)plan->size,
			plan->block_size);
	if (plan->block_size > 4096)
		return client_error(EXIT_IO, command,
			"%s: its blocks of %u bytes are larger than a device's "
			"sectors",
			plan->uri, plan->block_size);
	return EXIT_OK;
}

static enum attach_via choose(const struct options *o)
{
	if (o->via != ATTACH_AUTO)
		return o->via;
	/* nbd-client and the kernel know nothing of libnbd's TLS URIs. */
	if (!strncmp(o->plan.uri, "nbds", 4))
		return ATTACH_FUSE;
	return attach_nbd_possible() ? ATTACH_NBD : ATTACH_FUSE;
}

/* Signals wait until the attachment is whole or gone again. */
static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int attach(const char *command, struct options *o)
{
	struct attachment a = {.lock = -1};
	int r;

	if (geteuid())
		return client_error(EXIT_USAGE, command,
			"a block device needs root; try 'sudo weir attach %s', "
			"or without root nbdfuse(1) for a file, 'weir bench' "
			"to measure",
			o->plan.uri);
	r = probe(command, &o->plan);
	if (r)
		return r;
	block_signals();
	r = choose(o) == ATTACH_NBD ? attach_nbd(command, &o->plan, &a)
				    : attach_fuse(command, &o->plan, &a);
	if (!r && (puts(a.device) < 0 || fflush(stdout)))
		r = client_error(EXIT_IO, command, "cannot write the name");
	if (r && a.dir)
		detach_teardown(command, &a, true);
	attach_state_free(&a);
	return r;
}

static int parse(int argc, char **argv, struct options *o, bool *done)
{
	static const struct option options[] = {
		{"readonly", no_argument, NULL, 'r'},
		{"connections", required_argument, NULL, 'C'},
		{"block-size", required_argument, NULL, 'b'},
		{"via", required_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c, r = EXIT_OK;

	while (!r &&
		(c = client_getopt(argc, argv, ":rC:b:h", options)) != -1) {
		if (c == 'r')
			o->plan.readonly = true;
		else if (c == 'C')
			r = parse_number(argv[0], "--connections", optarg, 64,
				&o->plan.connections);
		else if (c == 'b')
			r = parse_block(argv[0], optarg, &o->plan.block_size);
		else if (c == 'v')
			r = parse_via(argv[0], optarg, &o->via);
		else if (c == 'h')
			return *done = true, help(), EXIT_OK;
		else
			r = EXIT_USAGE;
	}
	return r;
}

int cmd_attach(int argc, char **argv)
{
	struct options o = {.plan.block_size = 512};
	bool done = false;
	int r = parse(argc, argv, &o, &done);

	if (r || done)
		return r;
	o.plan.uri = client_one_argument(argc, argv, "URI");
	if (!o.plan.uri || !connect_check_uri(argv[0], o.plan.uri))
		return EXIT_USAGE;
	return attach(argv[0], &o);
}
