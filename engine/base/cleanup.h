/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cleanup.h: things undone at the end of the scope that did them.
 */
#ifndef WEIR_BASE_CLEANUP_H
#define WEIR_BASE_CLEANUP_H

#include <pthread.h>
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

/* `CLEANUP_FREE char *s = ...;` is freed, `CLEANUP_CLOSE int fd` closed. */
#define CLEANUP_FREE __attribute__((cleanup(cleanup_free)))
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close)))

#define CLEANUP_CAT2(a, b) a##b
#define CLEANUP_CAT(a, b) CLEANUP_CAT2(a, b)

/* Hold the mutex until the end of the enclosing scope. */
#define SCOPED_LOCK(mutex)                                                     \
	__attribute__((cleanup(cleanup_unlock), unused)) pthread_mutex_t *     \
	CLEANUP_CAT(scoped_lock_, __LINE__) = cleanup_lock(mutex)

#endif
