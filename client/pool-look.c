/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool-look.c: `weir pool info`, `map` and `check`: they read and change
 * nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/size.h"
#include "placement/placement.h"
#include "pool.h"

/* Read the pool. 0 or a negative errno with `error`. */
static int look(const struct pool_args *a, const struct pool_visitor *v,
	struct pool_summary *out, struct error *error)
{
	CLEANUP_FREE char *spec = client_format("raw:%s", a->path);
	struct store *s;
	int err = store_open(spec, STORE_OPEN_READONLY, &s, error);

	if (err)
		return err;
	err = pool_check(s, v, out, error);
	store_close(s);
	return err;
}

/* The same for info and map, which want a pool that is whole. */
static int look_whole(const struct pool_args *a, const struct pool_visitor *v,
	struct pool_summary *out)
{
	struct error error = {""};
	int err = look(a, v, out, &error);

	if (err)
		return client_error(err == -EIO ? EXIT_IO : EXIT_USAGE,
			a->command, "%s: %s", a->path, error.text);
	if (out->findings)
		return client_error(EXIT_IO, a->command,
			"%s: damaged in %" PRIu64
			" places: weir pool check %s says where",
			a->path, out->findings, a->path);
	return EXIT_OK;
}

static int finish_output(const struct pool_args *a, int code)
{
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	return client_error(
		EXIT_IO, a->command, "cannot write: %s", strerror(errno));
}

/* --- info ---------------------------------------------------------------- */

static const char *uuid_text(const uint8_t uuid[16], char text[37])
{
	char *to = text;

	for (int i = 0; i < 16; i++)
		to += sprintf(to, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			uuid[i]);
	return text;
}

static uint64_t average(const struct pool_summary *p)
{
	return p->extents ? p->mapped_bytes / p->extents : 0;
}

static json_t *info_json(
	const struct pool_args *a, const struct pool_summary *p)
{
	char uuid[37];

	return json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:b, s:I, s:I, s:I, "
			 "s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i}",
		"path", a->path, "uuid", uuid_text(p->uuid, uuid), "version",
		(int)p->version, "generation", (json_int_t)p->generation,
		"size_bytes", (json_int_t)p->logical_size, "space_bytes",
		(json_int_t)p->physical_size, "preallocated", p->preallocated,
		"mapped_bytes", (json_int_t)p->mapped_bytes, "unwritten_bytes",
		(json_int_t)p->unwritten_bytes, "extents",
		(json_int_t)p->extents, "average_extent_bytes",
		(json_int_t)average(p), "free_bytes", (json_int_t)p->free_bytes,
		"free_extents", (json_int_t)p->free_extents,
		"largest_free_bytes", (json_int_t)p->free_largest,
		"journal_bytes", (json_int_t)p->journal_size,
		"journal_used_bytes", (json_int_t)p->journal_used,
		"journal_entries", (json_int_t)p->journal_entries,
		"checkpoint_bytes", (json_int_t)p->checkpoint_bytes,
		"checkpoint_extents", (json_int_t)p->checkpoint_extents,
		"volumes", 1);
}

static void info_text(const struct pool_args *a, const struct pool_summary *p)
{
	char uuid[37], b[4][16];

	printf("%s\n", a->path);
	printf("  pool          %s, version %" PRIu32 ", generation %" PRIu64
	       "\n",
		uuid_text(p->uuid, uuid), p->version, p->generation);
	printf("  device        %s (%" PRIu64 " bytes), volume 0 of 1\n",
		size_format(p->logical_size, b[0]), p->logical_size);
	printf("  space         %s (%" PRIu64 " bytes)%s\n",
		size_format(p->physical_size, b[0]), p->physical_size,
		p->preallocated ? ", preallocated" : "");
	printf("  mapped        %s in %" PRIu64 " extents of %s on average; "
	       "%s unwritten\n",
		size_format(p->mapped_bytes, b[0]), p->extents,
		size_format(average(p), b[1]),
		size_format(p->unwritten_bytes, b[2]));
	printf("  free          %s in %" PRIu64 " extents, the largest %s\n",
		size_format(p->free_bytes, b[0]), p->free_extents,
		size_format(p->free_largest, b[1]));
	printf("  journal       %s of %s, %" PRIu64 " entries to replay\n",
		size_format(p->journal_used, b[0]),
		size_format(p->journal_size, b[1]), p->journal_entries);
	printf("  checkpoint    %" PRIu64 " extents in %s\n",
		p->checkpoint_extents, size_format(p->checkpoint_bytes, b[0]));
}

