/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-pool-crash.c: many things at once on a small pool, power cuts in
 * between, seed after seed.
 *
 * For each sector of the device all that was written to it since it was last
 * durable is kept, in order. After a power cut it must hold one of these,
 * whole; a flush or FUA that succeeded leaves only what it covers and what
 * came later, unless a flush failed in between: then what was written before
 * the failure may be lost whatever flush succeeds. Changes that overlap do not
 * run at once; some reads do, and see one of these.
 *
 * WEIR_TEST_SEED and WEIR_TEST_SEEDS say which seeds; WEIR_TEST_SABOTAGE breaks
 * the pool on purpose (POOL_SABOTAGE_*): then it must fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "pooled.h"

#define STORE_SIZE (4 * MIB)
#define LOGICAL (6 * MIB)
#define SECTORS (LOGICAL / 512)
#define REGION (16 * UNIT)
#define REGIONS (LOGICAL / REGION)
#define HISTORY 48U
#define INFLIGHT 8U
#define SEEDS 12U
#define ROUNDS 4U
#define OPS 220U

struct sector {
	unsigned n;       /* entries */
	unsigned durable; /* the first that must still be possible */
	unsigned failed;  /* those below do not become durable any more */
	unsigned short tag[HISTORY];
	uint64_t solid; /* a bit an entry: the write succeeded */
	bool torn;      /* the last write of it failed: any of these is read */
};

struct op {
	struct pooled_io *io; /* NULL: free */
	unsigned *mark;       /* FLUSH: entries of each sector it covers */
	bool loose;           /* a READ beside changes of what it reads */
};

struct crash {
	struct pooled *b;
	uint64_t random, seed;
	unsigned tags;
	struct sector sector[SECTORS];
	bool locked[REGIONS];
	struct op op[INFLIGHT];
	unsigned enospc, failures, flushes, checked;
	uint64_t checkpoints;
};

static uint64_t draw(struct crash *c, uint64_t limit)
{
	return random_below(&c->random, limit);
}

/* --- the shadow ---------------------------------------------------------- */

/* Forget what is not possible any more. */
static void compact(struct sector *s)
{
	unsigned gone = s->durable;

	if (s->n < HISTORY / 2 || !gone)
		return;
	memmove(s->tag, s->tag + gone, (s->n - gone) * sizeof(s->tag[0]));
	s->solid >>= gone;
	s->n -= gone;
	s->durable = 0;
	s->failed = s->failed > gone ? s->failed - gone : 0;
}

static bool has_room(struct crash *c, uint64_t offset, uint64_t length)
{
	for (uint64_t i = offset / 512; i < (offset + length) / 512; i++) {
		bool needed = false;

		for (unsigned k = 0; k < INFLIGHT; k++)
			needed |= c->op[k].mark || c->op[k].loose;
		if (!needed)
			compact(&c->sector[i]);
		if (c->sector[i].n == HISTORY)
			return false;
	}
	return true;
}

static void add(struct crash *c, unsigned tag, uint64_t offset, uint64_t length)
{
	for (uint64_t i = offset / 512; i < (offset + length) / 512; i++)
		c->sector[i].tag[c->sector[i].n++] = (unsigned short)tag;
}

static void check_sector(struct crash *c, uint64_t i, const unsigned char *buf,
	unsigned from, const char *when)
{
	struct sector *s = &c->sector[i];

	c->checked++;
	for (unsigned k = s->n; k-- > from;) {
		if (tag_is(buf, s->tag[k], i * 512, 512))
			return;
	}
	for (unsigned k = 0; k < s->n; k++)
		print_message("%u: tag %u%s%s\n", k, s->tag[k],
			k == s->durable ? " durable" : "",
			k == s->failed ? " failed" : "");
	fail_msg("seed %" PRIu64 ": %s: sector %" PRIu64
		 " holds %02x%02x.., not one of %u from %u (last %u)",
		c->seed, when, i, buf[7], buf[6], s->n, from, s->tag[s->n - 1]);
}

/* Everything, after a power cut; then that is what is there. */
static void check_all(struct crash *c)
{
	unsigned char *buf = malloc(LOGICAL);

	for (uint64_t at = 0; at < LOGICAL; at += REGION) {
		struct pooled_io *x =
			pooled_start(c->b, STORE_READ, 0, at, REGION, 0);

		while (!x->done)
			assert_true(reactor_sim_step(c->b->loop));
		assert_int_equal(x->io.error, 0);
		memcpy(buf + at, x->buf, REGION);
		pooled_end(c->b, x);
	}
	for (uint64_t i = 0; i < SECTORS; i++) {
		struct sector *s = &c->sector[i];
		const unsigned char *is = buf + i * 512;

		check_sector(c, i, is, s->durable, "after the cut");
		s->tag[0] = (unsigned short)(is[7] << 8 | is[6]);
		*s = (struct sector){.n = 1, .tag = {s->tag[0]}, .solid = 1};
	}
	free(buf);
}

