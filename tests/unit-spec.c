/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit-spec.c: specs that open, and the exact words for those that do not.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/spec.h"
#include "store/store.h"

static void assert_refused(const char *spec, int err, const char *text)
{
	struct error error = {""};
	struct store *s;

	assert_int_equal(store_open(spec, 0, &s, &error), err);
	assert_string_equal(error.text, text);
	assert_null(s);
}

static void assert_size(const char *spec, uint64_t size)
{
	struct error error = {""};
	struct store *s;

	if (store_open(spec, 0, &s, &error))
		fail_msg("%s", error.text);
	assert_int_equal(s->info.size, size);
	assert_string_equal(s->spec, spec);
	store_close(s);
}

static void specs_nest_with_and_without_brackets(void **state)
{
	(void)state;
	assert_size("mem:1M", 1 << 20);
	assert_size("null:1P", 1ULL << 50);
	assert_size("sim:mem:1M", 1 << 20);
	assert_size("sim:[mem:1M]", 1 << 20);
	assert_size("sim:hdd,mem:1M", 1 << 20);
	assert_size("sim:usb,cache=off,bandwidth=9M,[null:1G]", 1 << 30);
	assert_size("sim:latency=1ms,depth=2,mem:3K", 3072);
	assert_size("fault:delay=1s,[sim:latency=1ms,depth=2,mem:3K]", 3072);
	assert_size("fault:[sim:depth=2,[fault:seed=1,[mem:512]]]", 512);
	assert_size("stripe:4K,mem:8K,[sim:hdd,[mem:9K]]", 16 << 10);
	assert_size("sim:hdd,[stripe:4K,[mem:8K]]", 8 << 10);
}

static void parts_are_cut_at_commas_outside_brackets(void **state)
{
	struct spec_list list;

	(void)state;
	assert_int_equal(
		spec_split("64K,[a:[b],c],d[1,2]e,[f]", &list, NULL), 0);
	assert_int_equal(list.count, 4);
	assert_string_equal(list.part[0], "64K");
	assert_string_equal(list.part[1], "a:[b],c");
	assert_string_equal(list.part[2], "d[1,2]e");
	assert_string_equal(list.part[3], "f");
	spec_list_free(&list);
}

static void bad_grammar_is_quoted(void **state)
{
	(void)state;
	assert_refused("sim:depth=2,[mem:1M", -EINVAL,
		"store sim:depth=2,[mem:1M: \"[\" is not closed in "
		"\"[mem:1M\"");
	assert_refused("sim:mem:1M]", -EINVAL,
		"store sim:mem:1M]: \"]\" without \"[\" in \"mem:1M]\"");
	assert_refused("sim:[mem:1M]x", -EINVAL,
		"store sim:[mem:1M]x: \"x\" after \"]\": a comma is missing");
	assert_refused(
		"sim:depth=2,", -EINVAL, "store sim:depth=2,: a part is empty");
	assert_refused("sim:[]", -EINVAL, "store sim:[]: a part is empty");
	assert_refused("sim:hdd,fast,mem:1M", -EINVAL,
		"store sim:hdd,fast,mem:1M: \"fast\" is not KEY=VALUE (an "
		"inner spec comes last, in brackets if it has commas)");
}

static void bad_options_are_named(void **state)
{
	(void)state;
	assert_refused("fault:write-error=soon,mem:1M", -EINVAL,
		"store fault:write-error=soon,mem:1M: bad write-error "
		"\"soon\"");
	assert_refused("fault:every=2,mem:1M", -EINVAL,
		"store fault:every=2,mem:1M: \"every\" comes after the rule "
		"it narrows");
	assert_refused("fault:hang=1,range=1M,mem:1M", -EINVAL,
		"store fault:hang=1,range=1M,mem:1M: bad range \"1M\"");
	assert_refused("mem:lots", -EINVAL,
		"store mem:lots: bad size \"lots\" (such as 512M; up to 64T)");
	assert_refused("null:0", -EINVAL,
		"store null:0: bad size \"0\" (such as 512M)");
}

static void bad_device_models_are_named(void **state)
{
	(void)state;
	assert_refused("sim:floppy,mem:1M", -EINVAL,
		"store sim:floppy,mem:1M: floppy: no such profile (there are "
		"hdd, usb, ssd, nvme, msa)");
	assert_refused("sim:hdd,bandwith=80M,[mem:8G]", -EINVAL,
		"store sim:hdd,bandwith=80M,[mem:8G]: bandwith: no such "
		"option; did you mean bandwidth?");
	assert_refused("sim:colour=1,mem:1M", -EINVAL,
		"store sim:colour=1,mem:1M: colour: no such option, see "
		"weir-server(8)");
	assert_refused("sim:depth=0,mem:1M", -EINVAL,
		"store sim:depth=0,mem:1M: bad depth \"0\"");
	assert_refused("sim:elevator=maybe,mem:1M", -EINVAL,
		"store sim:elevator=maybe,mem:1M: bad elevator \"maybe\"");
	assert_refused("sim:hdd,settle=9ms,mem:1M", -EINVAL,
		"store sim:hdd,settle=9ms,mem:1M: settle, the shortest seek, "
		"is longer than seek, the average");
	assert_refused("sim:usb,open-blocks=65,mem:1M", -EINVAL,
		"store sim:usb,open-blocks=65,mem:1M: open-blocks: at most 64");
	assert_refused("sim:usb,erase-block=512,mem:1M", -EINVAL,
		"store sim:usb,erase-block=512,mem:1M: erase-block: 4K or "
		"more, or off");
}

