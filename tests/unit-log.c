/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-log.c: where log lines go, and error text.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

static char caught[4096]; /* what the sink was given: "LEVEL:line;" */

static void sink(void *arg, enum log_level level, const char *line)
{
	size_t used = strlen(caught);

	assert_ptr_equal(arg, caught);

	snprintf(caught + used, sizeof caught - used, "%d:%s;", (int)level,
		line);
}

static void lines_up_to_the_level_go_to_the_sink(void **state)
{
	(void)state;
	caught[0] = '\0';
	log_setup("prog", LOG_LEVEL_WARNING, sink, caught);
	log_error("disk %d", 7);
	log_warning("slow");
	log_info("hello");
	log_debug("detail");
	assert_string_equal(caught, "0:disk 7;1:slow;");
}

static void without_a_sink_they_go_to_standard_error(void **state)
{
	char text[128] = "";
	FILE *f = tmpfile();
	int old = dup(STDERR_FILENO);

	(void)state;
	log_setup("weir-server", LOG_LEVEL_INFO, NULL, NULL);
	dup2(fileno(f), STDERR_FILENO);
	log_info("ready on %s", "a socket");
	log_debug("not shown");
	dup2(old, STDERR_FILENO);
	close(old);
	rewind(f);
	assert_true(fread(text, 1, sizeof text - 1, f) > 0);
	assert_string_equal(text, "weir-server: ready on a socket\n");
	fclose(f);
}

static void a_long_line_is_cut(void **state)
{
	char line[3000];

	(void)state;
	caught[0] = '\0';
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\0';
	log_setup("prog", LOG_LEVEL_INFO, sink, caught);
	log_info("%s", line);
	assert_in_range(strlen(caught), 1000, 1100);
}

static void a_line_is_one_line(void **state)
{
	(void)state;
	caught[0] = '\0';
	log_setup("prog", LOG_LEVEL_INFO, sink, caught);
	log_info("no export \"%s\"", "x\nprog: all is well\033[2J\177");
	assert_string_equal(
		caught, "2:no export \"x?prog: all is well?[2J?\";");
}

static void an_error_is_one_line_from_the_outside_in(void **state)
{
	struct error e;

	(void)state;
	assert_int_equal(error_set(&e, -ENOENT, "cannot open: %d", 7), -ENOENT);
	assert_string_equal(e.text, "cannot open: 7");
	assert_int_equal(error_prefix(&e, -ENOENT, "store x"), -ENOENT);
	assert_string_equal(e.text, "store x: cannot open: 7");
	assert_int_equal(error_set(NULL, -EIO, "nobody listens"), -EIO);
	assert_int_equal(error_prefix(NULL, -EIO, "nobody"), -EIO);
}

static void a_long_error_is_cut_not_overrun(void **state)
{
	struct error e;
	char what[600];

	(void)state;
	memset(what, 'x', sizeof what);
	what[sizeof what - 1] = '\0';
	error_set(&e, -EIO, "%s", what);
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
	error_prefix(&e, -EIO, "store");
	assert_int_equal(strlen(e.text), sizeof e.text - 1);
	assert_memory_equal(e.text, "store: xxx", 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_up_to_the_level_go_to_the_sink),
		cmocka_unit_test(without_a_sink_they_go_to_standard_error),
		cmocka_unit_test(a_long_line_is_cut),
		cmocka_unit_test(a_line_is_one_line),
		cmocka_unit_test(an_error_is_one_line_from_the_outside_in),
		cmocka_unit_test(a_long_error_is_cut_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
