/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info.c: `weir info`: what a server says about its exports.
 *
 * The answer is first gathered into JSON; the text for people is made from
 * that, so the two cannot differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "client.h"
#include "info.h"

struct flag {
	const char *name;
	int (*get)(struct nbd_handle *nbd);
};

static int can_structured(struct nbd_handle *nbd)
{
	return nbd_get_structured_replies_negotiated(nbd);
}

static const struct flag flags[] = {
	{"read_only", nbd_is_read_only},
	{"rotational", nbd_is_rotational},
	{"flush", nbd_can_flush},
	{"fua", nbd_can_fua},
	{"trim", nbd_can_trim},
	{"zero", nbd_can_zero},
	{"fast_zero", nbd_can_fast_zero},
	{"cache", nbd_can_cache},
	{"df", nbd_can_df},
	{"multi_conn", nbd_can_multi_conn},
	{"structured_replies", can_structured},
};

static int add_context(void *list, const char *name)
{
	json_array_append_new(list, json_string(name));
	return 0;
}

static int add_export(void *list, const char *name, const char *description)
{
	json_t *export = json_object();

	json_object_set_new(export, "name", json_string(name));
	if (*description)
		json_object_set_new(
			export, "description", json_string(description));
	json_array_append_new(list, export);
	return 0;
}

/* Both lists may be refused by a server: then the member is left out. */
static void gather_lists(struct nbd_handle *nbd, json_t *info, json_t *export)
{
	json_t *exports = json_array(), *contexts = json_array();
	nbd_list_callback on_export = {
		.callback = add_export, .user_data = exports};
	nbd_context_callback on_context = {
		.callback = add_context, .user_data = contexts};

	if (nbd_opt_list(nbd, on_export) >= 0)
		json_object_set(info, "exports", exports);
	if (nbd_opt_list_meta_context(nbd, on_context) >= 0)
		json_object_set(export, "contexts", contexts);
	json_decref(exports);
	json_decref(contexts);
}

static json_t *gather_block_sizes(struct nbd_handle *nbd)
{
	static const struct {
		const char *name;
		int type;
	} sizes[] = {
		{"minimum_bytes", LIBNBD_SIZE_MINIMUM},
		{"preferred_bytes", LIBNBD_SIZE_PREFERRED},
		{"maximum_bytes", LIBNBD_SIZE_MAXIMUM},
	};
	json_t *block = json_object();

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int64_t size = nbd_get_block_size(nbd, sizes[i].type);

		if (size > 0)
			json_object_set_new(
				block, sizes[i].name, json_integer(size));
	}
	return block;
}

static void gather_export(struct nbd_handle *nbd, json_t *export)
{
	char *description = nbd_get_export_description(nbd);
	json_t *set = json_object();

	if (description && *description)
		json_object_set_new(
			export, "description", json_string(description));
	free(description);
	json_object_set_new(
		export, "size_bytes", json_integer(nbd_get_size(nbd)));
	json_object_set_new(export, "block_size", gather_block_sizes(nbd));
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		int value = flags[i].get(nbd);

		if (value >= 0)
			json_object_set_new(
				set, flags[i].name, json_boolean(value));
	}
	json_object_set_new(export, "flags", set);
}

/* Go on from negotiating to the export the URI names; gather on the way. */
static int gather(const char *command, const char *uri, struct nbd_handle *nbd,
	json_t *info)
{
	json_t *export = json_object();
	char *name = nbd_get_export_name(nbd);

	json_object_set_new(info, "export", export);
	json_object_set_new(export, "name", json_string(name ? name : ""));
	free(name);
	if (nbd_aio_is_negotiating(nbd)) {
		gather_lists(nbd, info, export);
		if (nbd_opt_go(nbd))
			return connect_refused(command, uri);
	}
	json_object_set_new(
		info, "protocol", json_string(nbd_get_protocol(nbd)));
	json_object_set_new(
		info, "tls", json_boolean(nbd_get_tls_negotiated(nbd) > 0));
	gather_export(nbd, export);
	return EXIT_OK;
}

