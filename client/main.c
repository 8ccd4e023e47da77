/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: weir(1), the client: finds the subcommand and runs it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

struct command {
	const char *name;
	const char *arguments;
	const char *summary;
	int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
	{"attach", "URI", "make an export a block device of this machine",
		cmd_attach},
	{"bench", "URI...", "measure an export", cmd_bench},
	{"compare", "FILE...", "lay measurements side by side", cmd_compare},
	{"detach", "DEVICE", "flush and give up a block device", cmd_detach},
	{"drop", "CONTROL", "empty a server's cache of what is clean",
		cmd_drop},
	{"experiment", "NAME", "reproduce a result", cmd_experiment},
	{"info", "URI", "what a server says about its exports", cmd_info},
	{"pool", "VERB PATH", "make, enlarge and look at pools, offline",
		cmd_pool},
	{"reset", "CONTROL", "zero a server's peaks and histograms", cmd_reset},
	{"set", "CONTROL K=V...", "change a running server", cmd_set},
	{"stats", "CONTROL", "a server's counters", cmd_stats},
	{"tls-init", "DIR", "make certificates to try TLS with", cmd_tls_init},
	{"top", "CONTROL", "a live screen of a server", cmd_top},
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help(void)
{
	printf("weir: measure, inspect and attach NBD exports\n\n"
	       "usage: weir COMMAND [OPTIONS] ARGUMENTS\n\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		printf("  %-10s %-14s %s\n", commands[i].name,
			commands[i].arguments, commands[i].summary);
	printf("\n"
	       "  --help         this, or with a command the command's "
	       "options\n"
	       "  --version      name and version\n\n"
	       "URI is an NBD URI: nbd://HOST[:PORT]/EXPORT,\n"
	       "nbd+unix:///EXPORT?socket=PATH, nbds://... with TLS.\n"
	       "CONTROL is a server's control socket (weir-server "
	       "--control).\n\n"
	       "See weir(1).\n");
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int run(const struct command *command, int argc, char **argv)
{
	char name[32];

	snprintf(name, sizeof(name), "weir %s", command->name);
	argv[0] = name;
	return command->run(argc, argv);
}

int main(int argc, char **argv)
{
	const struct command *command;
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name)
		return client_error(EXIT_USAGE, "weir",
			"no command; 'weir --help' lists them");
	if (!strcmp(name, "--help") || !strcmp(name, "-h") ||
		!strcmp(name, "help")) {
		help();
		return EXIT_OK;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("weir " PACKAGE_VERSION);
		return EXIT_OK;
	}
	command = find(name);
	if (!command)
		return client_error(EXIT_USAGE, "weir",
			"%s: no such command; 'weir --help' lists them", name);
	return run(command, argc - 1, argv + 1);
}
