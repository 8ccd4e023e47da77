/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp.h: a TCP peer that is gone without a word. Any thread; never blocks.
 */
#ifndef WEIR_BASE_TCP_H
#define WEIR_BASE_TCP_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

struct tcp_watch {
	int idle_s, interval_s; /* of the probes, when it is silent */
	int probes;             /* without an answer; 0: as the system has it */
	int unacked_ms;         /* what we send may be so long on its way */
};

static inline void tcp_set(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/* Have such a peer noticed. A socket that is not TCP's stays as it is: the
 * calls fail, and that is all right. */
static inline void tcp_watch(int fd, const struct tcp_watch *w)
{
	tcp_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	tcp_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, w->idle_s);
	tcp_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, w->interval_s);
	if (w->probes)
		tcp_set(fd, IPPROTO_TCP, TCP_KEEPCNT, w->probes);
	tcp_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, w->unacked_ms);
}

#endif
