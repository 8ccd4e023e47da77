/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-run.c: the life of an engine, from open to the last comparison.
 *
 *  1. Whatever happened: once nothing goes wrong any more every request is
 *     answered in bounded time, a flush succeeds, and then the store holds
 *     what the shadow does, byte for byte.
 *  2. What a power cut would leave at random moments, and at each flush that
 *     succeeds, is what the shadow permits; so is what one leaves.
 *  3. Dirty data never exceeds the limit, nor memory its size.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"
#include "stat.h"
#include "store/fault.h"

#define PATIENCE (300 * NSEC_PER_SEC) /* simulated, for any one answer */
#define MOST_STEPS 3000000U           /* of one wait: else it spins */

static bool failed(const struct run *run)
{
	return run->failure[0];
}

/* --- waiting ------------------------------------------------------------- */

static const struct op *oldest_op(const struct run *run)
{
	return list_empty(&run->inflight)
		? NULL
		: list_entry(run->inflight.next, struct op, link);
}

static void fail_unanswered(struct run *run, const char *why)
{
	const struct op *op = oldest_op(run);

	if (run->verbose) {
		char *stats = engine_stats_json(run->engine, "model");

		printf("# %s\n", stats);
		free(stats);
	}
	run_fail(run,
		"%s: #%" PRIu64 " op %d %" PRIu64 "+%" PRIu64
		" of %u in flight is not answered",
		why, op ? op->number : 0, op ? (int)op->req.op : -1,
		op ? op->req.offset : 0, op ? op->req.length : 0,
		run->ninflight);
}

/* One event; true if there was one. What was delayed before it hung may only
 * hang now, when nothing should any more. */
static bool step(struct run *run)
{
	bool any = reactor_sim_step(run->reactor);

	if (!run->active && store_fault_release(engine_store(run->engine)))
		any = true;
	return any;
}

/* Go on until every request is answered and, if asked, the engine is down. */
static void drain(struct run *run, bool down)
{
	uint64_t end = reactor_now(run->reactor) + PATIENCE;
	unsigned steps = 0;

	while (!failed(run) && (run->ninflight || (down && !run->shut_down))) {
		if (!step(run))
			fail_unanswered(run, "nothing left to happen");
		else if (reactor_now(run->reactor) > end)
			fail_unanswered(run, "patience is over");
		else if (++steps > MOST_STEPS)
			fail_unanswered(run, "spinning");
	}
}

/* Let what the store has been asked end as it was going to. */
static void settle_store(struct run *run)
{
	uint64_t end = reactor_now(run->reactor) + NSEC_PER_SEC;

	while (!failed(run) && reactor_now(run->reactor) < end && step(run))
		;
}

static void check_age(struct run *run)
{
	uint64_t now = reactor_now(run->reactor);
	const struct op *op = oldest_op(run);
	uint64_t since;

	if (!op || run->active & FAULT_HANG ||
		store_fault_hanging(engine_store(run->engine)))
		return;
	if (run->active && op_is_change(op))
		return; /* may wait for the store to get well */
	since = op->begun_ns > run->quiet_ns ? op->begun_ns : run->quiet_ns;
	if (now - since > PATIENCE)
		fail_unanswered(run, "waited too long");
}

/* What the cache may hold: its size and a page more that dirty blocks pin,
 * with their state, and for a moment what requests under way bring in. */
static uint64_t memory_bound(const struct run *run)
{
	uint64_t bound = run->plan.cache_size + run->plan.cache_size / 8 +
		run->plan.page_size;

	list_for_each (node, &run->inflight) {
		const struct op *op = list_entry(node, struct op, link);

		bound += op->req.length + 2 * (uint64_t)run->plan.page_size;
	}
	return bound;
}

static void check_stats(struct run *run)
{
	uint64_t peak = stat_value(run->engine, "dirty_peak_bytes");
	uint64_t cached = stat_value(run->engine, "cached_bytes");

	if (peak > run->plan.dirty_limit)
		run_fail(run, "dirty peak %" PRIu64 " over the limit", peak);
	if (cached > memory_bound(run))
		run_fail(run, "%" PRIu64 " bytes cached, %" PRIu64 " allowed",
			cached, memory_bound(run));
}

/* --- open ---------------------------------------------------------------- */

static void configure(const struct run *run, struct engine_config *c)
{
	const struct plan *p = &run->plan;
	struct error error = {""};
	char spec[128];

	engine_config_init(c);
	snprintf(spec, sizeof(spec),
		"%sfault:seed=%" PRIu64
		",record=%s,volatile:/proc/self/fd/%d%s",
		p->pool ? "pool:[" : "", p->seed, run->verbose ? "on" : "off",
		run->image, p->pool ? "]" : "");
	c->store = strdup(spec);
	c->pool_sabotage = p->sabotage;
	c->placement = p->immediate ? ENGINE_IMMEDIATE : ENGINE_DELALLOC;
	c->append = p->serial ? ENGINE_APPEND_SERIAL : ENGINE_APPEND_ASYNC;
	c->cache_size = p->cache_size;
	c->page_size = p->page_size;
	c->block_size = p->block_size;
	c->subpage = p->subpage;
	c->multipage = p->multipage;
	c->throttle = p->throttle;
	c->readahead = p->readahead;
	c->dirty_limit = p->dirty_limit;
	c->dirty_background = p->dirty_background;
	c->dirty_expire_ns = p->dirty_expire_ns;
	c->error_timeout_ns = p->error_timeout_ns;
	c->detect_zeroes = p->detect;
	c->cache = p->mode[0];
	if (engine_config_check(c, &error) != 0) {
		fprintf(stderr, "%s\n", error.text);
		abort();
	}
}

