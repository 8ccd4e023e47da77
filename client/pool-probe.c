/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-probe.c: is there something on a file or device that must not be
 * overwritten? Whatever is not zero counts; the common ones are called by
 * their names.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "pool.h"

#define EDGE ((size_t)1 << 20)

struct magic {
	const char *name;
	size_t at; /* bytes from the start */
	const char *bytes;
};

/* The more telling first: a boot sector may lie before some of them. */
static const struct magic magics[] = {
	{"a pool", 0, "weirpool"},
	{"a pool", 65536, "weirpool"},
	{"an XFS filesystem", 0, "XFSB"},
	{"an ext2, ext3 or ext4 filesystem", 1080, "\x53\xef"},
	{"a btrfs filesystem", 65600, "_BHRfS_M"},
	{"an LVM physical volume", 512, "LABELONE"},
	{"a LUKS volume", 0, "LUKS\xba\xbe"},
	{"swap space", 4086, "SWAPSPACE2"},
	{"a qcow2 image", 0, "QFI\xfb"},
	{"a GPT partition table", 512, "EFI PART"},
	{"a partition table or boot sector", 510, "\x55\xaa"},
};

static const char *name_of(const char *head, size_t n)
{
	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		const struct magic *m = &magics[i];
		size_t length = strlen(m->bytes);

		if (m->at + length <= n &&
			!memcmp(head + m->at, m->bytes, length))
			return m->name;
	}
	return "data of some kind";
}

static bool is_zero(const char *at, size_t n)
{
	return !n || (!*at && !memcmp(at, at + 1, n - 1));
}

/* Read up to n bytes; how many, or -1. */
static ssize_t read_at(int fd, char *buf, size_t n, uint64_t at)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(fd, buf + got, n - got, (off_t)(at + got));

		if (r < 0)
			return -1;
		if (!r)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

const char *pool_probe(int fd, uint64_t size)
{
	CLEANUP_FREE char *buf = malloc(EDGE);
	ssize_t n = buf ? read_at(fd, buf, EDGE, 0) : -1;

	if (n < 0)
		return "?";
	if (!is_zero(buf, (size_t)n))
		return name_of(buf, (size_t)n);
	if (size <= EDGE)
		return NULL;
	n = read_at(fd, buf, EDGE, size - EDGE);
	if (n < 0)
		return "?";
	return is_zero(buf, (size_t)n) ? NULL : "data of some kind at its end";
}
