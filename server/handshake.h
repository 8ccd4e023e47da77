/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.h: the state of a negotiation, gone when it is over.
 *
 * Rules:
 *  1. One option is answered before the next is looked at, and the next only
 *     when the answer has gone to the socket: a client that sends options and
 *     reads nothing costs no more memory than one option and its answer.
 *  2. Every length in an option is checked against the length of the option,
 *     and that against a limit, before anything is believed.
 *  3. What a client said before STARTTLS is forgotten after it, and what it
 *     sent behind it in the clear is never read: either ends the connection.
 */
#ifndef WEIR_SERVER_HANDSHAKE_H
#define WEIR_SERVER_HANDSHAKE_H

#include "conn.h"

#define OPTION_HEADER 16U
#define OPTION_MAX (16U << 10) /* bytes; the longest that is read */
#define OPTION_SKIP (1U << 20) /* bytes; the longest that is skipped */

struct handshake {
	bool has_flags; /* the client's flags have come */
	bool fixed;     /* newstyle: without it there is no TLS */
	bool no_zeroes;
	bool done;            /* transmission follows when `out` has gone */
	bool starttls;        /* TLS follows when `out` has gone */
	bool closing;         /* the end follows when `out` has gone */
	uint32_t skip;        /* bytes of an option that was refused */
	uint64_t meta_export; /* whose contexts were set: its id; 0: no one's */
	unsigned char *out;   /* owned */
	size_t nout, out_sent, out_room;
	size_t nin;
	unsigned char in[OPTION_HEADER + OPTION_MAX];
};

/* An option, whole. */
struct option {
	uint32_t number;
	const unsigned char *data;
	uint32_t length;
};

/* Append bytes to what is sent. No memory: the connection ends. */
void handshake_put(struct conn *c, const void *data, size_t n);

/* Append an option reply. */
void handshake_reply(struct conn *c, uint32_t option, uint32_t type,
	const void *data, size_t n);

/* As above with an error and a text for people. */
void handshake_refuse(
	struct conn *c, uint32_t option, uint32_t type, const char *why);

/* --- option.c ------------------------------------------------------------- */

/* Answer one option. */
void option_answer(struct conn *c, const struct option *o);

/* --- meta.c --------------------------------------------------------------- */

/* LIST_META_CONTEXT and SET_META_CONTEXT. */
void meta_answer(struct conn *c, const struct option *o);

#endif
