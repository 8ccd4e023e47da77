/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-set.c: changing an engine that is running.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "served.h"
#include "stat.h"

#define BLOCK 4096U
#define WRITES 32U /* at once */
#define LOAD 1500U /* writes */

static int setup(void **state)
{
	*state = served_new("fault:record=on,mem:64M", "32M", ENGINE_WRITEBACK);
	return 0;
}

static int teardown(void **state)
{
	served_free(*state);
	return 0;
}

/* "KEY=VALUE KEY=VALUE ..." */
static int change(struct served *s, const char *words, struct error *error)
{
	char text[256], *save, *word, *value;
	struct engine_setting settings[8];
	unsigned n = 0;

	snprintf(text, sizeof(text), "%s", words);
	for (word = strtok_r(text, " ", &save); word;
		word = strtok_r(NULL, " ", &save)) {
		value = strchr(word, '=');
		*value++ = '\0';
		settings[n++] = (struct engine_setting){word, value};
	}
	return engine_set(s->engine, settings, n, error);
}

static void set(struct served *s, const char *words)
{
	struct error error = {""};

	if (change(s, words, &error))
		fail_msg("%s", error.text);
}

static void refused(struct served *s, const char *words, const char *why)
{
	struct error error = {""};

	assert_int_equal(change(s, words, &error), -EINVAL);
	assert_string_equal(error.text, why);
}

static uint64_t stat(struct served *s, const char *name)
{
	return stat_value(s->engine, name);
}

/* --- what is taken and what is refused ------------------------------------ */

static void limits_change_at_once(void **state)
{
	struct served *s = *state;

	assert_int_equal(stat(s, "dirty_limit_bytes"), 16 * MIB);
	assert_int_equal(stat(s, "dirty_background_bytes"), 8 * MIB);
	set(s, "dirty-limit=4M");
	assert_int_equal(stat(s, "dirty_limit_bytes"), 4 * MIB);
	assert_int_equal(stat(s, "dirty_background_bytes"), 2 * MIB);
	set(s, "dirty-background=1M dirty-limit=25%");
	assert_int_equal(stat(s, "dirty_limit_bytes"), 8 * MIB);
	assert_int_equal(stat(s, "dirty_background_bytes"), MIB);
	set(s, "dirty-limit=6M");
	assert_int_equal(stat(s, "dirty_background_bytes"), MIB);
}

static void all_or_nothing(void **state)
{
	struct served *s = *state;

	refused(s, "dirty-limit=4M page-size=4K",
		"page-size: cannot be changed while the store is open");
	refused(s, "dirty-limit=4M dirty-background=5M",
		"dirty-background=5M: larger than dirty-limit=4M");
	refused(s, "dirty-expire=1s dirty-limit=64M",
		"dirty-limit=64M: larger than cache-size=32M");
	refused(s, "dirty-expire=1s dirty-limit=much",
		"dirty-limit=much: bad size, write it like 4096, 64K, 1.5G "
		"or 2T");
	refused(s, "dirty-limits=4M",
		"dirty-limits=4M: unknown key, did you mean dirty-limit=?");
	assert_int_equal(stat(s, "dirty_limit_bytes"), 16 * MIB);
	assert_int_equal(stat(s, "dirty_expire_us"), 30000000);
}

static void only_checked_is_not_changed(void **state)
{
	struct served *s = *state;
	struct engine_setting one = {"dirty-limit", "1M"};
	struct error error;

	assert_int_equal(engine_set_check(s->engine, &one, 1, &error), 0);
	assert_int_equal(stat(s, "dirty_limit_bytes"), 16 * MIB);
	one.value = "1T";
	assert_int_equal(engine_set_check(s->engine, &one, 1, &error), -EINVAL);
}

static void closing_engine_is_left_alone(void **state)
{
	struct served *s = served_new("mem:16M", "16M", ENGINE_WRITEBACK);
	struct error error;

	(void)state;
	engine_shutdown(s->engine, 0, served_ended, s);
	assert_int_equal(change(s, "dirty-limit=1M", &error), -ESHUTDOWN);
	assert_string_equal(error.text, "store mem:16M: is being closed");
	while (!s->ended)
		assert_true(reactor_sim_step(s->loop));
	served_close(s);
}

/* --- what they do --------------------------------------------------------- */

