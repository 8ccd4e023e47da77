/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.h: what a fuzz target is, and a server inside it to talk to.
 *
 * A target is one file with LLVMFuzzerTestOneInput(): libFuzzer calls it in a
 * tree of ./configure --enable-fuzzing CC=clang, else fuzz-main.c does, for
 * AFL and for the tests. It must not keep anything from one input that changes
 * what the next one does, and it must abort() where an answer is wrong.
 */
#ifndef WEIR_TESTS_FUZZ_H
#define WEIR_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a client says, in this order, and who looks at the answers. */
struct fuzz_talk {
	const unsigned char *prelude; /* in the clear */
	size_t nprelude;
	size_t expect; /* bytes of answer to wait for after that */
	bool tls;      /* then the handshake of TLS, with a key */
	const uint8_t *data;
	size_t size;
	size_t piece; /* bytes at a time; 0: all */
	/* The server's bytes, as they come; or NULL. */
	void (*answer)(void *arg, const uint8_t *p, size_t n);
	void *arg;
};

/* Begin a connection to a server that is made at the first call, say all of
 * it, hang up, and wait until nothing is left of the connection. */
void fuzz_talk(const struct fuzz_talk *t);

/* The size of a piece, from a byte of the input. */
static inline size_t fuzz_piece(uint8_t byte)
{
	return byte < 128 ? 0 : (size_t)(byte - 127) * (byte - 127);
}

#endif
