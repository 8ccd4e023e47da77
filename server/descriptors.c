/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * descriptors.c: as many clients as there are file descriptors for.
 *
 *  1. Too few for the loops is an error before anything is opened: libev
 *     does not survive it. A store says itself what it could not open.
 *  2. What is left then is for clients, but for a reserve: for the control
 *     socket, for certificates that are read again, for a store that
 *     reconnects.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "metrics.h"
#include "server.h"

#define LOOP_NEEDS 4U  /* epoll, eventfd, timerfd, io_uring */
#define OTHER_NEEDS 2U /* a listening socket, the signals */
#define RESERVE 32U    /* or half of what is left, if that is less */

static uint64_t limit(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NOFILE, &r) ? UINT64_MAX : r.rlim_cur;
}

/* As far as the hard limit lets us. */
static void raise_to(uint64_t wanted)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= wanted)
		return;
	r.rlim_cur = wanted < r.rlim_max ? wanted : r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

static unsigned count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned n = 0;

	if (!dir)
		return 3;
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n - 1; /* the folder itself */
}

int descriptors_prepare(
	const struct options *o, unsigned loops, struct error *error)
{
	unsigned need = count_open() + LOOP_NEEDS * loops + OTHER_NEEDS;

	if (o->metrics)
		need += METRICS_CONNECTIONS;
	raise_to((uint64_t)need + 2 * RESERVE + o->max_connections);
	if (limit() >= need)
		return 0;
	return error_set(error, -EMFILE,
		"the limit of open files is %u (ulimit -n): with %u "
		"loops (--threads) at least %u are needed",
		(unsigned)limit(), loops, need);
}

void descriptors_settle(struct server *s)
{
	uint64_t max = limit(), used = count_open(), clients;

	if (s->metrics)
		used += METRICS_CONNECTIONS;
	s->max_connections = s->options->max_connections;
	clients = max > used ? max - used : 1;
	clients -= clients / 2 < RESERVE ? clients / 2 : RESERVE;
	if (max == RLIM_INFINITY || clients > UINT32_MAX ||
		(s->max_connections && s->max_connections <= clients))
		return;
	if (s->max_connections)
		log_warning("--max-connections %u: the limit of open files is "
			    "%u (ulimit -n), enough for %u at once",
			s->max_connections, (unsigned)max, (unsigned)clients);
	s->max_connections = (unsigned)clients;
}
