/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * served.h: for unit tests of the root of engine/: an engine over any store,
 * on a simulated loop, asked one request after the other. Include after
 * cmocka.h.
 */
#ifndef WEIR_TESTS_SERVED_H
#define WEIR_TESTS_SERVED_H

#include <errno.h>
#include <string.h>

#include "engine.h"
#include "storage.h"
#include "store/fault.h"

struct served {
	struct reactor *loop;
	struct engine *engine;
	struct engine_export *export;
	struct store *store;
	unsigned ended; /* how often the end of a shutdown was told */
	int end_error;
	struct store_fault_record log[1024];
};

struct asking {
	struct engine_request req;
	bool answered;
};

/* With these keys: key, value, …, NULL. */
static inline struct served *served_with(
	enum engine_cache_mode mode, const char *const *keys)
{
	struct served *s = calloc(1, sizeof(*s));
	struct engine_config config;
	struct error error = {""};

	assert_non_null(s);
	s->loop = reactor_sim_new(1);
	engine_config_init(&config);
	config.cache = mode;
	for (; *keys; keys += 2) {
		if (engine_config_set(&config, keys[0], keys[1], &error))
			fail_msg("%s", error.text);
	}
	if (engine_config_check(&config, &error) ||
		engine_open(&config, &s->loop, 1, &s->engine, &error))
		fail_msg("%s", error.text);
	engine_config_free(&config);
	s->export = engine_export_new(s->engine, false, mode);
	s->store = engine_store(s->engine);
	return s;
}

static inline struct served *served_new(
	const char *spec, const char *cache_size, enum engine_cache_mode mode)
{
	const char *const keys[] = {
		"store", spec, "cache-size", cache_size, NULL};

	return served_with(mode, keys);
}

static inline void served_ended(struct engine *e, int error, void *arg)
{
	struct served *s = arg;

	(void)e;
	s->ended++;
	s->end_error = error;
}

static inline void served_close(struct served *s)
{
	engine_close(s->engine);
	reactor_free(s->loop);
	free(s);
}

static inline void served_free(struct served *s)
{
	engine_shutdown(s->engine, 0, served_ended, s);
	while (!s->ended)
		assert_true(reactor_sim_step(s->loop));
	assert_int_equal(s->end_error, 0);
	served_close(s);
}

static inline void asking_done(struct engine_request *req)
{
	container_of(req, struct asking, req)->answered = true;
}

/* Ask and wait; the data of a READ or WRITE is in, or goes to, `buf`. */
static inline int request(struct served *s, enum engine_op op, unsigned flags,
	uint64_t offset, uint64_t length, void *buf)
{
	struct asking a = {0};

	engine_request_init(&a.req);
	a.req.op = op;
	a.req.flags = flags;
	a.req.offset = offset;
	a.req.length = length;
	a.req.export = s->export;
	a.req.reactor = s->loop;
	a.req.done = asking_done;
	a.req.buf = buf;
	if (!engine_submit(&a.req)) {
		while (!a.answered)
			assert_true(reactor_sim_step(s->loop));
	}
	return a.req.error;
}

/* The first bytes of the store, as many, are data from now on. */
static inline void served_fill(struct served *s, uint64_t bytes)
{
	unsigned char *data = malloc(bytes);

	assert_non_null(data);
	memset(data, 'd', bytes);
	assert_int_equal(
		io_do(s->store, s->loop, STORE_WRITE, 0, bytes, data, 0), 0);
	free(data);
}

/* How many of an op the store was asked since store_fault_record(), and of
 * how many bytes. */
static inline unsigned logged(
	struct served *s, enum store_op op, uint64_t *bytes)
{
	size_t n = store_fault_log(s->store, s->log, 1024);
	unsigned found = 0;

	assert_true(n <= 1024);
	*bytes = 0;
	for (size_t i = 0; i < n; i++) {
		if (s->log[i].op == op) {
			found++;
			*bytes += s->log[i].length;
		}
	}
	return found;
}

#endif
