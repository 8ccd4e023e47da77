/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * change.c: `weir set`, `weir reset` and `weir drop`: what changes a running
 * server, over its control socket.
 */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "client.h"

static void set_help(void)
{
	puts("usage: weir set CONTROL [STORE:]KEY=VALUE...\n\n"
	     "Change limits and policies of the server with the control "
	     "socket\n"
	     "CONTROL: all that are given, or none if it refuses one. The "
	     "keys\n"
	     "are those of weir-server(8); which can be changed it says too.\n"
	     "Without STORE: it is for every store.\n\n"
	     "  --help         this");
}

static int set(char **argv, const char *path, char *const *words, int n)
{
	json_t *list = json_array(), *answer;
	int code;

	for (int i = 0; i < n; i++) {
		if (!strchr(words[i], '=')) {
			json_decref(list);
			return client_error(EXIT_USAGE, argv[0],
				"%s: not KEY=VALUE; try '%s --help'", words[i],
				argv[0]);
		}
		json_array_append_new(list, json_string(words[i]));
	}
	code = control_ask(argv[0], path,
		json_pack("{s:s, s:o}", "cmd", "set", "set", list), &answer);
	json_decref(answer);
	return code;
}

int cmd_set(int argc, char **argv)
{
	int code;

	if (!client_plain_options(argc, argv, set_help, NULL, &code))
		return code;
	if (argc - optind < 2)
		return client_error(EXIT_USAGE, argv[0],
			"CONTROL and KEY=VALUE are needed; try '%s --help'",
			argv[0]);
	return set(argv, argv[optind], argv + optind + 1, argc - optind - 1);
}

/* The answer to a command that needs no more than CONTROL; NULL with *code. */
static json_t *plain_call(
	int argc, char **argv, void (*help)(void), const char *cmd, int *code)
{
	const char *path;
	json_t *answer;

	if (!client_plain_options(argc, argv, help, NULL, code))
		return NULL;
	path = client_one_argument(argc, argv, "CONTROL");
	*code = path ? EXIT_IO : EXIT_USAGE;
	answer = path ? control_call(argv[0], path, cmd) : NULL;
	if (answer)
		*code = EXIT_OK;
	return answer;
}

static void reset_help(void)
{
	puts("usage: weir reset CONTROL\n\n"
	     "Zero the peaks and histograms of the server with the\n"
	     "control socket CONTROL.\n\n"
	     "  --help         this");
}

int cmd_reset(int argc, char **argv)
{
	int code;

	json_decref(plain_call(argc, argv, reset_help, "reset", &code));
	return code;
}

static void drop_help(void)
{
	puts("usage: weir drop CONTROL\n\n"
	     "Empty the cache of the server with the control socket CONTROL "
	     "of\n"
	     "what is clean, and print how much memory that freed. What is\n"
	     "dirty stays: flush first to drop all.\n\n"
	     "  --help         this");
}

int cmd_drop(int argc, char **argv)
{
	int code;
	json_t *answer = plain_call(argc, argv, drop_help, "drop", &code);
	json_int_t freed =
		json_integer_value(json_object_get(answer, "freed_bytes"));
	char size[16];

	if (answer)
		printf("%s (%lld bytes) freed\n",
			size_format((uint64_t)freed, size), (long long)freed);
	json_decref(answer);
	return code;
}
