/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz-tls.c: what a client says inside TLS: options, then requests.
 *
 * The first byte of an input is the size of the pieces, of which each is a
 * record; the rest is said.
 */
#include "fuzz.h"

/* The flags, and STARTTLS. */
static const unsigned char prelude[] = {0, 0, 0, 3, 'I', 'H', 'A', 'V', 'E',
	'O', 'P', 'T', 0, 0, 0, 5, 0, 0, 0, 0};

#define GREETING 18U
#define OPTION_REPLY 20U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	fuzz_talk(&(struct fuzz_talk){
		.prelude = prelude,
		.nprelude = sizeof(prelude),
		.expect = GREETING + OPTION_REPLY,
		.tls = true,
		.data = data + 1,
		.size = size - 1,
		.piece = fuzz_piece(data[0]),
	});
	return 0;
}
