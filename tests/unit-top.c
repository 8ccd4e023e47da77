/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-top.c: what weir top shows of two answers, in any width.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../client/top.h"

static json_t *answer(const char *text)
{
	json_error_t error;
	json_t *j = json_loads(text, 0, &error);

	if (!j)
		fail_msg("%s: %s", text, error.text);
	return j;
}

static const char before_text[] =
	"{\"process\":{\"pid\":7,\"cpu_user_us\":1000,\"cpu_system_us\":0},"
	"\"stores\":[{\"name\":\"a\",\"hits\":10,\"misses\":10,"
	"\"requests\":{\"read\":{\"ops\":5,\"bytes\":1000},"
	"\"write\":{\"ops\":1,\"bytes\":1}},"
	"\"latency\":{\"read\":{\"count\":3,"
	"\"buckets_ns\":[[1000000,2],[9000000,1]]}}}],"
	"\"clients\":[{\"client\":\"x\",\"peer\":\"1\",\"read_bytes\":100}]}";
static const char now_text[] =
	"{\"process\":{\"pid\":7,\"cpu_user_us\":501000,\"cpu_system_us\":"
	"500000},"
	"\"stores\":[{\"name\":\"b\"},{\"name\":\"a\",\"hits\":13,\"misses\":"
	"11,"
	"\"charged_bytes\":600,\"dirty_bytes\":300,\"dirty_limit_bytes\":1000,"
	"\"requests\":{\"read\":{\"ops\":25,\"bytes\":5000},"
	"\"write\":{\"ops\":1,\"bytes\":1}},"
	"\"latency\":{\"read\":{\"count\":13,\"buckets_ns\":"
	"[[1000000,3],[2000000,8],[9000000,2]]}}}],"
	"\"clients\":[{\"client\":\"x\",\"peer\":\"1\",\"read_bytes\":300,"
	"\"inflight_bytes\":5},"
	"{\"client\":\"y\",\"peer\":\"2\",\"write_bytes\":8},"
	"{\"client\":\"x\",\"peer\":\"3\",\"read_bytes\":50,"
	"\"inflight_bytes\":6}]}";

struct pair {
	json_t *before, *now;
	struct top_rows r;
};

static void make(struct pair *p, const char *before, const char *now)
{
	p->before = before ? answer(before) : NULL;
	p->now = answer(now);
	top_rows_make(&p->r, p->before, p->now, 2);
}

static void end(struct pair *p)
{
	top_rows_free(&p->r);
	json_decref(p->before);
	json_decref(p->now);
}

static void rates_are_of_the_time_between(void **state)
{
	const struct top_store *s;
	struct pair p;

	(void)state;
	make(&p, before_text, now_text);
	assert_int_equal(p.r.nstores, 2);
	s = &p.r.store[1];
	assert_string_equal(s->name, "a");
	assert_true(s->op[TOP_READ].ops == 10);
	assert_true(s->op[TOP_READ].bytes == 2000);
	assert_true(s->op[TOP_WRITE].bytes == 0);
	assert_true(s->hits == .75);
	assert_true(fabs(p.r.cpu - .5) < 1e-9);
	/* Not there before: nothing is known of its rates. */
	assert_true(isnan(p.r.store[0].op[TOP_READ].bytes));
	assert_true(isnan(p.r.store[0].hits));
	end(&p);
}

/* Ten are new: one of 1 ms, eight of 2, one of 9. */
static void percentiles_are_of_the_time_between(void **state)
{
	struct pair p;

	(void)state;
	make(&p, before_text, now_text);
	assert_true(p.r.store[1].op[TOP_READ].p50_ms == 2);
	assert_true(p.r.store[1].op[TOP_READ].p99_ms == 9);
	assert_true(isnan(p.r.store[1].op[TOP_FLUSH].p50_ms));
	end(&p);
}

static void connections_of_a_client_are_one_row(void **state)
{
	struct pair p;

	(void)state;
	make(&p, before_text, now_text);
	assert_int_equal(p.r.nclients, 2);
	assert_string_equal(p.r.client[0].name, "x");
	assert_int_equal(p.r.client[0].connections, 2);
	assert_true(p.r.client[0].read == 125);
	assert_int_equal(p.r.client[0].inflight, 11);
	assert_true(p.r.client[1].write == 4);
	end(&p);
}

static void another_process_begins_anew(void **state)
{
	struct pair p;

	(void)state;
	make(&p, "{\"process\":{\"pid\":6},\"stores\":[{\"name\":\"a\"}]}",
		now_text);
	assert_true(isnan(p.r.cpu));
	assert_true(isnan(p.r.store[1].op[TOP_READ].bytes));
	end(&p);
}

/* After a reset the histogram is all new. */
static void counter_that_went_back_counts_whole(void **state)
{
	struct pair p;

	(void)state;
	make(&p, now_text, before_text);
	assert_true(p.r.store[0].op[TOP_READ].bytes == 500);
	assert_true(p.r.store[0].op[TOP_READ].p50_ms == 1);
	assert_true(p.r.store[0].op[TOP_READ].p99_ms == 9);
	end(&p);
}

