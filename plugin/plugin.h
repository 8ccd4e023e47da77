/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin.h: what the files of the nbdkit plugin share.
 *
 *   plugin.c      configuration and life cycle, as nbdkit calls them
 *   loops.c       the engine's loops, one thread each
 *   connection.c  one client: who it is, what it may do, its goodbye
 *   data.c        the requests; the calling thread waits for a miss
 *   signals.c     writing back as soon as nbdkit is told to end
 *   status.c      the control socket
 */
#ifndef WEIR_PLUGIN_H
#define WEIR_PLUGIN_H

#include <ev.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "engine.h"

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

/* --- loops.c ------------------------------------------------------------- */

#define LOOPS_MAX 64U

struct control;

struct loops {
	unsigned n, running; /* made; with a thread */
	pid_t opener;        /* the process that made them */
	struct reactor *reactor[LOOPS_MAX];
	pthread_t thread[LOOPS_MAX];
};

/* Make `n` loops, with no thread yet. 0 or a negative errno, `error` filled. */
int loops_open(struct loops *l, unsigned n, struct error *error);

/* Start their threads, which take no signals; in the process that opened them
 * or a child of it. 0 or a negative errno. */
int loops_start(struct loops *l);

/* Stop and join the threads; blocks. Nothing may be in flight. */
void loops_stop(struct loops *l);

/* Free the loops; they are stopped. */
void loops_close(struct loops *l);

/* --- signals.c ----------------------------------------------------------- */

#define SIGNALS_MAX 4

struct signals {
	struct reactor *reactor; /* loop 0 */
	struct ev_loop *loop;
	ev_async wake;
	struct engine_export *export;
	struct engine_request flush; /* loop 0's */
	bool flushing;               /* loop 0's */
	struct sigaction old[SIGNALS_MAX];
};

/* Put `handler` before nbdkit's; the loop does not run yet. */
void signals_open(struct signals *s, struct reactor *reactor,
	struct engine_export *export, void (*handler)(int sig));

/* What `handler` calls: nbdkit's handler, and a flush on the loop. */
void signals_caught(struct signals *s, int sig);

/* Leave the signals to nbdkit alone. */
void signals_restore(struct signals *s);

/* The loops are stopped. */
void signals_close(struct signals *s);

/* --- plugin.c ------------------------------------------------------------ */

/* nbdkit passes no context to its callbacks, so there is one of these in a
 * process; only plugin.c names it, the rest are given a pointer. */
struct plugin {
	struct engine_config config;
	unsigned threads;
	char *control_path; /* absolute; NULL: no control socket */
	uint64_t shutdown_ns;
	bool single; /* one client, on standard input and output */

	struct loops loops;
	struct engine *engine;
	struct engine_export *export_rw, *export_ro;
	struct control *control; /* may be NULL */
	struct signals signals;

	pthread_mutex_t lock;
	struct list connections; /* under the lock */
};

/* --- connection.c -------------------------------------------------------- */

#define IDENTITY_SIZE 64

/* One connection; nbdkit's handle. Several of nbdkit's threads use it. */
struct connection {
	struct plugin *plugin;
	struct list link;             /* of plugin->connections */
	char identity[IDENTITY_SIZE]; /* "": not known who it is */
	struct engine_export *export;
	struct engine_client *client; /* NULL: not known */
	struct engine_info info;
	/* Something was changed that no flush of this connection covers. */
	atomic_bool wrote;
};

struct connection *connection_new(struct plugin *p, bool readonly);
void connection_free(struct connection *c);

/* What a client may do: nbdkit's callbacks of those names. */
int64_t connection_get_size(void *handle);
int connection_block_size(void *handle, uint32_t *minimum, uint32_t *preferred,
	uint32_t *maximum);
int connection_can_write(void *handle);
int connection_can_trim(void *handle);
int connection_can_zero(void *handle);
int connection_can_fast_zero(void *handle);

/* --- data.c -------------------------------------------------------------- */

/* nbdkit's callbacks of those names; each returns when it is done. */
int data_pread(void *handle, void *buf, uint32_t count, uint64_t offset,
	uint32_t flags);
int data_pwrite(void *handle, const void *buf, uint32_t count, uint64_t offset,
	uint32_t flags);
int data_flush(void *handle, uint32_t flags);
int data_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags);
int data_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags);
int data_cache(void *handle, uint32_t count, uint64_t offset, uint32_t flags);
int data_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
	struct nbdkit_extents *extents);

/* --- status.c ------------------------------------------------------------ */

/* Open p->control_path, on a loop that does not run yet. 0 or a negative
 * errno with `error` filled. */
int status_open(struct plugin *p, struct error *error);

/* Close it; the loops are stopped. */
void status_close(struct plugin *p);

#endif