static void print_size(const char *name, json_int_t bytes)
{
	char size[16];

	printf("  %-16s %s (%lld bytes)\n", name,
		size_format((uint64_t)bytes, size), (long long)bytes);
}

static void print_flags(json_t *set)
{
	const char *key;
	json_t *value;

	printf("  %-16s", "flags");
	json_object_foreach(set, key, value) if (json_is_true(value))
		printf(" %s", key);
	printf("\n  %-16s", "not");
	json_object_foreach(set, key, value) if (!json_is_true(value))
		printf(" %s", key);
	putchar('\n');
}

static void print_block_sizes(json_t *block)
{
	const char *key;
	json_t *value;

	if (!json_object_size(block))
		return;
	printf("  %-16s", "block size");
	json_object_foreach(block, key, value)
	{
		char size[16];

		printf(" %s %.*s",
			size_format((uint64_t)json_integer_value(value), size),
			(int)strcspn(key, "_"), key);
	}
	putchar('\n');
}

static void print_contexts(json_t *contexts)
{
	size_t i;
	json_t *context;

	if (!json_array_size(contexts))
		return;
	printf("  %-16s", "contexts");
	json_array_foreach(contexts, i, context)
		printf(" %s", json_string_value(context));
	putchar('\n');
}

static void print_text(json_t *info)
{
	json_t *export = json_object_get(info, "export"), *other;
	json_t *exports = json_object_get(info, "exports");
	const char *text =
		json_string_value(json_object_get(export, "description"));
	size_t i;

	printf("protocol: %s, %s TLS\n",
		json_string_value(json_object_get(info, "protocol")),
		json_is_true(json_object_get(info, "tls")) ? "with"
							   : "without");
	printf("export \"%s\"\n",
		json_string_value(json_object_get(export, "name")));
	if (text)
		printf("  %-16s %s\n", "description", text);
	print_size("size",
		json_integer_value(json_object_get(export, "size_bytes")));
	print_block_sizes(json_object_get(export, "block_size"));
	print_flags(json_object_get(export, "flags"));
	print_contexts(json_object_get(export, "contexts"));
	if (!exports)
		return;
	printf("exports of the server\n");
	json_array_foreach(exports, i, other) printf("  \"%s\"\n",
		json_string_value(json_object_get(other, "name")));
}

static void help(void)
{
	puts("usage: weir info [OPTIONS] URI\n"
	     "       weir info --store [--json] SPEC\n\n"
	     "Connect to an NBD server and print what it says about the\n"
	     "export in URI, and the names of its other exports.\n\n"
	     "  --store        describe a store, without serving it\n"
	     "  --json         as JSON\n"
	     "  --help         this");
}

static int info(const char *command, const char *uri, bool json)
{
	struct nbd_handle *nbd = connect_open(command, uri, true);
	json_t *value;
	int r;

	if (!nbd)
		return EXIT_IO;
	value = json_object();
	r = gather(command, uri, nbd, value);
	nbd_shutdown(nbd, 0);
	nbd_close(nbd);
	if (!r && json)
		return client_print_json(command, value);
	if (!r)
		print_text(value);
	json_decref(value);
	return r;
}

int cmd_info(int argc, char **argv)
{
	static const struct option options[] = {
		{"store", no_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'}, {0}};
	bool json = false, store = false;
	const char *what;
	int c;

	while ((c = client_getopt(argc, argv, ":h", options)) != -1) {
		if (c == 's') {
			store = true;
		} else if (c == 'j') {
			json = true;
		} else {
			if (c == 'h')
				help();
			return c == 'h' ? EXIT_OK : EXIT_USAGE;
		}
	}
	what = client_one_argument(argc, argv, store ? "SPEC" : "URI");
	if (!what || (!store && !connect_check_uri(argv[0], what)))
		return EXIT_USAGE;
	return store ? info_store(argv[0], what, json)
		     : info(argv[0], what, json);
}
