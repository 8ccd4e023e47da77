/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-options.c: the command line of `weir bench`, in fio's words: the
 * names, meanings and, where fio has one, defaults of fio(1); `_` and `-` in
 * a name are the same.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "bench.h"

#define DEFAULT_RUNTIME_NS 10000000000
#define SUITE_RUNTIME_NS 2000000000

enum kind {
	RW,
	SIZE,
	TIME,
	COUNT,
	BOOL,
	TEXT
};

/* Which option; a bit in bench_options.given. */
enum id {
	O_RW,
	O_BS,
	O_IODEPTH,
	O_NUMJOBS,
	O_SIZE,
	O_IO_SIZE,
	O_OFFSET,
	O_OFFSET_INCREMENT,
	O_RUNTIME,
	O_TIME_BASED,
	O_FSYNC,
	O_END_FSYNC,
	O_RWMIXREAD,
	O_RATE,
	O_SEED,
	O_VERIFY,
	O_CONTROL,
	O_JSON,
	O_FORCE,
	O_COUNT,
	O_HELP = O_COUNT,
};

struct option_desc {
	const char *name;
	enum kind kind;
	size_t at;         /* in struct bench_options */
	uint64_t min, max; /* of SIZE, TIME and COUNT */
	bool needs_rw;     /* means nothing to the default table */
	const char *help;  /* ARGUMENT, a tab, what it is */
};

#define AT(member) offsetof(struct bench_options, member)
#define ANY UINT64_MAX

static const struct option_desc descs[O_COUNT] = {
	[O_RW] = {"rw", RW, 0, 0, 0, false,
		"MODE\tread write randread randwrite rw randrw"},
	[O_BS] = {"bs", SIZE, AT(spec.bs), 1, 32 << 20, true,
		"SIZE\tof a request (4K)"},
	[O_IODEPTH] = {"iodepth", COUNT, AT(spec.iodepth), 1, 65536, true,
		"N\trequests in flight, per job (1)"},
	[O_NUMJOBS] = {"numjobs", COUNT, AT(spec.numjobs), 1, 1024, false,
		"N\tjobs, each a connection (one per URI)"},
	[O_SIZE] = {"size", SIZE, AT(spec.size), 1, ANY, false,
		"SIZE\tof a job's region (to the export's end)"},
	[O_IO_SIZE] = {"io-size", SIZE, AT(spec.io_size), 1, ANY, true,
		"SIZE\tto move, per job (--size)"},
	[O_OFFSET] = {"offset", SIZE, AT(spec.offset), 0, ANY, false,
		"SIZE\twhere the first job's region starts (0)"},
	[O_OFFSET_INCREMENT] = {"offset-increment", SIZE,
		AT(spec.offset_increment), 0, ANY, true,
		"SIZE\tfrom a job's region to the next (0)"},
	[O_RUNTIME] = {"runtime", TIME, AT(spec.runtime_ns), 1, ANY, false,
		"TIME\tend after that long (10s without --size)"},
	[O_TIME_BASED] = {"time-based", BOOL, AT(spec.time_based), 0, 0, true,
		"\tgo over the region until --runtime"},
	[O_FSYNC] = {"fsync", COUNT, AT(spec.fsync), 0, 1U << 31, true,
		"N\tflush after every N writes of a job (0: no)"},
	[O_END_FSYNC] = {"end-fsync", BOOL, AT(spec.end_fsync), 0, 0, false,
		"[=0|1]\tflush, measured, after the writes (1)"},
	[O_RWMIXREAD] = {"rwmixread", COUNT, AT(rwmixread), 0, 100, true,
		"N\tpercent of reads in rw and randrw (50)"},
	[O_RATE] = {"rate", SIZE, AT(spec.rate), 1, ANY, false,
		"SIZE\tbytes a second at most, per job"},
	[O_SEED] = {"seed", COUNT, AT(spec.seed), 0, INT64_MAX, false,
		"N\tof random order and data (1)"},
	[O_VERIFY] = {"verify", BOOL, AT(spec.verify), 0, 0, true,
		"\twrite checksums, read back, compare"},
	[O_CONTROL] = {"control", TEXT, AT(control), 0, 0, false,
		"PATH\tcontrol socket: the server's CPU too"},
	[O_JSON] = {"json", BOOL, AT(json), 0, 0, false,
		"\tthe results as JSON"},
	[O_FORCE] = {"force", BOOL, AT(force), 0, 0, false,
		"\twithout --rw: write over data too"},
};

static void help(void)
{
	printf("usage: weir bench [OPTIONS] URI...\n\n"
	       "Measure exports, in fio's words. Without --rw: a short run of "
	       "each kind.\n"
	       "Writes destroy what is on the export. (Defaults in "
	       "brackets.)\n\n");
	for (unsigned i = 0; i < O_COUNT; i++) {
		const char *text = strchr(descs[i].help, '\t');
		char left[32];

		snprintf(left, sizeof(left), "%s%s%.*s", descs[i].name,
			descs[i].help[0] == '[' ? "" : " ",
			(int)(text - descs[i].help), descs[i].help);
		printf("  --%-21s  %s\n", left, text + 1);
	}
	printf("  --%-21s  this\n", "help");
}

static int parse_rw(const char *text, struct bench_options *o)
{
	static const struct {
		const char *name;
		bool random;
		unsigned read_percent;
	} modes[] = {
		{"read", false, 100},
		{"write", false, 0},
		{"randread", true, 100},
		{"randwrite", true, 0},
		{"rw", false, 50},
		{"readwrite", false, 50},
		{"randrw", true, 50},
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(text, modes[i].name))
			continue;
		o->spec.name = modes[i].name;
		o->spec.random = modes[i].random;
		o->spec.read_percent = modes[i].read_percent;
		o->mixed = modes[i].read_percent == 50;
		return EXIT_OK;
	}
	return client_error(EXIT_USAGE, o->command,
		"--rw: read, write, randread, randwrite, rw or randrw, not "
		"'%s'",
		text);
}

