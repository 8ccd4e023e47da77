/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loops.c: the engine's loops, one thread each.
 *
 * nbdkit forks between .get_ready and .after_fork, and threads do not outlive
 * a fork:
 *
 *   .get_ready    loops_open()    no thread
 *   .after_fork   loops_start()   rings of the child's own, a thread a loop
 *   .cleanup      loops_stop()    joined
 *   .unload       loops_close()
 *
 * Called from nbdkit's main thread only.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "plugin.h"

int loops_open(struct loops *l, unsigned n, struct error *error)
{
	l->opener = getpid();
	for (; l->n < n; l->n++) {
		int err = reactor_live_new(
			l->n, REACTOR_AUTO, &l->reactor[l->n], error);

		if (err)
			return err;
	}
	return 0;
}

static void *loop_main(void *arg)
{
	reactor_run(arg);
	return NULL;
}

static int loop_start(struct loops *l, unsigned i)
{
	char name[24]; /* the kernel takes 15 */
	int err = pthread_create(&l->thread[i], NULL, loop_main, l->reactor[i]);

	if (err)
		return -err;
	snprintf(name, sizeof(name), "weir-loop%u", i);
	pthread_setname_np(l->thread[i], name);
	return 0;
}

/* A thread inherits its creator's mask: nbdkit's signals go to nbdkit's own
 * threads. */
int loops_start(struct loops *l)
{
	SCOPED_NO_SIGNALS;
	int err = 0;

	for (unsigned i = 0; i < l->n && l->opener != getpid(); i++)
		reactor_live_after_fork(l->reactor[i]);
	while (l->running < l->n && !err) {
		err = loop_start(l, l->running);
		if (!err)
			l->running++;
	}
	return err;
}

void loops_stop(struct loops *l)
{
	for (unsigned i = 0; i < l->running; i++)
		reactor_stop(l->reactor[i]);
	for (unsigned i = 0; i < l->running; i++)
		pthread_join(l->thread[i], NULL);
	l->running = 0;
}

void loops_close(struct loops *l)
{
	while (l->n > 0)
		reactor_free(l->reactor[--l->n]);
}
