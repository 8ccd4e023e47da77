/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * top-screen.c: the live screen of weir top.
 *
 *  1. It waits in one place, for a key, the server or the time, and never for
 *     the server alone.
 *  2. A server that does not answer is asked again at the next interval; until
 *     then the last figures stay, and the last line says why.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/clock.h"
#include "client.h"
#include "top.h"

#ifdef HAVE_NCURSES
#include <langinfo.h>
#include <locale.h>
#include <ncurses.h>

#define ANSWER_MS 10000U

struct screen {
	const struct top_options *o;
	SCREEN *term;
	bool utf8, colour;
	enum top_sort sort;
	bool reverse, help, quit;
	size_t first; /* line of the page at the top */
	struct top_page page;
	/* Two answers, and when they came. */
	json_t *before, *now;
	uint64_t before_ms, now_ms;
	unsigned samples;
	/* The question that is out. */
	struct ask ask;
	json_t *question;
	bool asking;
	uint64_t asked_ms, next_ms;
	char why[256]; /* the server is gone, or "" */
};

/* --- drawing -------------------------------------------------------------- */

static attr_t attribute(const struct screen *s, unsigned char style)
{
	switch (style) {
	case TOP_TITLE:
		return A_REVERSE;
	case TOP_GOOD:
		return s->colour ? COLOR_PAIR(1) : A_NORMAL;
	case TOP_WARN:
		return s->colour ? COLOR_PAIR(2) : A_BOLD;
	case TOP_BAD:
		return s->colour ? COLOR_PAIR(3) : A_REVERSE;
	default:
		return A_NORMAL;
	}
}

/* Runs of one style, as wide as the screen. */
static void draw_line(const struct screen *s, int y, const struct top_line *l)
{
	size_t at = 0;

	move(y, 0);
	while (at < l->bytes) {
		size_t end = at + 1;

		while (end < l->bytes && l->style[end] == l->style[at])
			end++;
		attrset((int)attribute(s, l->style[at]));
		addnstr(l->text + at, (int)(end - at));
		at = end;
	}
	attrset(A_NORMAL);
}

static void make_line(struct top_line *l, const char *text, int style)
{
	memset(l, 0, sizeof(*l));
	top_put(l, text, (enum top_style)style, false);
}

/* Cut what is wider than the screen, which would wrap. */
static void narrow(struct top_line *l)
{
	while (l->columns > (unsigned)COLS) {
		do
			l->bytes--;
		while (((unsigned char)l->text[l->bytes] & 0xc0) == 0x80);
		l->columns--;
	}
}

static void draw_edge(const struct screen *s, int y, struct top_line *l)
{
	while (l->columns < (unsigned)COLS && l->columns < TOP_COLUMNS)
		top_put(l, " ", TOP_TITLE, false);
	narrow(l);
	draw_line(s, y, l);
}

static void draw_page(struct screen *s, int top, int bottom)
{
	size_t room = bottom > top ? (size_t)(bottom - top) : 0;
	size_t last = s->page.lines > room ? s->page.lines - room : 0;

	s->first = s->first > last ? last : s->first;
	for (size_t i = 0; i < room && s->first + i < s->page.lines; i++) {
		narrow(&s->page.line[s->first + i]);
		draw_line(s, top + (int)i, &s->page.line[s->first + i]);
	}
}

static void draw(struct screen *s)
{
	struct top_line edge = {0};
	struct top_rows rows;
	/* With less than four lines the figures have them all. */
	int head = LINES >= 4, foot = LINES >= 4 || *s->why;

	erase();
	top_rows_make(&rows, s->before, s->now,
		(double)(s->now_ms - s->before_ms) / 1000);
	top_rows_sort(&rows, s->sort, s->reverse);
	top_page_clear(&s->page);
	if (s->help)
		top_view_help(&s->page);
	else
		top_view(&s->page, &rows, (unsigned)COLS, s->utf8);
	top_title(&edge, s->o->control, &rows, s->sort, s->reverse, s->utf8);
	if (head)
		draw_edge(s, 0, &edge);
	top_rows_free(&rows);
	draw_page(s, head, LINES - foot);
	if (*s->why) {
		make_line(&edge, "server gone, trying again: ", TOP_TITLE);
		top_put(&edge, s->why, TOP_TITLE, s->utf8);
	} else {
		make_line(
			&edge, "q quit  s sort  r reverse  ? help", TOP_TITLE);
	}
	if (foot)
		draw_edge(s, LINES - 1, &edge);
	refresh();
}

/* --- keys ----------------------------------------------------------------- */

static void scroll_by(struct screen *s, long lines)
{
	if (lines < 0 && s->first < (size_t)-lines)
		s->first = 0;
	else
		s->first += (size_t)lines;
}

