/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h: one seeded run of the engine against the shadow.
 *
 *   plan (from the seed) -> run: open -> operations -> end -> compare
 *                                  ^        |
 *                                  +-- power cut, or shutdown
 *
 * Everything is drawn from the plan's generator and the simulated reactor's,
 * so a seed repeats a run exactly.
 */
#ifndef WEIR_TESTS_MODEL_H
#define WEIR_TESTS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "base/list.h"
#include "base/random.h"
#include "model-shadow.h"

#define MODEL_EXPORTS 4U
#define MODEL_CLIENTS 4U
#define MODEL_RULES 6U

/* What goes wrong, a bit each. */
enum model_fault {
	FAULT_READ = 1,   /* reads fail */
	FAULT_WRITE = 2,  /* writes, trims and zeroes fail */
	FAULT_FLUSH = 4,  /* flushes fail */
	FAULT_SHORT = 8,  /* writes stop half way */
	FAULT_DELAY = 16, /* commands take time, and overtake each other */
	FAULT_HANG = 32,  /* commands end much later */
	FAULT_ERRORS = FAULT_READ | FAULT_WRITE | FAULT_FLUSH | FAULT_SHORT,
};

/* How a run ends its first life. */
enum model_end {
	END_IN_ORDER,
	END_SHUTDOWN,  /* engine_shutdown() at a random moment */
	END_POWER_CUT, /* and what the store kept is opened again */
};

struct plan {
	uint64_t seed;
	unsigned ops, lives; /* operations of each life */
	uint64_t size;       /* of the device, bytes */
	uint64_t cache_size, dirty_limit, dirty_background;
	uint64_t dirty_expire_ns, error_timeout_ns;
	uint32_t page_size, block_size;
	bool subpage, multipage;
	enum engine_throttle throttle;
	uint64_t readahead; /* bytes */
	unsigned follow;    /* of 100: go on where the last request ended */
	unsigned exports, clients, depth;
	enum engine_cache_mode mode[MODEL_EXPORTS];
	bool readonly[MODEL_EXPORTS];
	enum engine_detect detect;
	unsigned faults; /* enum model_fault */
	enum model_end end;
	bool changing;          /* its settings do, while it runs */
	bool prefilled;         /* the device starts with data, not zeroes */
	unsigned weight[7];     /* of each enum engine_op */
	bool pool;              /* over a pool, not a raw store: */
	bool tight;             /* which may run out of space */
	bool immediate, serial; /* placement, append */
	uint64_t space, journal_size; /* bytes */
	unsigned sabotage;            /* POOL_SABOTAGE_*: see if it is found */
};

struct run {
	struct plan plan;
	uint64_t random;
	bool verbose;
	char failure[2048]; /* what is wrong; "" so far so good */

	int image; /* the store, a memory file: what is durable */
	unsigned char *map;
	uint64_t store_size; /* bytes */
	int scratch;         /* a memory file: a copy of it */
	unsigned char *copy;
	unsigned char *device; /* what a pool's copy was read as */
	struct shadow *shadow;
	uint32_t last_id;

	/* of this life */
	struct reactor *reactor;
	struct engine *engine;
	struct engine_export *export[MODEL_EXPORTS];
	struct engine_client *client[MODEL_CLIENTS];
	struct list inflight, held, unsent; /* struct op */
	unsigned ninflight;
	uint64_t op_number;
	uint64_t last_end;    /* of the last random range, bytes */
	unsigned active;      /* faults now, enum model_fault */
	unsigned suffered;    /* faults since the last time all was well */
	uint64_t suffered_ns; /* since when */
	uint64_t quiet_ns;    /* when they last changed */
	bool must_flush;      /* nothing goes wrong: a flush has to succeed */
	bool lost;            /* a flush answered EIO all the same */
	bool power_off, shutting_down, shut_down;
	uint64_t shutdown_timeout_ns;
	int shutdown_error;
	unsigned abandoned; /* engines that could not be freed */
};

/* One request. */
struct op {
	struct engine_request req;
	struct run *run;
	struct list link;
	struct change change; /* WRITE, TRIM, ZERO */
	uint64_t number, begun, begun_ns;
	unsigned export;
	unsigned char *buf, *copy; /* copy: what a held read must stay */
	struct engine_extent extents[8];
	bool payload;    /* the data is in the engine's memory */
	bool submitting; /* engine_submit() has not returned */
	bool late;       /* sent after engine_shutdown() */
};

/* --- model-plan.c -------------------------------------------------------- */

/* `p->pool` and `p->sabotage` say what is tested; the rest is drawn. */
void plan_make(struct plan *p, uint64_t seed, unsigned ops);
void plan_print(const struct plan *p, char *buf, size_t size);

/* --- model-op.c: asking -------------------------------------------------- */

/* Start one operation drawn from the run's generator, or get one ready. */
void op_random(struct run *run);
/* Start a plain one; whole requests only. */
void op_start(struct run *run, enum engine_op type, unsigned flags,
	uint64_t offset, uint64_t length);
/* Start, or give up, what was got ready. */
void op_send_one(struct run *run, bool give_up);
bool op_is_change(const struct op *op);
/* May the store be told to zero for it? */
bool op_zeroes(const struct op *op);
/* Must the request be refused, without any effect? */
bool op_refused(const struct op *op);
void op_print(const struct op *op, const char *what);

/* --- model-answer.c: judging --------------------------------------------- */

/* The request is answered: judge it and free it. */
void op_answered(struct op *op);
/* Let go of the memory of one answered read, which must be as it was. */
void op_let_go(struct run *run);

__attribute__((format(printf, 2, 3))) void run_fail(
	struct run *run, const char *fmt, ...);

/* --- model-fault.c ------------------------------------------------------- */

/* Change at random what goes wrong. */
void fault_change(struct run *run);
/* Nothing goes wrong any more. */
void fault_clear(struct run *run);

/* --- model-set.c --------------------------------------------------------- */

/* Change a setting at random, or drop what is clean. */
void settings_change(struct run *run);

/* --- model-image.c ------------------------------------------------------- */

/* Make the store as the plan has it. */
void image_make(struct run *run);
void image_free(struct run *run);
/* What the device holds, with the store closed or its power cut. Valid until
 * the next call of either. */
const unsigned char *image_now(struct run *run);
/* What it would hold if the power were cut now. */
const unsigned char *image_cut(struct run *run);
/* The same with a journal entry damaged that was durable: NULL if that is
 * found out, or there is none. */
const unsigned char *image_damaged(struct run *run);

/* --- model-run.c --------------------------------------------------------- */

/* Run a seed. False, and run->failure says why. */
bool run_seed(struct run *run, uint64_t seed, unsigned ops);

static inline uint64_t pick(struct run *run, uint64_t limit)
{
	return random_below(&run->random, limit);
}

static inline bool chance(struct run *run, unsigned percent)
{
	return pick(run, 100) < percent;
}

#endif
