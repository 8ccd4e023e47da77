/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz-server.c: a weir-server in this process, and a client on its loop.
 *
 * The server is the real one, from server_open() on, with one loop and no
 * address: it is handed one end of a socketpair. The client's step runs before
 * each wait of the loop, which never sleeps meanwhile, so that who does what
 * when depends on the input alone.
 *
 *   prepare: step -> server's sockets, tasks, answers -> step -> ...
 */
#include <errno.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../server/conn.h"
#include "../../server/errors.h"
#include "fuzz.h"

#define KEY_NAME "fuzz"
#define KEY "7765697220776569722077656972207765697220776569722077656972202021"
#define KEY_BYTES (sizeof(KEY) / 2)

enum phase {
	SAY_PRELUDE,
	HEAR_PRELUDE,
	TLS_HANDSHAKE,
	SAY_DATA,
	HANG_UP,
	HEAR_END,
	GONE, /* the server's end of it may still be there */
};

struct client {
	const struct fuzz_talk *talk;
	int fd;
	SSL *ssl;
	enum phase phase;
	size_t sent, heard;
};

struct fuzz_server {
	struct server server;
	struct options options;
	SSL_CTX *ctx;
	ev_prepare step;
	ev_idle busy;
	struct client client;
};

/* --- the client ----------------------------------------------------------- */

static void leave(struct client *c)
{
	SSL_free(c->ssl);
	c->ssl = NULL;
	close(c->fd);
	c->phase = GONE;
}

/* Send some of these; true when all of them have gone. */
static bool say(
	struct client *c, const unsigned char *data, size_t size, size_t piece)
{
	size_t n = size - c->sent;
	ssize_t r;

	if (piece && n > piece)
		n = piece;
	if (!n)
		return true;
	if (c->ssl)
		r = SSL_write(c->ssl, data + c->sent, (int)n);
	else
		r = send(c->fd, data + c->sent, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (r > 0)
		c->sent += (size_t)r;
	return c->sent == size;
}

/* Take in what there is; false when the server has hung up. */
static bool hear(struct client *c)
{
	static uint8_t data[64 << 10];
	ssize_t n;

	for (;;) {
		if (c->ssl)
			n = SSL_read(c->ssl, data, sizeof(data));
		else
			n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);
		if (n <= 0)
			break;
		c->heard += (size_t)n;
		if (c->talk->answer)
			c->talk->answer(c->talk->arg, data, (size_t)n);
	}
	if (c->ssl)
		return SSL_get_error(c->ssl, (int)n) == SSL_ERROR_WANT_READ;
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void begin_tls(struct client *c, SSL_CTX *ctx)
{
	c->ssl = SSL_new(ctx);
	if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1)
		abort();
	SSL_set_connect_state(c->ssl);
	c->phase = TLS_HANDSHAKE;
}

static void tls_handshake(struct client *c)
{
	int r = SSL_do_handshake(c->ssl);

	if (r == 1)
		c->phase = SAY_DATA;
	else if (SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ)
		abort(); /* ours is not the part that is fuzzed */
}

/* What can be done in this turn. */
static void step(struct client *c, SSL_CTX *ctx)
{
	const struct fuzz_talk *t = c->talk;

	if (c->phase != GONE && c->phase != TLS_HANDSHAKE && !hear(c)) {
		leave(c);
		return;
	}
	switch (c->phase) {
	case SAY_PRELUDE:
		if (say(c, t->prelude, t->nprelude, 0))
			c->phase = HEAR_PRELUDE;
		break;
	case HEAR_PRELUDE:
		if (c->heard < t->expect)
			break;
		c->sent = 0;
		c->phase = SAY_DATA;
		if (t->tls)
			begin_tls(c, ctx);
		break;
	case TLS_HANDSHAKE:
		tls_handshake(c);
		break;
	case SAY_DATA:
		if (say(c, t->data, t->size, t->piece))
			c->phase = HANG_UP;
		break;
	case HANG_UP:
		if (c->ssl)
			SSL_shutdown(c->ssl);
		shutdown(c->fd, SHUT_WR);
		c->phase = HEAR_END;
		break;
	default:
		break;
	}
}

