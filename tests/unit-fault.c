/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-fault.c: commands that fail, stop part-way, wait and hang on request,
 * and the log of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage.h"
#include "store/fault.h"

struct bed {
	struct reactor *r;
	struct store *s;
	char buf[64 * 1024];
};

static struct bed *bed_open(const char *spec)
{
	struct bed *b = calloc(1, sizeof *b);

	b->r = reactor_sim_new(1);
	b->s = store_must_open(spec);
	memset(b->buf, 'x', sizeof b->buf);
	return b;
}

static void bed_close(struct bed *b)
{
	store_close(b->s);
	reactor_free(b->r);
	free(b);
}

static int bed_do(
	struct bed *b, enum store_op op, uint64_t offset, uint64_t length)
{
	return io_do(b->s, b->r, op, offset, length, b->buf, 0);
}

static void so_many_commands_of_a_kind_fail(void **state)
{
	struct bed *b = bed_open("fault:write-error=2,flush-error=1,mem:1M");

	(void)state;
	assert_int_equal(bed_do(b, STORE_READ, 0, 512), 0);
	memset(b->buf, 'x', sizeof b->buf);
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), -EIO);
	assert_int_equal(bed_do(b, STORE_READ, 0, 512), 0);
	assert_int_equal(b->buf[0], 0); /* nothing was written */
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), -EIO);
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), 0);
	assert_int_equal(bed_do(b, STORE_FLUSH, 0, 0), -EIO);
	assert_int_equal(bed_do(b, STORE_FLUSH, 0, 0), 0);
	bed_close(b);
}

static void a_rule_can_skip_and_take_each_nth(void **state)
{
	struct bed *b = bed_open(
		"fault:write-error=2,skip=3,every=2,errno=ENOSPC,mem:1M");
	static const int want[] = {0, 0, 0, 0, -ENOSPC, 0, -ENOSPC, 0, 0, 0};

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), want[i]);
	bed_close(b);
}

static void a_rule_can_be_about_a_range(void **state)
{
	struct bed *b = bed_open("fault:read-error=always,range=64K+4K,mem:1M");

	(void)state;
	assert_int_equal(bed_do(b, STORE_READ, 60 * KIB, 4 * KIB), 0);
	assert_int_equal(bed_do(b, STORE_READ, 60 * KIB, 4 * KIB + 1), -EIO);
	assert_int_equal(bed_do(b, STORE_READ, 68 * KIB - 1, 4 * KIB), -EIO);
	assert_int_equal(bed_do(b, STORE_READ, 68 * KIB, 4 * KIB), 0);
	assert_int_equal(bed_do(b, STORE_WRITE, 64 * KIB, 4 * KIB), 0);
	bed_close(b);
}

static void a_short_write_does_its_first_part_and_fails(void **state)
{
	struct bed *b = bed_open("fault:short-write=always,seed=3,mem:1M");
	unsigned partly = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		uint64_t at = 0, base = (uint64_t)i * 32 * KIB;

		memset(b->buf, 'x', sizeof b->buf);
		assert_int_equal(bed_do(b, STORE_WRITE, base, 32 * KIB), -EIO);
		assert_int_equal(bed_do(b, STORE_READ, base, 32 * KIB), 0);
		while (at < 32 * KIB && b->buf[at] == 'x')
			at++;
		assert_true(at < 32 * KIB);
		assert_int_equal(at % 512, 0);
		partly += at > 0;
		for (; at < 32 * KIB; at++)
			assert_int_equal(b->buf[at], 0);
	}
	assert_true(partly > 10);
	bed_close(b);
}

static void delays_add_up(void **state)
{
	struct bed *b = bed_open("fault:delay=10ms,delay=5ms,op=write,mem:1M");
	uint64_t start = reactor_now(b->r);

	(void)state;
	assert_int_equal(bed_do(b, STORE_READ, 0, 512), 0);
	assert_int_equal(reactor_now(b->r) - start, 10 * NSEC_PER_MSEC);
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), 0);
	assert_int_equal(reactor_now(b->r) - start, 25 * NSEC_PER_MSEC);
	bed_close(b);
}

static void what_hangs_ends_when_released(void **state)
{
	struct bed *b = bed_open("fault:hang=2,op=write,mem:1M");
	struct waited_io w[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		io_start(b->s, b->r, &w[i], STORE_WRITE, (uint64_t)i * 512, 512,
			b->buf, 0);
	while (reactor_sim_step(b->r))
		;
	assert_false(w[0].done);
	assert_false(w[1].done);
	assert_true(w[2].done);
	assert_int_equal(store_fault_hanging(b->s), 2);
	assert_int_equal(store_fault_release(b->s), 2);
	assert_int_equal(store_fault_hanging(b->s), 0);
	assert_false(w[0].done); /* not inside the call */
	while (reactor_sim_step(b->r))
		;
	assert_true(w[0].done && w[1].done);
	assert_int_equal(w[0].io.error, 0);
	bed_close(b);
}

static void rules_can_be_changed_while_running(void **state)
{
	const struct store_fault_rule rule = {
		.action = STORE_FAULT_ERROR,
		.ops = STORE_FAULT_OP(STORE_TRIM),
		.error = -ETIMEDOUT,
	};
	struct bed *b = bed_open("fault:write-error=always,mem:1M");

	(void)state;
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), -EIO);
	store_fault_set(b->s, &rule, 1);
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), 0);
	assert_int_equal(bed_do(b, STORE_TRIM, 0, 512), -ETIMEDOUT);
	store_fault_set(b->s, NULL, 0);
	assert_int_equal(bed_do(b, STORE_TRIM, 0, 512), 0);
	bed_close(b);
}

