/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-turns.c: a client that asks for all it can costs the others a turn.
 *
 * The real server with one loop. A client has sent thousands of reads of 1M,
 * and a thread takes the answers as fast as they come. Another client reads 4K
 * at a time on the same loop; while it waits, the first is served no more than
 * a few turns, by the server's own counter.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "../server/conn.h"
#include "../server/errors.h"

#define READS 4000U          /* of 1M; more than is waited for */
#define SERVED (96ULL << 20) /* bytes of them until the test ends */
#define SMALL 4096U
#define HANDSHAKE_ANSWER (18U + 20U + 12U + 20U)

struct rig {
	struct server server;
	struct options options;
	ev_prepare step;
	ev_idle busy;
	int hog, small;
	struct conn *hog_conn;
	size_t heard;      /* bytes of the answer the small client waits for */
	size_t due;        /* bytes it has in all */
	uint64_t asked_at; /* the hog's bytes when it asked */
	uint64_t most;     /* served to the hog during one wait */
	unsigned answers;
};

static uint64_t hog_bytes(const struct rig *r)
{
	return atomic_load(&r->hog_conn->stats.read_bytes);
}

/* --- what is said --------------------------------------------------------- */

static unsigned char *put_request(unsigned char *p, uint32_t length)
{
	p = nbd_put32(p, NBD_REQUEST_MAGIC);
	p = nbd_put16(p, 0);
	p = nbd_put16(p, NBD_CMD_READ);
	p = nbd_put64(p, 1);
	p = nbd_put64(p, 0);
	return nbd_put32(p, length);
}

static unsigned char *put_handshake(unsigned char *p)
{
	static const unsigned char none[6];

	p = nbd_put32(p, 3);
	p = nbd_put64(p, NBD_OPT_MAGIC);
	p = nbd_put32(p, NBD_OPT_GO);
	p = nbd_put32(p, sizeof(none));
	return (unsigned char *)memcpy(p, none, sizeof(none)) + sizeof(none);
}

static void say(int fd, const unsigned char *from, const unsigned char *to)
{
	assert_int_equal(
		send(fd, from, (size_t)(to - from), MSG_NOSIGNAL), to - from);
}

static void ask(struct rig *r)
{
	unsigned char request[NBD_REQUEST_SIZE];

	say(r->small, request, put_request(request, SMALL));
	r->heard = 0;
	r->due = NBD_SIMPLE_REPLY_SIZE + SMALL;
	r->asked_at = hog_bytes(r);
}

/* --- the clients ---------------------------------------------------------- */

static void *take_answers(void *arg)
{
	static char data[1 << 20];

	while (recv(*(int *)arg, data, sizeof(data), 0) > 0)
		;
	return NULL;
}

/* Before each wait of the loop: hear, and ask again. */
static void on_step(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct rig *r = container_of(w, struct rig, step);
	char data[8192];
	ssize_t n = recv(r->small, data, sizeof(data), MSG_DONTWAIT);

	(void)loop;
	(void)events;
	if (n > 0)
		r->heard += (size_t)n;
	if (r->heard < r->due)
		return;
	r->answers++;
	if (hog_bytes(r) - r->asked_at > r->most)
		r->most = hog_bytes(r) - r->asked_at;
	if (hog_bytes(r) >= SERVED)
		reactor_stop(r->server.workers[0].reactor);
	else
		ask(r);
}

static void on_busy(struct ev_loop *loop, ev_idle *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
}

/* --- the server ----------------------------------------------------------- */

static struct conn *connect_to(struct server *s, int *fd)
{
	struct worker *w = &s->workers[0];
	int fds[2], size = 1 << 20;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	*fd = fds[0];
	atomic_fetch_add(&s->connections, 1);
	atomic_fetch_add(&w->nconns, 1);
	assert_int_equal(conn_new(w, fds[1]), 0);
	return list_entry(s->all.prev, struct conn, all_link);
}

static void open_server(struct rig *r, char *socket)
{
	char *words[] = {"unit-turns", "--unix", socket, "--threads", "1",
		"--poll", "0", "mem:8M"};
	struct errors errors = {0};
	struct error error = {""};

	assert_int_equal(options_parse(&r->options, 8, words, &errors), 0);
	if (server_open(&r->server, &r->options, &error))
		fail_msg("%s", error.text);
}

static void on_end(struct reactor_task *task)
{
	(void)task;
	kill(getpid(), SIGTERM);
}

static void one_turn_is_all_that_others_wait_for(void **state)
{
	static struct rig r;
	static unsigned char said[64 + READS * NBD_REQUEST_SIZE];
	char dir[] = "/tmp/weir-turns.XXXXXX", socket[64];
	unsigned char *p = put_handshake(said);
	struct reactor_task end = {.fn = on_end};
	pthread_t thread;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_non_null(mkdtemp(dir));
	snprintf(socket, sizeof(socket), "%s/socket", dir);
	open_server(&r, socket);
	connect_to(&r.server, &r.small);
	say(r.small, said, p);
	r.due = HANDSHAKE_ANSWER;
	r.hog_conn = connect_to(&r.server, &r.hog);
	for (unsigned i = 0; i < READS; i++)
		p = put_request(p, 1 << 20);
	say(r.hog, said, p);
	assert_int_equal(
		pthread_create(&thread, NULL, take_answers, &r.hog), 0);
	ev_prepare_init(&r.step, on_step);
	ev_idle_init(&r.busy, on_busy);
	ev_prepare_start(r.server.workers[0].loop, &r.step);
	ev_idle_start(r.server.workers[0].loop, &r.busy);
	alarm(120);
	reactor_run(r.server.workers[0].reactor);
	alarm(0);
	print_message("# %u answers, %llu bytes during one of them at most\n",
		r.answers, (unsigned long long)r.most);
	assert_true(hog_bytes(&r) >= SERVED);
	assert_true(r.most <= 4ULL * CONN_TURN);

	/* Both leave. */
	ev_prepare_stop(r.server.workers[0].loop, &r.step);
	ev_idle_stop(r.server.workers[0].loop, &r.busy);
	shutdown(r.hog, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(r.hog);
	close(r.small);
	reactor_post(r.server.workers[0].reactor, &end);
	assert_int_equal(server_run(&r.server), 0);
	server_close(&r.server);
	options_free(&r.options);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_turn_is_all_that_others_wait_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
