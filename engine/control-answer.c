/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control-answer.c: what the control socket answers to a line.
 *
 * A command is a row of the table, and answers by writing an object. Nothing
 * here knows of sockets.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "control-impl.h"

static uint64_t micros(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static json_t *process(void)
{
	struct rusage usage = {0};

	getrusage(RUSAGE_SELF, &usage);
	return json_pack("{s:I, s:I, s:I}", "pid", (json_int_t)getpid(),
		"cpu_user_us", (json_int_t)micros(usage.ru_utime),
		"cpu_system_us", (json_int_t)micros(usage.ru_stime));
}

static void cmd_stats(
	const struct control_config *ctl, const json_t *asked, json_t *j)
{
	json_t *stores = json_array();

	(void)asked;
	json_object_set_new(j, "process", process());
	for (unsigned i = 0; i < ctl->nstores; i++) {
		char *text = engine_stats_json(
			ctl->stores[i].engine, ctl->stores[i].name);

		if (text)
			json_array_append_new(
				stores, json_loads(text, 0, NULL));
		free(text);
	}
	json_object_set_new(j, "stores", stores);
	for (unsigned i = 0; i < ctl->nsections; i++) {
		const struct control_section *s = &ctl->sections[i];

		json_object_set_new(j, s->name, s->make(s->arg));
	}
}

static void answer_error(json_t *j, const char *what, const char *name)
{
	json_object_set_new(j, "error",
		json_sprintf("%s%s%.64s", what, *name ? ": " : "", name));
}

/* The stores that "store" names, or all: [*first, *end). False with the answer
 * made if there is none of that name. */
static bool choose(const struct control_config *ctl, const json_t *asked,
	json_t *j, unsigned *first, unsigned *end)
{
	const json_t *which = json_object_get(asked, "store");
	const char *name = json_string_value(which);

	*first = 0;
	*end = ctl->nstores;
	if (!which)
		return true;
	for (unsigned i = 0; name && i < ctl->nstores; i++) {
		if (strcmp(ctl->stores[i].name, name))
			continue;
		*first = i;
		*end = i + 1;
		return true;
	}
	answer_error(j, "no such store", name ? name : "it is no string");
	return false;
}

static void cmd_reset(
	const struct control_config *ctl, const json_t *asked, json_t *j)
{
	unsigned i, end;

	if (!choose(ctl, asked, j, &i, &end))
		return;
	for (; i < end; i++)
		engine_stats_reset(ctl->stores[i].engine);
	json_object_set_new(j, "ok", json_true());
}

static void cmd_drop(
	const struct control_config *ctl, const json_t *asked, json_t *j)
{
	uint64_t freed = 0;
	unsigned i, end;

	if (!choose(ctl, asked, j, &i, &end))
		return;
	for (; i < end; i++)
		freed += engine_drop(ctl->stores[i].engine);
	json_object_set_new(j, "freed_bytes", json_integer((json_int_t)freed));
}

static void cmd_set(
	const struct control_config *ctl, const json_t *asked, json_t *j)
{
	struct error error;

	if (control_set(ctl, json_object_get(asked, "set"), &error))
		json_object_set_new(j, "error", json_string(error.text));
	else
		json_object_set_new(j, "ok", json_true());
}

static const struct command {
	const char *name;
	void (*run)(const struct control_config *ctl, const json_t *asked,
		json_t *answer);
} commands[] = {
	{"stats", cmd_stats},
	{"reset", cmd_reset},
	{"drop", cmd_drop},
	{"set", cmd_set},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

char *control_answer(const struct control_config *ctl, const char *line)
{
	json_t *asked = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	const char *name = json_string_value(json_object_get(asked, "cmd"));
	json_t *j = json_object();
	const struct command *cmd = name ? find_command(name) : NULL;
	char *text;

	if (!name)
		answer_error(j, "expected a line as {\"cmd\":\"stats\"}", "");
	else if (!cmd)
		answer_error(j, "unknown command", name);
	else
		cmd->run(ctl, asked, j);
	text = json_dumps(j, JSON_COMPACT);
	json_decref(asked);
	json_decref(j);
	return text;
}