static int parse_number(const struct option_desc *d, const char *text,
	struct bench_options *o, uint64_t *value)
{
	char *end;
	int bad = 0;

	if (d->kind == SIZE)
		bad = size_parse(text, value);
	else if (d->kind == TIME)
		bad = time_parse(text, value);
	else
		*value = strtoull(text, &end, 10),
		bad = end == text || *end || text[0] == '-';
	if (bad)
		return client_error(EXIT_USAGE, o->command,
			"--%s: '%s' is not a %s", d->name, text,
			d->kind == SIZE           ? "size (64K, 1.5G)"
				: d->kind == TIME ? "time (10s, 500ms)"
						  : "number");
	if (*value < d->min || *value > d->max)
		return client_error(EXIT_USAGE, o->command,
			"--%s: %s is out of range (%llu to %llu)", d->name,
			text, (unsigned long long)d->min,
			(unsigned long long)d->max);
	return EXIT_OK;
}

static int parse_bool(const struct option_desc *d, const char *text,
	const struct bench_options *o, bool *value)
{
	if (text && strcmp(text, "0") && strcmp(text, "1"))
		return client_error(EXIT_USAGE, o->command,
			"--%s: 0 or 1, not '%s'", d->name, text);
	*value = !text || *text == '1';
	return EXIT_OK;
}

static int set_option(struct bench_options *o, enum id id, const char *text)
{
	const struct option_desc *d = &descs[id];
	char *at = (char *)o + d->at;
	uint64_t value;
	int r;

	o->given |= 1U << id;
	switch (d->kind) {
	case RW:
		return parse_rw(text, o);
	case BOOL:
		return parse_bool(d, text, o, (bool *)at);
	case TEXT:
		*(const char **)at = text;
		return EXIT_OK;
	default:
		r = parse_number(d, text, o, &value);
		if (!r && d->kind == COUNT && id != O_SEED)
			*(unsigned *)at = (unsigned)value;
		else if (!r)
			*(uint64_t *)at = value;
		return r;
	}
}

/* What does not go together, and what follows from the rest. */
static int check(struct bench_options *o)
{
	struct bench_spec *s = &o->spec;

	o->suite = !(o->given & 1U << O_RW);
	for (unsigned i = 0; o->suite && i < O_COUNT; i++)
		if (descs[i].needs_rw && o->given & 1U << i)
			return client_error(EXIT_USAGE, o->command,
				"--%s needs --rw", descs[i].name);
	if (!o->nuris)
		return client_error(EXIT_USAGE, o->command, "URI is missing");
	for (unsigned i = 0; i < o->nuris; i++)
		if (!connect_check_uri(o->command, o->uris[i]))
			return EXIT_USAGE;
	if (o->mixed)
		s->read_percent = o->rwmixread;
	if (!s->numjobs)
		s->numjobs = o->nuris;
	if (s->numjobs < o->nuris)
		return client_error(EXIT_USAGE, o->command,
			"--numjobs %u: fewer than the %u URIs", s->numjobs,
			o->nuris);
	if (s->verify && s->bs % BENCH_PATTERN_ALIGN)
		return client_error(EXIT_USAGE, o->command,
			"--verify: --bs must be a multiple of %d",
			BENCH_PATTERN_ALIGN);
	if (s->time_based && !s->runtime_ns)
		return client_error(
			EXIT_USAGE, o->command, "--time-based needs --runtime");
	if (o->suite || (!s->size && !s->io_size)) {
		s->time_based = true;
		if (!s->runtime_ns)
			s->runtime_ns = o->suite ? SUITE_RUNTIME_NS
						 : DEFAULT_RUNTIME_NS;
	}
	return EXIT_OK;
}

/* "--end_fsync" is "--end-fsync". */
static void use_dashes(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		for (char *p = argv[i];
			!strncmp(argv[i], "--", 2) && *p && *p != '='; p++)
			if (*p == '_')
				*p = '-';
}

static void getopt_table(struct option options[O_COUNT + 2])
{
	static const int args[] = {[RW] = required_argument,
		[SIZE] = required_argument,
		[TIME] = required_argument,
		[COUNT] = required_argument,
		[BOOL] = optional_argument,
		[TEXT] = required_argument};

	for (int i = 0; i < O_COUNT; i++)
		options[i] = (struct option){
			descs[i].name, args[descs[i].kind], NULL, i + 256};
	options[O_HELP] = (struct option){"help", no_argument, NULL, 'h'};
	options[O_HELP + 1] = (struct option){0};
}

int bench_options_parse(
	int argc, char **argv, struct bench_options *o, bool *done)
{
	struct option options[O_COUNT + 2];
	int c, r = EXIT_OK;

	*o = (struct bench_options){.command = argv[0],
		.spec = {.bs = 4096,
			.iodepth = 1,
			.end_fsync = true,
			.seed = 1},
		.rwmixread = 50};
	use_dashes(argc, argv);
	getopt_table(options);
	while (!r && (c = client_getopt(argc, argv, ":h", options)) != -1) {
		if (c == 'h') {
			*done = true;
			help();
			return EXIT_OK;
		}
		r = c == '?' ? EXIT_USAGE
			     : set_option(o, (enum id)(c - 256), optarg);
	}
	o->uris = argv + optind;
	o->nuris = (unsigned)(argc - optind);
	return r ? r : check(o);
}
