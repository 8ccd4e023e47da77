/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top.h: `weir top`, in layers:
 *
 *   top.c         options, the pace, --batch
 *   top-screen.c  the terminal: keys, colours, scrolling (ncurses)
 *   top-view.c    which tables there are, and what is in them
 *   top-table.c   columns into a width
 *   top-rows.c    two answers of the server -> rates, percentiles
 *
 * The lower three are arithmetic: JSON and numbers in, text out.
 */
#ifndef WEIR_CLIENT_TOP_H
#define WEIR_CLIENT_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- top-rows.c ---------------------------------------------------------- */

enum top_op {
	TOP_READ,
	TOP_WRITE,
	TOP_FLUSH,
	TOP_OPS
};

/* What is not known is NAN. */
struct top_store {
	const char *name;        /* lives as long as the answer */
	uint64_t charged, dirty; /* bytes that count in the limit; dirty ones */
	uint64_t limit, freerun, setpoint; /* bytes */
	double bandwidth;                  /* of the store, bytes per second */
	struct {
		double ops, bytes;     /* per second */
		double p50_ms, p99_ms; /* of the time between the answers */
	} op[TOP_OPS];
	double hits;   /* of the reads, 0..1 */
	double pauses; /* per second */
	uint64_t parked;
};

struct top_client {
	const char *name; /* lives as long as the answer */
	unsigned connections;
	double read, write, requests, pauses; /* bytes, number per second */
	uint64_t inflight, parked;            /* bytes, writes */
};

struct top_rows {
	struct top_store *store;
	size_t nstores;
	struct top_client *client;
	size_t nclients;
	long long pid;
	double cpu;   /* of one processor, 0.. */
	uint64_t rss; /* bytes */
};

/*
 * What two answers to "stats" say of the `seconds` between them. `before` NULL:
 * there is one only, and no rates. A counter that went back has begun anew.
 * Free with top_rows_free(), before `now` is given up.
 */
void top_rows_make(struct top_rows *r, const json_t *before, const json_t *now,
	double seconds);
void top_rows_free(struct top_rows *r);

enum top_sort {
	TOP_BY_RATE,
	TOP_BY_READ,
	TOP_BY_WRITE,
	TOP_BY_DIRTY, /* clients: by what is in flight */
	TOP_BY_NAME,
	TOP_SORTS
};

extern const char *const top_sort_name[TOP_SORTS];

/* The largest first, names from a to z; those alike by name. */
void top_rows_sort(struct top_rows *r, enum top_sort by, bool reverse);

/* --- top-table.c --------------------------------------------------------- */

enum top_style {
	TOP_PLAIN,
	TOP_TITLE,
	TOP_GOOD, /* of a bar: below freerun, the setpoint, above it */
	TOP_WARN,
	TOP_BAD,
};

#define TOP_COLUMNS 240U /* of a line, at most */

/* UTF-8, with a style for each byte. */
struct top_line {
	size_t bytes;
	unsigned columns;
	char text[TOP_COLUMNS * 4 + 1];
	unsigned char style[TOP_COLUMNS * 4];
};

struct top_page {
	struct top_line *line;
	size_t lines, room;
};

/* A fresh line at the end; ends the program without memory. */
struct top_line *top_page_line(struct top_page *p);
void top_page_clear(struct top_page *p);
void top_page_free(struct top_page *p);

/* Append, cut at TOP_COLUMNS. What no terminal should get is '?', and so is
 * all that is not ASCII unless `utf8`. */
void top_put(
	struct top_line *l, const char *text, enum top_style style, bool utf8);

struct top_column {
	const char *title;
	unsigned width; /* columns; at least that if it can grow */
	unsigned grow;  /* columns more, at most */
	unsigned rank;  /* the highest goes first where it is narrow; 0 stays */
	bool left;      /* to the left, and shortened at the front */
};

/* The text of a cell. A bar has no text: it appends `width` columns itself. */
typedef void top_cell(const void *row, unsigned column, char *text, size_t size,
	struct top_line *line, unsigned width);

struct top_table {
	const struct top_column *column;
	unsigned columns; /* 16 at most */
	const void *row;
	size_t rows, row_size;
	top_cell *cell;
};

/* The title and the rows, in `width` columns. */
void top_table_put(struct top_page *p, const struct top_table *t,
	unsigned width, bool utf8);

/* `width` columns of a bar: charged against the limit, with its marks. */
void top_bar(struct top_line *l, const struct top_store *s, unsigned width);

/* --- top-view.c ---------------------------------------------------------- */

/* The first line of the screen. */
void top_title(struct top_line *l, const char *control,
	const struct top_rows *r, enum top_sort by, bool reverse, bool utf8);

/* All the tables. */
void top_view(struct top_page *p, const struct top_rows *r, unsigned width,
	bool utf8);
void top_view_help(struct top_page *p);

/* --- top-screen.c -------------------------------------------------------- */

struct top_options {
	const char *control;
	uint64_t interval_ms;
	unsigned samples; /* 0: until it is told to end */
	bool batch;
	enum top_sort sort;
};

/* The live screen, until q. An exit code. */
int top_screen(const struct top_options *o, const char *command);

#endif