/* --- requests ------------------------------------------------------------ */

static void lock(struct crash *c, const struct store_io *io, bool locked)
{
	for (uint64_t r = io->offset / REGION;
		r * REGION < io->offset + io->length; r++)
		c->locked[r] = locked;
}

static bool is_locked(struct crash *c, uint64_t offset, uint64_t length)
{
	for (uint64_t r = offset / REGION; r * REGION < offset + length; r++) {
		if (c->locked[r])
			return true;
	}
	return false;
}

static void end_change(struct crash *c, const struct store_io *io)
{
	for (uint64_t i = io->offset / 512; i < (io->offset + io->length) / 512;
		i++) {
		struct sector *s = &c->sector[i];

		s->torn = io->error;
		if (!io->error)
			s->solid |= UINT64_C(1) << (s->n - 1);
		if (!io->error && io->flags & STORE_FUA)
			s->durable = s->n - 1;
	}
}

/* The last that succeeded of the first `mark` entries is what must be there,
 * or a later one. */
static void made_durable(struct sector *s, unsigned mark)
{
	while (mark && !(s->solid >> (mark - 1) & 1))
		mark--;
	if (mark > s->failed && mark > s->durable)
		s->durable = mark - 1;
}

static void end_flush(struct crash *c, struct op *op, int error)
{
	for (uint64_t i = 0; i < SECTORS; i++) {
		struct sector *s = &c->sector[i];

		if (error)
			s->failed = s->n;
		else
			made_durable(s, op->mark[i]);
	}
	free(op->mark);
	op->mark = NULL;
	c->failures += error != 0;
	c->flushes += !error;
}

static void end_read(struct crash *c, const struct pooled_io *x, bool loose)
{
	assert_int_equal(x->io.error, 0);
	for (uint64_t i = 0; i < x->io.length / 512; i++) {
		struct sector *s = &c->sector[x->io.offset / 512 + i];

		check_sector(c, x->io.offset / 512 + i, x->buf + i * 512,
			loose || s->torn ? 0 : s->n - 1, "a read");
	}
}

static void end(struct crash *c, struct op *op)
{
	struct pooled_io *x = op->io;

	c->enospc += x->io.error == -ENOSPC;
	if (x->io.op == STORE_FLUSH) {
		end_flush(c, op, x->io.error);
	} else {
		if (!op->loose)
			lock(c, &x->io, false);
		if (x->io.op == STORE_READ)
			end_read(c, x, op->loose);
		else
			end_change(c, &x->io);
	}
	pooled_end(c->b, x);
	op->io = NULL;
	op->loose = false;
}

static void begin_flush(struct crash *c, struct op *op)
{
	op->mark = malloc(SECTORS * sizeof(*op->mark));
	for (uint64_t i = 0; i < SECTORS; i++) {
		/* A locked one may have a change under way: its last. */
		op->mark[i] = c->sector[i].n;
		if (c->locked[i * 512 / REGION] && op->mark[i] > 1)
			op->mark[i]--;
	}
	op->io = pooled_start(c->b, STORE_FLUSH, 0, 0, 0, 0);
}

static void begin(struct crash *c, struct op *op)
{
	static const enum store_op ops[] = {STORE_WRITE, STORE_WRITE,
		STORE_WRITE, STORE_WRITE, STORE_WRITE, STORE_TRIM, STORE_ZERO,
		STORE_READ, STORE_FLUSH};
	enum store_op what = ops[draw(c, 9)];
	uint64_t units = 1 + draw(c, draw(c, 3) ? 8 : 40);
	uint64_t offset = draw(c, LOGICAL / UNIT - units) * UNIT;
	uint64_t length = units * UNIT;
	unsigned flags = draw(c, 8) ? 0 : STORE_FUA;
	unsigned tag = what == STORE_WRITE ? ++c->tags : 0;

	if (what == STORE_FLUSH) {
		begin_flush(c, op);
		return;
	}
	op->loose = what == STORE_READ && draw(c, 2);
	if ((!op->loose && is_locked(c, offset, length)) ||
		(what != STORE_READ && !has_room(c, offset, length)))
		return;
	if (what == STORE_ZERO && draw(c, 2))
		flags |= STORE_NO_HOLE;
	if (what == STORE_READ)
		flags = 0;
	else
		add(c, tag, offset, length);
	op->io = pooled_start(c->b, what, tag, offset, length, flags);
	if (!op->loose)
		lock(c, &op->io->io, true);
}

