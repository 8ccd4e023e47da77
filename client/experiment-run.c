/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-run.c: one side of one case, from an empty cache on.
 *
 * What counts is what reached the devices in the time, not what writers were
 * answered: else the limit itself would be a result.
 */
#include <stdio.h>

#include "client.h"
#include "experiment.h"

#define SEED 1
#define SAMPLES 120 /* of a time series */

const char *const side_names[SIDES] = {"legacy", "ioless"};

static const uint64_t rates[] = {0, 1000000, 2000000, 4000000, 8000000};

static int open_bed(const struct experiment *e, const struct cell *c,
	unsigned i, enum side side, struct reactor *loop, struct bed *b)
{
	const struct cell_device *d = &c->device[i];
	char store[64];
	struct bed_config config = {
		.store = store,
		.throttle = side_names[side],
		.limit = d->limit,
		.background = d->background,
		.writers = c->writers,
		.bs = c->bs,
		.rate = c->rated ? rates : NULL,
		.random = c->random,
		.pool = d->pool,
		.span = d->span,
	};
	struct error error = {0};

	snprintf(store, sizeof(store),
		d->pool ? "pool:[sim:%s,mem:%llu]" : "sim:%s,null:%llu",
		d->model, (unsigned long long)d->size);
	if (bed_open(b, &config, loop, &error))
		return client_error(EXIT_IO, e->command, "%s", error.text);
	b->config.store = NULL; /* it was on the stack */
	return 0;
}

/* --- the time series ------------------------------------------------------ */

static void sample_bed(json_t *series, struct bed *b, uint64_t ms)
{
	static const char *const names[] = {"charged_bytes", "dirty_bytes",
		"dirty_limit_bytes", "setpoint_bytes", "freerun_bytes",
		"write_bandwidth", "dirty_ratelimit", "position_ratio",
		"pauses", "pause_us_total", "store_write_bytes"};
	json_t *at = json_object(), *written = json_array();

	bed_look(b);
	json_object_set_new(at, "ms", json_integer((json_int_t)ms));
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		json_object_set_new(
			at, names[i], json_real(bed_counter(b, names[i])));
	for (unsigned i = 0; i < b->config.writers; i++)
		json_array_append_new(written,
			json_integer((json_int_t)b->writer[i].written));
	json_object_set_new(at, "written_bytes", written);
	json_array_append_new(series, at);
}

static json_t *detail_of(struct bed *b, json_t *series)
{
	uint64_t longest = 0;

	bed_look(b);
	for (unsigned i = 0; i < b->config.writers; i++)
		if (b->writer[i].longest_ns > longest)
			longest = b->writer[i].longest_ns;
	return json_pack("{s:f s:f s:f s:f s:I s:o}", "store_writes",
		bed_counter(b, "store_writes"), "store_write_bytes",
		bed_counter(b, "store_write_bytes"), "store_flushes",
		bed_counter(b, "store_flushes"), "dirty_peak_bytes",
		bed_counter(b, "dirty_peak_bytes"), "longest_wait_us",
		(json_int_t)(longest / 1000), "series", series);
}

/* --- a side --------------------------------------------------------------- */

/* What runs: a bed for each device, all on one loop. */
struct side_run {
	const struct experiment *e;
	struct reactor *loop;
	struct bed bed[CELL_DEVICES];
	json_t *series[CELL_DEVICES];
	double from[CELL_DEVICES]; /* bytes written when the time began */
	unsigned n;
};

static int open_all(struct side_run *r, const struct cell *c, enum side side)
{
	r->loop = reactor_sim_new(SEED);
	if (!r->loop)
		return client_error(EXIT_IO, r->e->command, "out of memory");
	while (r->n < CELL_DEVICES && c->device[r->n].model) {
		int err = open_bed(r->e, c, r->n, side, r->loop, &r->bed[r->n]);

		if (err)
			return err;
		r->series[r->n++] = json_array();
	}
	return 0;
}

static void close_all(struct side_run *r)
{
	for (unsigned i = 0; i < r->n; i++)
		bed_close(&r->bed[i]);
	if (r->loop)
		reactor_free(r->loop);
}

/* Before the time begins: a pool is written full. */
static void fill_first(struct side_run *r, const struct cell *c)
{
	while (c->full && !bed_filled(&r->bed[0]))
		reactor_sim_run_until(
			r->loop, reactor_now(r->loop) + NSEC_PER_SEC);
	for (unsigned i = 0; i < r->n; i++) {
		bed_look(&r->bed[i]);
		r->from[i] = bed_counter(&r->bed[i], "store_write_bytes");
	}
}

/* Let the time go by, looking now and then. */
static void let_run(struct side_run *r, uint64_t seconds)
{
	uint64_t start = reactor_now(r->loop), ns = seconds * NSEC_PER_SEC;

	for (unsigned k = 1; k <= SAMPLES; k++) {
		reactor_sim_run_until(r->loop, start + ns * k / SAMPLES);
		for (unsigned i = 0; i < r->n && r->e->json; i++)
			sample_bed(r->series[i], &r->bed[i],
				ns * k / SAMPLES / NSEC_PER_MSEC);
	}
}

static void note_results(
	struct side_run *r, struct cell *c, enum side side, uint64_t seconds)
{
	c->rate[side] = 0;
	c->detail[side] = json_array();
	for (unsigned i = 0; i < r->n; i++) {
		bed_look(&r->bed[i]);
		c->rate[side] += (bed_counter(&r->bed[i], "store_write_bytes") -
					 r->from[i]) /
			(double)seconds;
		json_array_append_new(
			c->detail[side], detail_of(&r->bed[i], r->series[i]));
	}
}

uint64_t cell_seconds(const struct experiment *e, const struct cell *c)
{
	return c->fast ? (e->seconds + 9) / 10 : e->seconds;
}

int cell_run(const struct experiment *e, struct cell *c, enum side side)
{
	struct side_run r = {.e = e};
	uint64_t seconds = cell_seconds(e, c);
	int err = open_all(&r, c, side);

	if (!err) {
		c->bound = cell_bound(c, r.bed);
		fill_first(&r, c);
		let_run(&r, seconds);
		note_results(&r, c, side, seconds);
	}
	close_all(&r);
	return err;
}
