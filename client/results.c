/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * results.c: measurements read back from JSON. See results.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "results.h"

#define MAX_FILE (256U << 20) /* bytes */

/* --- the file ------------------------------------------------------------- */

static char *read_all(FILE *f)
{
	size_t size = 0, room = 0;
	char *text = NULL;

	do {
		if (room - size < 2) {
			room = room ? room * 2 : 65536;
			text = realloc(text, room);
			if (!text || room > MAX_FILE)
				break;
		}
		size += fread(text + size, 1, room - size - 1, f);
	} while (!feof(f) && !ferror(f));
	if (!text || !feof(f) || ferror(f)) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	return text;
}

/* fio says what it has to say ahead of its JSON, in lines of their own. */
static const char *skip_talk(const char *text)
{
	const char *line = text;

	while (line && *line != '{' && *line != '[') {
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return line ? line : text;
}

static json_t *load(const char *command, const char *path)
{
	FILE *f;
	json_error_t why = {0};
	json_t *j = NULL;
	char *text = NULL;

	errno = 0;
	f = fopen(path, "re");
	if (f)
		text = read_all(f);
	if (!text) {
		client_error(EXIT_IO, command, "%s: cannot be read: %s", path,
			errno ? strerror(errno) : "too large");
	} else {
		const char *start = skip_talk(text);
		int ahead = 0;

		for (const char *p = text; p < start; p++)
			ahead += *p == '\n';
		j = json_loads(start, JSON_DISABLE_EOF_CHECK, &why);
		if (!j)
			client_error(EXIT_IO, command, "%s:%d: not JSON: %s",
				path, why.line + ahead, why.text);
	}
	free(text);
	if (f)
		fclose(f);
	return j;
}

/* --- metrics -------------------------------------------------------------- */

static void add_metric(struct result *c, const char *name, double value)
{
	c->metric = realloc(c->metric, (c->nmetrics + 1) * sizeof(*c->metric));
	if (!c->metric)
		abort();
	c->metric[c->nmetrics++] =
		(struct result_metric){client_format("%s", name), value};
}

static bool begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static bool is_no_metric(const char *key)
{
	static const char *const names[] = {"options", "job options", "series",
		"bins", "runs", "latency_ns", "latency_us", "latency_ms",
		"iodepth_level", "iodepth_submit", "iodepth_complete",
		"groupid", "error", "eta", "elapsed"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(key, names[i]))
			return true;
	return false;
}

/* The key without its side's word, "" if that is all of it; NULL if it is the
 * other side's. */
static const char *of_side(const char *key, enum results_side side)
{
	static const char *const words[] = {"before", "after"};

	for (unsigned s = 0; s < 2; s++) {
		size_t n = strlen(words[s]);

		if (!begins_with(key, words[s]) || (key[n] && key[n] != '_'))
			continue;
		if (s != (unsigned)side)
			return NULL;
		return key[n] ? key + n + 1 : "";
	}
	return key;
}

static void flatten(struct result *c, const char *prefix, json_t *value,
	enum results_side side);

static void flatten_member(struct result *c, const char *prefix,
	const char *key, json_t *value, enum results_side side)
{
	const char *end = of_side(key, side);
	char *name;

	if (!end || is_no_metric(key))
		return;
	name = client_format("%s%s%s", prefix, *prefix && *end ? "." : "", end);
	flatten(c, name, value, side);
	free(name);
}

/* Arrays of objects are numbered from 0; of one, the number is left out. */
static void flatten_array(struct result *c, const char *prefix, json_t *array,
	enum results_side side)
{
	size_t i;
	json_t *value;

	json_array_foreach(array, i, value)
	{
		char number[24];

		if (!json_is_object(value))
			continue;
		snprintf(number, sizeof(number), "%zu", i);
		if (json_array_size(array) == 1)
			flatten(c, prefix, value, side);
		else
			flatten_member(c, prefix, number, value, side);
	}
}

static void flatten(struct result *c, const char *prefix, json_t *value,
	enum results_side side)
{
	const char *key;
	json_t *member;

	if (json_is_number(value)) {
		add_metric(c, prefix, json_number_value(value));
	} else if (json_is_array(value)) {
		flatten_array(c, prefix, value, side);
	} else if (json_is_object(value)) {
		json_object_foreach(value, key, member)
			flatten_member(c, prefix, key, member, side);
	}
}

/* --- cases ---------------------------------------------------------------- */

/* "randwrite 4K depth 32", as a row of a bench is called. */
static char *bench_name(json_t *options)
{
	json_int_t bs =
		json_integer_value(json_object_get(options, "bs_bytes"));
	const char *unit = bs && !(bs & ((1 << 20) - 1)) ? "M"
		: bs && !(bs & 1023)                     ? "K"
							 : "";

	bs >>= *unit == 'M' ? 20 : *unit == 'K' ? 10 : 0;
	return client_format("%s %lld%s depth %lld x%lld",
		json_string_value(json_object_get(options, "rw")),
		(long long)bs, unit,
		(long long)json_integer_value(
			json_object_get(options, "iodepth")),
		(long long)json_integer_value(
			json_object_get(options, "numjobs")));
}

static char *case_name(json_t *c, size_t number)
{
	static const char *const keys[] = {"case", "name", "jobname"};
	json_t *options = json_object_get(c, "options");

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *name = json_object_get(c, keys[i]);

		if (json_is_string(name))
			return client_format("%s", json_string_value(name));
	}
	if (json_is_string(json_object_get(options, "rw")))
		return bench_name(options);
	return client_format("case %zu", number + 1);
}

