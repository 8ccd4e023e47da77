/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-list.c: intrusive lists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/list.h"

struct item {
	char name;
	struct list link;
};

/* The names in order, both ways round. */
static void assert_list(const struct list *head, const char *names)
{
	char forward[16] = "", backward[16] = "";
	size_t n = 0;

	list_for_each (node, (struct list *)(uintptr_t)head)
		forward[n++] = list_entry(node, struct item, link)->name;
	assert_string_equal(forward, names);
	for (struct list *node = head->prev; node != head; node = node->prev)
		backward[--n] = list_entry(node, struct item, link)->name;
	assert_int_equal(n, 0);
	assert_string_equal(backward, names);
	assert_int_equal(list_empty(head), !*names);
}

static void items_come_out_as_they_went_in(void **state)
{
	struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
	struct list head = LIST_INIT(head);

	(void)state;
	assert_list(&head, "");
	list_push_tail(&head, &b.link);
	list_push_tail(&head, &c.link);
	list_push_head(&head, &a.link);
	assert_list(&head, "abc");
	assert_ptr_equal(list_pop_head(&head), &a.link);
	assert_ptr_equal(list_pop_head(&head), &b.link);
	assert_ptr_equal(list_pop_head(&head), &c.link);
	assert_null(list_pop_head(&head));
}

static void removing_twice_is_harmless(void **state)
{
	struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
	struct list head = LIST_INIT(head);

	(void)state;
	list_push_tail(&head, &a.link);
	list_push_tail(&head, &b.link);
	list_push_tail(&head, &c.link);
	list_remove(&b.link);
	list_remove(&b.link);
	assert_list(&head, "ac");
}

static void a_splice_keeps_both_orders_and_empties_its_source(void **state)
{
	struct item a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
	struct list to = LIST_INIT(to), from = LIST_INIT(from);

	(void)state;
	list_splice_tail(&to, &from);
	assert_list(&to, "");
	list_push_tail(&to, &a.link);
	list_push_tail(&from, &b.link);
	list_push_tail(&from, &c.link);
	list_splice_tail(&to, &from);
	assert_list(&to, "abc");
	assert_list(&from, "");
}

static void a_safe_walk_may_remove_what_it_stands_on(void **state)
{
	struct item item[4] = {
		{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}};
	struct list head = LIST_INIT(head);

	(void)state;
	for (int i = 0; i < 4; i++)
		list_push_tail(&head, &item[i].link);
	list_for_each_safe (node, &head) {
		if (list_entry(node, struct item, link)->name % 2)
			list_remove(node);
	}
	assert_list(&head, "bd");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_come_out_as_they_went_in),
		cmocka_unit_test(removing_twice_is_harmless),
		cmocka_unit_test(
			a_splice_keeps_both_orders_and_empties_its_source),
		cmocka_unit_test(a_safe_walk_may_remove_what_it_stands_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