static void smaller_cache_is_reclaimed_to(void **state)
{
	struct served *s = *state;
	unsigned char *buf = calloc(1, 24 * MIB);

	served_fill(s, 24 * MIB);
	assert_int_equal(request(s, ENGINE_READ, 0, 0, 24 * MIB, buf), 0);
	free(buf);
	assert_true(stat(s, "cached_bytes") >= 24 * MIB);
	set(s, "cache-size=2M");
	assert_true(stat(s, "cached_bytes") <= 2 * MIB);
	assert_int_equal(stat(s, "dirty_limit_bytes"), MIB);
	set(s, "cache-size=64M");
	assert_int_equal(stat(s, "dirty_limit_bytes"), 32 * MIB);
}

static void cache_grows_no_further_than_memory(void **state)
{
	static const char words[] = "cache-size=1E: more than ";
	struct served *s = *state;
	struct error error = {""};

	assert_int_equal(change(s, "cache-size=1E", &error), -EINVAL);
	assert_memory_equal(error.text, words, sizeof(words) - 1);
	assert_int_equal(stat(s, "cache_size_bytes"), 32 * MIB);
}

static void clean_pages_are_dropped_and_dirty_ones_kept(void **state)
{
	struct served *s = *state;
	unsigned char buf[BLOCK];
	uint64_t before, freed;

	served_fill(s, 2 * MIB);
	assert_int_equal(request(s, ENGINE_READ, 0, MIB, BLOCK, buf), 0);
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(request(s, ENGINE_WRITE, 0, 0, BLOCK, buf), 0);
	before = stat(s, "cached_bytes");
	freed = engine_drop(s->engine);
	assert_int_equal(freed, before - stat(s, "cached_bytes"));
	assert_true(stat(s, "cached_bytes") < before);
	assert_int_equal(stat(s, "dirty_bytes"), BLOCK);
	assert_int_equal(request(s, ENGINE_READ, 0, 0, BLOCK, buf), 0);
	assert_int_equal(buf[0], 'x');
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	engine_drop(s->engine);
	assert_int_equal(stat(s, "cached_bytes"), 0);
	assert_int_equal(engine_drop(s->engine), 0);
}

static void shorter_expiry_counts_for_what_is_dirty(void **state)
{
	struct served *s = *state;
	unsigned char buf[BLOCK] = {1};

	assert_int_equal(request(s, ENGINE_WRITE, 0, 0, BLOCK, buf), 0);
	reactor_sim_run_until(s->loop, reactor_now(s->loop) + 2 * NSEC_PER_SEC);
	assert_int_equal(stat(s, "dirty_bytes"), BLOCK);
	set(s, "dirty-expire=1s");
	reactor_sim_run_until(s->loop, reactor_now(s->loop) + NSEC_PER_SEC);
	assert_int_equal(stat(s, "dirty_bytes"), 0);
}

static void policies_switch_at_once(void **state)
{
	struct served *s = *state;
	unsigned char *buf = calloc(1, MIB);
	uint64_t before;

	assert_int_equal(request(s, ENGINE_WRITE, 0, 0, BLOCK, buf), 0);
	before = stat(s, "store_reads");
	assert_int_equal(request(s, ENGINE_READ, 0, 0, BLOCK, buf), 0);
	assert_int_equal(stat(s, "store_reads"), before);
	set(s, "subpage=off");
	assert_int_equal(request(s, ENGINE_READ, 0, 0, BLOCK, buf), 0);
	assert_true(stat(s, "store_reads") > before);

	before = stat(s, "throttle_checks");
	assert_int_equal(request(s, ENGINE_WRITE, 0, MIB, MIB, buf), 0);
	assert_in_range(stat(s, "throttle_checks") - before, 1, 4);
	set(s, "multipage=off");
	before = stat(s, "throttle_checks");
	assert_int_equal(request(s, ENGINE_WRITE, 0, MIB, MIB, buf), 0);
	assert_in_range(
		stat(s, "throttle_checks") - before, MIB / BLOCK, 2 * MIB);
	set(s, "subpage=on multipage=on");
	free(buf);
}

/* --- under load ----------------------------------------------------------- */

struct load {
	struct served *s;
	struct writing {
		struct engine_request req;
		struct load *load;
		bool busy;
	} writing[WRITES];
	unsigned char *buf;
	unsigned left, answered;
	uint64_t random;
	uint64_t longest; /* of one write */
};

static void write_next(struct writing *w);

