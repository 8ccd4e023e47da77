/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz-file.c: the file of --config.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../server/errors.h"
#include "../../server/options.h"
#include "fuzz.h"

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	char *words[] = {"fuzz", "--config", path};
	struct options o;
	struct errors errors = {0};
	int fd = file_of(data, size);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (options_parse(&o, 3, words, &errors) < 0 && !errors.n)
		abort(); /* refused without a word */
	options_free(&o);
	errors_free(&errors);
	close(fd);
	return 0;
}
