/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz-main.c: run a fuzz target without libFuzzer.
 *
 *	fuzz-X FILE|FOLDER...            each file once
 *	fuzz-X <FILE                     one input: for afl-fuzz, also as FILE
 *	fuzz-X --runs N [--seed N] [--keep FILE] FILE|FOLDER...
 *	                                 then N inputs made from those
 *
 * An input that takes over LIMIT_S ends the program by SIGALRM. --keep writes
 * each input before it is run, so that the one that ended it is there.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "fuzz.h"

#define LIMIT_S 60U
#define INPUT_MAX (64U << 10) /* bytes */

struct input {
	uint8_t *data;
	size_t size;
};

struct run {
	struct input *corpus;
	size_t n;
	uint64_t runs;
	uint64_t random;
	const char *keep; /* or NULL */
};

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* --- inputs --------------------------------------------------------------- */

static struct input read_input(FILE *f)
{
	struct input in = {malloc(INPUT_MAX), 0};

	if (!in.data)
		die("an input");
	in.size = fread(in.data, 1, INPUT_MAX, f);
	return in;
}

static void add_file(struct run *r, const char *path)
{
	FILE *f = fopen(path, "rb");

	r->corpus = realloc(r->corpus, (r->n + 1) * sizeof(*r->corpus));
	if (!f || !r->corpus)
		die(path);
	r->corpus[r->n++] = read_input(f);
	fclose(f);
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* A file, or those in a folder, in the order of their names. */
static void add_path(struct run *r, const char *path)
{
	struct dirent **names;
	struct stat st;
	char file[4096];
	int n;

	if (stat(path, &st))
		die(path);
	if (!S_ISDIR(st.st_mode)) {
		add_file(r, path);
		return;
	}
	n = scandir(path, &names, is_shown, alphasort);
	if (n < 0)
		die(path);
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		add_file(r, file);
		free(names[i]);
	}
	free(names);
}

/* --- changes -------------------------------------------------------------- */

static size_t at_random(struct run *r, size_t limit)
{
	return (size_t)random_below(&r->random, limit);
}

/* Make room for `n` bytes at `at`. */
static void open_gap(struct input *in, size_t at, size_t n)
{
	memmove(in->data + at + n, in->data + at, in->size - at);
	in->size += n;
}

static void put_byte(struct run *r, struct input *in)
{
	if (in->size)
		in->data[at_random(r, in->size)] = (uint8_t)at_random(r, 256);
}

static void flip_bit(struct run *r, struct input *in)
{
	if (in->size)
		in->data[at_random(r, in->size)] ^=
			(uint8_t)(1 << at_random(r, 8));
}

/* A number at which something ends, big-endian. */
static void put_number(struct run *r, struct input *in)
{
	unsigned bits = (unsigned)at_random(r, 33);
	uint32_t v = (uint32_t)((UINT64_C(1) << bits) + at_random(r, 3) - 1);

	if (in->size < 4)
		return;
	for (uint8_t *p = in->data + at_random(r, in->size - 3), i = 0; i < 4;
		i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void cut(struct run *r, struct input *in)
{
	size_t at = at_random(r, in->size + 1);
	size_t n = at_random(r, in->size - at + 1);

	memmove(in->data + at, in->data + at + n, in->size - at - n);
	in->size -= n;
}

/* A part of some input, in between. */
static void splice(struct run *r, struct input *in)
{
	const struct input *from = &r->corpus[at_random(r, r->n)];
	size_t begin = at_random(r, from->size + 1);
	size_t n = at_random(r, from->size - begin + 1);
	size_t at = at_random(r, in->size + 1);

	if (n > INPUT_MAX - in->size)
		return;
	open_gap(in, at, n);
	memcpy(in->data + at, from->data + begin, n);
}

static void mutate(struct run *r, struct input *in)
{
	static void (*const ways[])(struct run * r, struct input * in) = {
		put_byte, flip_bit, put_number, put_number, cut, splice};
	const struct input *from = &r->corpus[at_random(r, r->n)];

	memcpy(in->data, from->data, from->size);
	in->size = from->size;
	for (size_t n = 1 + at_random(r, 4); n; n--)
		ways[at_random(r, sizeof(ways) / sizeof(ways[0]))](r, in);
}

/* --- running -------------------------------------------------------------- */

static void keep(const char *path, const struct input *in)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(in->data, 1, in->size, f) != in->size || fclose(f))
		die(path);
}

/* From memory of exactly its size, so that ASan sees where it ends. */
static void run_one(const struct run *r, const struct input *in)
{
	uint8_t *exact = malloc(in->size);

	if (!exact && in->size)
		die("an input");
	if (in->size)
		memcpy(exact, in->data, in->size);
	if (r->keep)
		keep(r->keep, in);
	alarm(LIMIT_S);
	LLVMFuzzerTestOneInput(exact, in->size);
	alarm(0);
	free(exact);
}

static void run_all(struct run *r)
{
	struct input in = {malloc(INPUT_MAX), 0};

	if (!in.data)
		die("an input");
	for (size_t i = 0; i < r->n; i++)
		run_one(r, &r->corpus[i]);
	for (uint64_t i = 0; r->n && i < r->runs; i++) {
		mutate(r, &in);
		run_one(r, &in);
	}
	printf("%zu inputs, %" PRIu64 " made from them\n", r->n, r->runs);
	free(in.data);
}

/* The options; the index of the first path. */
static int options(struct run *r, int argc, char **argv)
{
	int i = 1;

	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (!strcmp(argv[i], "--runs"))
			r->runs = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			r->random = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--keep"))
			r->keep = argv[i + 1];
		else
			break;
	}
	if (i < argc && argv[i][0] == '-') {
		fprintf(stderr, "%s: see the head of fuzz-main.c\n", argv[i]);
		exit(1);
	}
	return i;
}

#ifdef __AFL_FUZZ_TESTCASE_LEN
__AFL_FUZZ_INIT();

/* afl-clang-fast: many inputs in one process. */
static void run_afl(void)
{
	const uint8_t *data = __AFL_FUZZ_TESTCASE_BUF;

	while (__AFL_LOOP(10000))
		LLVMFuzzerTestOneInput(data, __AFL_FUZZ_TESTCASE_LEN);
}
#else
static void run_afl(void)
{
}
#endif

int main(int argc, char **argv)
{
	struct run r = {.random = 1};
	int i = options(&r, argc, argv);

	if (getenv("__AFL_SHM_ID"))
		run_afl();
	for (; i < argc; i++)
		add_path(&r, argv[i]);
	if (!r.n) {
		r.corpus = malloc(sizeof(*r.corpus));
		if (!r.corpus)
			die("an input");
		r.corpus[r.n++] = read_input(stdin);
	}
	run_all(&r);
	if (r.keep)
		unlink(r.keep);
	while (r.n)
		free(r.corpus[--r.n].data);
	free(r.corpus);
	return 0;
}