/* The nth of its name gets "#n". */
static char *tell_apart(const struct results *r, char *name)
{
	char *unique = client_format("%s", name);

	for (unsigned n = 2; results_find(r, unique); n++) {
		free(unique);
		unique = client_format("%s#%u", name, n);
	}
	free(name);
	return unique;
}

static void add_case(struct results *r, json_t *j, enum results_side side)
{
	char *name = tell_apart(r, case_name(j, r->n));
	struct result *c;

	r->result = realloc(r->result, (r->n + 1) * sizeof(*r->result));
	if (!r->result)
		abort();
	c = &r->result[r->n++];
	*c = (struct result){.name = name};
	flatten(c, "", j, side);
}

static bool has_sides(json_t *c)
{
	const char *key;
	json_t *value;

	json_object_foreach(
		c, key, value) if (begins_with(key, "after")) return true;
	return false;
}

/* Where the cases are; NULL: nowhere. Borrowed. */
static json_t *find_cases(json_t *j)
{
	static const char *const keys[] = {
		"cells", "cases", "runs", "jobs", "client_stats"};

	if (json_is_array(j))
		return j;
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *cases = json_object_get(j, keys[i]);

		if (json_is_array(cases))
			return cases;
	}
	return NULL;
}

int results_load(struct results *r, const char *command, const char *path,
	enum results_side side)
{
	json_t *j = load(command, path), *cases, *c, *metric;
	size_t i;

	*r = (struct results){.path = path};
	if (!j)
		return -EIO;
	cases = find_cases(j);
	json_array_foreach(cases, i, c)
	{
		if (!json_is_object(c))
			continue;
		r->sided |= has_sides(c);
		add_case(r, c, side);
	}
	metric = json_object_get(j, "metric");
	if (json_is_string(metric))
		r->main_metric = client_format("%s", json_string_value(metric));
	json_decref(j);
	if (r->n)
		return 0;
	client_error(EXIT_IO, command,
		"%s: no results: neither of weir bench or weir experiment "
		"--json, nor of fio --output-format=json",
		path);
	results_free(r);
	return -EINVAL;
}

void results_free(struct results *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct result *c = &r->result[i];

		for (unsigned k = 0; k < c->nmetrics; k++)
			free(c->metric[k].name);
		free(c->metric);
		free(c->name);
	}
	free(r->result);
	free(r->main_metric);
	r->result = NULL;
	r->main_metric = NULL;
	r->n = 0;
}

/* --- looking -------------------------------------------------------------- */

const struct result *results_find(const struct results *r, const char *name)
{
	for (unsigned i = 0; i < r->n; i++)
		if (!strcmp(r->result[i].name, name))
			return &r->result[i];
	return NULL;
}

const double *result_find(const struct result *c, const char *metric)
{
	for (unsigned i = 0; i < c->nmetrics; i++)
		if (!strcmp(c->metric[i].name, metric))
			return &c->metric[i].value;
	return NULL;
}

/* "read" has done nothing in a job that only writes. */
static bool idle(const struct result *c, const char *op)
{
	static const char *const counts[] = {"ios", "total_ios"};

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		char *name = client_format("%s.%s", op, counts[i]);
		const double *n = result_find(c, name);

		free(name);
		if (n)
			return *n <= 0;
	}
	return false;
}

static const double *bandwidth(const struct result *c, const char *op)
{
	static const char *const ends[] = {"bytes_per_s", "bw_bytes"};

	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char *name = client_format("%s.%s", op, ends[i]);
		const double *value = result_find(c, name);

		free(name);
		if (value)
			return idle(c, op) ? NULL : value;
	}
	return NULL;
}

const double *result_write_bw(const struct result *c)
{
	const double *value = result_find(c, "bytes_per_second");

	return value ? value : bandwidth(c, "write");
}

const double *result_read_bw(const struct result *c)
{
	return bandwidth(c, "read");
}

static bool has_word(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

enum results_better results_better(const char *metric)
{
	static const char *const neither[] = {"stddev", ".N", "_dev", "samples",
		"_agg", "bound", "runtime", "bw_min", "bw_max", "elapsed"};
	static const char *const less[] = {"lat_ns", "latency", "cpu",
		"_wait_us", "pause_us", "await", "final_flush", "seconds"};
	static const char *const more[] = {
		"bytes_per_s", "bw", "iops", "bandwidth", "hit"};

	if (has_word(metric, neither, sizeof(neither) / sizeof(neither[0])))
		return BETTER_NEITHER;
	if (has_word(metric, more, sizeof(more) / sizeof(more[0])))
		return BETTER_MORE;
	if (has_word(metric, less, sizeof(less) / sizeof(less[0])))
		return BETTER_LESS;
	return BETTER_NEITHER;
}
