/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h: what the subcommands of weir(1) share.
 *
 *  1. A subcommand is one function, cmd_NAME(argc, argv), named in main.c's
 *     table, in a file of its own. argv[0] is "weir NAME", for messages.
 *  2. It returns an enum exit_code, and says why on standard error in one
 *     line, "weir NAME: what: why", if that is not EXIT_OK.
 *  3. Results go to standard output and nothing else does.
 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <libnbd.h>
#include <jansson.h>

enum exit_code {
	EXIT_OK = 0,
	EXIT_USAGE = 1, /* the command line, or what has to be there first */
	EXIT_IO = 2,    /* the server, the device, the data */
};

int cmd_attach(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_detach(int argc, char **argv);
int cmd_drop(int argc, char **argv);
int cmd_experiment(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_pool(int argc, char **argv);
int cmd_reset(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_tls_init(int argc, char **argv);
int cmd_top(int argc, char **argv);

/* --- util.c -------------------------------------------------------------- */

/* "weir NAME: ..." on standard error; returns `code`. Any thread. */
__attribute__((format(printf, 3, 4))) int client_error(
	int code, const char *command, const char *fmt, ...);

/*
 * getopt_long() that says itself what is wrong, in one line that ends with
 * where the options are explained: '?' then. `short_options` starts with ':'.
 */
int client_getopt(int argc, char **argv, const char *short_options,
	const struct option *options);

/*
 * The options of a command that has --help and, if `json` is not NULL, --json.
 * True to go on, else *code is the exit code.
 */
bool client_plain_options(
	int argc, char **argv, void (*help)(void), bool *json, int *code);

/* The one argument after the options, or NULL with the error said: `what`
 * names it ("URI"). Call when getopt_long() has returned -1. */
const char *client_one_argument(int argc, char **argv, const char *what);

/* Print a JSON value to standard output, indented, and give it up. Returns
 * EXIT_OK, or EXIT_IO if it could not be written. */
int client_print_json(const char *command, json_t *value);

/* printf into fresh memory, to free(); exits the program without memory. */
__attribute__((format(printf, 1, 2))) char *client_format(const char *fmt, ...);

/* --- connect.c ----------------------------------------------------------- */

/* Does it look like a URI? False with the error said: EXIT_USAGE. */
bool connect_check_uri(const char *command, const char *uri);

/*
 * Connect to an NBD URI: a fresh handle, ready for requests, or one that is
 * negotiating if `negotiate` and the server can (see nbd_set_opt_mode(3)).
 * NULL with the error said under `command`. Blocks.
 */
struct nbd_handle *connect_open(
	const char *command, const char *uri, bool negotiate);

/* Say why the server would not give the export, and if there is none of that
 * name, which there are; returns EXIT_IO. Blocks: it asks. */
int connect_refused(const char *command, const char *uri);

/* Say why the last libnbd call of this thread failed; returns EXIT_IO. */
int connect_error(const char *command, const char *what);

/* --- control.c ----------------------------------------------------------- */

/*
 * Send {"cmd": `cmd`} to the control socket at `path` and wait for the
 * answer, an object; the caller's reference. NULL with the error said.
 * Blocks, ten seconds at most.
 */
json_t *control_call(const char *command, const char *path, const char *cmd);

/*
 * The same for any question, which it gives up. EXIT_OK with *answer;
 * EXIT_USAGE if the server will not, EXIT_IO if it does not answer, with the
 * error said.
 */
int control_ask(const char *command, const char *path, json_t *question,
	json_t **answer);

/*
 * CPU time the server behind the answer to "stats" has used, user and
 * system, in microseconds: what it says of itself, else /proc of its pid.
 * False if neither is known.
 */
bool control_cpu(json_t *stats, uint64_t *cpu_us);

#endif
