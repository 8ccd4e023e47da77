/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats.c: `weir stats`: a server's counters and settings.
 *
 * The table is made from whatever the answer holds, so that a counter the
 * server gains is shown at once:
 *  1. the unit is read off the end of the name: _bytes, _us;
 *  2. an object in an object becomes a dotted name;
 *  3. each member of a list becomes a section of its own.
 */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "client.h"

static bool ends_with(const char *text, const char *end)
{
	size_t a = strlen(text), b = strlen(end);

	return a >= b && !strcmp(text + a - b, end);
}

/* "x_bytes", "read.bytes" and "bytes" are in bytes. */
static bool has_unit(const char *name, const char *unit)
{
	size_t n = strlen(name), u = strlen(unit);

	return ends_with(name, unit) &&
		(n == u || name[n - u - 1] == '_' || name[n - u - 1] == '.');
}

static void print_integer(const char *name, json_int_t value)
{
	char size[16];

	if (has_unit(name, "bytes") && value >= 0)
		printf("%s", size_format((uint64_t)value, size));
	else if (has_unit(name, "bandwidth"))
		printf("%.1f MB/s", (double)value / 1e6);
	else if (has_unit(name, "us"))
		printf("%.3f ms", (double)value / 1000);
	else
		printf("%lld", (long long)value);
}

static void print_scalar(const char *name, json_t *value)
{
	printf("  %-32s ", name);
	switch (json_typeof(value)) {
	case JSON_INTEGER:
		print_integer(name, json_integer_value(value));
		break;
	case JSON_REAL:
		printf("%.3f", json_real_value(value));
		break;
	case JSON_STRING:
		printf("%s", json_string_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		printf("%s", json_is_true(value) ? "yes" : "no");
		break;
	default:
		putchar('-');
	}
	putchar('\n');
}

static void print_members(const char *prefix, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		char name[256];

		snprintf(name, sizeof(name), "%s%s%s", prefix,
			*prefix ? "." : "", key);
		if (json_is_object(value))
			print_members(name, value);
		else if (!json_is_array(value))
			print_scalar(name, value);
	}
}

/* "stores" -> "store NAME": one section for each member of the list. */
static void print_list(const char *key, json_t *list)
{
	size_t i;
	json_t *member;

	if (!json_array_size(list)) {
		printf("%s: none\n", key);
		return;
	}
	json_array_foreach(list, i, member)
	{
		const char *name = json_string_value(json_object_get(
			member, !strcmp(key, "clients") ? "client" : "name"));

		printf("%.*s %s\n", (int)strlen(key) - ends_with(key, "s"), key,
			name && *name ? name : "\"\"");
		if (json_is_object(member)) {
			json_object_del(member, "name");
			print_members("", member);
		}
	}
}

static void print_table(json_t *stats)
{
	const char *key;
	json_t *value;

	json_object_foreach(stats, key, value)
	{
		if (json_is_array(value)) {
			print_list(key, value);
		} else if (json_is_object(value)) {
			printf("%s\n", key);
			print_members("", value);
		} else {
			print_scalar(key, value);
		}
	}
}

static void stats_help(void)
{
	puts("usage: weir stats [OPTIONS] CONTROL\n\n"
	     "Print the counters and settings of the server with the control\n"
	     "socket CONTROL.\n\n"
	     "  --json         the answer itself, exact numbers\n"
	     "  --help         this");
}

int cmd_stats(int argc, char **argv)
{
	const char *path;
	bool json = false;
	json_t *stats;
	int code;

	if (!client_plain_options(argc, argv, stats_help, &json, &code))
		return code;
	path = client_one_argument(argc, argv, "CONTROL");
	if (!path)
		return EXIT_USAGE;
	stats = control_call(argv[0], path, "stats");
	if (!stats)
		return EXIT_IO;
	if (json)
		return client_print_json(argv[0], stats);
	print_table(stats);
	json_decref(stats);
	return EXIT_OK;
}