static void the_log_has_each_command_with_its_end(void **state)
{
	struct bed *b = bed_open("fault:write-error=1,skip=1,mem:1M");
	struct store_fault_record log[8];

	(void)state;
	bed_do(b, STORE_WRITE, 0, 512);
	store_fault_record(b->s, true);
	assert_int_equal(bed_do(b, STORE_WRITE, 4096, 512), -EIO);
	assert_int_equal(
		io_do(b->s, b->r, STORE_WRITE, 0, 1024, b->buf, STORE_FUA), 0);
	bed_do(b, STORE_FLUSH, 0, 0);
	store_fault_record(b->s, false);
	bed_do(b, STORE_WRITE, 0, 512);
	assert_int_equal(store_fault_log(b->s, log, 8), 3);
	assert_int_equal(log[0].op, STORE_WRITE);
	assert_int_equal(log[0].offset, 4096);
	assert_int_equal(log[0].length, 512);
	assert_int_equal(log[0].error, -EIO);
	assert_true(log[0].done);
	assert_int_equal(log[0].submitted, 1);
	assert_int_equal(log[0].completed, 2);
	assert_int_equal(log[1].flags, STORE_FUA);
	assert_int_equal(log[1].error, 0);
	assert_int_equal(log[2].op, STORE_FLUSH);
	assert_int_equal(log[2].submitted, 5);
	bed_close(b);
}

static void the_log_tells_of_data_changed_in_flight(void **state)
{
	struct bed *b = bed_open("fault:record=on,delay=1ms,mem:1M");
	struct store_fault_record log[2];
	struct waited_io steady, changed;
	char other[512] = "";

	(void)state;
	io_start(b->s, b->r, &steady, STORE_WRITE, 0, 512, b->buf, 0);
	io_start(b->s, b->r, &changed, STORE_WRITE, 512, 512, other, 0);
	other[300] = 1;
	while (reactor_sim_step(b->r))
		;
	assert_int_equal(store_fault_log(b->s, log, 2), 2);
	assert_false(log[0].changed);
	assert_true(log[1].changed);
	bed_close(b);
}

static void after_a_power_cut_everything_fails(void **state)
{
	struct bed *b = bed_open("fault:hang=1,op=read,delay=1ms,mem:1M");
	struct waited_io hanging, delayed;

	(void)state;
	io_start(b->s, b->r, &hanging, STORE_READ, 0, 512, b->buf, 0);
	reactor_sim_run_until(b->r, reactor_now(b->r) + 2 * NSEC_PER_MSEC);
	io_start(b->s, b->r, &delayed, STORE_WRITE, 0, 512, b->buf, 0);
	assert_int_equal(store_fault_hanging(b->s), 1);
	store_fault_power_cut(b->s, 1);
	while (reactor_sim_step(b->r))
		;
	assert_true(hanging.done && delayed.done);
	assert_int_equal(hanging.io.error, -EIO);
	assert_int_equal(delayed.io.error, -EIO);
	assert_int_equal(bed_do(b, STORE_READ, 0, 512), -EIO);
	assert_int_equal(bed_do(b, STORE_FLUSH, 0, 0), -EIO);
	bed_close(b);
}

/* --- rates, kinds, new rules ---------------------------------------------- */

static unsigned count_errors(struct bed *b, enum store_op op, unsigned n)
{
	unsigned errors = 0;

	for (unsigned i = 0; i < n; i++)
		errors += bed_do(b, op, 0, 512) != 0;
	return errors;
}

static void a_rate_is_a_share_of_the_commands(void **state)
{
	struct bed *b = bed_open("fault:seed=7,write-error=always,rate=10%,"
				 "read-error=always,rate=0.01%,mem:1M");
	unsigned errors = count_errors(b, STORE_WRITE, 2000);

	(void)state;
	assert_in_range(errors, 150, 250);
	assert_in_range(count_errors(b, STORE_READ, 2000), 0, 5);
	bed_close(b);
	b = bed_open("fault:seed=7,write-error=always,rate=10%,mem:1M");
	assert_int_equal(count_errors(b, STORE_WRITE, 2000), errors);
	bed_close(b);
}

