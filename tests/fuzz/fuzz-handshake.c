/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz-handshake.c: all that a client says, from its flags on, in the clear;
 * also what it sends as TLS after STARTTLS.
 *
 * The first byte of an input is the size of the pieces, the rest is said.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	fuzz_talk(&(struct fuzz_talk){
		.data = data + 1,
		.size = size - 1,
		.piece = fuzz_piece(data[0]),
	});
	return 0;
}