static void take_key(struct screen *s, int key)
{
	long page = LINES > 3 ? LINES - 3 : 1;

	if (key == 'q' || key == 'Q')
		s->quit = true;
	else if (key == 's')
		s->sort = (s->sort + 1) % TOP_SORTS;
	else if (key == 'r')
		s->reverse = !s->reverse;
	else if (key == '?' || key == 'h')
		s->help = !s->help;
	else if (key == ' ')
		s->next_ms = 0;
	else if (key == KEY_UP || key == 'k')
		scroll_by(s, -1);
	else if (key == KEY_DOWN || key == 'j')
		scroll_by(s, 1);
	else if (key == KEY_PPAGE)
		scroll_by(s, -page);
	else if (key == KEY_NPAGE)
		scroll_by(s, page);
	else if (key == KEY_HOME || key == 'g')
		s->first = 0;
	else if (key == KEY_END || key == 'G')
		s->first = s->page.lines;
}

/* All that wait. `readable`: with none of them the terminal has gone. */
static void take_keys(struct screen *s, bool readable)
{
	int key, n = 0;

	while ((key = getch()) != ERR) {
		take_key(s, key);
		n++;
	}
	if (readable && !n)
		s->quit = true;
}

/* --- the server ----------------------------------------------------------- */

static void end_ask(struct screen *s, const char *why)
{
	snprintf(s->why, sizeof(s->why), "%s", why);
	ask_end(&s->ask);
	s->asking = false;
	s->next_ms = s->asked_ms + s->o->interval_ms;
}

static void begin_ask(struct screen *s)
{
	s->asked_ms = clock_ms();
	s->asking = true;
	if (ask_begin(&s->ask, s->o->control, s->question))
		end_ask(s, s->ask.why);
}

static void answered(struct screen *s, json_t *answer)
{
	json_decref(s->before);
	s->before = s->now;
	s->before_ms = s->now_ms;
	s->now = answer;
	s->now_ms = clock_ms();
	end_ask(s, "");
	if (s->o->samples && ++s->samples == s->o->samples)
		s->quit = true;
}

/* What the server and the clock have for us. */
static void go_on(struct screen *s)
{
	uint64_t now = clock_ms();
	json_t *answer;
	int r;

	if (!s->asking) {
		if (now >= s->next_ms)
			begin_ask(s);
		return;
	}
	r = ask_step(&s->ask, &answer);
	if (!r)
		answered(s, answer);
	else if (r != -EAGAIN)
		end_ask(s, s->ask.why);
	else if (now - s->asked_ms >= ANSWER_MS)
		end_ask(s, "no answer");
}

/* Until a key, the server or the time. */
static bool wait_for_it(struct screen *s)
{
	uint64_t now = clock_ms();
	uint64_t end = s->asking ? s->asked_ms + ANSWER_MS : s->next_ms;
	struct pollfd fds[2] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = s->asking ? s->ask.fd : -1, .events = s->ask.events},
	};
	int r = poll(fds, 2, end > now ? (int)(end - now) : 0);

	/* A resize interrupts, and is a key. */
	return r > 0 && fds[0].revents;
}

/* --- the terminal --------------------------------------------------------- */

static bool open_terminal(struct screen *s)
{
	const char *no_colour = getenv("NO_COLOR");

	setlocale(LC_CTYPE, "");
	s->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	s->term = newterm(NULL, stdout, stdin);
	if (!s->term)
		return false;
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	s->colour = has_colors() && !(no_colour && *no_colour);
	if (s->colour) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_GREEN, -1);
		init_pair(2, COLOR_YELLOW, -1);
		init_pair(3, COLOR_RED, -1);
	}
	return true;
}

static void run(struct screen *s)
{
	draw(s);
	while (!s->quit) {
		bool readable = wait_for_it(s);

		take_keys(s, readable);
		go_on(s);
		draw(s);
	}
}

int top_screen(const struct top_options *o, const char *command)
{
	struct screen s = {.o = o, .sort = o->sort, .ask = {.fd = -1}};
	int code = EXIT_OK;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return client_error(
			EXIT_USAGE, command, "not on a terminal; give --batch");
	/* The first is waited for: a wrong path is an error at once. */
	s.now = control_call(command, o->control, "stats");
	if (!s.now)
		return EXIT_IO;
	s.now_ms = clock_ms();
	/* The second soon, for the first rates. */
	s.asked_ms = s.now_ms;
	s.next_ms = s.now_ms + (o->interval_ms < 500 ? o->interval_ms : 500);
	s.question = json_pack("{s:s}", "cmd", "stats");
	if (open_terminal(&s)) {
		run(&s);
		endwin();
		delscreen(s.term);
	} else {
		code = client_error(EXIT_USAGE, command,
			"TERM=%s: this terminal is not known; give --batch",
			getenv("TERM") ? getenv("TERM") : "");
	}
	ask_end(&s.ask);
	json_decref(s.question);
	json_decref(s.before);
	json_decref(s.now);
	top_page_free(&s.page);
	return code;
}
#else
int top_screen(const struct top_options *o, const char *command)
{
	(void)o;
	return client_error(
		EXIT_USAGE, command, "built without ncurses; give --batch");
}
#endif
