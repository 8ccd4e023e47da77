/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd.h: a store on another server, by libnbd; for nbd*.c and exec*.c only.
 *
 *   submit ──> home loop ─┬─> connections (up) ──> finished ──> done
 *                         └─> waiting (down) ─┬─> when there is a server
 *                                 ^           └─> too long: -EIO
 *              a connection lost ─┘
 *
 * What must hold:
 *  1. The connections of a link are all open before the first command goes to
 *     one of them, and when one is lost all are closed: so all that was
 *     answered on a link was answered by one server, before it died.
 *  2. With a link everything answered and not flushed may be lost. The next
 *     FLUSH says so (-ESTALE, see store.h), and every one submitted before
 *     that was said.
 *  3. A command that was under way starts all over on the next link: no part
 *     of it counts that another server did.
 *  4. A zeroed range is durable when it is answered: a reader must not find
 *     there what was before because the server forgot.
 *  5. A server of another size is another disk: it is refused.
 *  6. Everything but the connector (nbd-connector.c) belongs to the home loop;
 *     until that runs, to whoever opens the store: a simulated loop's io is
 *     done at once, blocking.
 */
#ifndef WEIR_STORE_NBD_H
#define WEIR_STORE_NBD_H

#include <ev.h>
#include <libnbd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "kind.h"

#define REMOTE_CONNECTIONS 4U /* as many as a server allows, up to */
#define REMOTE_CONNECTIONS_MAX 16U
#define REMOTE_TIMEOUT_NS (600 * NSEC_PER_SEC)

/* What to connect to. */
struct remote_target {
	char *name;  /* for messages */
	char *uri;   /* what libnbd is given */
	char **argv; /* or the command to start; NULL-terminated */
	char *tls_certificates, *tls_psk_file, *tls_username;
	bool tls_insecure;    /* do not look at the server's certificate */
	unsigned connections; /* at most */
	uint64_t timeout_ns;  /* what waits for a server waits so long */
	unsigned flags;       /* STORE_OPEN_* */
};

struct remote_caps {
	uint64_t size;                 /* bytes */
	uint32_t min, preferred, most; /* block sizes, bytes */
	bool readonly, multi_conn;
	bool flush, fua, trim, zero, fast_zero, status;
};

/* The connections to one server. */
struct remote_link {
	struct nbd_handle *nbd[REMOTE_CONNECTIONS_MAX];
	unsigned n;
	struct remote_caps caps;
};

struct exec_child {
	int pid;         /* 0: none */
	int errors;      /* what it says on standard error; -1 */
	char dir[40];    /* where its socket is; "": nowhere */
	char path[64];   /* the socket */
	char first[256]; /* the first line it said */
	char part[256];  /* of a line */
	size_t used;
};

/* Opens links on a thread of its own. */
struct connector {
	pthread_t thread;
	bool started, asked; /* by the home loop */
	struct ev_loop *loop;
	ev_async ready; /* the thread has an answer */
	atomic_bool quit;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool wanted, answered;
	struct remote_link link; /* the answer; n = 0: none */
	struct error error;
};

struct remote;

struct remote_conn {
	struct remote *remote;
	struct nbd_handle *nbd; /* NULL: none */
	ev_io watcher;
	int events; /* watched for; 0: it is not watched */
};

enum remote_state {
	REMOTE_UP,
	REMOTE_CONNECTING,
	REMOTE_RESTING, /* until the next try */
};

struct remote {
	struct store base;
	struct remote_target target;
	struct exec_child child; /* the connector's, but for its errors */
	_Atomic(struct reactor *) home;
	bool attached; /* the home loop watches the connections */

	struct remote_conn conn[REMOTE_CONNECTIONS_MAX];
	unsigned nconn, turn;
	struct remote_caps caps;
	bool broken; /* a connection is lost */
	char why[200];

	enum remote_state state;
	bool expired;     /* without a server for too long */
	uint64_t down_ns; /* since; 0: a server has answered a command */
	uint64_t up_ns;   /* when the link was opened */
	uint64_t delay_ns;
	struct error said; /* the last reason that was logged */
	struct reactor_timer retry, expire;
	struct connector connector;
	ev_io errors; /* of the child */

	struct list under_way, waiting, finished; /* struct remote_command */

	/* Answered and not durable by themselves, and how many of those were
	 * when the last good flush was sent. */
	uint64_t written, durable;
	bool stale;    /* some were lost, and no FLUSH has said so */
	uint64_t loss; /* how often that happened */
};

