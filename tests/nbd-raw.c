/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-raw.c: say anything to an NBD server, right or wrong.
 *
 *	nbd-raw SOCKET|HOST:PORT <<END
 *	greet                  read the greeting, send the flags
 *	go disk                send NBD_OPT_GO and read its replies
 *	write 1 0 4096 0x55    cookie, offset, length, byte to fill with
 *	read 2 0 4096
 *	recv 2                 read two answers
 *	END
 *
 * What is sent is collected until something is to be received, so that a
 * script can pack many requests into one segment. Each thing received is a
 * line of output. Numbers are C's (0x10, 16); the name - is the empty one.
 * Commands:
 *
 *	greet [FLAGS]                   (FLAGS: default 3)
 *	opt NUMBER LENGTH [HEX]         header with that length, then the bytes
 *	reply [N]                       read N option replies
 *	replies                         read option replies up to ACK or an error
 *	go|info NAME [INFO...]          ask for these; none: 3, the block sizes
 *	export NAME | list | structured | extended
 *	meta NAME                       choose base:allocation
 *	contexts NAME [QUERY...]        choose these
 *	find NAME [QUERY...]            list them
 *	transmit                        read the answer to `export`
 *	starttls                        send NBD_OPT_STARTTLS, and TLS from then
 *	read|trim|zero|cache|status COOKIE OFFSET LENGTH [FLAGS]
 *	write COOKIE OFFSET LENGTH BYTE [FLAGS]
 *	flush COOKIE | disc
 *	req TYPE FLAGS COOKIE OFFSET LENGTH     a header alone
 *	fill LENGTH BYTE | hex HEX      bytes as they are
 *	recv [N]                        read N answers
 *	send | sleep MS | eof | rst     eof: the server hangs up; rst: we do
 *
 * Exit: 0; 1 when the server hangs up or says nothing for 15 s where an
 * answer is due, or when the script is wrong.
 */
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "nbd-raw.h"

#define TIMEOUT_S 15

/* --- the end -------------------------------------------------------------- */

/* Wait until the server hangs up; what it still says is dropped. */
static void expect_eof(struct raw *r)
{
	char data[4096];
	ssize_t n;

	raw_flush_out(r);
	while ((n = raw_recv(r, data, sizeof(data))) > 0)
		;
	if (n < 0 && errno != ECONNRESET)
		raw_die("the server does not hang up");
	printf("eof\n");
}

static void reset(struct raw *r)
{
	struct linger l = {.l_onoff = 1};

	raw_flush_out(r);
	setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	close(r->fd);
	exit(0);
}

/* --- script --------------------------------------------------------------- */

#define MAX_WORDS 8

static uint64_t number(char **w, int i, uint64_t otherwise)
{
	return w[i] ? strtoull(w[i], NULL, 0) : otherwise;
}

static void repeat(struct raw *r, char **w, void (*fn)(struct raw *r))
{
	for (uint64_t n = number(w, 1, 1); n; n--)
		fn(r);
}

static void one_reply(struct raw *r)
{
	raw_reply(r);
}

static int handshake_command(struct raw *r, char **w)
{
	char *allocation[] = {(char *)"base:allocation", NULL};
	char *sizes[] = {(char *)"3", NULL};
	const char *name = w[1] && strcmp(w[1], "-") ? w[1] : "";

	if (!strcmp(w[0], "greet")) {
		raw_greet(r, (uint32_t)number(w, 1, 3));
	} else if (!strcmp(w[0], "opt")) {
		raw_option(r, (uint32_t)number(w, 1, 0),
			(uint32_t)number(w, 2, 0));
		raw_put_hex(r, w[2] ? w[3] : NULL);
	} else if (!strcmp(w[0], "reply")) {
		repeat(r, w, one_reply);
	} else if (!strcmp(w[0], "replies")) {
		raw_replies(r);
	} else if (!strcmp(w[0], "go")) {
		raw_go(r, 7, name, w[1] && w[2] ? w + 2 : sizes);
	} else if (!strcmp(w[0], "info")) {
		raw_go(r, 6, name, w[1] && w[2] ? w + 2 : sizes);
	} else if (!strcmp(w[0], "meta")) {
		raw_meta(r, 10, name, allocation);
	} else if (!strcmp(w[0], "contexts") && w[1]) {
		raw_meta(r, 10, name, w + 2);
	} else if (!strcmp(w[0], "find") && w[1]) {
		raw_meta(r, 9, name, w + 2);
	} else if (!strcmp(w[0], "list")) {
		raw_option(r, 3, 0);
		raw_replies(r);
	} else if (!strcmp(w[0], "structured")) {
		raw_option(r, 8, 0);
		raw_replies(r);
	} else if (!strcmp(w[0], "extended")) {
		raw_option(r, 11, 0);
		raw_replies(r);
		r->extended = 1;
	} else if (!strcmp(w[0], "starttls")) {
		raw_option(r, 5, 0);
		raw_replies(r);
		raw_tls(r);
	} else if (!strcmp(w[0], "export")) {
		raw_option(r, 1, (uint32_t)strlen(name));
		raw_put(r, name, strlen(name));
	} else if (!strcmp(w[0], "transmit")) {
		printf("size %" PRIu64, raw_get64(r));
		printf(" flags %#x\n", raw_get16(r));
	} else {
		return 0;
	}
	return 1;
}

