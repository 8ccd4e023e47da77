/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swap.c: --swap: what a server has to be for a client on the same machine
 * that gives memory back by writing to it: a swap device, or a filesystem.
 *
 *  1. Its memory is locked, so that serving a request waits for no page that
 *     has to be written out, here, first. What is mapped by now is filled;
 *     what comes later is locked when it is touched, for there are stacks and
 *     reserved space in it that never are.
 *  2. It is a flusher of I/O to the kernel (PR_SET_IO_FLUSHER): allocations
 *     made for it do not wait for I/O, nor is it throttled for the dirty pages
 *     of others. Threads started later inherit that.
 *  3. It is killed last when memory runs out.
 *
 * So this comes before the first thread, in the process that serves.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "server.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

static int killed_last(void)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "we");
	int r;

	if (!f)
		return -1;
	r = fputs("-1000", f) < 0;
	return fclose(f) || r ? -1 : 0;
}

static int refused(const char *what, const char *needs, struct error *error)
{
	int err = errno;

	return error_set(error, -err, "--swap: cannot %s: %s%s", what,
		strerror(err), needs);
}

int swap_prepare(struct error *error)
{
	static const char needs[] = "; that needs root and CAP_SYS_RESOURCE";

	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0))
		return refused("become a flusher of I/O", needs, error);
	if (mlockall(MCL_CURRENT | MCL_FUTURE) ||
		mlockall(MCL_FUTURE | MCL_ONFAULT))
		return refused("lock memory", "; that needs root", error);
	if (killed_last())
		return refused("set oom_score_adj", needs, error);
	return 0;
}