int pool_info_run(const struct pool_args *a)
{
	const struct pool_visitor nobody = {0};
	struct pool_summary p;
	int code = look_whole(a, &nobody, &p);

	if (code)
		return code;
	if (a->json)
		return client_print_json(a->command, info_json(a, &p));
	info_text(a, &p);
	return finish_output(a, EXIT_OK);
}

/* --- map: printed as it comes, it may be long ---------------------------- */

/* The head comes with the first line: not before an error. */

struct map_print {
	bool json;
	uint64_t lines;
};

static void print_map_head(const struct map_print *m)
{
	if (m->json)
		printf("[");
	else
		printf("%15s %15s %15s\n", "logical", "physical", "length");
}

static void print_extent(void *arg, uint64_t logical, uint64_t physical,
	uint64_t length, bool unwritten)
{
	struct map_print *m = arg;

	if (!m->lines)
		print_map_head(m);
	if (m->json)
		printf("%s\n  {\"logical\": %" PRIu64 ", \"physical\": %" PRIu64
		       ", \"length\": %" PRIu64 ", \"unwritten\": %s}",
			m->lines ? "," : "", logical, physical, length,
			unwritten ? "true" : "false");
	else
		printf("%15" PRIu64 " %15" PRIu64 " %15" PRIu64 "%s\n", logical,
			physical, length, unwritten ? " unwritten" : "");
	m->lines++;
}

int pool_map_run(const struct pool_args *a)
{
	struct map_print m = {.json = a->json};
	struct pool_visitor v = {.arg = &m, .extent = print_extent};
	struct pool_summary p;
	int code = look_whole(a, &v, &p);

	if (!code && !m.lines)
		print_map_head(&m);
	if (a->json && (!code || m.lines))
		printf("\n]\n");
	return finish_output(a, code);
}

/* --- check --------------------------------------------------------------- */

struct check_print {
	const struct pool_args *args;
	json_t *list; /* with --json */
};

static void print_finding(void *arg, uint64_t offset, const char *what)
{
	struct check_print *c = arg;

	if (c->list)
		json_array_append_new(c->list,
			json_pack("{s:I, s:s}", "offset", (json_int_t)offset,
				"what", what));
	else
		printf("%s: at %" PRIu64 ": %s\n", c->args->path, offset, what);
}

static void check_text(const struct pool_args *a, const struct pool_summary *p)
{
	char size[16];

	if (p->findings)
		printf("%s: %" PRIu64 " errors%s\n", a->path, p->findings,
			p->complete ? "" : ", and not all could be looked at");
	else
		printf("%s: clean, %" PRIu64 " extents, %s\n", a->path,
			p->extents, size_format(p->mapped_bytes, size));
}

int pool_check_run(const struct pool_args *a)
{
	struct check_print c = {
		.args = a, .list = a->json ? json_array() : NULL};
	struct pool_visitor v = {.arg = &c, .found = print_finding};
	struct error error = {""};
	struct pool_summary p;
	int code;

	if (look(a, &v, &p, &error)) {
		json_decref(c.list);
		return client_error(POOL_CHECK_FAILED, a->command, "%s: %s",
			a->path, error.text);
	}
	code = p.findings ? POOL_CHECK_ERRORS : POOL_CHECK_CLEAN;
	if (!a->json)
		check_text(a, &p);
	else if (client_print_json(a->command,
			 json_pack("{s:s, s:b, s:b, s:o}", "path", a->path,
				 "clean", !p.findings, "complete", p.complete,
				 "findings", c.list)))
		return POOL_CHECK_FAILED;
	if (fflush(stdout) || ferror(stdout))
		return client_error(POOL_CHECK_FAILED, a->command,
			"cannot write: %s", strerror(errno));
	return code;
}
