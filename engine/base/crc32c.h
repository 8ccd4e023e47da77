/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc32c.h: the checksum of what a pool keeps on its store: CRC-32 with
 * Castagnoli's polynomial, as in iSCSI (RFC 3720, appendix B.4).
 *
 * Pure; any thread. Uses the processor's instruction where it has one.
 */
#ifndef WEIR_BASE_CRC32C_H
#define WEIR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Of `length` bytes that follow those whose checksum is `crc`; 0 to begin.
 * crc32c(crc32c(0, a), b) is the checksum of a and b in one piece.
 */
uint32_t crc32c(uint32_t crc, const void *data, size_t length);

/* The same without the processor's instruction, for the tests. */
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t length);

#endif
