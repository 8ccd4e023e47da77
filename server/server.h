/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h: one process of weir-server, and its loops.
 *
 *   main.c      the command line, the background, the exit code
 *   server.c    open, run, signals, the order of the end
 *   store.c     the stores: opened, flushed and closed while others go on
 *   export.c    the names they are served under
 *   reload*.c   SIGHUP: what is new, changed or gone in the configuration
 *   worker.c    a loop on a thread: buffers and connections of its own
 *   descriptors.c   how many clients there are descriptors for
 *   listen.c    sockets, accepting, handing over to a loop
 *   conn.c      the life of a connection
 *   handshake.c, option.c, meta.c      negotiation
 *   transport.c, tls*.c                bytes of a socket, plain or encrypted
 *   transmit.c  requests out of the stream
 *   dispatch.c  NBD request <-> engine request
 *   reply.c, reply-chunks.c            answers into the stream
 *   status.c    the control socket's "exports" and "clients"
 *   snapshot.c, metrics*.c             the metrics, over HTTP
 *
 * Rules:
 *  1. A connection lives on one loop from its first byte to its last; nothing
 *     in it is touched by another thread, but for the counters in its
 *     `struct conn_stats`.
 *  2. Accepting and the state of the server belong to loop 0.
 *  3. `lock` guards the lists of stores, exports and connections, and is held
 *     for no system call. Stores and exports are changed by loop 0 alone, which
 *     reads them without it.
 *  4. An export lives until it has left the list and the last who got it has
 *     put it; its store as long as an export of it. A connection has its export
 *     from the choice of it until it is freed.
 */
#ifndef WEIR_SERVER_SERVER_H
#define WEIR_SERVER_SERVER_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/usock.h"
#include "engine.h"
#include "options.h"
#include "rxbuf.h"

#define SERVER_EXIT_IO 2 /* exit code: data could not be written */
#define SERVER_MAX_LISTENERS 16U
#define WORKER_IOV 1024U                /* IOV_MAX */
#define WORKER_HEADER_BYTES (32U << 10) /* bytes */

struct control;
struct conn;
struct metrics;
struct request;
struct server;
struct tls;

/*
 *	OPEN ---> WAITING ---> FLUSHING ---> CLOSING ---> freed
 *	  |  it left     its last         all is       on a helper
 *	  |  the list    export is gone   written      thread
 *	  +---------------> FLUSHING, and it stays so: the server ends
 */
enum store_state {
	STORE_OPEN,
	STORE_WAITING,
	STORE_FLUSHING,
	STORE_CLOSING,
};

/* A store: its engine. All but `name` and `engine` is loop 0's. */
struct server_store {
	struct list link; /* server->stores, or server->leaving */
	struct server *server;
	char *name;
	struct engine *engine;
	struct engine_config config; /* as the options had it */
	enum store_state state;
	bool flushed;     /* and the server ends */
	unsigned exports; /* there are, those that are gone as well */
	/* Of the end: a hop over every loop, then the helper thread. */
	struct reactor_task hop;
	unsigned hops;
	struct reactor_work close;
};

/* A name under which a store is served. */
struct server_export {
	struct list link; /* server->exports, or server->gone */
	struct server_store *store;
	uint64_t id; /* no other export has it, ever */
	char *name;
	size_t name_length;
	char *description; /* "" if there is none; under `lock` */
	struct engine_export *export;
	struct engine_info info;
	bool readonly; /* as it was asked for */
	enum engine_cache_mode cache;
	_Atomic unsigned refs;
	_Atomic unsigned connections;
	_Atomic bool ended;  /* its connections have to end */
	_Atomic bool killed; /* at once */
	struct reactor_timer grace;
	struct reactor_task free_task;
};

