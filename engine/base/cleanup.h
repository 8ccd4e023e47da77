/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cleanup.h: things undone at the end of the scope that did them.
 */
#ifndef WEIR_BASE_CLEANUP_H
#define WEIR_BASE_CLEANUP_H

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline pthread_mutex_t *cleanup_lock(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	return m;
}

static inline void cleanup_unlock(pthread_mutex_t **m)
{
	pthread_mutex_unlock(*m);
}

static inline sigset_t cleanup_block_signals(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	return before;
}

static inline void cleanup_restore_signals(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* `CLEANUP_FREE char *s = ...;` is freed, `CLEANUP_CLOSE int fd` closed. */
#define CLEANUP_FREE __attribute__((cleanup(cleanup_free)))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close)))

#define CLEANUP_CAT2(a, b) a##b
#define CLEANUP_CAT(a, b) CLEANUP_CAT2(a, b)

/* Hold the mutex until the end of the enclosing scope. */
#define SCOPED_LOCK(mutex)                                                     \
	__attribute__((cleanup(cleanup_unlock), unused)) pthread_mutex_t *     \
	CLEANUP_CAT(scoped_lock_, __LINE__) = cleanup_lock(mutex)

/* This thread takes no signal until the end of the enclosing scope. A thread
 * that is made in it inherits that, and never takes any. */
#define SCOPED_NO_SIGNALS                                                      \
	__attribute__((cleanup(cleanup_restore_signals), unused))              \
	sigset_t scoped_signals = cleanup_block_signals()

#endif
