/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-sim-queue.c: the order in which a simulated medium takes its work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/sim-queue.h"

static int item[64];

static void push(struct sim_queue *q, uint64_t key)
{
	sim_queue_push(
		q, key, (uint64_t)(q->sweep.used + q->next.used), &item[key]);
}

static void assert_pops(struct sim_queue *q, uint64_t key)
{
	assert_ptr_equal(sim_queue_first(q), &item[key]);
	assert_ptr_equal(sim_queue_pop(q), &item[key]);
}

static void it_goes_up_and_starts_again_at_the_bottom(void **state)
{
	struct sim_queue q = {0};

	(void)state;
	push(&q, 30);
	push(&q, 10);
	push(&q, 20);
	assert_pops(&q, 10);
	assert_pops(&q, 20);
	push(&q, 5);  /* behind: next time */
	push(&q, 25); /* ahead: on the way */
	assert_pops(&q, 25);
	assert_pops(&q, 30);
	assert_pops(&q, 5);
	assert_null(sim_queue_pop(&q));
	sim_queue_free(&q);
}

static void those_of_one_key_keep_their_order(void **state)
{
	struct sim_queue q = {0};

	(void)state;
	for (int i = 0; i < 10; i++)
		sim_queue_push(&q, 7, (uint64_t)i, &item[i]);
	for (int i = 0; i < 10; i++)
		assert_ptr_equal(sim_queue_pop(&q), &item[i]);
	sim_queue_free(&q);
}

static void a_stream_ahead_does_not_keep_the_rest_waiting(void **state)
{
	struct sim_queue q = {0};
	unsigned taken = 0;

	(void)state;
	push(&q, 10);
	push(&q, 11);
	assert_pops(&q, 10);
	push(&q, 1);
	for (uint64_t key = 12; sim_queue_first(&q) != &item[1]; key++) {
		assert_in_range(key, 12, 62);
		push(&q, key);
		sim_queue_pop(&q);
		taken++;
	}
	assert_in_range(taken, 8, 10); /* 4 * 2 joined */
	sim_queue_free(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_goes_up_and_starts_again_at_the_bottom),
		cmocka_unit_test(those_of_one_key_keep_their_order),
		cmocka_unit_test(a_stream_ahead_does_not_keep_the_rest_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
