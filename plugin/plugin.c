/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugin.c: nbdkit's callbacks onto the engine: configuration, life cycle.
 *
 *   .load ─ .config … ─ .config_complete ─ .get_ready      in the foreground
 *      nbdkit forks, changes directory and drops privileges
 *   .after_fork ─ connections … ─ .cleanup ─ .unload       the server
 *
 *  1. Whatever can fail on what the user typed fails by .get_ready, where the
 *     user sees it: the store is opened and locked there (the lock is of the
 *     open file, so the fork keeps it) and relative paths still hold.
 *  2. No thread is started before .after_fork.
 *  3. .cleanup runs when every connection is closed: it flushes, and says
 *     what it gives up.
 */
#include <errno.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "plugin.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define THREADS_DEFAULT 2
#define SHUTDOWN_DEFAULT (90 * NSEC_PER_SEC)

/* nbdkit's callbacks carry no context: the one static of the plugin. */
static struct plugin weir;

/* --- configuration ------------------------------------------------------- */

static void plugin_log(void *arg, enum log_level level, const char *line)
{
	(void)arg;
	if (level <= LOG_LEVEL_WARNING)
		nbdkit_error("%s", line);
	else
		nbdkit_debug("%s", line);
}

static void plugin_load(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	log_setup("nbdkit weir", LOG_LEVEL_DEBUG, plugin_log, NULL);
	engine_config_init(&weir.config);
	weir.threads = cpus == 1 ? 1 : THREADS_DEFAULT;
	weir.shutdown_ns = SHUTDOWN_DEFAULT;
	pthread_mutex_init(&weir.lock, NULL);
	list_init(&weir.connections);
}

static void plugin_unload(void)
{
	loops_close(&weir.loops);
	engine_config_free(&weir.config);
	free(weir.control_path);
	pthread_mutex_destroy(&weir.lock);
}

static int config_threads(const char *value)
{
	unsigned n;

	if (nbdkit_parse_unsigned("threads", value, &n) == -1)
		return -1;
	if (n < 1 || n > LOOPS_MAX) {
		nbdkit_error("threads=%s: from 1 to %u", value, LOOPS_MAX);
		return -1;
	}
	weir.threads = n;
	return 0;
}

static int config_control(const char *value)
{
	free(weir.control_path);
	weir.control_path = nbdkit_absolute_path(value);
	return weir.control_path ? 0 : -1;
}

static int config_shutdown(const char *value)
{
	if (time_parse(value, &weir.shutdown_ns) == 0)
		return 0;
	nbdkit_error("shutdown-timeout=%s: not a time such as 90s", value);
	return -1;
}

static int plugin_config(const char *key, const char *value)
{
	struct error error;

	if (strcmp(key, "threads") == 0)
		return config_threads(value);
	if (strcmp(key, "control") == 0)
		return config_control(value);
	if (strcmp(key, "shutdown-timeout") == 0)
		return config_shutdown(value);
	if (engine_config_set(&weir.config, key, value, &error) == 0)
		return 0;
	nbdkit_error("%s", error.text);
	return -1;
}

static int plugin_config_complete(void)
{
	struct error error;

	if (engine_config_check(&weir.config, &error) == 0)
		return 0;
	nbdkit_error("%s", error.text);
	return -1;
}

static const char *backend_name(const struct reactor *r)
{
	return reactor_live_backend(r) == REACTOR_URING ? "io_uring"
							: "threads";
}

static void plugin_dump(void)
{
	struct reactor *r;

	printf("weir_version=%s\n", PACKAGE_VERSION);
	printf("weir_max_request=%u\n", ENGINE_MAX_REQUEST);
	if (reactor_live_new(0, REACTOR_AUTO, &r, NULL) != 0)
		return;
	printf("weir_io=%s\n", backend_name(r));
	reactor_free(r);
}

/* --- life cycle ---------------------------------------------------------- */

static int open_exports(struct error *error)
{
	const struct engine_config *c = &weir.config;

	weir.export_rw = engine_export_new(weir.engine, c->readonly, c->cache);
	weir.export_ro = engine_export_new(weir.engine, true, c->cache);
	if (weir.export_rw && weir.export_ro)
		return 0;
	return error_set(error, -ENOMEM, "no memory");
}

static int open_all(struct error *error)
{
	int err = loops_open(&weir.loops, weir.threads, error);

	if (!err)
		err = engine_open(&weir.config, weir.loops.reactor,
			weir.loops.n, &weir.engine, error);
	if (!err)
		err = open_exports(error);
	if (!err && weir.control_path)
		err = status_open(&weir, error);
	return err;
}