static void open_engine(struct run *run, uint64_t seed)
{
	struct engine_config config;
	struct error error = {""};
	struct engine_info info;

	run->reactor = reactor_sim_new(seed);
	assert(run->reactor);
	configure(run, &config);
	if (engine_open(&config, &run->reactor, 1, &run->engine, &error) != 0)
		run_fail(run, "cannot open: %s", error.text);
	engine_config_free(&config);
	if (failed(run))
		return;
	for (unsigned i = 0; i < run->plan.exports; i++) {
		run->export[i] = engine_export_new(
			run->engine, run->plan.readonly[i], run->plan.mode[i]);
		assert(run->export[i]);
		engine_export_info(run->export[i], &info);
		if (info.size != run->plan.size)
			run_fail(run, "size is %" PRIu64, info.size);
	}
	for (unsigned i = 0; i < run->plan.clients; i++) {
		char name[24];

		snprintf(name, sizeof(name), "client %u", i);
		run->client[i] = engine_client_get(run->engine, name);
		assert(run->client[i]);
	}
	run->active = run->suffered = 0;
	run->power_off = run->shutting_down = run->shut_down = false;
	run->shutdown_error = 0;
	run->quiet_ns = reactor_now(run->reactor);
}

/* --- end ----------------------------------------------------------------- */

static void down(struct engine *e, int error, void *arg)
{
	struct run *run = arg;

	(void)e;
	run->shut_down = true;
	run->shutdown_error = error;
	if (run->verbose)
		printf("# shut down: %d\n", error);
}

static void start_shutdown(struct run *run, uint64_t timeout_ns)
{
	if (run->verbose)
		printf("# shutdown\n");
	run->shutting_down = true;
	run->shutdown_timeout_ns = timeout_ns;
	engine_shutdown(run->engine, timeout_ns, down, run);
}

static void let_all_go(struct run *run)
{
	while (!list_empty(&run->unsent))
		op_send_one(run, true);
	while (!list_empty(&run->held))
		op_let_go(run);
}

static void close_engine(struct run *run)
{
	if (failed(run))
		return;
	let_all_go(run);
	if (run->shutdown_error == -ETIMEDOUT) {
		run->abandoned++; /* the store may still be at work */
		return;
	}
	for (unsigned i = 0; i < run->plan.clients; i++)
		engine_client_put(run->client[i]);
	engine_close(run->engine);
	reactor_free(run->reactor);
}

static void compare(struct run *run, const unsigned char *image,
	const char *when, bool exact)
{
	char why[1600];
	bool same;

	if (failed(run))
		return;
	same = exact ? shadow_exact(run->shadow, image, why, sizeof(why))
		     : shadow_durable(run->shadow, image, why, sizeof(why));
	if (!same)
		run_fail(run, "%s: %s", when, why);
}

/* Damage is found out, or does not matter. */
static void compare_damaged(struct run *run)
{
	const unsigned char *image = image_damaged(run);

	if (image)
		compare(run, image, "with a damaged journal", false);
}

/* The store is closed, or its power cut. */
static void compare_image(struct run *run, const char *when, bool exact)
{
	if (!failed(run))
		compare(run, image_now(run), when, exact);
}

/* Everything through the engine: what later comparisons may see is then
 * decided. */
static void read_all(struct run *run)
{
	uint64_t at = 0;

	while (at < run->plan.size && !failed(run)) {
		uint64_t n = 1 + pick(run, 4 * (uint64_t)run->plan.page_size);

		n = (n + run->plan.block_size - 1) / run->plan.block_size *
			run->plan.block_size;
		if (n > run->plan.size - at)
			n = run->plan.size - at;
		op_start(run, ENGINE_READ, 0, at, n);
		drain(run, false);
		op_let_go(run);
		at += n;
	}
}

static void end_in_order(struct run *run)
{
	fault_clear(run);
	while (!list_empty(&run->unsent) && !failed(run)) {
		op_send_one(run, chance(run, 30));
		drain(run, false);
	}
	drain(run, false);
	settle_store(run);
	if (failed(run))
		return;
	if (run->plan.pool) { /* a flush of its own failed: the next says so */
		op_start(run, ENGINE_FLUSH, 0, 0, 0);
		drain(run, false);
	}
	run->must_flush = true;
	op_start(run, ENGINE_FLUSH, 0, 0, 0);
	drain(run, false);
	run->must_flush = false;
	run->suffered = 0;
	read_all(run);
	if (failed(run))
		return;
	check_stats(run);
	start_shutdown(run, 0);
	drain(run, true);
	if (run->shutdown_error != (run->lost ? -EIO : 0))
		run_fail(run, "shutdown ended with %d", run->shutdown_error);
	close_engine(run);
	compare_image(run, "at the end", !run->lost);
}

