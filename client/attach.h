/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach.h: an export as a block device: what `weir attach` makes and
 * `weir detach` takes apart.
 *
 *   nbd-client:  DEVICE /dev/nbdN  -> kernel -> server
 *   nbdfuse:     DEVICE /dev/loopN -> DIR/disk/nbd (FUSE) -> nbdfuse -> server
 *
 * Each attachment has a directory under attach_run_dir():
 *
 *   attach-XXXXXX/state.json   uri, via, device, pid; locked while in work
 *                 disk/        where nbdfuse is mounted
 *                 nbdfuse.pid  written by nbdfuse when it serves
 *                 nbdfuse.log  what it had to say
 *
 *  1. The directory is there before the first thing in it, and state.json
 *     names each thing as soon as it exists: whatever moment an attach is
 *     cut short at, detach can clean up behind it.
 *  2. Taking apart goes the other way, each step fine with its thing gone.
 *  3. Who works on an attachment holds the lock of its state.json.
 */
#ifndef WEIR_CLIENT_ATTACH_H
#define WEIR_CLIENT_ATTACH_H

#include <sys/types.h>

#include "client.h"

enum attach_via {
	ATTACH_AUTO,
	ATTACH_NBD,
	ATTACH_FUSE
};

struct attachment {
	char *dir;
	char *uri;
	char *device; /* NULL: none yet */
	enum attach_via via;
	pid_t pid;          /* nbdfuse's; 0: none */
	uint64_t pid_start; /* its start time, for a pid used again */
	int lock;           /* state.json, locked */
};

/* What the user asked for, and what the server said of the export. */
struct attach_plan {
	const char *uri;
	bool readonly;
	unsigned connections; /* 0: as the tool likes it */
	unsigned block_size;  /* logical sector, bytes */
	uint64_t size;        /* bytes */
};

/* --- attach-state.c: every function says its error ----------------------- */

/* /run/weir, or $WEIR_RUNTIME_DIR; to free(). */
char *attach_run_dir(void);

/* A new, locked attachment. EXIT_OK or an exit code. */
int attach_state_new(const char *command, const struct attach_plan *plan,
	enum attach_via via, struct attachment *a);
int attach_state_save(const char *command, const struct attachment *a);

/* Find and lock the attachment of a device. EXIT_OK with dir NULL: none. */
int attach_state_find(
	const char *command, const char *device, struct attachment *a);

/* Load and lock the next attachment of the run directory's stream that is
 * not locked by somebody at work; false at the end. */
bool attach_state_next(void *dirstream, struct attachment *a);

/* Remove the directory and what it holds. */
int attach_state_remove(const char *command, const struct attachment *a);

/* Let go of lock and memory. */
void attach_state_free(struct attachment *a);

/* A path in the attachment's directory, to free(). */
char *attach_path(const struct attachment *a, const char *name);

/* --- attach-loop.c ------------------------------------------------------- */

/* A free loop device on `file`, its name to free() in *device. */
int attach_loop_bind(const char *command, const char *file,
	const struct attach_plan *plan, char **device);

/* Take the device off its file and wait until it is. */
int attach_loop_clear(const char *command, const char *device);

/* The file behind a loop device, to free(); NULL: none, or no loop device. */
char *attach_loop_file(const char *device);

/* --- attach-process.c ---------------------------------------------------- */

/* Start `argv` in a session of its own, output to the file `log`. */
int attach_spawn(const char *command, const char *const *argv, const char *log,
	pid_t *pid);

/* Run `argv` to its end; its output is an error's text. EXIT_OK if it
 * exits 0. */
int attach_run(const char *command, const char *const *argv);

/* When a process started, in clock ticks since boot; 0: it is not there. */
uint64_t attach_pid_start(pid_t pid);

/* Wait until the process has ended, `timeout_ms` at most; false: it is still
 * there. */
bool attach_pid_wait(pid_t pid, uint64_t start, int timeout_ms);

/* True if PATH has the program. */
bool attach_have_program(const char *name);

/* --- attach-fuse.c, attach-nbd.c ----------------------------------------- */

/* Make the device; on failure what was made stays in `a`, for detach. */
int attach_fuse(const char *command, const struct attach_plan *plan,
	struct attachment *a);
int attach_nbd(const char *command, const struct attach_plan *plan,
	struct attachment *a);

/* True if the kernel has nbd, loaded or to load. */
bool attach_nbd_possible(void);

/* Take the kernel's nbd device off its server. */
int attach_nbd_clear(const char *command, const char *device);

/* --- detach.c ------------------------------------------------------------ */

/* Take apart whatever of the attachment is there, flushing first unless
 * `force`, and remove its state. */
int detach_teardown(const char *command, struct attachment *a, bool force);

#endif
