/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top-view.c: the tables of the screen: stores, their requests, clients.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "top.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Three digits or so: "0.12", "12.3", "1234"; "-" for what is not known. */
static void put_number(char *text, size_t size, double n)
{
	if (isnan(n))
		snprintf(text, size, "-");
	else if (n < 9.995)
		snprintf(text, size, "%.2f", n);
	else if (n < 99.95)
		snprintf(text, size, "%.1f", n);
	else
		snprintf(text, size, "%.0f", n);
}

static void put_size(char *text, size_t size, uint64_t bytes)
{
	char buf[16];

	snprintf(text, size, "%s", size_format(bytes, buf));
}

/* --- stores --------------------------------------------------------------- */

static const struct top_column store_columns[] = {
	{"STORE", 8, 24, 0, true},
	{"FILL", 12, 48, 6, true},
	{"DIRTY", 6, 0, 0, false},
	{"LIMIT", 6, 0, 1, false},
	{"SETPT", 6, 0, 5, false},
	{"BW MB/s", 7, 0, 2, false},
	{"HIT%", 5, 0, 3, false},
	{"PARKED", 6, 0, 4, false},
	{"PAUSE/s", 7, 0, 7, false},
};

static void store_cell(const void *row, unsigned column, char *text,
	size_t size, struct top_line *l, unsigned width)
{
	const struct top_store *s = row;

	switch (column) {
	case 0:
		snprintf(text, size, "%s", *s->name ? s->name : "\"\"");
		break;
	case 1:
		top_bar(l, s, width);
		break;
	case 2:
		put_size(text, size, s->charged);
		break;
	case 3:
		put_size(text, size, s->limit);
		break;
	case 4:
		put_size(text, size, s->setpoint);
		break;
	case 5:
		put_number(text, size, s->bandwidth / 1e6);
		break;
	case 6:
		put_number(text, size, s->hits * 100);
		break;
	case 7:
		snprintf(text, size, "%llu", (unsigned long long)s->parked);
		break;
	default:
		put_number(text, size, s->pauses);
	}
}

/* --- requests ------------------------------------------------------------- */

static const struct top_column request_columns[] = {
	{"STORE", 8, 24, 0, true},
	{"RD MB/s", 7, 0, 1, false},
	{"RD/s", 6, 0, 8, false},
	{"p50ms", 6, 0, 6, false},
	{"p99ms", 6, 0, 4, false},
	{"WR MB/s", 7, 0, 0, false},
	{"WR/s", 6, 0, 9, false},
	{"p50ms", 6, 0, 7, false},
	{"p99ms", 6, 0, 3, false},
	{"FLUSH/s", 7, 0, 2, false},
	{"p50ms", 6, 0, 6, false},
	{"p99ms", 6, 0, 5, false},
};

static double request_value(const struct top_store *s, unsigned column)
{
	switch (column) {
	case 1:
		return s->op[TOP_READ].bytes / 1e6;
	case 2:
		return s->op[TOP_READ].ops;
	case 3:
		return s->op[TOP_READ].p50_ms;
	case 4:
		return s->op[TOP_READ].p99_ms;
	case 5:
		return s->op[TOP_WRITE].bytes / 1e6;
	case 6:
		return s->op[TOP_WRITE].ops;
	case 7:
		return s->op[TOP_WRITE].p50_ms;
	case 8:
		return s->op[TOP_WRITE].p99_ms;
	case 9:
		return s->op[TOP_FLUSH].ops;
	case 10:
		return s->op[TOP_FLUSH].p50_ms;
	default:
		return s->op[TOP_FLUSH].p99_ms;
	}
}

static void request_cell(const void *row, unsigned column, char *text,
	size_t size, struct top_line *l, unsigned width)
{
	if (column)
		put_number(text, size, request_value(row, column));
	else
		store_cell(row, 0, text, size, l, width);
}

/* --- clients -------------------------------------------------------------- */

static const struct top_column client_columns[] = {
	{"CLIENT", 8, 24, 0, true},
	{"CONNS", 5, 0, 5, false},
	{"RD MB/s", 7, 0, 1, false},
	{"WR MB/s", 7, 0, 0, false},
	{"REQ/s", 7, 0, 3, false},
	{"INFLT", 6, 0, 2, false},
	{"PARKED", 6, 0, 4, false},
	{"PAUSE/s", 7, 0, 6, false},
};

static void client_cell(const void *row, unsigned column, char *text,
	size_t size, struct top_line *l, unsigned width)
{
	const struct top_client *c = row;

	(void)l;
	(void)width;
	switch (column) {
	case 0:
		snprintf(text, size, "%s", *c->name ? c->name : "?");
		break;
	case 1:
		snprintf(text, size, "%u", c->connections);
		break;
	case 2:
		put_number(text, size, c->read / 1e6);
		break;
	case 3:
		put_number(text, size, c->write / 1e6);
		break;
	case 4:
		put_number(text, size, c->requests);
		break;
	case 5:
		put_size(text, size, c->inflight);
		break;
	case 6:
		snprintf(text, size, "%llu", (unsigned long long)c->parked);
		break;
	default:
		put_number(text, size, c->pauses);
	}
}

/* --- all ------------------------------------------------------------------ */

void top_title(struct top_line *l, const char *control,
	const struct top_rows *r, enum top_sort by, bool reverse, bool utf8)
{
	char text[512], cpu[16], rss[16];

	put_number(cpu, sizeof(cpu), r->cpu * 100);
	snprintf(text, sizeof(text),
		"weir top  pid %lld  cpu %s%%  rss %s  by %s%s  %s", r->pid,
		cpu, size_format(r->rss, rss), top_sort_name[by],
		reverse ? ", reversed" : "", control);
	top_put(l, text, TOP_TITLE, utf8);
}

void top_view(
	struct top_page *p, const struct top_rows *r, unsigned width, bool utf8)
{
	const struct top_table stores = {
		.column = store_columns,
		.columns = COUNT(store_columns),
		.row = r->store,
		.rows = r->nstores,
		.row_size = sizeof(*r->store),
		.cell = store_cell,
	};
	struct top_table requests = stores;
	const struct top_table clients = {
		.column = client_columns,
		.columns = COUNT(client_columns),
		.row = r->client,
		.rows = r->nclients,
		.row_size = sizeof(*r->client),
		.cell = client_cell,
	};

	requests.column = request_columns;
	requests.columns = COUNT(request_columns);
	requests.cell = request_cell;
	top_table_put(p, &stores, width, utf8);
	top_page_line(p);
	top_table_put(p, &requests, width, utf8);
	top_page_line(p);
	top_table_put(p, &clients, width, utf8);
}

void top_view_help(struct top_page *p)
{
	static const char *const lines[] = {
		"q          quit",
		"s  r       sort by another column; the other way round",
		"arrows     scroll; also j and k",
		"pages      scroll a screen; home and end",
		"space      ask now",
		"?          this, and back",
		"",
		"DIRTY is what counts in the LIMIT: in the bar # is dirty,",
		"= is being written or not flushed yet; writers go freely up",
		"to f, and are paced around s. BW is what the store writes.",
		"p50 and p99 are of the last interval, HIT% of its reads.",
		"PARKED writes wait for their turn; INFLT is what a client",
		"has asked for and not got.",
	};

	for (size_t i = 0; i < COUNT(lines); i++)
		top_put(top_page_line(p), lines[i], TOP_PLAIN, false);
}