static void end_by_shutdown(struct run *run)
{
	fault_clear(run);
	drain(run, true);
	if (run->shutdown_error && !run->shutdown_timeout_ns &&
		!(run->suffered & FAULT_FLUSH))
		run_fail(run, "shutdown ended with %d", run->shutdown_error);
	close_engine(run);
	/* All that was answered is there, as after a flush. */
	if (!run->shutdown_error)
		shadow_flushed(run->shadow, shadow_tick(run->shadow), 0);
	compare_image(run, "after shutdown", false);
}

static void cut_power(struct run *run)
{
	if (run->verbose)
		printf("# power cut\n");
	run->power_off = true;
	store_fault_power_cut(
		engine_store(run->engine), random_next(&run->random));
	compare_image(run, "at the power cut", false);
}

/* The process lives on, which a real one does not: it may answer, as far as
 * that takes no store, and close. Who waits for the store goes with it. */
static void end_by_power_cut(struct run *run)
{
	fault_clear(run);
	start_shutdown(run, 10 * NSEC_PER_SEC);
	while (!run->shut_down && !failed(run)) {
		if (!step(run))
			run_fail(run, "shutdown has no end");
	}
	close_engine(run);
	list_init(&run->inflight);
	run->ninflight = 0;
	compare_image(run, "after the power cut", false);
}

/* --- one life ------------------------------------------------------------ */

static void step_some(struct run *run)
{
	uint64_t steps = pick(run, chance(run, 20) ? 40 : 6);

	while (steps-- > 0 && reactor_sim_step(run->reactor))
		;
	if (chance(run, 2))
		reactor_sim_run_until(run->reactor,
			reactor_now(run->reactor) +
				pick(run, 40 * NSEC_PER_SEC));
}

static void operate(struct run *run)
{
	if (run->ninflight < run->plan.depth && !run->power_off)
		op_random(run);
	if (chance(run, 10))
		op_send_one(run, chance(run, 20));
	if (chance(run, 20))
		op_let_go(run);
	if (run->plan.faults && chance(run, 8))
		fault_change(run);
	if (run->plan.changing && chance(run, 6))
		settings_change(run);
	step_some(run);
	if (chance(run, 5))
		check_stats(run);
	if (chance(run, 5) && !run->power_off)
		compare(run, image_cut(run), "if the power were cut", false);
	if (chance(run, 2) && !run->power_off)
		compare_damaged(run);
	check_age(run);
}

static void live(struct run *run, uint64_t seed, enum model_end end)
{
	uint64_t when = pick(run, run->plan.ops);

	open_engine(run, seed);
	for (unsigned i = 0; i < run->plan.ops && !failed(run); i++) {
		operate(run);
		if (i != when || failed(run))
			continue;
		if (end == END_POWER_CUT) {
			cut_power(run);
			break;
		}
		if (end == END_SHUTDOWN)
			start_shutdown(run,
				chance(run, 30) ? pick(run, 20 * NSEC_PER_SEC)
						: 0);
	}
	if (failed(run))
		return;
	if (end == END_POWER_CUT)
		end_by_power_cut(run);
	else if (end == END_SHUTDOWN)
		end_by_shutdown(run);
	else
		end_in_order(run);
}

/* What the store was asked, for a failure's reader. */
static void print_log(struct run *run)
{
	static const char *const ops[] = {
		"read", "write", "flush", "trim", "zero", "status"};
	struct store *s = engine_store(run->engine);
	size_t n = store_fault_log(s, NULL, 0);
	struct store_fault_record *log = calloc(n, sizeof(*log));

	assert(log);
	store_fault_log(s, log, n);
	for (size_t i = 0; i < n; i++) {
		printf("# store %" PRIu64 "..%" PRIu64 " %s %" PRIu64
		       "+%" PRIu64 " flags %u -> %d\n",
			log[i].submitted, log[i].completed, ops[log[i].op],
			log[i].offset, log[i].length, log[i].flags,
			log[i].error);
	}
	free(log);
}

bool run_seed(struct run *run, uint64_t seed, unsigned ops)
{
	plan_make(&run->plan, seed, ops);
	run->random = ~seed;
	list_init(&run->inflight);
	list_init(&run->held);
	list_init(&run->unsent);
	image_make(run);
	run->shadow = shadow_new(run->plan.size, run->plan.block_size,
		run->plan.prefilled ? 1 : 0);
	for (unsigned i = 0; i < run->plan.lives && !failed(run); i++) {
		bool last = i + 1 == run->plan.lives;

		live(run, random_next(&run->random),
			last ? END_IN_ORDER : run->plan.end);
		if (!last && !failed(run))
			shadow_reset(run->shadow, image_now(run));
	}
	if (failed(run)) {
		if (run->verbose)
			print_log(run);
		return false;
	}
	shadow_free(run->shadow);
	image_free(run);
	return true;
}
