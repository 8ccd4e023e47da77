/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top-table.c: text in columns, for a terminal of any width.
 *
 *  1. A line is never wider than it was asked to be; where a table is too
 *     wide, columns of the highest rank are left out until it fits, and the
 *     first is cut if it alone is too wide.
 *  2. What is shortened to the left begins with "...": a path is known by its
 *     end.
 *  3. No control character gets through, whatever a name holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "top.h"

#define MAX_COLUMNS 16U

/* --- lines ---------------------------------------------------------------- */

struct top_line *top_page_line(struct top_page *p)
{
	if (p->lines == p->room) {
		size_t room = p->room ? 2 * p->room : 32;
		struct top_line *line = realloc(p->line, room * sizeof(*line));

		if (!line) {
			fputs("weir: no memory\n", stderr);
			exit(EXIT_IO);
		}
		p->line = line;
		p->room = room;
	}
	p->line[p->lines].bytes = 0;
	p->line[p->lines].columns = 0;
	p->line[p->lines].text[0] = '\0';
	return &p->line[p->lines++];
}

void top_page_clear(struct top_page *p)
{
	p->lines = 0;
}

void top_page_free(struct top_page *p)
{
	free(p->line);
	*p = (struct top_page){0};
}

/* Bytes of the character that begins here. */
static size_t character(const char *text)
{
	size_t n = 1;

	while (((unsigned char)text[n] & 0xc0) == 0x80 && n < 4)
		n++;
	return n;
}

/* One that a terminal may get as it is. */
static bool is_plain(const char *text, size_t n, bool utf8)
{
	unsigned char c = (unsigned char)text[0];

	if (n == 1)
		return c >= ' ' && c < 0x7f;
	/* U+0080..U+009F are controls too. */
	return utf8 && !(c == 0xc2 && (unsigned char)text[1] < 0xa0);
}

void top_put(
	struct top_line *l, const char *text, enum top_style style, bool utf8)
{
	while (*text && l->columns < TOP_COLUMNS) {
		size_t n = character(text);
		bool plain = is_plain(text, n, utf8);
		size_t bytes = plain ? n : 1;

		memcpy(l->text + l->bytes, plain ? text : "?", bytes);
		memset(l->style + l->bytes, (int)style, bytes);
		l->bytes += bytes;
		l->columns++;
		text += n;
	}
	l->text[l->bytes] = '\0';
}

static void pad(struct top_line *l, unsigned columns, enum top_style style)
{
	while (columns--)
		top_put(l, " ", style, false);
}

static unsigned columns_of(const char *text)
{
	unsigned n = 0;

	for (; *text; text += character(text))
		n++;
	return n;
}

/* `width` columns: to one side, shortened at the front if it is too long. */
static void put_aligned(struct top_line *l, const char *text, unsigned width,
	bool left, enum top_style style, bool utf8)
{
	unsigned n = columns_of(text), dots;

	if (n > width) {
		dots = width > 6 ? 3 : 0;
		for (; n > width - dots; n--)
			text += character(text);
		top_put(l, dots ? "..." : "", style, false);
		top_put(l, text, style, utf8);
		return;
	}
	if (!left)
		pad(l, width - n, style);
	top_put(l, text, style, utf8);
	if (left)
		pad(l, width - n, style);
}

/* --- columns -------------------------------------------------------------- */

/* With what is left of the width; 0 for a column that is left out. */
static void fit(
	const struct top_table *t, unsigned total, unsigned width[MAX_COLUMNS])
{
	unsigned used, worst, i;

	for (i = 0; i < t->columns; i++)
		width[i] = t->column[i].width;
	for (;;) {
		used = 0;
		worst = 0;
		for (i = 0; i < t->columns; i++) {
			used += width[i] + (width[i] && i);
			if (width[i] &&
				t->column[i].rank > t->column[worst].rank)
				worst = i;
		}
		if (used <= total || !worst)
			break;
		width[worst] = 0;
	}
	for (i = 0; i < t->columns; i++) {
		unsigned more = total > used ? total - used : 0;

		if (!width[i] || !more)
			continue;
		more = more < t->column[i].grow ? more : t->column[i].grow;
		width[i] += more;
		used += more;
	}
	if (used > total && width[0] > used - total)
		width[0] -= used - total;
}

static void put_cell(struct top_line *l, const struct top_table *t,
	const void *row, unsigned i, unsigned width, bool utf8)
{
	char text[512] = "";

	t->cell(row, i, text, sizeof(text), l, width);
	if (*text)
		put_aligned(l, text, width, t->column[i].left, TOP_PLAIN, utf8);
}

/* `total` at the most, whatever the columns have made of it. */
static void cut(struct top_line *l, unsigned total)
{
	while (l->columns > total) {
		do
			l->bytes--;
		while (((unsigned char)l->text[l->bytes] & 0xc0) == 0x80);
		l->columns--;
	}
	l->text[l->bytes] = '\0';
}

void top_table_put(struct top_page *p, const struct top_table *t,
	unsigned total, bool utf8)
{
	unsigned width[MAX_COLUMNS];
	struct top_line *l = top_page_line(p);

	total = total < TOP_COLUMNS ? total : TOP_COLUMNS;
	fit(t, total, width);
	for (unsigned i = 0; i < t->columns; i++) {
		if (!width[i])
			continue;
		pad(l, i ? 1 : 0, TOP_TITLE);
		put_aligned(l, t->column[i].title, width[i], t->column[i].left,
			TOP_TITLE, utf8);
	}
	cut(l, total);
	for (size_t n = 0; n < t->rows; n++) {
		const char *row = (const char *)t->row + n * t->row_size;

		l = top_page_line(p);
		for (unsigned i = 0; i < t->columns; i++) {
			if (!width[i])
				continue;
			pad(l, i ? 1 : 0, TOP_PLAIN);
			put_cell(l, t, row, i, width[i], utf8);
		}
		cut(l, total);
	}
}

/* --- a bar ---------------------------------------------------------------- */

/* In which of `width` columns a share of the limit ends. */
static unsigned place(uint64_t bytes, uint64_t limit, unsigned width)
{
	double at = limit ? (double)bytes / (double)limit * width : 0;

	return at >= width ? width : (unsigned)at;
}

static enum top_style level(const struct top_store *s)
{
	if (s->charged <= s->freerun)
		return TOP_GOOD;
	return s->charged <= s->setpoint ? TOP_WARN : TOP_BAD;
}

void top_bar(struct top_line *l, const struct top_store *s, unsigned width)
{
	unsigned room = width > 2 ? width - 2 : 0;
	unsigned dirty = place(s->dirty, s->limit, room);
	unsigned charged = place(s->charged, s->limit, room);
	unsigned freerun = place(s->freerun, s->limit, room);
	unsigned setpoint = place(s->setpoint, s->limit, room);

	if (s->charged && !charged && room)
		charged = 1;
	top_put(l, width ? "[" : "", TOP_PLAIN, false);
	for (unsigned i = 0; i < room; i++) {
		const char *c = i < dirty ? "#" : i < charged ? "=" : " ";

		/* One at the very end is seen as well. */
		if (s->freerun && i == (freerun < room ? freerun : room - 1))
			c = "f";
		if (s->setpoint && i == (setpoint < room ? setpoint : room - 1))
			c = "s";
		top_put(l, c, i < charged ? level(s) : TOP_PLAIN, false);
	}
	top_put(l, width > 1 ? "]" : "", TOP_PLAIN, false);
}
