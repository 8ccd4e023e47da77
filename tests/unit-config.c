/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-config.c: keys, defaults and the exact words of each refusal.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

static int setup(void **state)
{
	struct engine_config *c = malloc(sizeof(*c));

	if (!c)
		return -1;
	engine_config_init(c);
	*state = c;
	return 0;
}

static int teardown(void **state)
{
	engine_config_free(*state);
	free(*state);
	return 0;
}

static void set(struct engine_config *c, const char *key, const char *value)
{
	struct error error = {""};

	assert_int_equal(engine_config_set(c, key, value, &error), 0);
	assert_string_equal(error.text, "");
}

static void refused(struct engine_config *c, const char *key, const char *value,
	const char *words)
{
	struct error error = {""};

	assert_int_equal(engine_config_set(c, key, value, &error), -EINVAL);
	assert_string_equal(error.text, words);
}

static void check(struct engine_config *c)
{
	struct error error = {""};

	assert_int_equal(engine_config_check(c, &error), 0);
	assert_string_equal(error.text, "");
}

static void misfit(struct engine_config *c, const char *words)
{
	struct error error = {""};

	assert_int_equal(engine_config_check(c, &error), -EINVAL);
	assert_string_equal(error.text, words);
}

static void defaults_follow_from_cache_size(void **state)
{
	struct engine_config *c = *state;
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
		(uint64_t)sysconf(_SC_PAGESIZE);

	assert_null(c->store);
	assert_int_equal(c->cache, ENGINE_WRITEBACK);
	assert_false(c->readonly);
	if (memory >= 4 * GIB)
		assert_int_equal(c->cache_size, GIB);
	else
		assert_int_equal(c->cache_size, memory / 4 / MIB * MIB);
	assert_int_equal(c->page_size, 64 * KIB);
	assert_int_equal(c->block_size, 4 * KIB);
	assert_int_equal(c->dirty_time_ns, 0);
	assert_int_equal(c->dirty_expire_ns, 30 * NSEC_PER_SEC);
	assert_int_equal(c->error_timeout_ns, 600 * NSEC_PER_SEC);
	assert_int_equal(c->inflight_bytes, 32 * MIB);

	set(c, "store", "mem:1M");
	set(c, "cache-size", "100M");
	check(c);
	assert_int_equal(c->dirty_limit, 50 * MIB);
	assert_int_equal(c->dirty_background, 25 * MIB);
}

static void every_key_is_read(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "raw:/srv/disk.img");
	set(c, "cache", "writethrough");
	set(c, "cache-size", "1.5G");
	set(c, "page-size", "4k");
	set(c, "block-size", "512");
	set(c, "dirty-limit", "8M");
	set(c, "dirty-background", "2M");
	set(c, "dirty-time", "2s");
	set(c, "dirty-expire", "200ms");
	set(c, "readonly", "yes");
	set(c, "error-timeout", "1h");
	set(c, "inflight-bytes", "64K");
	check(c);
	assert_string_equal(c->store, "raw:/srv/disk.img");
	assert_int_equal(c->cache, ENGINE_WRITETHROUGH);
	assert_int_equal(c->cache_size, 1536 * MIB);
	assert_int_equal(c->page_size, 4096);
	assert_int_equal(c->block_size, 512);
	assert_int_equal(c->dirty_limit, 8 * MIB);
	assert_int_equal(c->dirty_background, 2 * MIB);
	assert_int_equal(c->dirty_time_ns, 2 * NSEC_PER_SEC);
	assert_int_equal(c->dirty_expire_ns, 200 * NSEC_PER_MSEC);
	assert_true(c->readonly);
	assert_int_equal(c->error_timeout_ns, 3600 * NSEC_PER_SEC);
	assert_int_equal(c->inflight_bytes, 64 * KIB);
}

static void shares_are_of_cache_size_in_any_order(void **state)
{
	struct engine_config *c = *state;

	set(c, "dirty-background", "10%");
	set(c, "dirty-limit", "25%");
	set(c, "cache-size", "400M");
	set(c, "store", "mem:1M");
	check(c);
	assert_int_equal(c->dirty_limit, 100 * MIB);
	assert_int_equal(c->dirty_background, 40 * MIB);
}

static void share_of_the_largest_cache_does_not_overflow(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "mem:1M");
	set(c, "cache-size", "8E");
	set(c, "dirty-limit", "100%");
	check(c);
	assert_int_equal(c->dirty_limit, UINT64_C(8) << 60);
}

static void later_value_wins(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "mem:1M");
	set(c, "store", "mem:2M");
	set(c, "cache-size", "64M");
	set(c, "dirty-limit", "25%");
	set(c, "dirty-limit", "3M");
	set(c, "dirty-background", "1M");
	set(c, "dirty-background", "1%");
	check(c);
	assert_string_equal(c->store, "mem:2M");
	assert_int_equal(c->dirty_limit, 3 * MIB);
	assert_int_equal(c->dirty_background, 64 * MIB / 100);
}

