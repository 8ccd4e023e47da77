/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot.c: what the metrics are made from: stores, exports, the process.
 *
 * Runs on loop 0, which alone changes the lists. No client is in it: whoever
 * connects must not be able to make the answer longer.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "metrics.h"
#include "server.h"

static void put_stores(FILE *f, const struct server *s)
{
	const char *comma = "";

	list_for_each (node, &s->stores) {
		struct server_store *st =
			list_entry(node, struct server_store, link);
		char *text = engine_stats_json(st->engine, st->name);

		if (!text)
			continue;
		fprintf(f, "%s%s", comma, text);
		comma = ",";
		free(text);
	}
}

static void put_exports(FILE *f, const struct server *s)
{
	const char *comma = "";

	list_for_each (node, &s->exports) {
		struct server_export *x =
			list_entry(node, struct server_export, link);
		json_t *j = json_pack("{s:s, s:I, s:b, s:I}", "name", x->name,
			"size_bytes", (json_int_t)x->info.size, "readonly",
			x->info.readonly, "connections",
			(json_int_t)atomic_load(&x->connections));

		/* A name that is no UTF-8 cannot be a label either. */
		if (!j)
			continue;
		fputs(comma, f);
		json_dumpf(j, f, JSON_COMPACT);
		comma = ",";
		json_decref(j);
	}
}

static long long micros(struct timeval t)
{
	return (long long)t.tv_sec * 1000000 + t.tv_usec;
}

static char *make_snapshot(void *arg)
{
	const struct server *s = arg;
	struct rusage usage = {0};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	getrusage(RUSAGE_SELF, &usage);
	fprintf(f,
		"{\"stopping\":%s,\"process\":{\"cpu_us\":%lld},\"stores\":[",
		s->stopping ? "true" : "false",
		micros(usage.ru_utime) + micros(usage.ru_stime));
	put_stores(f, s);
	fputs("],\"exports\":[", f);
	put_exports(f, s);
	fputs("]}", f);
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

int snapshot_open(struct server *s, struct error *error)
{
	const struct metrics_source source = {
		.make = make_snapshot,
		.arg = s,
		.reactor = s->workers[0].reactor,
	};

	if (!s->options->metrics)
		return 0;
	return metrics_open(&s->metrics, s->options->metrics, &source, error);
}
