/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics-text.c: the stats as Prometheus reads them.
 *
 *  1. A row of a table is a family: one HELP, one TYPE, and its samples
 *     together, one for each store or export.
 *  2. Names by Prometheus' rules: base units (seconds, bytes), counters end in
 *     _total; what a number is of is a label.
 *  3. Times are printed from the microseconds counted, exactly.
 *  4. Labels are stores, exports and kinds of requests: their number is the
 *     operator's, never a client's.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

enum unit {
	PLAIN,
	MICROSECONDS,
	REAL
};

struct family {
	const char *key; /* of the stats */
	const char *name;
	const char *type;
	const char *help;
	enum unit unit;
};

static const struct family store_families[] = {
	{"size_bytes", "weir_store_size_bytes", "gauge", "Size of the device.",
		PLAIN},
	{"cache_size_bytes", "weir_store_cache_size_bytes", "gauge",
		"Memory the cache may take.", PLAIN},
	{"cached_bytes", "weir_store_cached_bytes", "gauge",
		"Bytes of the device in the cache.", PLAIN},
	{"dirty_bytes", "weir_store_dirty_bytes", "gauge",
		"Bytes not given to the store yet.", PLAIN},
	{"writeback_bytes", "weir_store_writeback_bytes", "gauge",
		"Bytes being written to the store.", PLAIN},
	{"unstable_bytes", "weir_store_unstable_bytes", "gauge",
		"Bytes written and not flushed yet.", PLAIN},
	{"charged_bytes", "weir_store_charged_bytes", "gauge",
		"Bytes that count in the dirty limit.", PLAIN},
	{"dirty_limit_bytes", "weir_store_dirty_limit_bytes", "gauge",
		"The dirty limit in force.", PLAIN},
	{"freerun_bytes", "weir_store_freerun_bytes", "gauge",
		"Up to there writers are not paced.", PLAIN},
	{"setpoint_bytes", "weir_store_setpoint_bytes", "gauge",
		"Where the throttle keeps what counts in the limit.", PLAIN},
	{"write_bandwidth", "weir_store_write_bandwidth_bytes_per_second",
		"gauge", "Estimate of what the store writes.", PLAIN},
	{"dirty_ratelimit", "weir_store_dirty_ratelimit_bytes_per_second",
		"gauge", "What a paced writer may write.", PLAIN},
	{"position_ratio", "weir_store_position_ratio", "gauge",
		"What the throttle multiplies that with.", REAL},
	{"parked_writes", "weir_store_parked_writes", "gauge",
		"Writes that wait for their turn.", PLAIN},
	{"pauses", "weir_store_pauses_total", "counter", "Pauses of writers.",
		PLAIN},
	{"pause_us_total", "weir_store_pause_seconds_total", "counter",
		"How long writers paused.", MICROSECONDS},
	{"hits", "weir_store_hits_total", "counter",
		"Reads answered from memory.", PLAIN},
	{"misses", "weir_store_misses_total", "counter",
		"Reads that waited for the store.", PLAIN},
	{"partial_hits", "weir_store_partial_hits_total", "counter",
		"Misses that found a part in memory.", PLAIN},
	{"fill_reads", "weir_store_fill_reads_total", "counter",
		"Reads of the store to fill blocks.", PLAIN},
	{"readahead_read_bytes", "weir_store_readahead_bytes_total", "counter",
		"Bytes read ahead.", PLAIN},
	{"readahead_unused_bytes", "weir_store_readahead_unused_bytes_total",
		"counter", "Bytes read ahead for nothing.", PLAIN},
	{"reclaimed_pages", "weir_store_reclaimed_pages_total", "counter",
		"Pages taken for other data.", PLAIN},
	{"store_reads", "weir_store_reads_total", "counter",
		"Reads of the store.", PLAIN},
	{"store_read_bytes", "weir_store_read_bytes_total", "counter",
		"Bytes read from the store.", PLAIN},
	{"store_writes", "weir_store_writes_total", "counter",
		"Writes to the store.", PLAIN},
	{"store_write_bytes", "weir_store_write_bytes_total", "counter",
		"Bytes written to the store.", PLAIN},
	{"store_flushes", "weir_store_flushes_total", "counter",
		"Flushes of the store.", PLAIN},
	{"store_errors", "weir_store_errors_total", "counter",
		"Writes and flushes of the store that failed.", PLAIN},
	{"failing_ranges", "weir_store_failing_ranges", "gauge",
		"Ranges whose writes fail and are tried again.", PLAIN},
	{"flush_failing", "weir_store_flush_failing", "gauge",
		"1 while the store cannot be flushed.", PLAIN},
	{"store_queue_depth", "weir_store_queue_depth", "gauge",
		"Requests the store has.", PLAIN},
	{"store_busy_us", "weir_store_busy_seconds_total", "counter",
		"How long the store had any.", MICROSECONDS},
	{"flusher_passes", "weir_store_flusher_passes_total", "counter",
		"Passes of the flusher over what is dirty.", PLAIN},
	{"extents", "weir_pool_extents", "gauge", "Extents of the pool's map.",
		PLAIN},
	{"mapped_bytes", "weir_pool_mapped_bytes", "gauge",
		"Bytes of the device the pool has allocated.", PLAIN},
	{"reserved_bytes", "weir_pool_reserved_bytes", "gauge",
		"Bytes reserved for what is dirty.", PLAIN},
	{"free_bytes", "weir_pool_free_bytes", "gauge",
		"Bytes of the pool that are free.", PLAIN},
	{"journal_commits", "weir_pool_journal_commits_total", "counter",
		"Commits of the pool's journal.", PLAIN},
	{"journal_bytes", "weir_pool_journal_bytes_total", "counter",
		"Bytes written to the pool's journal.", PLAIN},
	{"checkpoints", "weir_pool_checkpoints_total", "counter",
		"Checkpoints of the pool.", PLAIN},
	{"checkpoint_waits", "weir_pool_checkpoint_waits_total", "counter",
		"Flushes that waited for a checkpoint.", PLAIN},
};