static void background_at_the_limit_becomes_half(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "mem:1M");
	set(c, "dirty-limit", "16M");
	set(c, "dirty-background", "16M");
	check(c);
	assert_int_equal(c->dirty_background, 8 * MIB);
}

static void background_of_zero_is_kept(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "mem:1M");
	set(c, "dirty-background", "0");
	check(c);
	assert_int_equal(c->dirty_background, 0);
}

static void members_set_without_text_are_kept(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "mem:1M");
	c->cache_size = MIB;
	c->dirty_limit = 64 * KIB;
	check(c);
	assert_int_equal(c->dirty_limit, 64 * KIB);
	assert_int_equal(c->dirty_background, 32 * KIB);
}

static void booleans_have_the_usual_words(void **state)
{
	static const char *const words[] = {
		"no", "yes", "off", "on", "false", "TRUE", "0", "1"};
	struct engine_config *c = *state;

	for (unsigned i = 0; i < 8; i++) {
		set(c, "readonly", words[i]);
		assert_int_equal(c->readonly, i % 2);
	}
	refused(c, "readonly", "maybe", "readonly=maybe: must be yes or no");
}

static void unknown_key_names_the_nearest(void **state)
{
	struct engine_config *c = *state;

	refused(c, "cach-size", "1G",
		"cach-size=1G: unknown key, did you mean cache-size=?");
	refused(c, "dirty_limit", "1G",
		"dirty_limit=1G: unknown key, did you mean dirty-limit=?");
	refused(c, "blocksize", "4K",
		"blocksize=4K: unknown key, did you mean block-size=?");
	refused(c, "stoer", "x", "stoer=x: unknown key, did you mean store=?");
	refused(c, "colour", "red", "colour=red: unknown key");
	refused(c, "", "", "=: unknown key");
	refused(c, "a-key-that-is-longer-than-any-key-there-is", "1",
		"a-key-that-is-longer-than-any-key-there-is=1: unknown key");
}

static void bad_size_is_named(void **state)
{
	static const char words[] =
		"bad size, write it like 4096, 64K, 1.5G or 2T";
	static const char *const bad[] = {"12Q", "", "K", "-1", "1G ", "1GG"};
	struct engine_config *c = *state;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char line[128];

		snprintf(
			line, sizeof(line), "cache-size=%s: %s", bad[i], words);
		refused(c, "cache-size", bad[i], line);
	}
	refused(c, "cache-size", "99999999T",
		"cache-size=99999999T: "
		"too large, or not a whole number of bytes");
	refused(c, "cache-size", "0", "cache-size=0: must be more than 0");
	refused(c, "inflight-bytes", "0",
		"inflight-bytes=0: must be more than 0");
	refused(c, "dirty-limit", "lots",
		"dirty-limit=lots: "
		"bad size, write it like 4096, 64K, 1.5G or 2T");
}

static void refused_value_leaves_the_old_one(void **state)
{
	struct engine_config *c = *state;

	set(c, "cache-size", "2M");
	refused(c, "cache-size", "0", "cache-size=0: must be more than 0");
	set(c, "dirty-limit", "10%");
	refused(c, "dirty-limit", "x",
		"dirty-limit=x: "
		"bad size, write it like 4096, 64K, 1.5G or 2T");
	assert_int_equal(c->cache_size, 2 * MIB);
	assert_int_equal(c->dirty_limit_percent, 10);
}

static void bad_share_is_named(void **state)
{
	struct engine_config *c = *state;

	refused(c, "dirty-limit", "0%",
		"dirty-limit=0%: must be from 1% to 100% of cache-size");
	refused(c, "dirty-limit", "101%",
		"dirty-limit=101%: must be from 1% to 100% of cache-size");
	refused(c, "dirty-background", "50%%",
		"dirty-background=50%%: bad share, write it like 50%");
	refused(c, "dirty-background", "%",
		"dirty-background=%: bad share, write it like 50%");
	refused(c, "dirty-background", "-5%",
		"dirty-background=-5%: bad share, write it like 50%");
	refused(c, "cache-size", "50%",
		"cache-size=50%: "
		"bad size, write it like 4096, 64K, 1.5G or 2T");
}

static void bad_time_is_named(void **state)
{
	struct engine_config *c = *state;

	refused(c, "dirty-expire", "soon",
		"dirty-expire=soon: "
		"bad time, write it like 30s, 200ms, 10m or 1h");
	refused(c, "error-timeout", "-1",
		"error-timeout=-1: "
		"bad time, write it like 30s, 200ms, 10m or 1h");
	refused(c, "error-timeout", "99999999999h",
		"error-timeout=99999999999h: too long a time");
}