static int plugin_get_ready(void)
{
	struct error error;

	weir.single = !nbdkit_stdio_safe();
	if (open_all(&error) == 0)
		return 0;
	nbdkit_error("%s", error.text);
	return -1;
}

static void plugin_signal(int sig)
{
	int saved = errno;

	signals_caught(&weir.signals, sig);
	errno = saved;
}

static int plugin_after_fork(void)
{
	int err;

	signals_open(&weir.signals, weir.loops.reactor[0], weir.export_ro,
		plugin_signal);
	err = loops_start(&weir.loops);
	if (!err)
		return 0;
	nbdkit_error("cannot start a thread: %s", strerror(-err));
	return -1;
}

/* The end of engine_shutdown(), for the thread that waits for it. */
struct shutdown_wait {
	sem_t done;
	int error;
};

static void shutdown_done(struct engine *e, int error, void *arg)
{
	struct shutdown_wait *w = arg;

	(void)e;
	w->error = error;
	sem_post(&w->done);
}

static void plugin_cleanup(void)
{
	struct shutdown_wait w = {.error = 0};

	signals_restore(&weir.signals);
	sem_init(&w.done, 0, 0);
	engine_shutdown(weir.engine, weir.shutdown_ns, shutdown_done, &w);
	while (sem_wait(&w.done) == -1 && errno == EINTR)
		;
	if (w.error)
		nbdkit_error("%s: data was lost: %s", weir.config.store,
			strerror(-w.error));
	loops_stop(&weir.loops);
	signals_close(&weir.signals);
	status_close(&weir);
	engine_close(weir.engine);
	sem_destroy(&w.done);
}

/* --- connections --------------------------------------------------------- */

static int plugin_list_exports(
	int readonly, int is_tls, struct nbdkit_exports *exports)
{
	(void)readonly;
	(void)is_tls;
	return nbdkit_add_export(exports, "", weir.config.store);
}

/* Any name is the store, as in nbdkit's own plugins. */
static const char *plugin_default_export(int readonly, int is_tls)
{
	(void)readonly;
	(void)is_tls;
	return "";
}

static void *plugin_open(int readonly)
{
	struct connection *c = connection_new(&weir, readonly);

	if (!c)
		nbdkit_error("%s", strerror(ENOMEM));
	return c;
}

static void plugin_close(void *handle)
{
	connection_free(handle);
}

static int plugin_yes(void *handle)
{
	(void)handle;
	return 1;
}

static int plugin_can_fua(void *handle)
{
	(void)handle;
	return NBDKIT_FUA_NATIVE;
}

static int plugin_can_cache(void *handle)
{
	(void)handle;
	return NBDKIT_CACHE_NATIVE;
}

static struct nbdkit_plugin plugin = {
	.name = "weir",
	.longname = "weir write-back cache",
	.version = PACKAGE_VERSION,
	.description = "write-back cache over a file, a device or memory",
	.load = plugin_load,
	.unload = plugin_unload,
	.config = plugin_config,
	.config_complete = plugin_config_complete,
	.magic_config_key = "store",
	.dump_plugin = plugin_dump,
	.get_ready = plugin_get_ready,
	.after_fork = plugin_after_fork,
	.cleanup = plugin_cleanup,
	.list_exports = plugin_list_exports,
	.default_export = plugin_default_export,
	.open = plugin_open,
	.close = plugin_close,
	.get_size = connection_get_size,
	.block_size = connection_block_size,
	.can_write = connection_can_write,
	.can_flush = plugin_yes,
	.can_trim = connection_can_trim,
	.can_zero = connection_can_zero,
	.can_fast_zero = connection_can_fast_zero,
	.can_extents = plugin_yes,
	.can_fua = plugin_can_fua,
	.can_multi_conn = plugin_yes,
	.can_cache = plugin_can_cache,
	.pread = data_pread,
	.pwrite = data_pwrite,
	.flush = data_flush,
	.trim = data_trim,
	.zero = data_zero,
	.cache = data_cache,
	.extents = data_extents,
};

/*
 * nbdkit copies the table when it loads the plugin, and the help is a
 * constant of the engine with the plugin's own keys behind it: it is put
 * together before that.
 */
#define IND "\n        "
__attribute__((constructor)) static void plugin_help(void)
{
	static char help[4096];

	snprintf(help, sizeof(help),
		"%s"
		"  threads=N" IND
		"loops for misses and for writing back (default 2, or 1" IND
		"on one CPU)\n"
		"  control=PATH" IND "unix socket for weir stats\n"
		"  shutdown-timeout=TIME" IND
		"how long the end may take to write what is dirty, 0 for "
		"ever" IND "(default 90s)",
		engine_config_help);
	plugin.config_help = help;
}

NBDKIT_REGISTER_PLUGIN(plugin)