static void a_model_without_a_store_says_so(void **state)
{
	(void)state;
	assert_refused("sim:", -EINVAL,
		"store sim:: no inner store (such as sim:[mem:8G])");
	assert_refused("sim:hdd", -EINVAL,
		"store sim:hdd: no inner store after \"hdd\" (such as "
		"hdd,[mem:8G]; a file of that name is raw:hdd)");
	assert_refused("sim:hdd,depth=4", -EINVAL,
		"store sim:hdd,depth=4: no inner store after \"depth=4\" "
		"(such as depth=4,[mem:8G]; a file of that name is "
		"raw:depth=4)");
}

static void the_innermost_bad_spec_is_named_once(void **state)
{
	(void)state;
	assert_refused("sim:depth=2,[fault:seed=1,[mem:x]]", -EINVAL,
		"store mem:x: bad size \"x\" (such as 512M; up to 64T)");
	assert_refused("sim:what:1M", -EINVAL,
		"store what:1M: unknown kind \"what\" (for a file of that "
		"name write raw:what:1M)");
}

static void a_bad_stripe_is_told_by_its_member(void **state)
{
	(void)state;
	assert_refused("stripe:", -EINVAL,
		"store stripe:: no inner store (such as stripe:64K,[mem:8G])");
	assert_refused("stripe:64K", -EINVAL,
		"store stripe:64K: no inner store after \"64K\" (such as "
		"64K,[mem:8G]; a file of that name is raw:64K)");
	assert_refused("stripe:65K,[mem:1M]", -EINVAL,
		"store stripe:65K,[mem:1M]: bad chunk \"65K\": a power of two "
		"from 4K to 1G, and then the members, like "
		"stripe:64K,[raw:/a],[raw:/b]");
	assert_refused("stripe:[mem:1M],[mem:1M]", -EINVAL,
		"store stripe:[mem:1M],[mem:1M]: bad chunk \"mem:1M\": a power "
		"of two from 4K to 1G, and then the members, like "
		"stripe:64K,[raw:/a],[raw:/b]");
	assert_refused("stripe:64K,[mem:1M],[mem:10K]", -EINVAL,
		"store stripe:64K,[mem:1M],[mem:10K]: member 2, mem:10K, is "
		"smaller than a chunk of 64K");
	assert_refused("stripe:64K,[mem:1M],[sim:hdd,[mem:x]]", -EINVAL,
		"member 2: store mem:x: bad size \"x\" (such as 512M; up to "
		"64T)");
	assert_refused("stripe:64K,mem:,mem:1M", -EINVAL,
		"member 1: store mem:: bad size \"\" (such as 512M; up to "
		"64T)");
}

static void a_pool_is_no_part_of_a_store(void **state)
{
	(void)state;
	assert_refused("sim:hdd,pool:/x", -EINVAL,
		"store pool:/x: a pool is no part of another store: it comes "
		"first, like pool:[stripe:64K,[raw:/a],[raw:/b]]");
	assert_refused("stripe:4K,[mem:1M],[pool:/x]", -EINVAL,
		"member 2: store pool:/x: a pool is no part of another store: "
		"it comes first, like pool:[stripe:64K,[raw:/a],[raw:/b]]");
}

static void a_path_needs_no_kind(void **state)
{
	(void)state;
	assert_refused("/nonexistent/a:b", -ENOENT,
		"store /nonexistent/a:b: cannot open: No such file or "
		"directory (to make one: truncate -s 4G /nonexistent/a:b; "
		"a pool: weir pool create /nonexistent/a:b --size 4G)");
	assert_refused("raw:/nonexistent/x,y", -ENOENT,
		"store raw:/nonexistent/x,y: cannot open: No such file or "
		"directory (to make one: truncate -s 4G /nonexistent/x,y; "
		"a pool: weir pool create /nonexistent/x,y --size 4G)");
	assert_refused("/tmp", -EINVAL,
		"store /tmp: neither a file nor a block device");
	assert_refused("raw:", -EINVAL, "store raw:: no path");
}

static void a_long_spec_is_cut_in_its_middle(void **state)
{
	char spec[1000] = "mem:";
	struct error error;
	struct store *s;

	(void)state;
	memset(spec + 4, '9', 900);
	strcpy(spec + 904, "end");
	assert_int_equal(store_open(spec, 0, &s, &error), -EINVAL);
	assert_memory_equal(error.text, "store mem:9999", 14);
	assert_non_null(strstr(error.text, "9...9"));
	assert_non_null(strstr(error.text, "99end: bad size"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specs_nest_with_and_without_brackets),
		cmocka_unit_test(parts_are_cut_at_commas_outside_brackets),
		cmocka_unit_test(bad_grammar_is_quoted),
		cmocka_unit_test(bad_options_are_named),
		cmocka_unit_test(bad_device_models_are_named),
		cmocka_unit_test(a_model_without_a_store_says_so),
		cmocka_unit_test(the_innermost_bad_spec_is_named_once),
		cmocka_unit_test(a_bad_stripe_is_told_by_its_member),
		cmocka_unit_test(a_pool_is_no_part_of_a_store),
		cmocka_unit_test(a_path_needs_no_kind),
		cmocka_unit_test(a_long_spec_is_cut_in_its_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
