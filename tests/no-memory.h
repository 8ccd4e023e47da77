/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * no-memory.h: memory that runs out when a test says so. The test is linked
 * with -Wl,--wrap=mmap, which puts this in place of mmap().
 */
#ifndef WEIR_TESTS_NO_MEMORY_H
#define WEIR_TESTS_NO_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

static bool no_memory;

void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);

void *__wrap_mmap(
	void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (no_memory) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(at, length, prot, flags, fd, offset);
}

#endif