struct remote_command {
	struct list link;
	struct remote *remote;
	struct store_io *io;
	struct reactor_work work; /* on a simulated loop */
	char *flat;               /* its data in one piece; NULL: it is */
	unsigned pieces;          /* under way */
	int error;
	bool flushing;   /* the data is written, its flush is under way */
	bool complete;   /* nothing is left to do */
	bool blocking;   /* nobody watches the connection */
	bool over;       /* blocking: it ended */
	int extents;     /* STATUS: how many the server gave */
	uint64_t covers; /* a flush: r->written when it was sent */
	bool stale;      /* a flush: it has to say that something is lost */
	uint64_t loss;   /* and which time that was */
};

static inline struct remote *remote_of(struct store *s)
{
	return container_of(s, struct remote, base);
}

/* --- nbd.c --------------------------------------------------------------- */

/* What the spec says, to the target. -errno with `error` filled. */
typedef int target_parse_fn(const struct store_open_args *args,
	struct remote_target *t, struct error *error);

/* Make a store of a spec, as `parse` reads it. Blocks. */
int remote_open(const struct store_open_args *args, target_parse_fn *parse,
	struct store **out, struct error *error);

/* --- nbd-target.c: what a spec says -------------------------------------- */

target_parse_fn target_parse_uri;
/* "connections", "reconnect-timeout", "tls-...": -ENOENT if it is no key. */
int target_option(struct remote_target *t, const char *key, const char *value,
	struct error *error);
void target_init(struct remote_target *t);
void target_free(struct remote_target *t);

/* --- nbd-link.c: blocking; any thread ------------------------------------ */

/* Start the command, if there is one, and open all connections. Gives up when
 * *quit is set. 0, or a negative errno with `error` filled and no link. */
int link_open(struct remote *r, const atomic_bool *quit,
	struct remote_link *out, struct error *error);
void link_close(struct remote_link *l);
/* What libnbd says of its last error on this thread. */
const char *link_error(void);

/* --- nbd-connector.c ----------------------------------------------------- */

/* Ask for a link; the answer comes to remote_connected() on the home loop.
 * -EAGAIN: no thread to be had. */
int connector_ask(struct remote *r);
/* Nobody waits for the answer any more. */
void connector_unwatch(struct remote *r);
/* Give up and end the thread. Blocks. */
void connector_stop(struct remote *r);

/* --- nbd-life.c: losing a server and finding it again -------------------- */

/* The home loop is at hand: from now on it watches. */
void remote_attach(struct remote *r);
/* It watches no more: the connections are closed, and nobody looks for others.
 * Never blocks. */
void remote_leave(struct remote *r);
/* The same, for good; when the home loop does not run, or after
 * remote_leave(). Blocks. */
void remote_detach(struct remote *r);
/* Look at what libnbd did: what it waits for, and whether it lost anything.
 * `inside`: of a submit, where nothing may end. */
void remote_settle(struct remote *r, bool inside);
void remote_adopt(struct remote *r, struct remote_link *l);
/* The connector has an answer: a link or none, and why. */
void remote_connected(struct remote *r);
/* A command was answered: the server works. */
void remote_proven(struct remote *r);

/* --- nbd-command.c: commands; on the home loop --------------------------- */

struct remote_command *command_new(struct remote *r, struct store_io *io);
/* Start or queue it. */
void command_begin(struct remote_command *c);
/* End those that are finished. */
void commands_finish(struct remote *r, bool inside);
/* The link is lost: all that was under way waits, or is stale. */
void commands_lost(struct remote *r);
void commands_restart(struct remote *r);
void commands_expire(struct remote *r);
/* Do an io on a simulated loop. */
void command_block(struct remote_command *c);

/* --- nbd-send.c ------------------------------------------------------------ */

void command_move(struct remote_command *c, struct list *to);
/* Send it, from the start. */
void command_send(struct remote_command *c);
/* The data is there: now the flush that makes it durable. */
void command_flush(struct remote_command *c);
/* The answer of a STATUS as a store gives it. */
void command_end_status(struct remote_command *c);

/* --- exec.c, exec-child.c ------------------------------------------------ */

/* Start the command, listening on child->path. On a thread that lives as long
 * as the command may. Blocks for a moment. */
int exec_start(struct remote *r, struct error *error);
/* End it; waits for that. Accepts one that is not there. */
void exec_stop(struct remote *r);
/* No link could be opened to it: if it is gone, say so. Returns `err`. */
int exec_explain(struct remote *r, int err, struct error *error);
/* Go on reading what it says, with a descriptor that nobody watches. */
void exec_reopen(struct remote *r);
/* Log what it said; never blocks. False: it will say no more. */
bool exec_log(struct remote *r);

#endif
