/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option-keys.h: the one table of the server's own options; the engine's keys
 * are config-keys.h's. The command line, --help and the suggestions are made
 * from it.
 *
 * A new option is a row in option-keys.c, a member of struct options and, if
 * that is not 0, its default in options_init().
 */
#ifndef WEIR_SERVER_OPTION_KEYS_H
#define WEIR_SERVER_OPTION_KEYS_H

#include "options.h"

enum option_kind {
	OPTION_FLAG,   /* bool */
	OPTION_TEXT,   /* char *, owned */
	OPTION_NUMBER, /* unsigned, in [min, max] */
	OPTION_PORT,   /* char *, owned; a number in [min, max] */
	OPTION_TIME,   /* uint64_t of nanoseconds */
	OPTION_ENUM,  /* an enum that counts from 0 in the order of the words */
	OPTION_ALLOW, /* one more of tls.allow */
	OPTION_SHOW,  /* asks for nothing but an answer */
};

/* Where it may stand, besides the command line. */
enum option_scope {
	OPTION_SERVER, /* in [server] */
	OPTION_EXPORT, /* about the export: in [export NAME], as it is called there */
	OPTION_SHELL, /* nowhere */
};

struct option_key {
	const char *name;
	const char *also[2]; /* other names of it, or NULL */
	char letter;         /* or 0 */
	enum option_kind kind;
	enum option_scope scope;
	const char *arg; /* what stands for the value in --help, or NULL */
	size_t at;       /* of the member, in struct options */
	unsigned min, max;
	const char *const *words; /* NULL ends them */
	bool live; /* can change while it runs; only loop 0 reads it */
	bool word; /* KEY=VALUE among the words, as the plugin has it */
	const char *help;
};

/* The n-th, in the order of --help; NULL after the last. */
const struct option_key *option_key(unsigned n);

/* The one of that name, which may be another name of it; NULL: none. */
const struct option_key *option_find(const char *name);

/*
 * Set it from text; NULL for a flag is "yes". NULL, or why not: for after
 * "NAME VALUE: ". `text` is room for that.
 */
const char *option_set(struct options *o, const struct option_key *k,
	const char *value, char *text, size_t size);

/* Write the parts of --help that are about them to stdout: the options, and
 * those that are KEY=VALUE. */
void option_help(void);
void option_help_words(void);

#endif
