/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * size.h: sizes, times and yes or no as people write them.
 */
#ifndef WEIR_BASE_SIZE_H
#define WEIR_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Read "64K", "1.5G", "4096", "2T" (powers of 1024; suffix B K M G T P E,
 * either case) into bytes. Returns 0, -EINVAL for bad text, -ERANGE for what
 * does not fit or is not a whole number of bytes.
 */
int size_parse(const char *text, uint64_t *bytes);

/* Read "30", "30s", "200ms", "10m", "1h" into nanoseconds; errors as above. */
int time_parse(const char *text, uint64_t *ns);

/* Read yes, true, on, 1 or no, false, off, 0, in either case. 0 or -EINVAL. */
int bool_parse(const char *text, bool *value);

/* "64K", "1.5G", "1023K", for people: three significant digits, or four for a
 * number from 1000 to 1023. Fills and returns `buf`, which needs 16 bytes. */
char *size_format(uint64_t bytes, char buf[16]);

#endif