static void written(struct engine_request *req)
{
	struct writing *w = container_of(req, struct writing, req);

	assert_int_equal(req->error, 0);
	w->busy = false;
	w->load->answered++;
	write_next(w);
}

/* Writes go one after the other in each slot, until none are left. */
static void write_next(struct writing *w)
{
	struct load *l = w->load;

	while (l->left && !w->busy) {
		l->left--;
		w->busy = true;
		engine_request_init(&w->req);
		w->req.op = ENGINE_WRITE;
		w->req.length = 1 + random_next(&l->random) % l->longest;
		w->req.offset =
			random_next(&l->random) % (64 * MIB - w->req.length);
		w->req.export = l->s->export;
		w->req.reactor = l->s->loop;
		w->req.done = written;
		w->req.buf = l->buf;
		if (engine_submit(&w->req)) {
			assert_int_equal(w->req.error, 0);
			w->busy = false;
			l->answered++;
		}
	}
}

static struct load *load_new(
	struct served *s, unsigned writes, uint64_t longest)
{
	struct load *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	*l = (struct load){
		.s = s, .left = writes, .random = 7, .longest = longest};
	l->buf = calloc(1, longest);
	for (unsigned i = 0; i < WRITES; i++) {
		l->writing[i].load = l;
		write_next(&l->writing[i]);
	}
	return l;
}

static void load_free(struct load *l)
{
	free(l->buf);
	free(l);
}

static void parked_write_above_the_new_limit_goes_through(void **state)
{
	struct served *s = *state;
	struct store_fault_rule hang = {
		.action = STORE_FAULT_HANG, .ops = STORE_FAULT_OP(STORE_WRITE)};
	struct load *l;
	uint64_t end;

	store_fault_set(s->store, &hang, 1);
	set(s, "dirty-limit=4M");
	l = load_new(s, WRITES, MIB);
	assert_true(stat(s, "parked_writes") > 0);
	set(s, "dirty-limit=8K");
	assert_int_equal(stat(s, "dirty_limit_bytes"), 2 * BLOCK);
	store_fault_set(s->store, NULL, 0);
	store_fault_release(s->store);
	end = reactor_now(s->loop) + 600 * NSEC_PER_SEC;
	while (l->answered < WRITES) {
		assert_true(reactor_now(s->loop) < end);
		assert_true(reactor_sim_step(s->loop));
	}
	assert_int_equal(request(s, ENGINE_FLUSH, 0, 0, 0, NULL), 0);
	engine_stats_reset(s->engine);
	assert_int_equal(stat(s, "dirty_peak_bytes"), 0);
	load_free(l);
}

/*
 * Whatever the limit is changed to: from then on the charge only falls until
 * it is within the limit, and stays there.
 */
static void limit_holds_from_the_moment_it_is_set(void **state)
{
	struct served *s = *state;
	struct load *l = load_new(s, LOAD, 128 * KIB);
	unsigned lowered = 0, changes = 0;

	while (l->answered < LOAD) {
		uint64_t limit = (8 + random_next(&l->random) % 1000) * KIB;
		uint64_t charged;
		char words[64];

		snprintf(words, sizeof(words), "dirty-limit=%llu",
			(unsigned long long)limit);
		set(s, words);
		set(s,
			changes % 2 ? "multipage=off subpage=off"
				    : "multipage=on subpage=on");
		charged = stat(s, "charged_bytes");
		engine_stats_reset(s->engine);
		lowered += charged > limit;
		changes++;
		for (unsigned i = random_next(&l->random) % 100;
			i && l->answered < LOAD; i--)
			assert_true(reactor_sim_step(s->loop));
		assert_true(stat(s, "dirty_peak_bytes") <=
			(charged > limit ? charged : limit));
	}
	assert_true(changes > 100);
	assert_true(lowered > 20);
	load_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		TEST(limits_change_at_once),
		TEST(all_or_nothing),
		TEST(only_checked_is_not_changed),
		cmocka_unit_test(closing_engine_is_left_alone),
		TEST(smaller_cache_is_reclaimed_to),
		TEST(cache_grows_no_further_than_memory),
		TEST(clean_pages_are_dropped_and_dirty_ones_kept),
		TEST(shorter_expiry_counts_for_what_is_dirty),
		TEST(policies_switch_at_once),
		TEST(parked_write_above_the_new_limit_goes_through),
		TEST(limit_holds_from_the_moment_it_is_set),
#undef TEST
	};

	return cmocka_run_group_tests_name("set", tests, NULL, NULL);
}
