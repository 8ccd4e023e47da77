/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach-state.c: what is remembered of an attachment, in attach.h's layout.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "base/cleanup.h"

static const char *const via_names[] = {"auto", "nbd-client", "nbdfuse"};

char *attach_run_dir(void)
{
	const char *own = getenv("WEIR_RUNTIME_DIR");

	if (own && *own)
		return client_format("%s", own);
	return client_format("/run/weir");
}

char *attach_path(const struct attachment *a, const char *name)
{
	return client_format("%s/%s", a->dir, name);
}

static void attachment_init(struct attachment *a)
{
	*a = (struct attachment){.lock = -1};
}

/* Open and lock state.json; -1 with errno, EWOULDBLOCK if somebody has it. */
static int lock_state(const char *dir, int flags)
{
	CLEANUP_FREE char *path = client_format("%s/state.json", dir);
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	int saved;

	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int attach_state_new(const char *command, const struct attach_plan *plan,
	enum attach_via via, struct attachment *a)
{
	CLEANUP_FREE char *run = attach_run_dir();
	CLEANUP_FREE char *disk = NULL;

	attachment_init(a);
	if (mkdir(run, 0755) && errno != EEXIST)
		return client_error(EXIT_USAGE, command, "cannot make %s: %s",
			run, strerror(errno));
	a->dir = client_format("%s/attach-XXXXXX", run);
	if (!mkdtemp(a->dir)) {
		int r = client_error(EXIT_USAGE, command,
			"cannot make a directory in %s: %s", run,
			strerror(errno));

		free(a->dir);
		a->dir = NULL;
		return r;
	}
	a->uri = client_format("%s", plan->uri);
	a->via = via;
	a->lock = lock_state(a->dir, O_CREAT | O_EXCL);
	disk = attach_path(a, "disk");
	if (a->lock < 0 || mkdir(disk, 0700))
		return client_error(EXIT_USAGE, command, "cannot make %s: %s",
			disk, strerror(errno));
	return attach_state_save(command, a);
}

int attach_state_save(const char *command, const struct attachment *a)
{
	json_t *state = json_pack("{s:s,s:s,s:s?,s:I,s:I}", "uri", a->uri,
		"via", via_names[a->via], "device", a->device, "pid",
		(json_int_t)a->pid, "pid_start", (json_int_t)a->pid_start);
	CLEANUP_FREE char *text = json_dumps(state, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0;

	json_decref(state);
	if (!text || pwrite(a->lock, text, n, 0) != (ssize_t)n ||
		ftruncate(a->lock, (off_t)n))
		return client_error(EXIT_USAGE, command,
			"cannot write %s/state.json: %s", a->dir,
			strerror(errno));
	return EXIT_OK;
}

/* nbdfuse's pid from the file it wrote itself; 0: none, or of another. */
static pid_t pid_of_file(const struct attachment *a)
{
	CLEANUP_FREE char *path = attach_path(a, "nbdfuse.pid");
	FILE *f = fopen(path, "re");
	char comm[64], name[16] = "";
	int pid = 0;

	if (!f || fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	snprintf(comm, sizeof(comm), "/proc/%d/comm", pid);
	f = fopen(comm, "re");
	if (!f || !fgets(name, sizeof(name), f) || strcmp(name, "nbdfuse\n"))
		pid = 0;
	if (f)
		fclose(f);
	return pid;
}

/* A state file cut short still names its directory: enough to clean up. */
static void parse_state(json_t *state, struct attachment *a)
{
	const char *uri = json_string_value(json_object_get(state, "uri"));
	const char *via = json_string_value(json_object_get(state, "via"));
	const char *device =
		json_string_value(json_object_get(state, "device"));

	a->uri = client_format("%s", uri ? uri : "");
	a->device = device ? client_format("%s", device) : NULL;
	a->via = via && !strcmp(via, via_names[ATTACH_NBD]) ? ATTACH_NBD
							    : ATTACH_FUSE;
	a->pid = (pid_t)json_integer_value(json_object_get(state, "pid"));
	a->pid_start = (uint64_t)json_integer_value(
		json_object_get(state, "pid_start"));
	if (a->pid > 0 || a->via == ATTACH_NBD)
		return;
	a->pid = pid_of_file(a);
	a->pid_start = attach_pid_start(a->pid);
}

static int load(const char *dir, struct attachment *a)
{
	json_t *state;

	attachment_init(a);
	a->lock = lock_state(dir, O_CREAT);
	if (a->lock < 0)
		return -errno;
	a->dir = client_format("%s", dir);
	state = json_loadfd(a->lock, 0, NULL);
	parse_state(state, a);
	json_decref(state);
	return 0;
}

bool attach_state_next(void *dirstream, struct attachment *a)
{
	CLEANUP_FREE char *run = attach_run_dir();
	struct dirent *entry;

	while ((entry = readdir(dirstream))) {
		CLEANUP_FREE char *dir = NULL;

		if (strncmp(entry->d_name, "attach-", 7))
			continue;
		dir = client_format("%s/%s", run, entry->d_name);
		if (!load(dir, a))
			return true;
	}
	return false;
}

/* Does the directory's state name the device? Read without the lock. */
static bool names_device(const char *dir, const char *device)
{
	CLEANUP_FREE char *path = client_format("%s/state.json", dir);
	json_t *state = json_load_file(path, 0, NULL);
	const char *named = json_string_value(json_object_get(state, "device"));
	bool match = named && !strcmp(named, device);

	json_decref(state);
	return match;
}

/* The attachment's directory, to free(): the one the loop device's file is
 * in (what the kernel says goes first), else the one that names the device. */
static char *find_dir(const char *device)
{
	CLEANUP_FREE char *run = attach_run_dir();
	CLEANUP_FREE char *file = attach_loop_file(device);
	char *found = NULL;
	struct dirent *entry;
	DIR *stream = opendir(run);

	while (stream && !found && (entry = readdir(stream))) {
		char *dir;

		if (strncmp(entry->d_name, "attach-", 7))
			continue;
		dir = client_format("%s/%s", run, entry->d_name);
		if (file ? !strncmp(file, dir, strlen(dir)) &&
					file[strlen(dir)] == '/'
			 : names_device(dir, device))
			found = dir;
		else
			free(dir);
	}
	if (stream)
		closedir(stream);
	return found;
}

int attach_state_find(
	const char *command, const char *device, struct attachment *a)
{
	CLEANUP_FREE char *dir = find_dir(device);
	int r;

	attachment_init(a);
	if (!dir)
		return EXIT_OK;
	r = load(dir, a);
	if (r == -EWOULDBLOCK)
		return client_error(EXIT_USAGE, command,
			"%s: another weir is attaching or detaching it",
			device);
	if (r)
		return client_error(
			EXIT_USAGE, command, "%s: %s", dir, strerror(-r));
	if (!a->device)
		a->device = client_format("%s", device);
	return EXIT_OK;
}

int attach_state_remove(const char *command, const struct attachment *a)
{
	static const char *const files[] = {
		"nbdfuse.pid", "nbdfuse.log", "state.json"};
	CLEANUP_FREE char *disk = attach_path(a, "disk");

	if (rmdir(disk) && errno != ENOENT)
		return client_error(EXIT_IO, command, "cannot remove %s: %s",
			disk, strerror(errno));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		CLEANUP_FREE char *path = attach_path(a, files[i]);

		unlink(path);
	}
	if (rmdir(a->dir) && errno != ENOENT)
		return client_error(EXIT_IO, command, "cannot remove %s: %s",
			a->dir, strerror(errno));
	return EXIT_OK;
}

void attach_state_free(struct attachment *a)
{
	if (a->lock >= 0)
		close(a->lock);
	free(a->dir);
	free(a->uri);
	free(a->device);
	attachment_init(a);
}