static void a_rule_is_for_several_kinds(void **state)
{
	struct bed *b = bed_open("fault:error=always,op=read+zero,mem:1M");

	(void)state;
	assert_int_equal(bed_do(b, STORE_READ, 0, 512), -EIO);
	assert_int_equal(bed_do(b, STORE_ZERO, 0, 512), -EIO);
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), 0);
	assert_int_equal(bed_do(b, STORE_FLUSH, 0, 0), 0);
	bed_close(b);
}

static void set_rules(struct bed *b, const char *rules)
{
	struct error error = {""};

	if (store_set_fault(b->s, rules, true, &error))
		fail_msg("%s", error.text);
}

static void new_rules_take_the_place_of_the_old(void **state)
{
	struct bed *b = bed_open("sim:hdd,[fault:read-error=always,mem:1M]");

	(void)state;
	assert_int_equal(bed_do(b, STORE_READ, 0, 512), -EIO);
	set_rules(b, "write-error=1,errno=ENOSPC");
	assert_int_equal(bed_do(b, STORE_READ, 0, 512), 0);
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), -ENOSPC);
	assert_int_equal(bed_do(b, STORE_WRITE, 0, 512), 0);
	set_rules(b, "error=always");
	assert_int_equal(bed_do(b, STORE_FLUSH, 0, 0), -EIO);
	set_rules(b, "off");
	assert_int_equal(bed_do(b, STORE_FLUSH, 0, 0), 0);
	bed_close(b);
}

static void new_rules_let_go_of_what_hangs(void **state)
{
	struct bed *b = bed_open("fault:hang=always,mem:1M");
	struct waited_io w;

	(void)state;
	io_start(b->s, b->r, &w, STORE_WRITE, 0, 512, b->buf, 0);
	while (reactor_sim_step(b->r))
		;
	assert_false(w.done);
	set_rules(b, "off");
	while (reactor_sim_step(b->r))
		;
	assert_true(w.done);
	assert_int_equal(w.io.error, 0);
	bed_close(b);
}

static void new_rules_are_for_the_store_of_a_name(void **state)
{
	struct bed *b = bed_open("stripe:4K,[fault:name=a,mem:64K],"
				 "[fault:name=b,mem:64K]");

	(void)state;
	set_rules(b, "name=b,error=always");
	assert_int_equal(bed_do(b, STORE_READ, 0, 4096), 0);
	assert_int_equal(bed_do(b, STORE_READ, 4096, 4096), -EIO);
	set_rules(b, "power-cut=1,name=a");
	assert_int_equal(bed_do(b, STORE_READ, 0, 4096), -EIO);
	set_rules(b, "name=b,off");
	assert_int_equal(bed_do(b, STORE_READ, 4096, 4096), 0);
	bed_close(b);
}

static void refused(struct bed *b, const char *rules, const char *text)
{
	struct error error = {""};

	assert_int_equal(store_set_fault(b->s, rules, true, &error), -EINVAL);
	assert_string_equal(error.text, text);
}

static void bad_new_rules_change_nothing(void **state)
{
	struct bed *b = bed_open("fault:read-error=always,mem:1M");
	struct bed *plain = bed_open("sim:hdd,mem:1M");

	(void)state;
	refused(b, "error=always,rate=200%", "fault: bad rate \"200%\"");
	refused(b, "error=always,op=read+status",
		"fault: bad op \"read+status\"");
	refused(b, "errors=1",
		"fault: unknown option \"errors\" of new rules, see "
		"weir-stores(7)");
	refused(b, "name=x,off",
		"fault: store fault:read-error=always,mem:1M has no fault: "
		"inside called x");
	refused(plain, "off",
		"fault: store sim:hdd,mem:1M has no fault: "
		"inside");
	assert_int_equal(bed_do(b, STORE_READ, 0, 512), -EIO);
	bed_close(b);
	bed_close(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(so_many_commands_of_a_kind_fail),
		cmocka_unit_test(a_rule_can_skip_and_take_each_nth),
		cmocka_unit_test(a_rule_can_be_about_a_range),
		cmocka_unit_test(a_short_write_does_its_first_part_and_fails),
		cmocka_unit_test(delays_add_up),
		cmocka_unit_test(what_hangs_ends_when_released),
		cmocka_unit_test(rules_can_be_changed_while_running),
		cmocka_unit_test(the_log_has_each_command_with_its_end),
		cmocka_unit_test(the_log_tells_of_data_changed_in_flight),
		cmocka_unit_test(after_a_power_cut_everything_fails),
		cmocka_unit_test(a_rate_is_a_share_of_the_commands),
		cmocka_unit_test(a_rule_is_for_several_kinds),
		cmocka_unit_test(new_rules_take_the_place_of_the_old),
		cmocka_unit_test(new_rules_let_go_of_what_hangs),
		cmocka_unit_test(new_rules_are_for_the_store_of_a_name),
		cmocka_unit_test(bad_new_rules_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
