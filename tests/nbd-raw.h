/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-raw.h: the wire, for nbd-raw.c: what is put is collected until something
 * is received; each thing received is printed. Errors end the program.
 */
#ifndef WEIR_TESTS_NBD_RAW_H
#define WEIR_TESTS_NBD_RAW_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_REQUESTS 65536

struct raw {
	int fd;
	void *ssl;    /* NULL: in the clear */
	int extended; /* headers, from now on */
	unsigned char *out;
	size_t nout, room;
	/* By cookie: what was read, to know how much data follows. */
	uint32_t read_length[MAX_REQUESTS];
};

_Noreturn void raw_die(const char *what);

/* Bytes, as they are or big-endian. */
void raw_put(struct raw *r, const void *data, size_t n);
void raw_put16(struct raw *r, unsigned v);
void raw_put32(struct raw *r, uint32_t v);
void raw_put64(struct raw *r, uint64_t v);
void raw_put_hex(struct raw *r, const char *hex);
void raw_put_fill(struct raw *r, size_t n, unsigned byte);

uint16_t raw_get16(struct raw *r);
uint64_t raw_get64(struct raw *r);

/* Send what was put. */
void raw_flush_out(struct raw *r);

/* From here on with TLS; prints the version. */
void raw_tls(struct raw *r);

/* The end of the connection. */
void raw_close(struct raw *r);

/* As send() and recv(), with TLS or without. */
ssize_t raw_send(struct raw *r, const void *data, size_t n);
ssize_t raw_recv(struct raw *r, void *data, size_t n);

/* Handshake: option puts a header, reply reads one, replies up to the last. */
void raw_greet(struct raw *r, uint32_t flags);
void raw_option(struct raw *r, uint32_t number, uint32_t length);
uint32_t raw_reply(struct raw *r);
void raw_replies(struct raw *r);

/* Put one and read its replies. INFO or GO, asking for these numbers; */
void raw_go(struct raw *r, uint32_t number, const char *name, char **infos);
/* LIST_META_CONTEXT or SET_META_CONTEXT. */
void raw_meta(struct raw *r, uint32_t number, const char *name, char **queries);

/* Transmission: a header; one answer. */
void raw_request(struct raw *r, unsigned type, unsigned flags, uint64_t cookie,
	uint64_t offset, uint64_t length);
void raw_answer(struct raw *r);

#endif
