/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * durable.c: does a server that was killed have all it promised?
 *
 *   durable write URI LOG SEED    write and flush until the server is gone;
 *                                 LOG gets a line for each flush that went
 *                                 through
 *   durable verify URI LOG SEED   read it all back from another server
 *
 * The operations follow from the seed: batches of writes, zeroes and trims,
 * all of a batch in flight at once, each batch on other blocks, then a flush.
 * After the last flush in the log one more batch may have been sent. So each
 * sector must hold what the last flushed batch that touched it left there, or
 * what the batch after that did.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libnbd.h>

#include "base/random.h"
#include "model-shadow.h"

#define BLOCK 4096U
#define BLOCKS 4096U
#define BATCH 16U
#define SPREAD (BLOCKS / BATCH) /* an operation's own part of the device */
#define LENGTH_MAX 16U          /* blocks */

enum kind {
	WRITE,
	ZERO,
	TRIM,
};

struct operation {
	enum kind kind;
	uint32_t id;
	unsigned first, count; /* blocks */
};

static struct operation operation(uint64_t seed, uint32_t batch, unsigned slot)
{
	uint64_t random = seed ^ (((uint64_t)batch << 8) | slot);
	struct operation o = {.id = batch * BATCH + slot + 1};
	unsigned kind;

	random_next(&random);
	kind = (unsigned)random_below(&random, 8);
	o.kind = kind == 0 ? ZERO : kind == 1 ? TRIM : WRITE;
	o.count = 1 + (unsigned)random_below(&random, LENGTH_MAX);
	o.first = slot * SPREAD +
		(unsigned)random_below(&random, SPREAD - o.count + 1);
	return o;
}

static struct nbd_handle *connect_to(const char *uri)
{
	struct nbd_handle *nbd = nbd_create();

	if (!nbd || nbd_connect_uri(nbd, uri) == -1) {
		fprintf(stderr, "durable: %s\n", nbd_get_error());
		exit(2);
	}
	if (nbd_get_size(nbd) < (int64_t)BLOCKS * BLOCK) {
		fprintf(stderr, "durable: the export is too small\n");
		exit(2);
	}
	return nbd;
}

/* --- writing ------------------------------------------------------------- */

static int64_t start(
	struct nbd_handle *nbd, const struct operation *o, unsigned char *buf)
{
	uint64_t offset = (uint64_t)o->first * BLOCK;
	uint64_t length = (uint64_t)o->count * BLOCK;

	switch (o->kind) {
	case ZERO:
		return nbd_aio_zero(
			nbd, length, offset, NBD_NULL_COMPLETION, 0);
	case TRIM:
		return nbd_aio_trim(
			nbd, length, offset, NBD_NULL_COMPLETION, 0);
	default:
		data_fill(buf, o->id, offset, length);
		return nbd_aio_pwrite(
			nbd, buf, length, offset, NBD_NULL_COMPLETION, 0);
	}
}

/* False: the server is gone. */
static bool finish(struct nbd_handle *nbd, int64_t cookie)
{
	int done;

	while ((done = nbd_aio_command_completed(nbd, (uint64_t)cookie)) == 0) {
		if (nbd_poll(nbd, -1) == -1)
			return false;
	}
	return done == 1;
}

static bool write_batch(struct nbd_handle *nbd, uint64_t seed, uint32_t batch)
{
	static unsigned char buf[BATCH][LENGTH_MAX * BLOCK];
	int64_t cookie[BATCH];

	for (unsigned i = 0; i < BATCH; i++) {
		struct operation o = operation(seed, batch, i);

		cookie[i] = start(nbd, &o, buf[i]);
		if (cookie[i] == -1)
			return false;
	}
	for (unsigned i = 0; i < BATCH; i++) {
		if (!finish(nbd, cookie[i]))
			return false;
	}
	return nbd_flush(nbd, 0) == 0;
}

static int write_until_gone(const char *uri, const char *log, uint64_t seed)
{
	struct nbd_handle *nbd = connect_to(uri);
	FILE *f = fopen(log, "a");
	uint32_t batch = 0;

	if (!f) {
		perror(log);
		return 2;
	}
	while (write_batch(nbd, seed, batch)) {
		fprintf(f, "%" PRIu32 "\n", ++batch);
		fflush(f);
	}
	return 0;
}

/* --- verifying ----------------------------------------------------------- */

/* What a block may hold: what was flushed last, and what came after; 0 is
 * zeroes. */
struct block {
	uint32_t id, later;
	bool touched; /* by what came after */
};

static uint32_t flushed(const char *log)
{
	FILE *f = fopen(log, "r");
	uint32_t n = 0;

	if (!f) {
		perror(log);
		exit(2);
	}
	while (fscanf(f, "%" SCNu32, &n) == 1)
		;
	fclose(f);
	return n;
}

static void expect(struct block *block, uint64_t seed, uint32_t batches)
{
	for (uint32_t batch = 0; batch <= batches; batch++) {
		for (unsigned i = 0; i < BATCH; i++) {
			struct operation o = operation(seed, batch, i);
			uint32_t id = o.kind == WRITE ? o.id : 0;

			for (unsigned b = o.first; b < o.first + o.count; b++) {
				block[b].touched = batch == batches;
				block[b].later = id;
				if (batch < batches)
					block[b].id = id;
			}
		}
	}
}

static bool sector_fits(
	const struct block *b, const unsigned char *data, uint64_t offset)
{
	return data_is(data, b->id, offset, SECTOR) ||
		(b->touched && data_is(data, b->later, offset, SECTOR));
}

static unsigned wrong_sectors(
	const struct block *b, const unsigned char *data, uint64_t offset)
{
	unsigned wrong = 0;

	for (unsigned at = 0; at < BLOCK; at += SECTOR) {
		uint64_t where;
		uint32_t id;

		if (sector_fits(b, data + at, offset + at))
			continue;
		if (!wrong++ && data_decode(data + at, &id, &where))
			fprintf(stderr,
				"durable: at %" PRIu64 ": %" PRIu32
				" of %" PRIu64 ", not %" PRIu32 "%s\n",
				offset + at, id, where, b->id,
				b->touched ? " or what came after" : "");
	}
	return wrong;
}

static int verify(const char *uri, const char *log, uint64_t seed)
{
	static struct block block[BLOCKS];
	static unsigned char data[BLOCK];
	struct nbd_handle *nbd = connect_to(uri);
	uint32_t batches = flushed(log);
	unsigned wrong = 0;

	expect(block, seed, batches);
	for (unsigned b = 0; b < BLOCKS; b++) {
		uint64_t offset = (uint64_t)b * BLOCK;

		if (nbd_pread(nbd, data, BLOCK, offset, 0) == -1) {
			fprintf(stderr, "durable: %s\n", nbd_get_error());
			return 2;
		}
		wrong += wrong_sectors(&block[b], data, offset);
	}
	printf("%" PRIu32 " batches flushed, %u sectors wrong\n", batches,
		wrong);
	nbd_shutdown(nbd, 0);
	nbd_close(nbd);
	return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc == 5 ? strtoull(argv[4], NULL, 0) : 0;

	if (argc == 5 && strcmp(argv[1], "write") == 0)
		return write_until_gone(argv[2], argv[3], seed);
	if (argc == 5 && strcmp(argv[1], "verify") == 0)
		return verify(argv[2], argv[3], seed);
	fprintf(stderr, "usage: durable write|verify URI LOG SEED\n");
	return 2;
}
