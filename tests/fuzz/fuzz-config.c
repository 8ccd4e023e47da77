/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz-config.c: KEY=VALUE, a line each, as from a command line.
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "fuzz.h"

static void expect_words(int r, const struct error *error)
{
	if (r && !*error->text)
		abort(); /* refused without a word */
}

static void take_line(struct engine_config *c, char *line)
{
	struct error error = {""};
	char *value = strchr(line, '=');

	if (!value)
		return;
	*value++ = '\0';
	expect_words(engine_config_set(c, line, value, &error), &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct engine_config c;
	struct error error = {""};
	char *text = malloc(size + 1), *rest = text, *line;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	engine_config_init(&c);
	while ((line = strsep(&rest, "\n")))
		take_line(&c, line);
	expect_words(engine_config_check(&c, &error), &error);
	engine_config_free(&c);
	free(text);
	return 0;
}
