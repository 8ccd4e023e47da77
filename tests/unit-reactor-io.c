/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-reactor-io.c: file I/O of the live loop.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "loop.h"

/* --- file I/O ------------------------------------------------------------- */

struct io_call {
	struct reactor_io io;
	struct call *call;
	bool inside;
};

static void io_finished(struct reactor_io *io)
{
	struct io_call *c = container_of(io, struct io_call, io);

	assert_false(c->inside);
	assert_true(reactor_is_current(c->call->loop->r));
	call_done(c->call);
}

static void io_begin(struct call *c)
{
	struct io_call *ic = c->arg;

	ic->call = c;
	ic->inside = true;
	reactor_io(c->loop->r, &ic->io);
	ic->inside = false;
}

static int64_t do_io(struct loop *l, enum reactor_io_op op,
	const struct iovec *iov, int niov, uint64_t offset, uint64_t length)
{
	struct io_call c = {.io = {
				    .op = op,
				    .fd = l->fd,
				    .iov = iov,
				    .niov = niov,
				    .offset = offset,
				    .length = length,
				    .done = io_finished,
			    }};

	call(l, io_begin, &c);
	return c.io.result;
}

static void what_is_written_is_read_back(void **state)
{
	struct loop *l = loop_of(state);
	char a[] = "absorbs the ", b[] = "writes", c[32] = "";
	struct iovec out[] = {{a, 12}, {b, 6}}, in = {c, sizeof c};

	assert_int_equal(do_io(l, REACTOR_WRITE, out, 2, 4096, 0), 18);
	assert_int_equal(do_io(l, REACTOR_FSYNC, NULL, 0, 0, 0), 0);
	assert_int_equal(do_io(l, REACTOR_READ, &in, 1, 4096, 0), 32);
	assert_string_equal(c, "absorbs the writes");
}

static void a_read_at_the_end_is_short(void **state)
{
	char buf[4096];
	struct iovec in = {buf, sizeof buf};

	assert_int_equal(
		do_io(loop_of(state), REACTOR_READ, &in, 1, (1 << 20) - 100, 0),
		100);
}

static void a_bad_descriptor_is_an_error(void **state)
{
	struct loop *l = loop_of(state);
	char buf[1];
	struct iovec in = {buf, 1};
	struct loop bad = *l;

	bad.fd = -1;
	assert_int_equal(do_io(&bad, REACTOR_READ, &in, 1, 0, 0), -EBADF);
}

static void a_punched_range_reads_as_zeroes(void **state)
{
	struct loop *l = loop_of(state);
	char buf[8192];
	struct iovec iov = {buf, sizeof buf};
	int64_t err;

	memset(buf, 'x', sizeof buf);
	assert_int_equal(do_io(l, REACTOR_WRITE, &iov, 1, 0, 0), 8192);
	err = do_io(l, REACTOR_PUNCH, NULL, 0, 4096, 4096);
	if (err == -EOPNOTSUPP)
		skip();
	assert_int_equal(err, 0);
	assert_int_equal(do_io(l, REACTOR_READ, &iov, 1, 0, 0), 8192);
	assert_int_equal(buf[4095], 'x');
	assert_int_equal(buf[4096], 0);
	assert_int_equal(buf[8191], 0);
}

#define FIXED 65536

/* Put fresh memory where the old was; what was fixed keeps the old. */
static void replace(char *memory)
{
	assert_ptr_equal(
		mmap(memory, FIXED, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		memory);
}

static void fixed_memory_is_looked_up_once(void **state)
{
	struct loop *l = loop_of(state);
	char *m = mmap(NULL, FIXED, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec all = {m, FIXED}, piece = {m + 8192, 4096};
	struct iovec two[] = {{m, 4096}, {m + 8192, 4096}};
	char back[8192];
	struct iovec in = {back, sizeof back};
	bool uring = reactor_live_backend(l->r) == REACTOR_URING;

	memset(m, 'a', FIXED);
	assert_int_equal(reactor_fix(l->r, &all), 0);
	replace(m);
	memset(m, 'b', FIXED);
	/* one piece of it goes by what was fixed; */
	assert_int_equal(do_io(l, REACTOR_WRITE, &piece, 1, 0, 0), 4096);
	assert_int_equal(do_io(l, REACTOR_READ, &in, 1, 0, 0), 8192);
	assert_int_equal(back[0], uring ? 'a' : 'b');
	assert_int_equal(back[4095], uring ? 'a' : 'b');
	/* several do not, */
	assert_int_equal(do_io(l, REACTOR_WRITE, two, 2, 0, 0), 8192);
	assert_int_equal(do_io(l, REACTOR_READ, &in, 1, 0, 0), 8192);
	assert_int_equal(back[0], 'b');
	/* nor does anything once it is no longer fixed. */
	reactor_unfix(l->r, &all);
	memset(m, 'c', FIXED);
	assert_int_equal(do_io(l, REACTOR_WRITE, &piece, 1, 0, 0), 4096);
	assert_int_equal(do_io(l, REACTOR_READ, &in, 1, 0, 0), 8192);
	assert_int_equal(back[0], 'c');
	munmap(m, FIXED);
}

#define STORM 3000

struct storm {
	struct reactor_io io[STORM];
	struct iovec iov[STORM];
	uint32_t word[STORM];
	unsigned left;
	struct call *call;
	enum reactor_io_op op;
};

static struct storm *storm; /* of the test that runs: there is one at a time */

static void storm_done(struct reactor_io *io)
{
	assert_int_equal(io->result, 4);
	if (!--storm->left)
		call_done(storm->call);
}

static void storm_begin(struct call *c)
{
	storm->call = c;
	storm->left = STORM;
	for (unsigned i = 0; i < STORM; i++) {
		storm->iov[i] = (struct iovec){&storm->word[i], 4};
		storm->io[i] = (struct reactor_io){
			.op = storm->op,
			.fd = c->loop->fd,
			.iov = &storm->iov[i],
			.niov = 1,
			.offset = i * 4,
			.done = storm_done,
		};
		reactor_io(c->loop->r, &storm->io[i]);
	}
}

static void more_io_than_the_ring_holds_all_completes(void **state)
{
	struct loop *l = loop_of(state);

	storm = calloc(1, sizeof *storm);
	for (uint32_t i = 0; i < STORM; i++)
		storm->word[i] = i * 7919;
	storm->op = REACTOR_WRITE;
	call(l, storm_begin, NULL);
	memset(storm->word, 0, sizeof storm->word);
	storm->op = REACTOR_READ;
	call(l, storm_begin, NULL);
	for (uint32_t i = 0; i < STORM; i++)
		assert_int_equal(storm->word[i], i * 7919);
	free(storm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH_LOOP(what_is_written_is_read_back),
		EACH_LOOP(a_read_at_the_end_is_short),
		EACH_LOOP(a_bad_descriptor_is_an_error),
		EACH_LOOP(a_punched_range_reads_as_zeroes),
		EACH_LOOP(fixed_memory_is_looked_up_once),
		EACH_LOOP(more_io_than_the_ring_holds_all_completes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
