/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storage.h: for the unit tests of stores: a simulated loop, and ios that are
 * waited for. Include after cmocka.h.
 */
#ifndef WEIR_TESTS_STORAGE_H
#define WEIR_TESTS_STORAGE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/reactor.h"
#include "store/store.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

/* An io, and whether it has come back. */
struct waited_io {
	struct store_io io;
	struct iovec iov;
	bool done;
};

static inline void waited_io_done(struct store_io *io)
{
	struct waited_io *w = container_of(io, struct waited_io, io);

	assert_false(w->done);
	w->done = true;
}

/* Start an io on a loop; `data` for READ and WRITE. */
static inline void io_start(struct store *s, struct reactor *r,
	struct waited_io *w, enum store_op op, uint64_t offset, uint64_t length,
	void *data, unsigned flags)
{
	memset(w, 0, sizeof *w);
	w->iov = (struct iovec){data, length};
	w->io.op = op;
	w->io.flags = flags;
	w->io.offset = offset;
	w->io.length = length;
	w->io.iov = &w->iov;
	w->io.niov = 1;
	w->io.reactor = r;
	w->io.done = waited_io_done;
	store_submit(s, &w->io);
	assert_false(w->done); /* never inside submit */
}

/* Do an io on a simulated loop; returns its error. */
static inline int io_do(struct store *s, struct reactor *r, enum store_op op,
	uint64_t offset, uint64_t length, void *data, unsigned flags)
{
	struct waited_io w;

	io_start(s, r, &w, op, offset, length, data, flags);
	while (!w.done)
		assert_true(reactor_sim_step(r));
	return w.io.error;
}

/* Open, or fail the test with the error's text. */
static inline struct store *store_must_open(const char *spec)
{
	struct error error = {""};
	struct store *s;

	if (store_open(spec, 0, &s, &error))
		fail_msg("%s", error.text);
	return s;
}

#endif
