/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c: the control law (control.h has the graph and the properties).
 */
#include <math.h>

#include "../base/reactor.h"
#include "control.h"

#define TICK_NS NSEC_PER_MSEC
#define PAUSE_MAX_NS (200 * NSEC_PER_MSEC)
#define PAUSE_FIRST_NS (10 * NSEC_PER_MSEC)
#define PAUSE_DOUBLING_NS 9.8e6 /* for each doubling of the writers */
#define PAUSE_PAGES 32U         /* fewer are not worth a pause of their own */
#define CHUNK_PAGES 1024U       /* 4 MiB */
#define BAND_MSEC 200U
#define POSITION_MAX 2.0
#define RESERVE_MAX 8.0
#define THRESH_MIN 2U /* pages */

/* --- limits -------------------------------------------------------------- */

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void control_limits(uint64_t thresh, uint64_t bg, uint64_t smoothed,
	uint64_t bandwidth, struct control_limits *out)
{
	uint64_t band = bandwidth * BAND_MSEC / 1000;

	thresh = most(thresh, THRESH_MIN);
	if (bg >= thresh)
		bg = thresh / 2;
	out->thresh = thresh;
	out->limit = most(thresh, smoothed);
	out->freerun = (thresh + bg) / 2;
	if (band && out->limit > band)
		out->freerun = most(out->freerun, out->limit - band);
	if (out->limit < 2 * band)
		out->freerun = out->limit;
	out->setpoint = (out->freerun + out->limit) / 2;
}

uint64_t control_smooth(uint64_t smoothed, uint64_t thresh, uint64_t dirty)
{
	uint64_t target = most(thresh, dirty);

	if (smoothed < thresh)
		return thresh;
	if (smoothed > target) /* at least one page, to arrive */
		smoothed -= (smoothed - target + 31) / 32;
	return smoothed;
}

double control_position(const struct control_limits *l, uint64_t dirty)
{
	double reserve = (double)l->thresh / 2, p, x;

	if (dirty >= l->limit)
		return 0;
	x = ((double)l->setpoint - (double)dirty) /
		(double)most(l->limit - l->setpoint, 1);
	p = 1 + x * x * x;
	if (p > POSITION_MAX)
		p = POSITION_MAX;
	if (p < 0)
		p = 0;
	if ((double)dirty < reserve)
		p *= fmin(reserve / (double)most(dirty, 1), RESERVE_MAX);
	return p;
}

/* --- the rate ------------------------------------------------------------ */

/* The step damped: an eighth of it, and less and less of what is below the
 * noise of R itself. */
static uint64_t damp(uint64_t step, uint64_t ratelimit)
{
	uint64_t shift = ratelimit / (2 * step + 1);

	if (shift >= 64)
		return 0;
	return ((step >> shift) + 7) / 8;
}

void control_rate_step(struct control_rate *r, double position,
	uint64_t dirty_rate, uint64_t bandwidth, bool below_setpoint)
{
	uint64_t rate = r->ratelimit, x, step = 0;
	uint64_t task = (uint64_t)((double)rate * position) + 1;
	/* When all are stopped, that nobody dirties is no sign of room. */
	uint64_t seen = position > 0 ? dirty_rate : most(dirty_rate, bandwidth);
	double drawn = (double)task * (double)bandwidth / (double)most(seen, 1);
	uint64_t balanced =
		drawn < (double)bandwidth ? (uint64_t)drawn : bandwidth;

	/* Step only where the last balance, this one and the position agree. */
	if (below_setpoint) {
		x = least(least(r->balanced, balanced), task);
		if (x > rate)
			step = x - rate;
	} else {
		x = most(most(r->balanced, balanced), task);
		if (x < rate)
			step = rate - x;
	}
	step = damp(step, rate);
	rate = rate < balanced ? rate + step : rate - least(step, rate);
	r->ratelimit = most(rate, 1);
	r->balanced = balanced;
}

