/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.c: "exec:[KEY=VALUE ...] COMMAND ...": a command that serves NBD on the
 * socket it is given (nbdkit, qemu-nbd), started by us, as a store. All but
 * the command itself is nbd.h.
 *
 * The command is cut up as a shell would, without its expansions:
 *
 *   blanks    end a word
 *   '...'     taken as it is
 *   "..."     \" and \\ are " and \
 *   \c        c, whatever it is
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nbd.h"

/* --- words ----------------------------------------------------------------- */

struct words {
	const char *at; /* what is left to read */
	char *word;     /* the one being read, with room for all of it */
	size_t used;
};

/* In single quotes: up to the next one. */
static int read_single(struct words *w, struct error *error)
{
	const char *end = strchr(w->at, '\'');

	if (!end)
		return error_set(
			error, -EINVAL, "a \"'\" is not closed: '%s", w->at);
	memcpy(w->word + w->used, w->at, (size_t)(end - w->at));
	w->used += (size_t)(end - w->at);
	w->at = end + 1;
	return 0;
}

static int read_double(struct words *w, struct error *error)
{
	const char *start = w->at;

	for (; *w->at && *w->at != '"'; w->at++) {
		if (*w->at == '\\' && (w->at[1] == '"' || w->at[1] == '\\'))
			w->at++;
		w->word[w->used++] = *w->at;
	}
	if (!*w->at)
		return error_set(
			error, -EINVAL, "a '\"' is not closed: \"%s", start);
	w->at++;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static int read_word(struct words *w, struct error *error)
{
	int err = 0;

	w->used = 0;
	while (!err && *w->at && !is_blank(*w->at)) {
		char c = *w->at++;

		if (c == '\'')
			err = read_single(w, error);
		else if (c == '"')
			err = read_double(w, error);
		else if (c == '\\' && !*w->at)
			err = error_set(error, -EINVAL,
				"a \"\\\" at the end quotes nothing");
		else
			w->word[w->used++] = c == '\\' ? *w->at++ : c;
	}
	w->word[w->used] = '\0';
	return err;
}

static int add_word(struct remote_target *t, size_t *n, const char *word,
	struct error *error)
{
	char **argv = realloc(t->argv, (*n + 2) * sizeof *argv);

	if (!argv)
		return error_set(error, -ENOMEM, "out of memory");
	t->argv = argv;
	argv[*n] = strdup(word);
	argv[*n + 1] = NULL;
	if (!argv[*n])
		return error_set(error, -ENOMEM, "out of memory");
	++*n;
	return 0;
}

/* Before the command come options of ours; -ENOENT: it is none. */
static int own_option(struct remote_target *t, char *word, struct error *error)
{
	char *equals = strchr(word, '=');
	int err;

	if (!equals || strchr(word, '/'))
		return -ENOENT;
	*equals = '\0';
	err = !strncmp(word, "tls-", 4)
		? -ENOENT
		: target_option(t, word, equals + 1, error);
	if (err == -ENOENT)
		return error_set(error, -EINVAL,
			"unknown option \"%s\" before the command (there are "
			"connections and reconnect-timeout)",
			word);
	return err;
}

static int parse_words(
	struct remote_target *t, struct words *w, struct error *error)
{
	size_t n = 0;
	int err = 0;

	while (!err) {
		w->at += strspn(w->at, " \t\n");
		if (!*w->at)
			break;
		err = read_word(w, error);
		if (!err && !n) {
			err = own_option(t, w->word, error);
			if (err != -ENOENT)
				continue;
			err = 0;
		}
		if (!err)
			err = add_word(t, &n, w->word, error);
	}
	if (!err && !n)
		return error_set(error, -EINVAL,
			"no command (such as exec:nbdkit memory 1G)");
	return err;
}

static int parse(const struct store_open_args *args, struct remote_target *t,
	struct error *error)
{
	struct words w = {
		.at = args->rest,
		.word = malloc(strlen(args->rest) + 1),
	};
	int err = -ENOMEM;

	t->name = strdup(args->spec);
	if (t->name && w.word)
		err = parse_words(t, &w, error);
	else
		error_set(error, err, "out of memory");
	free(w.word);
	return err;
}

static int exec_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	return remote_open(args, parse, out, error);
}

const struct store_kind store_kind_exec = {.name = "exec", .open = exec_open};
