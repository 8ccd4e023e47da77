/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-poll.c: when a loop looks before it sleeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it. */
#include <cmocka.h>

#include "base/poll.h"

#define MOST UINT64_C(50000)

static void it_sleeps_at_once_at_first(void **state)
{
	struct poll p = {.most_ns = MOST};

	(void)state;
	assert_int_equal(poll_window(&p), 0);
}

static void short_waits_open_the_window_and_no_further_than_allowed(
	void **state)
{
	struct poll p = {.most_ns = MOST};
	uint64_t before = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		poll_waited(&p, MOST);
		assert_true(poll_window(&p) > before || before == MOST);
		before = poll_window(&p);
	}
	assert_int_equal(before, MOST);
}

static void a_window_that_is_long_enough_stays(void **state)
{
	struct poll p = {.most_ns = MOST};

	(void)state;
	poll_waited(&p, 1);
	for (int i = 0; i < 10; i++)
		poll_waited(&p, POLL_FIRST_NS);
	assert_int_equal(poll_window(&p), POLL_FIRST_NS);
}

static void one_long_wait_closes_it(void **state)
{
	struct poll p = {.most_ns = MOST, .window_ns = MOST};

	(void)state;
	poll_waited(&p, MOST + 1);
	assert_int_equal(poll_window(&p), 0);
}

static void a_loop_that_meets_several_at_once_sleeps_and_recovers(void **state)
{
	struct poll p = {.most_ns = MOST, .window_ns = MOST};

	(void)state;
	for (int i = 0; i < 100; i++)
		poll_met(&p, 1 + i % 2);
	assert_int_equal(poll_window(&p), 0);
	for (int i = 0; i < 100; i++)
		poll_met(&p, 1);
	assert_int_equal(poll_window(&p), MOST);
	for (int i = 0; i < 100; i++)
		poll_met(&p, 0);
	assert_int_equal(poll_window(&p), MOST);
}

static void with_no_window_allowed_it_never_looks(void **state)
{
	struct poll p = {0};

	(void)state;
	for (uint64_t wait = 0; wait < 10; wait++)
		poll_waited(&p, wait);
	assert_int_equal(poll_window(&p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_sleeps_at_once_at_first),
		cmocka_unit_test(
			short_waits_open_the_window_and_no_further_than_allowed),
		cmocka_unit_test(a_window_that_is_long_enough_stays),
		cmocka_unit_test(one_long_wait_closes_it),
		cmocka_unit_test(
			a_loop_that_meets_several_at_once_sleeps_and_recovers),
		cmocka_unit_test(with_no_window_allowed_it_never_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