static void step(struct crash *c)
{
	for (unsigned k = 0; k < INFLIGHT; k++) {
		if (c->op[k].io && c->op[k].io->done)
			end(c, &c->op[k]);
	}
	reactor_sim_step(c->b->loop);
}

/* --- a round ------------------------------------------------------------- */

static void inject(struct crash *c)
{
	struct store_fault_rule rule[3] = {
		{.action = STORE_FAULT_DELAY,
			.ops = STORE_FAULT_OP(STORE_READ),
			.every = 2,
			.delay_ns = 1},
		{.action = STORE_FAULT_ERROR,
			.ops = STORE_FAULT_OP(STORE_FLUSH),
			.skip = draw(c, 10),
			.every = 9},
		{.action = STORE_FAULT_ERROR,
			.ops = STORE_FAULT_OP(STORE_WRITE),
			.skip = draw(c, 40),
			.every = 40},
	};

	store_fault_set(c->b->store, rule, 1 + (unsigned)draw(c, 3));
}

static void run(struct crash *c)
{
	inject(c);
	for (unsigned n = 0; n < OPS;) {
		struct op *op = &c->op[draw(c, INFLIGHT)];

		if (!op->io && draw(c, 2)) {
			begin(c, op);
			n++;
		} else {
			step(c);
		}
	}
}

static void cut(struct crash *c)
{
	c->checkpoints += pooled_counts(c->b).checkpoints;
	pooled_power_cut(c->b, c->random);
	for (unsigned k = 0; k < INFLIGHT; k++) {
		struct op *op = &c->op[k];

		if (!op->io)
			continue;
		if (!op->io->done)
			fail_msg("seed %" PRIu64 ": op %d at %" PRIu64
				 " is never answered",
				c->seed, (int)op->io->io.op, op->io->io.offset);
		if (op->io->io.op != STORE_READ || !op->io->io.error)
			end(c, op);
		else
			pooled_end(c->b, op->io);
		op->io = NULL;
	}
	memset(c->locked, 0, sizeof(c->locked));
}

/* A variable of the environment. */
static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

static void seed_run(struct crash *total, uint64_t seed)
{
	struct crash *c = calloc(1, sizeof(*c));

	c->random = c->seed = seed;
	c->b = pooled_blank(STORE_SIZE);
	c->b->sabotage = number("WEIR_TEST_SABOTAGE", 0);
	pooled_format(c->b, LOGICAL);
	pooled_open(c->b);
	for (uint64_t i = 0; i < SECTORS; i++)
		c->sector[i] = (struct sector){.n = 1, .solid = 1};
	for (unsigned round = 0; round < ROUNDS; round++) {
		run(c);
		cut(c);
		pooled_open(c->b);
		check_all(c);
	}
	total->enospc += c->enospc;
	total->failures += c->failures;
	total->flushes += c->flushes;
	total->checked += c->checked;
	total->checkpoints += c->checkpoints;
	pooled_free(c->b);
	free(c);
}

static void no_log(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

static void a_power_cut_shows_what_may_be_there(void **state)
{
	uint64_t from = number("WEIR_TEST_SEED", 1);
	uint64_t seeds = number("WEIR_TEST_SEEDS", SEEDS);
	struct crash *total = calloc(1, sizeof(*total));

	(void)state;
	log_setup("test", LOG_LEVEL_ERROR, no_log, NULL);
	for (uint64_t seed = from; seed < from + seeds; seed++)
		seed_run(total, seed);
	print_message("%u flushes, %u that failed, %u times full, %u sectors "
		      "checked\n",
		total->flushes, total->failures, total->enospc, total->checked);
	assert_true(total->flushes > seeds);
	assert_true(total->checkpoints > seeds / 8);
	assert_true(total->enospc > seeds / 8);
	assert_true(total->failures > seeds / 8);
	assert_true(total->checked > seeds * SECTORS);
	free(total);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_power_cut_shows_what_may_be_there),
	};

	return cmocka_run_group_tests_name("pool-crash", tests, NULL, NULL);
}
