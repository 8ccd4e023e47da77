/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.c: see stream.h.
 */
#include <stddef.h>

#include "stream.h"

unsigned streams_active(const struct streams *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < STREAMS; i++)
		n += t->stream[i].end &&
			t->events - t->stream[i].used < 2 * (uint64_t)STREAMS;
	return n ? n : 1;
}

/* The stream that asked for what is at `pos`, or whose end that is. */
static struct stream *find(struct streams *t, uint64_t pos)
{
	for (unsigned i = 0; i < STREAMS; i++) {
		struct stream *s = &t->stream[i];

		if (s->end && s->start <= pos && pos <= s->end)
			return s;
	}
	return NULL;
}

/* The reader is past the mark, at `pos`, and asks for what is before `end`. */
static uint64_t go_on(struct streams *t, struct stream *s, uint64_t pos,
	uint64_t end, uint64_t window, uint64_t *from)
{
	uint64_t chunk = s->chunk ? 2 * s->chunk : end - pos;

	if (chunk > window / 2)
		chunk = window / 2;
	if (end < s->end)
		end = s->end;
	s->start = pos < s->mark ? pos : s->mark;
	s->mark = end;
	s->end = chunk ? (end + chunk) / chunk * chunk : end;
	s->chunk = chunk;
	s->used = t->events++;
	*from = end;
	return s->end - end;
}

static struct stream *new_stream(struct streams *t)
{
	struct stream *oldest = &t->stream[0];

	for (unsigned i = 0; i < STREAMS; i++) {
		struct stream *s = &t->stream[i];

		if (!s->end)
			return s;
		if (s->used < oldest->used)
			oldest = s;
	}
	return oldest;
}

uint64_t streams_missed(struct streams *t, uint64_t pos, uint64_t end,
	uint64_t window, uint64_t *from)
{
	struct stream *s = find(t, pos);

	if (s)
		return end > s->mark ? go_on(t, s, pos, end, window, from) : 0;
	for (unsigned i = 0; pos && i < STARTS; i++) {
		if (t->start[i] != pos)
			continue;
		t->start[i] = 0;
		s = new_stream(t);
		*s = (struct stream){.mark = pos};
		return go_on(t, s, pos, end, window, from);
	}
	t->start[t->next_start++ % STARTS] = end;
	return 0;
}

uint64_t streams_reached(
	struct streams *t, uint64_t pos, uint64_t window, uint64_t *from)
{
	struct stream *s = find(t, pos);

	return s && s->mark == pos ? go_on(t, s, pos, pos, window, from) : 0;
}
