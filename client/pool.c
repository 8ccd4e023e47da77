/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.c: `weir pool`: the command line of what works on a pool offline.
 */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "pool.h"

enum option_bit {
	TAKES_SIZE = 1, /* --size, --space */
	TAKES_MAKE = 2, /* --preallocate, --force */
	TAKES_JSON = 4,
};

struct verb {
	const char *name;
	unsigned takes; /* enum option_bit */
	int usage;      /* the exit code of a wrong command line */
	int (*run)(const struct pool_args *a);
};

static const struct verb verbs[] = {
	{"create", TAKES_SIZE | TAKES_MAKE, EXIT_USAGE, pool_create_run},
	{"grow", TAKES_SIZE, EXIT_USAGE, pool_grow_run},
	{"info", TAKES_JSON, EXIT_USAGE, pool_info_run},
	{"map", TAKES_JSON, EXIT_USAGE, pool_map_run},
	{"check", TAKES_JSON, POOL_CHECK_USAGE, pool_check_run},
};

#define NVERBS (sizeof(verbs) / sizeof(verbs[0]))

static void help(void)
{
	puts("usage: weir pool create PATH --size SIZE [OPTIONS]\n"
	     "       weir pool grow PATH [--size SIZE] [--space SIZE]\n"
	     "       weir pool info|map|check PATH [--json]\n\n"
	     "Make, enlarge and look at pools (store=pool:PATH) that no server "
	     "has\nopen. PATH is a file or a block device.\n\n"
	     "  create         make an empty pool; a file is made if it is not "
	     "there\n"
	     "  grow           make the device, the pool or both larger\n"
	     "  info           sizes, what is used and free\n"
	     "  map            the extents: which piece lies where\n"
	     "  check          look for what is broken; writes nothing\n\n"
	     "  --size SIZE    of the device that the pool is served as\n"
	     "  --space SIZE   of the pool: how much it may hold (default: of "
	     "a file,\n"
	     "                 enough for all of the device; of a block "
	     "device, all)\n"
	     "  --preallocate  allocate the file's space now, for good\n"
	     "  --force        overwrite what is there\n"
	     "  --json         exact numbers\n"
	     "  --help         this\n\n"
	     "check ends with 0 if all is well, 4 if something is broken, 8 "
	     "if it\ncannot tell, 16 for a wrong command line.");
}

static bool parse_size(
	struct pool_args *a, const char *option, const char *text, uint64_t *to)
{
	if (!size_parse(text, to) && *to && *to % 4096 == 0)
		return true;
	client_error(EXIT_USAGE, a->command,
		"--%s %s: not a size that is a multiple of 4K (64G, 1.5T)",
		option, text);
	return false;
}

/* The options a verb takes, in `out`. */
static void list_options(unsigned takes, struct option out[7])
{
	unsigned n = 0;

	out[n++] = (struct option){"help", no_argument, NULL, 'h'};
	if (takes & TAKES_SIZE) {
		out[n++] =
			(struct option){"size", required_argument, NULL, 's'};
		out[n++] =
			(struct option){"space", required_argument, NULL, 'p'};
	}
	if (takes & TAKES_MAKE) {
		out[n++] =
			(struct option){"preallocate", no_argument, NULL, 'a'};
		out[n++] = (struct option){"force", no_argument, NULL, 'f'};
	}
	if (takes & TAKES_JSON)
		out[n++] = (struct option){"json", no_argument, NULL, 'j'};
	out[n] = (struct option){NULL, 0, NULL, 0};
}

/* One option; false if its argument is wrong. */
static bool take(struct pool_args *a, int c)
{
	switch (c) {
	case 's':
		return parse_size(a, "size", optarg, &a->size);
	case 'p':
		return parse_size(a, "space", optarg, &a->space);
	case 'a':
		a->preallocate = true;
		return true;
	case 'f':
		a->force = true;
		return true;
	default:
		a->json = true;
		return true;
	}
}

static int run_verb(const struct verb *v, int argc, char **argv)
{
	struct pool_args a = {0};
	struct option options[7];
	char name[64];
	int c;

	snprintf(name, sizeof(name), "weir pool %s", v->name);
	argv[0] = name;
	a.command = name;
	list_options(v->takes, options);
	while ((c = client_getopt(argc, argv, ":h", options)) != -1) {
		if (c == 'h') {
			help();
			return EXIT_OK;
		}
		if (c == '?' || !take(&a, c))
			return v->usage;
	}
	a.path = client_one_argument(argc, argv, "PATH");
	if (!a.path)
		return v->usage;
	log_setup(name, LOG_LEVEL_ERROR, NULL, NULL);
	return v->run(&a);
}

int cmd_pool(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word)
		return client_error(EXIT_USAGE, argv[0],
			"what to do is missing; try '%s --help'", argv[0]);
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		help();
		return EXIT_OK;
	}
	for (size_t i = 0; i < NVERBS; i++)
		if (!strcmp(word, verbs[i].name))
			return run_verb(&verbs[i], argc - 1, argv + 1);
	return client_error(EXIT_USAGE, argv[0],
		"%s: none of create, grow, info, map, check; try '%s --help'",
		word, argv[0]);
}