static const struct family export_families[] = {
	{"size_bytes", "weir_export_size_bytes", "gauge", "Size of the export.",
		PLAIN},
	{"readonly", "weir_export_readonly", "gauge",
		"1 if the export refuses writes.", PLAIN},
	{"connections", "weir_export_connections", "gauge",
		"Connections that have the export.", PLAIN},
};

static const struct family cpu = {"cpu_us", "process_cpu_seconds_total",
	"counter", "Processor time of the server, user and system.",
	MICROSECONDS};
static const struct family rss = {"rss_bytes", "process_resident_memory_bytes",
	"gauge", "Memory of the server.", PLAIN};
static const struct family latency_family = {NULL,
	"weir_request_latency_seconds", "histogram",
	"How long requests took. Of those that memory answers one in 64 is "
	"timed, and counts as so many.",
	PLAIN};

static const struct family request_families[] = {
	{"ops", "weir_requests_total", "counter",
		"Requests answered without an error.", PLAIN},
	{"bytes", "weir_request_bytes_total", "counter", "Bytes of those.",
		PLAIN},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* --- parts of a line ------------------------------------------------------ */

static void put_head(FILE *f, const struct family *m)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
		m->type);
}

/* name="value", with what the format has to see escaped. */
static void put_label(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", f);
		else if (*value == '"' || *value == '\\')
			fprintf(f, "\\%c", *value);
		else
			fputc(*value, f);
	}
	fputc('"', f);
}

static void put_value(FILE *f, const json_t *value, enum unit unit)
{
	uint64_t n =
		json_is_true(value) ? 1 : (uint64_t)json_integer_value(value);

	if (unit == REAL)
		fprintf(f, " %.9g\n", json_number_value(value));
	else if (unit == MICROSECONDS)
		fprintf(f, " %" PRIu64 ".%06" PRIu64 "\n", n / 1000000,
			n % 1000000);
	else
		fprintf(f, " %" PRIu64 "\n", n);
}

static const char *name_of(const json_t *member)
{
	const char *name = json_string_value(json_object_get(member, "name"));

	return name ? name : "";
}

/* --- families ------------------------------------------------------------- */

/* Of each member of the list, with its name as a label. */
static void put_members(FILE *f, const json_t *list, const char *label,
	const struct family *families, size_t n)
{
	size_t i;
	json_t *member;

	for (size_t k = 0; k < n; k++) {
		const struct family *m = &families[k];

		put_head(f, m);
		json_array_foreach(list, i, member)
		{
			fprintf(f, "%s{", m->name);
			put_label(f, label, name_of(member));
			fputc('}', f);
			put_value(f, json_object_get(member, m->key), m->unit);
		}
	}
}

/* Of each kind of request of each store. */
static void put_requests(FILE *f, const json_t *stores)
{
	size_t i;
	json_t *store, *one;
	const char *op;

	for (size_t k = 0; k < COUNT(request_families); k++) {
		const struct family *m = &request_families[k];

		put_head(f, m);
		json_array_foreach(stores, i, store)
		{
			json_object_foreach(
				json_object_get(store, "requests"), op, one)
			{
				fprintf(f, "%s{", m->name);
				put_label(f, "store", name_of(store));
				fputc(',', f);
				put_label(f, "op", op);
				fputc('}', f);
				put_value(f, json_object_get(one, m->key),
					m->unit);
			}
		}
	}
}

