/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: weir-server: the command line, the background, the exit code.
 *
 * In the background the work is done by a child, forked before any loop or
 * thread exists. The parent ends when the child says over a pipe that it is
 * ready, or with the child's exit code when that ends before.
 *
 * Exit: 0 all is flushed; 1 usage or set-up; 2 data could not be written.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "server.h"

static void to_syslog(void *arg, enum log_level level, const char *line)
{
	static const int priority[] = {
		[LOG_LEVEL_ERROR] = LOG_ERR,
		[LOG_LEVEL_WARNING] = LOG_WARNING,
		[LOG_LEVEL_INFO] = LOG_INFO,
		[LOG_LEVEL_DEBUG] = LOG_DEBUG,
	};

	(void)arg;
	syslog(priority[level], "%s", line);
}

static void set_up_log(const struct options *o, bool background)
{
	enum log_level max = o->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO;

	/* Until it is ready, to standard error as well. */
	if (background)
		openlog("weir-server", LOG_PERROR, LOG_DAEMON);
	log_setup("weir-server", max, background ? to_syslog : NULL, NULL);
}

/* Let go of the terminal and release the parent; of the directory too, unless
 * the names in a file that may be read again are relative to it. */
static void leave_parent(const struct options *o, int ready_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		if (null > STDERR_FILENO)
			close(null);
	}
	if (!o->config && chdir("/"))
		log_warning("cannot change to /: %s", strerror(errno));
	if (write(ready_fd, "", 1) != 1)
		log_warning("the starting process has gone");
	close(ready_fd);
}

/* `ready_fd`: -1 in the foreground. */
static int serve(struct options *o, int ready_fd)
{
	struct server *s = calloc(1, sizeof(*s));
	struct error error = {""};
	char where[512];
	int r = -ENOMEM;

	if (!s) {
		log_error("no memory");
		return EXIT_FAILURE;
	}
	r = o->swap ? swap_prepare(&error) : 0;
	if (!r)
		r = server_open(s, o, &error);
	if (!r && o->pidfile)
		r = server_write_pidfile(s, &error);
	if (r) {
		log_error("%s", error.text);
		r = EXIT_FAILURE;
	} else {
		server_describe(s, where, sizeof(where));
		if (o->nexports == 1)
			log_info("ready: %s at %s", o->exports[0]->store->name,
				where);
		else
			log_info("ready: %u exports of %u stores, at %s",
				o->nexports, o->nstores, where);
		if (ready_fd >= 0)
			leave_parent(o, ready_fd);
		r = server_run(s);
	}
	server_close(s);
	free(s);
	return r;
}

/* The parent: wait for a byte, or for the child's end. */
static int wait_ready(int fd, pid_t child)
{
	char byte;
	int status;
	ssize_t n;

	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return EXIT_SUCCESS;
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return EXIT_FAILURE;
	return WEXITSTATUS(status);
}

static int serve_in_background(struct options *o)
{
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC)) {
		log_error("cannot make a pipe: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	child = fork();
	if (child < 0) {
		log_error("cannot fork: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (child) {
		close(fds[1]);
		return wait_ready(fds[0], child);
	}
	close(fds[0]);
	setsid();
	return serve(o, fds[1]);
}

int main(int argc, char **argv)
{
	struct options options;
	struct errors errors = {0};
	int r;

	log_setup("weir-server", LOG_LEVEL_INFO, NULL, NULL);
	r = options_parse(&options, argc, argv, &errors);
	if (r < 0) {
		errors_log(&errors);
		r = EXIT_FAILURE;
	} else if (r > 0) {
		r = EXIT_SUCCESS;
	} else {
		signal(SIGPIPE, SIG_IGN);
		set_up_log(&options, !options.foreground);
		if (options.foreground)
			r = serve(&options, -1);
		else
			r = serve_in_background(&options);
	}
	errors_free(&errors);
	options_free(&options);
	return r;
}
