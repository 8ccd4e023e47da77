/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-memory.c: what the cache costs in memory: by its own count, which
 * cache-size bounds, and by the system's, which may be a tenth and 32 MiB
 * more.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "served.h"
#include "stat.h"

#define CACHE (64 * MIB)
#define DEVICE (64 * GIB)
#define BLOCK (4 * KIB)
#define LONGEST (256 * KIB)

/* Under a sanitizer most of the process is not the cache's. */
#ifdef __has_feature
#define SANITIZER                                                              \
	(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#else
#define SANITIZER 0
#endif

static struct served *served_geometry(const char *page, const char *block)
{
	const char *const keys[] = {"store", "null:64G", "cache-size", "64M",
		"dirty-limit", "90%", "dirty-background", "80%", "page-size",
		page, "block-size", block, NULL};

	malloc_trim(0); /* what the last test left counts as this one's */
	return served_with(ENGINE_WRITEBACK, keys);
}

static uint64_t rss_of(struct served *s)
{
	return stat_value(s->engine, "rss_bytes");
}

static void random_writes_of_a_block_cost_little_more(void **state)
{
	struct served *s = served_geometry("64K", "4K");
	uint64_t seed = 1, written = 0, cached, rss = rss_of(s);
	unsigned char *buf = calloc(1, BLOCK);

	(void)state;
	for (; written < CACHE * 3 / 4; written += BLOCK)
		assert_int_equal(
			request(s, ENGINE_WRITE, 0,
				random_below(&seed, DEVICE / BLOCK) * BLOCK,
				BLOCK, buf),
			0);
	cached = stat_value(s->engine, "cached_bytes");
	rss = rss_of(s) - rss;
	print_message("# %.3f times their bytes, %.3f by the system's count\n",
		(double)cached / (double)written,
		(double)rss / (double)written);
	assert_in_range(cached, written, written * 115 / 100);
	/* give or take a huge page */
	if (!SANITIZER)
		assert_in_range(rss, written, written * 115 / 100 + 2 * MIB);
	free(buf);
	served_free(s);
}

/* Random requests of all lengths, mostly short, several times the cache. */
static void mix(struct served *s, unsigned char *buf, uint64_t *seed)
{
	uint64_t length = LONGEST >> random_below(seed, 10);
	uint64_t offset = random_below(seed, DEVICE - length);
	enum engine_op op = random_below(seed, 3) ? ENGINE_WRITE : ENGINE_READ;

	if (random_below(seed, 4))
		offset = offset / length * length;
	length = 1 + random_below(seed, length);
	assert_int_equal(request(s, op, 0, offset, length, buf), 0);
}

static void bounded(const char *page, const char *block)
{
	struct served *s = served_geometry(page, block);
	uint64_t seed = 2, rss = rss_of(s), most = 0, most_rss = 0;
	unsigned char *buf = calloc(1, LONGEST);

	for (unsigned i = 0; i < 6000; i++) {
		uint64_t cached;

		mix(s, buf, &seed);
		if (i % 16)
			continue;
		cached = stat_value(s->engine, "cached_bytes");
		most = cached > most ? cached : most;
		most_rss = rss_of(s) > most_rss ? rss_of(s) : most_rss;
	}
	print_message("# %.2f of its size, %.2f by the system's count\n",
		(double)most / (double)CACHE,
		(double)(most_rss - rss) / (double)CACHE);
	/* a page may be pinned by what is dirty in it */
	assert_true(most <= CACHE + 2 * MIB);
	if (!SANITIZER)
		assert_true(most_rss - rss <= CACHE * 110 / 100 + 32 * MIB);
	assert_true(most >= CACHE * 9 / 10); /* it was full */
	free(buf);
	served_free(s);
}

static void memory_is_bounded_with_the_usual_pages(void **state)
{
	(void)state;
	bounded("64K", "4K");
}

static void memory_is_bounded_with_small_pages_and_blocks(void **state)
{
	(void)state;
	bounded("4K", "512");
}

static void memory_is_bounded_with_small_blocks(void **state)
{
	(void)state;
	bounded("64K", "512");
}

static void memory_is_bounded_with_large_pages_of_small_blocks(void **state)
{
	(void)state;
	bounded("1M", "512");
}

static void memory_is_bounded_with_large_blocks(void **state)
{
	(void)state;
	bounded("1M", "64K");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_writes_of_a_block_cost_little_more),
		cmocka_unit_test(memory_is_bounded_with_the_usual_pages),
		cmocka_unit_test(memory_is_bounded_with_small_pages_and_blocks),
		cmocka_unit_test(memory_is_bounded_with_small_blocks),
		cmocka_unit_test(
			memory_is_bounded_with_large_pages_of_small_blocks),
		cmocka_unit_test(memory_is_bounded_with_large_blocks),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
