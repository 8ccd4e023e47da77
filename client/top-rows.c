/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top-rows.c: two answers to "stats" into what happened between them.
 *
 *  1. Stores are matched by name, connections by client, peer and loop; the
 *     connections of a client are one row.
 *  2. A counter that is less than before has begun anew (another server, a
 *     reset): all of it happened in between.
 *  3. What the server does not say is 0, or NAN for what is computed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "top.h"

const char *const top_sort_name[TOP_SORTS] = {
	[TOP_BY_RATE] = "rate",
	[TOP_BY_READ] = "read",
	[TOP_BY_WRITE] = "write",
	[TOP_BY_DIRTY] = "dirty",
	[TOP_BY_NAME] = "name",
};

/* --- numbers out of an answer --------------------------------------------- */

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n > 0 ? (uint64_t)n : 0;
}

static const char *text(const json_t *object, const char *key)
{
	const char *t = json_string_value(json_object_get(object, key));

	return t ? t : "";
}

static uint64_t since(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

/* By how much a counter grew, per second; NAN if there is no before. */
static double rate(const json_t *before, const json_t *now, const char *key,
	double seconds)
{
	if (!before || seconds <= 0)
		return NAN;
	return (double)since(number(before, key), number(now, key)) / seconds;
}

/* The member of a list with the same strings under each of the keys. */
static json_t *same(
	const json_t *list, const json_t *member, const char *const *keys)
{
	size_t i;
	json_t *other;

	json_array_foreach(list, i, other)
	{
		unsigned k = 0;

		while (keys[k] &&
			!strcmp(text(other, keys[k]), text(member, keys[k])))
			k++;
		if (!keys[k])
			return other;
	}
	return NULL;
}

/* --- latencies ------------------------------------------------------------ */

static uint64_t bucket_part(const json_t *list, size_t i, size_t part)
{
	json_int_t n = json_integer_value(
		json_array_get(json_array_get(list, i), part));

	return n > 0 ? (uint64_t)n : 0;
}

/* How many of the bucket with that end there were before. */
static uint64_t bucket_before(const json_t *list, size_t *at, uint64_t top)
{
	size_t n = json_array_size(list);

	while (*at < n && bucket_part(list, *at, 0) < top)
		(*at)++;
	if (*at < n && bucket_part(list, *at, 0) == top)
		return bucket_part(list, *at, 1);
	return 0;
}

/* The upper end, ms, of what that share of the new ones took at most. */
static double percentile(
	const json_t *before, const json_t *now, uint64_t total, double share)
{
	uint64_t want = (uint64_t)((double)total * share), seen = 0, top = 0;
	size_t at = 0;

	for (size_t i = 0; i < json_array_size(now); i++) {
		uint64_t n, old;

		top = bucket_part(now, i, 0);
		n = bucket_part(now, i, 1);
		old = bucket_before(before, &at, top);
		seen += n > old ? n - old : 0;
		if (seen > want)
			break;
	}
	return (double)top / 1e6;
}

static void latency(struct top_store *s, enum top_op op, const json_t *before,
	const json_t *now)
{
	uint64_t count = number(now, "count"), old = number(before, "count");
	const json_t *buckets = json_object_get(now, "buckets_ns");
	const json_t *past = json_object_get(before, "buckets_ns");

	s->op[op].p50_ms = s->op[op].p99_ms = NAN;
	/* With one answer only: since the start. */
	if (count < old)
		past = NULL;
	count = since(old, count);
	if (!count)
		return;
	s->op[op].p50_ms = percentile(past, buckets, count, .5);
	s->op[op].p99_ms = percentile(past, buckets, count, .99);
}

/* --- stores --------------------------------------------------------------- */

static void requests(struct top_store *s, const json_t *before,
	const json_t *now, double seconds)
{
	static const char *const name[TOP_OPS] = {"read", "write", "flush"};
	const json_t *was = json_object_get(before, "requests");
	const json_t *is = json_object_get(now, "requests");

	for (unsigned op = 0; op < TOP_OPS; op++) {
		const json_t *a = json_object_get(was, name[op]);
		const json_t *b = json_object_get(is, name[op]);

		s->op[op].ops = rate(a, b, "ops", seconds);
		s->op[op].bytes = rate(a, b, "bytes", seconds);
		latency(s, op,
			json_object_get(
				json_object_get(before, "latency"), name[op]),
			json_object_get(
				json_object_get(now, "latency"), name[op]));
	}
}

static double hit_share(const json_t *before, const json_t *now)
{
	uint64_t hits = since(number(before, "hits"), number(now, "hits"));
	uint64_t misses =
		since(number(before, "misses"), number(now, "misses"));

	return hits + misses ? (double)hits / (double)(hits + misses) : NAN;
}

static void store_row(struct top_store *s, const json_t *before,
	const json_t *now, double seconds)
{
	s->name = text(now, "name");
	s->charged = number(now, "charged_bytes");
	s->dirty = number(now, "dirty_bytes");
	s->limit = number(now, "dirty_limit_bytes");
	s->freerun = number(now, "freerun_bytes");
	s->setpoint = number(now, "setpoint_bytes");
	s->bandwidth = (double)number(now, "write_bandwidth");
	s->parked = number(now, "parked_writes");
	s->pauses = rate(before, now, "pauses", seconds);
	s->hits = hit_share(before, now);
	requests(s, before, now, seconds);
}

static void store_rows(struct top_rows *r, const json_t *before,
	const json_t *now, double seconds)
{
	static const char *const keys[] = {"name", NULL};
	const json_t *list = json_object_get(now, "stores");
	const json_t *old = json_object_get(before, "stores");
	size_t i;
	json_t *store;

	json_array_foreach(list, i, store)
	{
		store_row(&r->store[r->nstores++], same(old, store, keys),
			store, seconds);
		r->rss = number(store, "rss_bytes");
	}
}

/* --- clients -------------------------------------------------------------- */

static struct top_client *client_of(struct top_rows *r, const char *name)
{
	struct top_client *c;

	for (size_t i = 0; i < r->nclients; i++) {
		if (!strcmp(r->client[i].name, name))
			return &r->client[i];
	}
	c = &r->client[r->nclients++];
	*c = (struct top_client){.name = name};
	return c;
}

static void connection(struct top_client *c, const json_t *before,
	const json_t *now, double seconds)
{
	c->connections++;
	c->read += rate(before, now, "read_bytes", seconds);
	c->write += rate(before, now, "write_bytes", seconds);
	c->requests += rate(before, now, "requests", seconds);
	c->inflight += number(now, "inflight_bytes");
	/* A client's pauses and parked writes are those of all of its
	 * connections: each says them. */
	c->pauses = rate(before, now, "pauses", seconds);
	c->parked = number(now, "parked_writes");
}

static void client_rows(struct top_rows *r, const json_t *before,
	const json_t *now, double seconds)
{
	static const char *const keys[] = {"client", "peer", NULL};
	const json_t *list = json_object_get(now, "clients");
	const json_t *old = json_object_get(before, "clients");
	json_t *none = json_object();
	size_t i;
	json_t *conn;

	json_array_foreach(list, i, conn)
	{
		const json_t *was = same(old, conn, keys);

		/* A connection that is new has done all it did since then. */
		if (!was && before)
			was = none;
		connection(
			client_of(r, text(conn, "client")), was, conn, seconds);
	}
	json_decref(none);
}

/* --- all of it ------------------------------------------------------------ */

static void *rows_of(const json_t *now, const char *key, size_t size)
{
	size_t n = json_array_size(json_object_get(now, key));
	void *rows = calloc(n ? n : 1, size);

	if (!rows) {
		fputs("weir: no memory\n", stderr);
		exit(EXIT_IO);
	}
	return rows;
}

void top_rows_make(struct top_rows *r, const json_t *before, const json_t *now,
	double seconds)
{
	const json_t *process = json_object_get(now, "process");
	const json_t *was = json_object_get(before, "process");

	*r = (struct top_rows){
		.store = rows_of(now, "stores", sizeof(*r->store)),
		.client = rows_of(now, "clients", sizeof(*r->client)),
		.pid = (long long)number(process, "pid"),
	};
	/* Another process has counters of its own. */
	if (was && number(was, "pid") != number(process, "pid"))
		before = was = NULL;
	r->cpu = (rate(was, process, "cpu_user_us", seconds) +
			 rate(was, process, "cpu_system_us", seconds)) /
		1e6;
	store_rows(r, before, now, seconds);
	client_rows(r, before, now, seconds);
}

void top_rows_free(struct top_rows *r)
{
	free(r->store);
	free(r->client);
	*r = (struct top_rows){0};
}

/* --- order ---------------------------------------------------------------- */

struct order {
	enum top_sort by;
	bool reverse;
};

static int by_value(
	double a, double b, const char *x, const char *y, const struct order *o)
{
	int r = 0;

	a = isnan(a) ? 0 : a;
	b = isnan(b) ? 0 : b;
	if (o->by != TOP_BY_NAME)
		r = (a < b) - (a > b);
	if (!r)
		r = strcmp(x, y);
	return o->reverse ? -r : r;
}

static double value(enum top_sort by, double read, double write, uint64_t dirty)
{
	switch (by) {
	case TOP_BY_RATE:
		return read + write;
	case TOP_BY_READ:
		return read;
	case TOP_BY_WRITE:
		return write;
	default:
		return (double)dirty;
	}
}

static int order_stores(const void *a, const void *b, void *arg)
{
	const struct top_store *x = a, *y = b;
	const struct order *o = arg;

	return by_value(value(o->by, x->op[TOP_READ].bytes,
				x->op[TOP_WRITE].bytes, x->charged),
		value(o->by, y->op[TOP_READ].bytes, y->op[TOP_WRITE].bytes,
			y->charged),
		x->name, y->name, o);
}

static int order_clients(const void *a, const void *b, void *arg)
{
	const struct top_client *x = a, *y = b;
	const struct order *o = arg;

	return by_value(value(o->by, x->read, x->write, x->inflight),
		value(o->by, y->read, y->write, y->inflight), x->name, y->name,
		o);
}

void top_rows_sort(struct top_rows *r, enum top_sort by, bool reverse)
{
	struct order o = {by, reverse};

	qsort_r(r->store, r->nstores, sizeof(*r->store), order_stores, &o);
	qsort_r(r->client, r->nclients, sizeof(*r->client), order_clients, &o);
}