/* --- the server ----------------------------------------------------------- */

static void on_step(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct fuzz_server *f = container_of(w, struct fuzz_server, step);

	(void)loop;
	(void)events;
	step(&f->client, f->ctx);
	if (f->client.phase == GONE && list_empty(&f->server.all))
		reactor_stop(f->server.workers[0].reactor);
}

static void on_busy(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
}

static unsigned find_key(SSL *ssl, const char *hint, char *name,
	unsigned max_name, unsigned char *key, unsigned max_key)
{
	(void)ssl;
	(void)hint;
	if (max_key < KEY_BYTES)
		return 0;
	snprintf(name, max_name, KEY_NAME);
	for (size_t i = 0; i < KEY_BYTES; i++)
		sscanf(&KEY[2 * i], "%2hhx", &key[i]);
	return KEY_BYTES;
}

static void no_log(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

static void write_key(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f || chmod(path, 0600) ||
		fprintf(f, "%s:%s\n", KEY_NAME, KEY) < 0 || fclose(f))
		abort();
}

static void open_server(struct fuzz_server *f, char *socket, char *keys)
{
	static char *words[] = {"fuzz", "--unix", NULL, "--threads", "1",
		"--poll", "0", "--tls", "on", "--tls-psk", NULL, "--exportname",
		"disk", "store=mem:1M", "cache-size=4M", "inflight-bytes=1M"};
	struct errors errors = {0};
	struct error error = {""};

	words[2] = socket;
	words[10] = keys;
	if (options_parse(&f->options, sizeof(words) / sizeof(words[0]), words,
		    &errors)) {
		errors_log(&errors);
		abort();
	}
	if (server_open(&f->server, &f->options, &error)) {
		log_error("%s", error.text);
		abort();
	}
}

static struct fuzz_server *make(void)
{
	struct fuzz_server *f = calloc(1, sizeof(*f));
	char dir[] = "/tmp/weir-fuzz.XXXXXX";
	static char socket[64], keys[64]; /* options point to them */

	if (!f || !mkdtemp(dir))
		abort();
	signal(SIGPIPE, SIG_IGN);
	snprintf(socket, sizeof(socket), "%s/socket", dir);
	snprintf(keys, sizeof(keys), "%s/keys", dir);
	write_key(keys);
	open_server(f, socket, keys);
	log_setup("fuzz", LOG_LEVEL_DEBUG, no_log, NULL);
	unlink(keys);
	unlink(socket);
	rmdir(dir);
	f->ctx = SSL_CTX_new(TLS_client_method());
	if (!f->ctx)
		abort();
	SSL_CTX_set_psk_client_callback(f->ctx, find_key);
	ev_prepare_init(&f->step, on_step);
	ev_idle_init(&f->busy, on_busy);
	return f;
}

static void hand_over(struct server *s, int fd)
{
	struct worker *w = &s->workers[0];

	atomic_fetch_add(&s->connections, 1);
	atomic_fetch_add(&w->nconns, 1);
	if (conn_new(w, fd))
		abort();
}

void fuzz_talk(const struct fuzz_talk *t)
{
	static struct fuzz_server *f;
	struct worker *w;
	int fds[2];

	if (!f)
		f = make();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
		abort();
	w = &f->server.workers[0];
	f->client = (struct client){.talk = t, .fd = fds[0]};
	hand_over(&f->server, fds[1]);
	ev_prepare_start(w->loop, &f->step);
	ev_idle_start(w->loop, &f->busy);
	reactor_run(w->reactor);
	ev_idle_stop(w->loop, &f->busy);
	ev_prepare_stop(w->loop, &f->step);
	if (atomic_load(&f->server.connections))
		abort(); /* a slot is not given back */
}