struct worker {
	struct server *server;
	struct reactor *reactor;
	struct ev_loop *loop;
	pthread_t thread;
	bool started;
	struct rxpool rx;
	struct request *free_requests;
	unsigned nfree_requests;
	struct list conns; /* of struct conn */
	struct list ready; /* conns with answers to send */
	struct list later; /* conns whose turn was over, with more to do */
	ev_prepare prepare;
	ev_idle again; /* keeps the loop awake for `later` */
	unsigned met;  /* requests since the loop woke */
	bool stopping; /* no connection is begun or read any more */
	bool idle;     /* and the last one has gone */
	struct reactor_task drain_task, drained_task, kill_task, idle_task;
	struct reactor_task sweep_task;
	_Atomic bool sweeping; /* it is posted */
	_Atomic unsigned nconns;
	/* Scratch for one readv or sendmsg. */
	struct iovec iov[WORKER_IOV];
	unsigned char headers[WORKER_HEADER_BYTES];
};

struct listener {
	struct server *server;
	int fd; /* a unix socket's is owned by server->usock */
	ev_io io;
};

struct server {
	struct options *options; /* what can change is loop 0's */
	struct list stores;      /* of struct server_store, under `lock` */
	struct list exports;     /* of struct server_export, under `lock` */
	struct list leaving;     /* stores that left it; loop 0's */
	struct list gone;        /* exports that left it; loop 0's */
	uint64_t last_id;        /* of an export; loop 0's */
	struct reload *reload;   /* that is under way, or NULL; loop 0's */
	bool reload_again;
	struct options *wanted; /* of the last good reload; or `options` */
	bool late;              /* a store of it may be to be opened now */
	struct worker *workers;
	unsigned nworkers;
	struct control *control;
	struct metrics *metrics; /* or NULL */
	struct tls *tls;         /* or NULL */
	char *pidfile;           /* absolute, or NULL; removed at the end */

	/* Loop 0's. */
	struct listener listeners[SERVER_MAX_LISTENERS];
	unsigned nlisteners;
	struct usock usock;
	struct reactor_timer accept_timer;
	struct reactor_task accept_task;
	bool accept_failed; /* and the log says so */
	ev_signal sigterm, sigint, sighup;
	struct reactor_timer grace;
	bool stopping;
	bool shutting_down; /* the stores, all of them */
	bool stores_done;   /* and they are */
	bool gave_up;       /* at shutdown-timeout, of one of them */
	unsigned draining;  /* loops that have not stopped reading yet */
	unsigned busy;      /* loops that have connections yet */
	int result;         /* exit code */

	unsigned max_connections; /* 0: no limit; set before the loops run */
	_Atomic unsigned connections; /* slots taken */
	_Atomic bool accept_waits;    /* for a slot */

	pthread_mutex_t lock;
	struct list all; /* of struct conn, every loop's */
};

/* --- server.c ------------------------------------------------------------- */

/* Open the stores and sockets. Blocks. -errno with `error` filled. */
int server_open(struct server *s, struct options *o, struct error *error);

/* The sockets' addresses, for the line that says it is ready. */
void server_describe(const struct server *s, char *text, size_t size);

/* Write the process id. -errno with `error` filled. */
int server_write_pidfile(struct server *s, struct error *error);

/* Serve until a signal says stop. Returns the exit code. Blocks. */
int server_run(struct server *s);

/* Also of one that could not be opened, or is all zero. */
void server_close(struct server *s);

/* A worker reads no more requests; it has no connection left. Loop 0. */
void server_worker_drained(struct server *s);
void server_worker_idle(struct server *s);

/* Something that the end waits for is over: a reload, or a store is flushed.
 * Loop 0. */
void server_check_end(struct server *s);

/* --- store.c -------------------------------------------------------------- */

/* Open a store, which is in no list yet; the loops may run. Blocks; any
 * thread. -errno with `error` filled. */
int server_store_open(struct server *s, const struct store_options *o,
	struct server_store **out, struct error *error);

/* Put it in the list. Loop 0, or before it runs. */
void server_store_add(struct server_store *st);

/* The one of that name in the list, or NULL. Loop 0. */
struct server_store *server_store_find(struct server *s, const char *name);