static void an_answer_of_anything_is_harmless(void **state)
{
	static const char *const odd[] = {"{}", "{\"stores\":3}",
		"{\"stores\":[1,null,{\"name\":4}],\"clients\":[[]]}",
		("{\"stores\":[{\"latency\":{\"read\":{\"count\":9,"
		 "\"buckets_ns\":[3,[],[\"x\",-1]]}}}]}")};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct top_page page = {0};
		struct pair p;

		make(&p, now_text, odd[i]);
		top_view(&page, &p.r, 80, true);
		assert_true(page.lines >= 5);
		top_page_free(&page);
		end(&p);
	}
}

static void order_is_by_the_key_then_by_name(void **state)
{
	struct pair p;

	(void)state;
	make(&p, before_text, now_text);
	top_rows_sort(&p.r, TOP_BY_RATE, false);
	assert_string_equal(p.r.store[0].name, "a");
	top_rows_sort(&p.r, TOP_BY_RATE, true);
	assert_string_equal(p.r.store[0].name, "b");
	top_rows_sort(&p.r, TOP_BY_NAME, false);
	assert_string_equal(p.r.store[0].name, "a");
	top_rows_sort(&p.r, TOP_BY_WRITE, false);
	assert_string_equal(p.r.client[0].name, "y");
	end(&p);
}

static void no_line_is_wider_than_asked(void **state)
{
	struct pair p;

	(void)state;
	make(&p, before_text, now_text);
	p.r.store[0].name = "/a/rather/long/path/of/an/image/disk.img";
	for (unsigned width = 1; width < 300; width++) {
		struct top_page page = {0};

		top_view(&page, &p.r, width, true);
		for (size_t i = 0; i < page.lines; i++)
			assert_true(page.line[i].columns <= width);
		top_page_free(&page);
	}
	end(&p);
}

static void narrow_tables_keep_what_matters(void **state)
{
	struct top_page page = {0};
	struct pair p;

	(void)state;
	make(&p, before_text, now_text);
	p.r.store[0].name = "/a/rather/long/path/of/an/image/disk.img";
	top_view(&page, &p.r, 24, true);
	assert_string_equal(page.line[0].text, "STORE       DIRTY  LIMIT");
	assert_non_null(strstr(page.line[1].text, "...isk.img "));
	top_page_clear(&page);
	top_view(&page, &p.r, 240, true);
	assert_non_null(strstr(page.line[0].text, "FILL"));
	assert_non_null(strstr(page.line[0].text, "PAUSE/s"));
	top_page_free(&page);
	end(&p);
}

static void bar_shows_the_amounts_and_the_marks(void **state)
{
	const struct top_store s = {.charged = 50,
		.dirty = 30,
		.limit = 100,
		.freerun = 70,
		.setpoint = 100};
	struct top_store other = s;
	struct top_line l = {0};

	(void)state;
	top_bar(&l, &s, 12);
	assert_string_equal(l.text, "[###==  f s]");
	assert_int_equal(l.style[1], TOP_GOOD);
	assert_int_equal(l.style[6], TOP_PLAIN);
	other.charged = 250;
	memset(&l, 0, sizeof(l));
	top_bar(&l, &other, 12);
	assert_string_equal(l.text, "[###====f=s]");
	assert_int_equal(l.style[10], TOP_BAD);
	other = (struct top_store){0};
	memset(&l, 0, sizeof(l));
	top_bar(&l, &other, 4);
	assert_string_equal(l.text, "[  ]");
}

static void names_cannot_control_the_terminal(void **state)
{
	struct top_line l = {0};

	(void)state;
	top_put(&l,
		"a\033[2J\tb\xc2\x9b"
		"c\xc3\xa9",
		TOP_PLAIN, true);
	assert_string_equal(l.text, "a?[2J?b?c\xc3\xa9");
	assert_int_equal(l.columns, 10);
	memset(&l, 0, sizeof(l));
	top_put(&l, "\xc3\xa9", TOP_PLAIN, false);
	assert_string_equal(l.text, "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_of_the_time_between),
		cmocka_unit_test(percentiles_are_of_the_time_between),
		cmocka_unit_test(connections_of_a_client_are_one_row),
		cmocka_unit_test(another_process_begins_anew),
		cmocka_unit_test(counter_that_went_back_counts_whole),
		cmocka_unit_test(an_answer_of_anything_is_harmless),
		cmocka_unit_test(order_is_by_the_key_then_by_name),
		cmocka_unit_test(no_line_is_wider_than_asked),
		cmocka_unit_test(narrow_tables_keep_what_matters),
		cmocka_unit_test(bar_shows_the_amounts_and_the_marks),
		cmocka_unit_test(names_cannot_control_the_terminal),
	};

	return cmocka_run_group_tests_name("top", tests, NULL, NULL);
}
