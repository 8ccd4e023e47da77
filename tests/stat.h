/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stat.h: one counter of an engine, for tests.
 */
#ifndef WEIR_TESTS_STAT_H
#define WEIR_TESTS_STAT_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

static inline uint64_t stat_value(struct engine *e, const char *counter)
{
	char *json = engine_stats_json(e, "test"), key[64];
	const char *at;
	uint64_t value;

	assert(json);
	snprintf(key, sizeof(key), "\"%s\":", counter);
	at = strstr(json, key);
	if (!at) {
		fprintf(stderr, "no counter %s in %s\n", counter, json);
		abort();
	}
	value = strtoull(at + strlen(key), NULL, 10);
	free(json);
	return value;
}

#endif
