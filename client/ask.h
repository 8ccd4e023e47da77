/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ask.h: a question to a control socket that nobody has to wait for.
 *
 *   ask_begin -> ask_step while it is -EAGAIN -> ask_end
 *
 * One thread at a time; nothing here blocks or prints.
 */
#ifndef WEIR_CLIENT_ASK_H
#define WEIR_CLIENT_ASK_H

#include <jansson.h>
#include <stddef.h>

struct ask {
	int fd;        /* to wait on; -1: there is none */
	short events;  /* for what, as of poll(2) */
	char why[256]; /* it failed, with the path */
	const char *path;
	char *out, *line;
	size_t sent, used, room;
};

/*
 * Connect to the socket at `path`. The question stays the caller's, the
 * path has to stay. 0, or a
 * negative errno with a->why filled: -EAGAIN if the server has too many
 * askers. End with ask_end() either way.
 */
int ask_begin(struct ask *a, const char *path, const json_t *question);

/*
 * Go on as far as it goes. 0 with *answer an object, the caller's reference;
 * -EAGAIN: wait for the socket; -EPERM: the server will not, and another
 * negative errno if it does not answer, with a->why filled.
 */
int ask_step(struct ask *a, json_t **answer);

void ask_end(struct ask *a);

#endif
