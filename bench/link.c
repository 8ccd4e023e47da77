/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c: a slow link between two unix sockets, for measuring.
 *
 *   link LISTEN TO DELAY_US BYTES_PER_SECOND
 *
 * Each way, what comes is sent on DELAY_US later, and no faster than the rate;
 * all connections share it. So a round trip takes twice the delay longer.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define WAYS 64 /* two a connection */
#define PIECE 65536
#define PIECES 1024 /* under way, each way */

struct piece {
	uint64_t due_ns;
	size_t length, sent;
	char data[PIECE];
};

/* From one socket to the other: a ring of pieces. */
struct way {
	int from, to; /* -1: not used */
	unsigned first, count;
	struct piece *piece;
};

static struct way ways[WAYS];
static uint64_t delay_ns, rate, busy_ns[2]; /* until the link is free */

static struct sockaddr_un address(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	return a;
}

static int die(const char *what)
{
	perror(what);
	exit(1);
}

/* Both ways of a connection end together. */
static void hang_up(unsigned i)
{
	unsigned pair = i & ~1U;

	if (ways[pair].from < 0)
		return;
	close(ways[pair].from);
	close(ways[pair].to);
	for (i = pair; i < pair + 2; i++) {
		free(ways[i].piece);
		ways[i] = (struct way){.from = -1, .to = -1};
	}
}

static void take_in(unsigned i, uint64_t now)
{
	struct way *w = &ways[i];
	struct piece *p = &w->piece[(w->first + w->count) % PIECES];
	ssize_t n = recv(w->from, p->data, PIECE, MSG_DONTWAIT);
	uint64_t *busy = &busy_ns[i & 1];

	if (n <= 0) {
		if (n == 0 || errno != EAGAIN)
			hang_up(i);
		return;
	}
	if (*busy < now)
		*busy = now;
	*busy += (uint64_t)n * 1000000000U / rate;
	p->due_ns = *busy + delay_ns;
	p->length = (size_t)n;
	p->sent = 0;
	w->count++;
}

/* Send on what is due; when the next is, or 0. */
static uint64_t send_on(unsigned i, uint64_t now)
{
	struct way *w = &ways[i];

	while (w->count) {
		struct piece *p = &w->piece[w->first];
		ssize_t n;

		if (p->due_ns > now)
			return p->due_ns;
		n = send(w->to, p->data + p->sent, p->length - p->sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return now + 100000;
		if (n < 0) {
			hang_up(i);
			return 0;
		}
		p->sent += (size_t)n;
		if (p->sent < p->length)
			continue;
		w->first = (w->first + 1) % PIECES;
		w->count--;
	}
	return 0;
}

static void add_connection(int listener, const char *to)
{
	struct sockaddr_un a = address(to);
	int near = accept(listener, NULL, NULL);
	int far = socket(AF_UNIX, SOCK_STREAM, 0);
	unsigned i = 0;

	while (i < WAYS && ways[i].from >= 0)
		i += 2;
	if (i == WAYS || connect(far, (struct sockaddr *)&a, sizeof a)) {
		close(near);
		close(far);
		return;
	}
	ways[i] = (struct way){.from = near, .to = far};
	ways[i + 1] = (struct way){.from = far, .to = near};
	for (unsigned k = i; k < i + 2; k++) {
		ways[k].piece = malloc(PIECES * sizeof(struct piece));
		if (!ways[k].piece)
			die("malloc");
	}
}

/* Wait for something to come, or until something is due. */
static void wait_for(struct pollfd *fds, uint64_t next_ns)
{
	uint64_t now = clock_ns();
	struct timespec ts = {0};

	if (next_ns > now) {
		ts.tv_sec = (time_t)((next_ns - now) / 1000000000U);
		ts.tv_nsec = (long)((next_ns - now) % 1000000000U);
	}
	for (unsigned i = 0; i < WAYS; i++) {
		bool room = ways[i].from >= 0 && ways[i].count < PIECES;

		fds[i] = (struct pollfd){
			.fd = room ? ways[i].from : -1, .events = POLLIN};
	}
	ppoll(fds, WAYS + 1, next_ns ? &ts : NULL, NULL);
}

static void turn(int listener, const char *to, struct pollfd *fds)
{
	uint64_t now = clock_ns(), next = 0;

	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t due = ways[i].from >= 0 ? send_on(i, now) : 0;

		if (due && (!next || due < next))
			next = due;
	}
	wait_for(fds, next);
	now = clock_ns();
	for (unsigned i = 0; i < WAYS; i++) {
		if (fds[i].revents && ways[i].from == fds[i].fd)
			take_in(i, now);
	}
	if (fds[WAYS].revents)
		add_connection(listener, to);
}

int main(int argc, char **argv)
{
	struct pollfd fds[WAYS + 1];
	struct sockaddr_un a;
	int listener;

	if (argc != 5) {
		fprintf(stderr, "usage: link LISTEN TO DELAY_US RATE\n");
		return 1;
	}
	delay_ns = strtoull(argv[3], NULL, 0) * 1000U;
	rate = strtoull(argv[4], NULL, 0);
	for (unsigned i = 0; i < WAYS; i++)
		ways[i] = (struct way){.from = -1, .to = -1};
	a = address(argv[1]);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (listener < 0 || !rate ||
		bind(listener, (struct sockaddr *)&a, sizeof a) ||
		listen(listener, 16))
		return die(argv[1]);
	fds[WAYS] = (struct pollfd){.fd = listener, .events = POLLIN};
	for (;;)
		turn(listener, argv[2], fds);
}