static void put_sample(FILE *f, const char *end, const char *store,
	const char *op, const char *le)
{
	fprintf(f, "weir_request_latency_seconds%s{", end);
	put_label(f, "store", store);
	fputc(',', f);
	put_label(f, "op", op);
	if (le)
		fprintf(f, ",le=\"%s\"", le);
	fputc('}', f);
}

static void put_count(FILE *f, uint64_t n)
{
	fprintf(f, " %" PRIu64 "\n", n);
}

#define LE_FIRST 10U /* 2^10 ns, about 1 us */
#define LE_LAST 34U  /* 2^34 ns, about 17 s */

/* Each doubling of the time is a bucket; the engine's are finer and end
 * there. */
static void put_buckets(
	FILE *f, const json_t *buckets, const char *store, const char *op)
{
	uint64_t seen = 0;
	size_t at = 0;
	char le[32];

	for (unsigned log = LE_FIRST; log <= LE_LAST; log++) {
		for (; at < json_array_size(buckets); at++) {
			const json_t *b = json_array_get(buckets, at);

			if (json_integer_value(json_array_get(b, 0)) >=
				(json_int_t)1 << log)
				break;
			seen += (uint64_t)json_integer_value(
				json_array_get(b, 1));
		}
		snprintf(le, sizeof(le), "%.12g",
			(double)(UINT64_C(1) << log) / 1e9);
		put_sample(f, "_bucket", store, op, le);
		put_count(f, seen);
	}
}

static void put_latency(
	FILE *f, const json_t *latency, const char *store, const char *op)
{
	const json_t *count = json_object_get(latency, "count");

	put_buckets(f, json_object_get(latency, "buckets_ns"), store, op);
	put_sample(f, "_bucket", store, op, "+Inf");
	put_value(f, count, PLAIN);
	put_sample(f, "_sum", store, op, NULL);
	put_value(f, json_object_get(latency, "sum_us"), MICROSECONDS);
	put_sample(f, "_count", store, op, NULL);
	put_value(f, count, PLAIN);
}

static void put_latencies(FILE *f, const json_t *stores)
{
	size_t i;
	json_t *store, *one;
	const char *op;

	put_head(f, &latency_family);
	json_array_foreach(stores, i, store)
	{
		json_object_foreach(json_object_get(store, "latency"), op, one)
		{
			put_latency(f, one, name_of(store), op);
		}
	}
}

static void put_one(FILE *f, const struct family *m, const json_t *object)
{
	put_head(f, m);
	fputs(m->name, f);
	put_value(f, json_object_get(object, m->key), m->unit);
}

static void put_process(FILE *f, const json_t *process, const json_t *stores)
{
	put_one(f, &cpu, process);
	/* Each store says the same of it. */
	put_one(f, &rss, json_array_get(stores, 0));
}

char *metrics_text(const json_t *stats)
{
	const json_t *stores = json_object_get(stats, "stores");
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	bool bad;

	if (!f)
		return NULL;
	fputs("# HELP weir_build_info The version, as a label.\n"
	      "# TYPE weir_build_info gauge\n"
	      "weir_build_info{version=\"" PACKAGE_VERSION "\"} 1\n",
		f);
	put_process(f, json_object_get(stats, "process"), stores);
	put_members(f, stores, "store", store_families, COUNT(store_families));
	put_requests(f, stores);
	put_latencies(f, stores);
	put_members(f, json_object_get(stats, "exports"), "export",
		export_families, COUNT(export_families));
	bad = ferror(f);
	if (fclose(f) || bad) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- health --------------------------------------------------------------- */

bool metrics_healthy(const json_t *stats, char *why, size_t size)
{
	size_t i;
	json_t *store;

	if (json_is_true(json_object_get(stats, "stopping"))) {
		snprintf(why, size, "stopping\n");
		return false;
	}
	json_array_foreach(json_object_get(stats, "stores"), i, store)
	{
		json_int_t ranges = json_integer_value(
			json_object_get(store, "failing_ranges"));

		if (ranges > 0)
			snprintf(why, size,
				"store %.400s: writes fail, in %lld ranges\n",
				name_of(store), (long long)ranges);
		else if (json_is_true(json_object_get(store, "flush_failing")))
			snprintf(why, size, "store %.400s: flushes fail\n",
				name_of(store));
		else
			continue;
		return false;
	}
	return true;
}