static int request_command(struct raw *r, char **w)
{
	static const char *const names[] = {"read", "write", "disc", "flush",
		"trim", "cache", "zero", "status"};
	uint64_t cookie = number(w, 1, 0);
	uint64_t offset = w[1] ? number(w, 2, 0) : 0;
	uint64_t length = w[1] && w[2] ? number(w, 3, 0) : 0;
	int more = w[1] && w[2] && w[3];
	unsigned type = 0;

	while (type < 8 && strcmp(w[0], names[type]))
		type++;
	if (type == 8)
		return 0;
	if (type == 1) {
		raw_request(r, type, (unsigned)(w[4] ? number(w, 5, 0) : 0),
			cookie, offset, length);
		raw_put_fill(r, length, (unsigned)number(w, 4, 0));
		return 1;
	}
	raw_request(r, type, (unsigned)(more ? number(w, 4, 0) : 0), cookie,
		offset, length);
	return 1;
}

static int other_command(struct raw *r, char **w)
{
	if (!strcmp(w[0], "req") && w[1] && w[2] && w[3] && w[4] && w[5]) {
		raw_request(r, (unsigned)number(w, 1, 0),
			(unsigned)number(w, 2, 0), number(w, 3, 0),
			number(w, 4, 0), number(w, 5, 0));
	} else if (!strcmp(w[0], "fill") && w[1]) {
		raw_put_fill(r, number(w, 1, 0), (unsigned)number(w, 2, 0));
	} else if (!strcmp(w[0], "hex")) {
		raw_put_hex(r, w[1]);
	} else if (!strcmp(w[0], "recv")) {
		repeat(r, w, raw_answer);
	} else if (!strcmp(w[0], "send")) {
		raw_flush_out(r);
	} else if (!strcmp(w[0], "sleep")) {
		raw_flush_out(r);
		usleep((useconds_t)(number(w, 1, 0) * 1000));
	} else if (!strcmp(w[0], "eof")) {
		expect_eof(r);
	} else if (!strcmp(w[0], "rst")) {
		reset(r);
	} else {
		return 0;
	}
	return 1;
}

static void run_line(struct raw *r, char *line)
{
	char *words[MAX_WORDS + 1] = {NULL}, *save = NULL;
	int n = 0;

	for (char *w = strtok_r(line, " \t\n", &save); w && n < MAX_WORDS;
		w = strtok_r(NULL, " \t\n", &save))
		words[n++] = w;
	if (!n || words[0][0] == '#')
		return;
	if (!handshake_command(r, words) && !request_command(r, words) &&
		!other_command(r, words)) {
		fprintf(stderr, "nbd-raw: %s?\n", words[0]);
		exit(1);
	}
	fflush(stdout);
}

static int connect_unix(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), size = 1 << 20;

	if (strlen(path) >= sizeof(sun.sun_path))
		raw_die("path too long");
	strcpy(sun.sun_path, path);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)))
		raw_die("cannot connect");
	return fd;
}

static int connect_tcp(char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *ai;
	char *port = strrchr(host, ':');
	int fd;

	*port++ = '\0';
	if (getaddrinfo(host, port, &hints, &ai))
		raw_die("no such address");
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (connect(fd, ai->ai_addr, ai->ai_addrlen))
		raw_die("cannot connect");
	freeaddrinfo(ai);
	return fd;
}

int main(int argc, char **argv)
{
	struct timeval timeout = {.tv_sec = TIMEOUT_S};
	struct raw *r = calloc(1, sizeof(*r));
	char *line = NULL;
	size_t room = 0;

	if (argc != 2 || !r)
		raw_die("usage: nbd-raw SOCKET|HOST:PORT <SCRIPT");
	r->fd = strchr(argv[1], '/') ? connect_unix(argv[1])
				     : connect_tcp(argv[1]);
	setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	while (getline(&line, &room, stdin) > 0)
		run_line(r, line);
	raw_flush_out(r);
	free(line);
	free(r->out);
	raw_close(r);
	free(r);
	return 0;
}