static void off_is_for_what_can_be_off(void **state)
{
	struct engine_config *c = *state;

	set(c, "dirty-time", "2s");
	set(c, "dirty-time", "off");
	assert_int_equal(c->dirty_time_ns, 0);
	refused(c, "dirty-expire", "off",
		"dirty-expire=off: "
		"bad time, write it like 30s, 200ms, 10m or 1h");
}

static void bad_mode_is_named(void **state)
{
	refused(*state, "cache", "unsafe",
		"cache=unsafe: must be writeback, writethrough or none");
}

static void units_are_powers_of_two_in_range(void **state)
{
	static const char page[] = "must be a power of two from 4K to 1M";
	static const char block[] = "must be a power of two from 512 to 1M";
	static const char *const bad[] = {"2K", "3000", "2M", "12K", "0"};
	struct engine_config *c = *state;
	char line[128];

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "page-size=%s: %s", bad[i], page);
		refused(c, "page-size", bad[i], line);
	}
	for (unsigned i = 1; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(
			line, sizeof(line), "block-size=%s: %s", bad[i], block);
		refused(c, "block-size", bad[i], line);
	}
	refused(c, "block-size", "256",
		"block-size=256: must be a power of two from 512 to 1M");
}

static void missing_store_says_what_to_write(void **state)
{
	misfit(*state,
		"store=: missing, say where the blocks end up, "
		"like store=raw:/path/to/disk.img");
	refused(*state, "store", "", "store=: empty");
}

static void what_does_not_fit_is_refused(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "mem:1M");
	set(c, "cache-size", "1M");
	set(c, "dirty-limit", "1048577");
	misfit(c, "dirty-limit=1048577: larger than cache-size=1M");
	set(c, "dirty-limit", "1.5G");
	misfit(c, "dirty-limit=1536M: larger than cache-size=1M");
	set(c, "dirty-limit", "256K");
	set(c, "dirty-background", "257K");
	misfit(c, "dirty-background=257K: larger than dirty-limit=256K");
	set(c, "dirty-background", "64K");
	set(c, "page-size", "4K");
	set(c, "block-size", "8K");
	misfit(c, "block-size=8K: larger than page-size=4K");
	set(c, "page-size", "512K");
	set(c, "block-size", "512K");
	misfit(c, "block-size=512K: larger than dirty-limit=256K");
	set(c, "writeback-inflight", "256K");
	misfit(c, "block-size=512K: larger than writeback-inflight=256K");
	set(c, "writeback-inflight", "4M");
	set(c, "cache-size", "256K");
	misfit(c, "page-size=512K: larger than cache-size=256K");
}

static void a_cache_smaller_than_the_usual_page_is_named(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "mem:1M");
	set(c, "cache-size", "1");
	misfit(c, "cache-size=1: less than a page, page-size=64K");
}

static void limit_has_a_floor(void **state)
{
	struct engine_config *c = *state;

	set(c, "store", "mem:1M");
	set(c, "dirty-limit", "0");
	misfit(c, "dirty-limit=0: must be 8K or more");
	set(c, "dirty-limit", "4K");
	misfit(c, "dirty-limit=4K: must be 8K or more");
	set(c, "cache-size", "64K");
	set(c, "dirty-limit", "1%");
	misfit(c, "dirty-limit=655: must be 8K or more");
}

static void help_lists_every_key_in_80_columns(void **state)
{
	static const char *const keys[] = {"store", "cache", "cache-size",
		"page-size", "block-size", "dirty-limit", "dirty-background",
		"dirty-time", "dirty-expire", "readonly", "error-timeout",
		"inflight-bytes"};

	(void)state;
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		char line[64];

		snprintf(line, sizeof(line), "  %s=", keys[i]);
		assert_non_null(strstr(engine_config_help, line));
	}
	for (const char *p = engine_config_help; *p;) {
		size_t n = strcspn(p, "\n");

		assert_in_range(n, 1, 80);
		assert_int_equal(p[n], '\n');
		p += n + 1;
	}
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(defaults_follow_from_cache_size),
		T(every_key_is_read),
		T(shares_are_of_cache_size_in_any_order),
		T(share_of_the_largest_cache_does_not_overflow),
		T(later_value_wins),
		T(background_at_the_limit_becomes_half),
		T(background_of_zero_is_kept),
		T(members_set_without_text_are_kept),
		T(booleans_have_the_usual_words),
		T(unknown_key_names_the_nearest),
		T(bad_size_is_named),
		T(refused_value_leaves_the_old_one),
		T(bad_share_is_named),
		T(bad_time_is_named),
		T(off_is_for_what_can_be_off),
		T(bad_mode_is_named),
		T(units_are_powers_of_two_in_range),
		T(missing_store_says_what_to_write),
		T(what_does_not_fit_is_refused),
		T(a_cache_smaller_than_the_usual_page_is_named),
		T(limit_has_a_floor),
		T(help_lists_every_key_in_80_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
