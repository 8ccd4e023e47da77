/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-size.c: sizes and times.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/size.h"

static void assert_size(const char *text, uint64_t want)
{
	uint64_t got = 0;

	assert_int_equal(size_parse(text, &got), 0);
	assert_int_equal(got, want);
}

static void sizes_are_powers_of_1024(void **state)
{
	(void)state;
	assert_size("0", 0);
	assert_size("4096", 4096);
	assert_size("512B", 512);
	assert_size("64K", 65536);
	assert_size("64k", 65536);
	assert_size("1.5G", 3ULL << 29);
	assert_size("0.25M", 262144);
	assert_size("2T", 2ULL << 40);
	assert_size("1P", 1ULL << 50);
	assert_size("15E", 15ULL << 60);
	assert_size("18446744073709551615", UINT64_MAX);
}

static void assert_no_size(const char *text, int err)
{
	uint64_t got = 1234;

	assert_int_equal(size_parse(text, &got), err);
	assert_int_equal(got, 1234);
}

static void what_is_not_a_size_is_refused(void **state)
{
	static const char *const bad[] = {"", "K", "-1", "+1", " 1", "1 K",
		"1KB", "1Q", "1.", ".5", "1.5.5", "0x10", "1e3", "1K ", "inf"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_no_size(bad[i], -EINVAL);
}

static void what_does_not_fit_is_out_of_range(void **state)
{
	(void)state;
	assert_no_size("18446744073709551616", -ERANGE);
	assert_no_size("16E", -ERANGE);
	assert_no_size("99999999999999999999999", -ERANGE);
	assert_no_size("1.1K", -ERANGE); /* 1126.4 bytes */
	assert_no_size("0.5", -ERANGE);
	assert_no_size("1.00000000000000000000000K", -ERANGE);
}

static void assert_time(const char *text, uint64_t want)
{
	uint64_t got = 0;

	assert_int_equal(time_parse(text, &got), 0);
	assert_int_equal(got, want);
}

static void times_are_seconds_unless_they_say(void **state)
{
	uint64_t ns;

	(void)state;
	assert_time("30", 30000000000);
	assert_time("30s", 30000000000);
	assert_time("0.5", 500000000);
	assert_time("200ms", 200000000);
	assert_time("1.5us", 1500);
	assert_time("7ns", 7);
	assert_time("10m", 600000000000);
	assert_time("1h", 3600000000000);
	assert_int_equal(time_parse("1d", &ns), -EINVAL);
	assert_int_equal(time_parse("0.5ns", &ns), -ERANGE);
	assert_int_equal(time_parse("999999999h", &ns), -ERANGE);
}

static void assert_format(uint64_t bytes, const char *want)
{
	char buf[16];

	assert_ptr_equal(size_format(bytes, buf), buf);
	assert_string_equal(buf, want);
}

static void sizes_for_people_are_short(void **state)
{
	(void)state;
	assert_format(0, "0");
	assert_format(512, "512");
	assert_format(1000, "1000");
	assert_format(1023, "1023");
	assert_format(1024, "1K");
	assert_format(1536, "1.5K");
	assert_format(65536, "64K");
	assert_format(3ULL << 29, "1.5G");
	assert_format((1 << 20) - 1, "1M");
	assert_format(1023 << 10, "1023K");
	assert_format(100ULL << 30, "100G");
	assert_format(123456789, "118M");
	assert_format(12345678, "11.8M");
	assert_format(1234567, "1.18M");
	assert_format(UINT64_MAX, "16E");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_powers_of_1024),
		cmocka_unit_test(what_is_not_a_size_is_refused),
		cmocka_unit_test(what_does_not_fit_is_out_of_range),
		cmocka_unit_test(times_are_seconds_unless_they_say),
		cmocka_unit_test(sizes_for_people_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