/* --- pauses -------------------------------------------------------------- */

static uint64_t pause_max(uint64_t dirty, uint64_t bandwidth)
{
	double eighth = (double)dirty * 1e9 / (8.0 * (double)bandwidth);

	return eighth < (double)(PAUSE_MAX_NS - TICK_NS)
		? (uint64_t)eighth + TICK_NS
		: PAUSE_MAX_NS;
}

static uint64_t pages_in(uint64_t rate, uint64_t ns)
{
	return (uint64_t)((double)rate * (double)ns / 1e9);
}

void control_pause(uint64_t dirty, uint64_t bandwidth, uint64_t ratelimit,
	uint64_t task_rate, struct control_pause *out)
{
	uint64_t max = pause_max(dirty, most(bandwidth, 1)), t, pages;
	double writers = log2((double)most(bandwidth, 1)) -
		log2((double)most(ratelimit, 1));

	t = PAUSE_FIRST_NS + (uint64_t)(PAUSE_DOUBLING_NS * fmax(0, writers));
	t = least(t, TICK_NS + max / 2);
	pages = pages_in(ratelimit, t);
	if (pages < PAUSE_PAGES) {
		t = max;
		pages = pages_in(ratelimit, t);
		if (pages > PAUSE_PAGES) {
			pages = PAUSE_PAGES;
			t = PAUSE_PAGES * NSEC_PER_SEC / ratelimit;
		}
	}
	if ((double)pages * 1e9 / ((double)task_rate + 1) > (double)max) {
		t = max;
		pages = pages_in(task_rate, t);
	}
	*out = (struct control_pause){
		.max_ns = max,
		.target_ns = t,
		.min_ns = pages >= PAUSE_PAGES ? TICK_NS + t / 2 : t,
		.quota = pages,
	};
}

uint64_t control_chunk(uint64_t thresh)
{
	return most(thresh / 2, CONTROL_CHUNK_LEGACY);
}

static unsigned log2_floor(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll(n | 1);
}

void control_writer_free(struct control_writer *w,
	const struct control_limits *l, uint64_t dirty, uint64_t now)
{
	w->paused_ns = now;
	w->dirtied = 0;
	w->quota = UINT64_C(1);
	if (l->thresh > dirty)
		w->quota <<= log2_floor(l->thresh - dirty) >> 1;
}

/* Less than the least pause is left: no pause, but the account stays true. */
static void carry_on(
	struct control_writer *w, int64_t pause, uint64_t period, uint64_t now)
{
	uint64_t pages = w->dirtied >> CONTROL_PAGE_SHIFT;

	if (pause < -(int64_t)NSEC_PER_SEC) {
		w->paused_ns = now; /* idle time is not saved up */
		w->dirtied = 0;
	} else if (period) {
		w->paused_ns += period;
		w->dirtied = 0;
	} else if (w->quota <= pages) {
		w->quota += pages;
	}
}

uint64_t control_writer_pause(struct control_writer *w,
	const struct control_pause *p, uint64_t task_rate, uint64_t now)
{
	uint64_t period = p->max_ns;
	int64_t pause = (int64_t)p->max_ns;

	if (task_rate) {
		period = (uint64_t)((double)w->dirtied * 1e9 /
			(double)(task_rate << CONTROL_PAGE_SHIFT));
		pause = (int64_t)period - (int64_t)(now - w->paused_ns);
		if (pause < (int64_t)p->min_ns) {
			carry_on(w, pause, period, now);
			return 0;
		}
	}
	if (pause > (int64_t)p->max_ns) {
		/* What is too long for one pause is charged to the next, up to
		 * another one. */
		now += least((uint64_t)pause - p->max_ns, p->max_ns);
		pause = (int64_t)p->max_ns;
	}
	w->paused_ns = now + (uint64_t)pause;
	w->dirtied = 0;
	w->quota = p->quota;
	return (uint64_t)pause;
}
