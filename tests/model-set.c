/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-set.c: settings that change while the engine runs. The limits stay
 * within the plan's, so that what is checked of those still holds.
 */
#include <inttypes.h>
#include <stdio.h>

#include "model.h"

static void set(struct run *run, const struct engine_setting *s, unsigned n)
{
	struct error error;

	for (unsigned i = 0; i < n && run->verbose; i++)
		printf("# %" PRIu64 ".%03ums set %s=%s\n",
			reactor_now(run->reactor) / NSEC_PER_MSEC,
			(unsigned)(reactor_now(run->reactor) % NSEC_PER_MSEC /
				1000),
			s[i].key, s[i].value);
	if (!engine_set(run->engine, s, n, &error) || run->shutting_down)
		return;
	run_fail(run, "cannot set: %s", error.text);
}

static void change_limit(struct run *run)
{
	const struct plan *p = &run->plan;
	uint64_t least = p->block_size > 8192 ? p->block_size : 8192;
	uint64_t limit = least + pick(run, p->dirty_limit - least + 1);
	char text[2][24];
	const struct engine_setting s[] = {
		{"dirty-limit", text[0]}, {"dirty-background", text[1]}};

	if (chance(run, 30))
		limit = least;
	snprintf(text[0], sizeof(text[0]), "%" PRIu64, limit);
	snprintf(text[1], sizeof(text[1]), "%" PRIu64, pick(run, limit));
	set(run, s, 2);
}

void settings_change(struct run *run)
{
	static const struct engine_setting other[] = {
		{"subpage", "on"},
		{"subpage", "off"},
		{"multipage", "on"},
		{"multipage", "off"},
		{"readahead", "off"},
		{"readahead", "256K"},
		{"dirty-time", "off"},
		{"dirty-time", "1ms"},
		{"dirty-expire", "1s"},
	};

	if (chance(run, 50))
		change_limit(run);
	else if (chance(run, 20))
		engine_drop(run->engine);
	else
		set(run, &other[pick(run, sizeof(other) / sizeof(other[0]))],
			1);
}