/* Have it flushed, closed and freed, when its exports are gone; it leaves the
 * list. Loop 0. */
void server_store_remove(struct server_store *st);

/* An export of it has been freed. Loop 0. */
void server_store_check(struct server_store *st);

/* The server ends: flush all stores. `done` of each is server_check_end().
 * Loop 0. */
void server_stores_shutdown(struct server *s);

/* Are they all flushed? */
bool server_stores_done(const struct server *s);

/* Free it. The loops are stopped, or it is closed as it should be. */
void server_store_free(struct server_store *st);

/* --- export.c ------------------------------------------------------------- */

/* Serve a store. -ENOMEM with `error` filled. Loop 0, or before it runs. */
int export_open(struct server *s, struct server_store *st,
	const struct export_options *o, struct error *error);

/* Serve it no more; its connections go on, or end when what they asked for is
 * answered. Loop 0. */
void export_remove(struct server_export *x, bool end);

/* End the connections of one that is gone. Loop 0. */
void export_end(struct server_export *x);

/* The one that has just that name, or NULL. Loop 0. */
struct server_export *export_find(struct server *s, const char *name);

/* Change what clients are told. -ENOMEM. Loop 0. */
int export_describe(struct server_export *x, const char *description);

/* Put it last in the list. Loop 0. */
void export_move_last(struct server_export *x);

/*
 * A reference to the export of that name, for export_put(); NULL: there is
 * none. Where there is one export only, the empty name is its too. Any thread.
 */
struct server_export *export_get(
	struct server *s, const char *name, size_t length);

/* Let go; NULL is fine. Any thread. */
void export_put(struct server_export *x);

/* The one the server says it serves when it is ready. Loop 0. */
const struct server_export *export_first(const struct server *s);

/* Free all of them. The loops are stopped, and the connections gone. */
void exports_close(struct server *s);

/* --- reload.c ------------------------------------------------------------- */

/* Read the configuration again, and do what it says. Loop 0. */
void reload_start(struct server *s);

/* A store that left the list is closed and freed. Loop 0. */
void reload_store_closed(struct server *s);

/* --- worker.c ------------------------------------------------------------- */

int worker_open(
	struct worker *w, struct server *s, unsigned id, struct error *error);
int worker_start(struct worker *w);
void worker_join(struct worker *w);

/* Have it read no more requests and answer those it has; then it says
 * server_worker_drained(). Any thread. */
void worker_drain(struct worker *w);

/* Have it look for connections whose export is gone. Any thread. */
void worker_sweep(struct worker *w);

/* Have it close what connections are left. Any thread, once. */
void worker_kill(struct worker *w);

/* A connection of it has gone. Its own thread. */
void worker_check_idle(struct worker *w);

void worker_close(struct worker *w);

/* --- descriptors.c -------------------------------------------------------- */

/* Before anything is opened: see that there are descriptors for it. -EMFILE
 * with `error` filled. */
int descriptors_prepare(
	const struct options *o, unsigned loops, struct error *error);

/* All is open: set s->max_connections to what there are descriptors for. */
void descriptors_settle(struct server *s);

/* --- listen.c ------------------------------------------------------------- */

int listen_open(struct server *s, struct error *error);
void listen_start(struct server *s);

/* Stop accepting and remove the unix socket. Loop 0, or nothing runs. */
void listen_close(struct server *s);

/* --max-connections is another. Loop 0. */
void listen_limit_changed(struct server *s);

/* A slot is free again. Any thread. */
void listen_slot_free(struct server *s);

/* --- swap.c --------------------------------------------------------------- */

/* --swap: before anything else of the server. Blocks while memory is filled.
 * 0, or a negative errno with `error` filled. */
int swap_prepare(struct error *error);

/* --- status.c ------------------------------------------------------------- */

int status_open(struct server *s, struct error *error);

/* --- snapshot.c ----------------------------------------------------------- */

/* Begin to answer --metrics. -errno with `error` filled. */
int snapshot_open(struct server *s, struct error *error);

#endif
