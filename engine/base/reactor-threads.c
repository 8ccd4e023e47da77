/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reactor-threads.c: the helper threads of one live loop, for works that
 * block and, without io_uring, for file I/O.
 *
 * 1. Threads start when there is something to do and none is idle, up to
 *    POOL_THREADS; they end with the loop.
 * 2. At most POOL_WORKS of them run works, which may take long, so that file
 *    I/O always has a thread to go to.
 * 3. Helper threads take no signals.
 */
#include <stdlib.h>

#include "cleanup.h"
#include "reactor-file.h"
#include "reactor-live.h"

#define POOL_THREADS 8U
#define POOL_WORKS 4U
#define POOL_STACK (512U << 10) /* bytes: --swap locks them in memory */

struct pool {
	struct live *live;
	pthread_t thread[POOL_THREADS]; /* the loop's */
	unsigned nthreads;              /* the loop's */

	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct list ios, works; /* to do */
	unsigned queued;        /* jobs to do */
	unsigned idle, working; /* threads: waiting, running a work */
	bool quit;
};

static void pool_do_io(struct live *l, struct reactor_io *io)
{
	io->result = reactor_file_io(io);
	live_io_done(l, io);
}

static void pool_do_work(struct live *l, struct reactor_work *work)
{
	work->run(work);
	live_work_done(l, work);
}

/* Do one job, the lock dropped meanwhile; false: there is none to take. */
static bool pool_step_locked(struct pool *p)
{
	struct list *io = list_pop_head(&p->ios), *work = NULL;

	if (!io && p->working < POOL_WORKS)
		work = list_pop_head(&p->works);
	if (!io && !work)
		return false;
	p->queued--;
	p->working += work != NULL;
	pthread_mutex_unlock(&p->lock);
	if (io)
		pool_do_io(p->live, list_entry(io, struct reactor_io, link));
	else
		pool_do_work(
			p->live, list_entry(work, struct reactor_work, link));
	pthread_mutex_lock(&p->lock);
	p->working -= work != NULL;
	return true;
}

static void *pool_thread(void *arg)
{
	struct pool *p = arg;
	SCOPED_LOCK(&p->lock);

	while (!p->quit) {
		if (pool_step_locked(p))
			continue;
		p->idle++;
		pthread_cond_wait(&p->wake, &p->lock);
		p->idle--;
	}
	return NULL;
}

/* Start one more thread, if there may be one; false: there is none at all. */
static bool pool_grow(struct pool *p)
{
	pthread_attr_t attr;

	if (p->nthreads == POOL_THREADS)
		return true;

	SCOPED_NO_SIGNALS;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, POOL_STACK);
	if (!pthread_create(&p->thread[p->nthreads], &attr, pool_thread, p))
		p->nthreads++;
	pthread_attr_destroy(&attr);
	return p->nthreads > 0;
}

/* Queue a job. False: no thread could be started, nothing was queued. */
static bool pool_queue(struct pool *p, struct list *queue, struct list *job)
{
	bool spare;

	/* Only the loop starts threads: with one, there is one to come. */
	if (!p->nthreads && !pool_grow(p))
		return false;
	pthread_mutex_lock(&p->lock);
	list_push_tail(queue, job);
	p->queued++;
	/* An idle thread may be on its way to an earlier job. */
	spare = p->idle >= p->queued;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	if (!spare)
		pool_grow(p);
	return true;
}

void pool_io(struct pool *p, struct reactor_io *io)
{
	/* Without a single thread, blocking beats failing. */
	if (!pool_queue(p, &p->ios, &io->link))
		pool_do_io(p->live, io);
}

void pool_work(struct pool *p, struct reactor_work *work)
{
	if (!pool_queue(p, &p->works, &work->link))
		pool_do_work(p->live, work);
}

struct pool *pool_new(struct live *l)
{
	struct pool *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->live = l;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	list_init(&p->ios);
	list_init(&p->works);
	return p;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->quit = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->nthreads; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
