/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volatile.c: a file behind a volatile write cache.
 *
 *   current   private mapping of the file: what reads see. A page that was
 *             never written shows the file itself.
 *   durable   shared mapping of the file: what a power cut leaves
 *   pending   the writes, in order, that are in current but maybe not in
 *             durable; trims and zeroes are writes of zeroes
 *
 * 1. A write is put in pending when it is submitted, and in current half of
 *    its sectors then and half at its end; a read takes place by halves too.
 *    So one beside the other sees a mix, as on a disk. A write is applied to durable when a flush that was submitted after its completion
 *    completes, or by its own completion if it had FUA.
 * 2. Sectors of 512 bytes are written whole or not at all, each on its own.
 *    A sector of a pending write that must not reach durable any more is
 *    marked dead: overtaken by a FUA write, or lost by a failed flush.
 * 3. After a power cut nothing changes durable.
 *
 * Any loops at once; `lock` guards everything.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../base/bitmap.h"
#include "../base/cleanup.h"
#include "../base/iov.h"
#include "../base/random.h"
#include "../base/zero.h"
#include "kind.h"
#include "volatile.h"

#define SECTOR 512U

struct volatile_store {
	struct store base;
	char *current, *durable;
	pthread_mutex_t lock;
	struct list pending; /* struct pending */
	uint64_t completed;  /* writes so far */
	bool off;            /* the power is cut */
};

struct pending {
	struct list link;
	uint64_t offset;
	unsigned sectors;
	uint64_t completion; /* its number; 0: in flight */
	uint64_t *dead;      /* a bit a sector */
	char *data;          /* NULL: zeroes */
};

/* An io in flight, in its priv. */
struct command {
	struct volatile_store *store;
	struct pending *write; /* WRITE, TRIM, ZERO that started */
	uint64_t completion;   /* of the store when it was submitted */
};

static struct volatile_store *to_volatile(const struct store *s)
{
	return container_of(
		(struct store *)(uintptr_t)s, struct volatile_store, base);
}

static void pending_free(struct pending *w)
{
	list_remove(&w->link);
	free(w->dead);
	free(w->data);
	free(w);
}

static struct pending *pending_new(const struct store_io *io)
{
	struct pending *w = calloc(1, sizeof *w);
	struct iov_cursor c = {.iov = io->iov};

	if (!w)
		return NULL;
	list_init(&w->link);
	w->offset = io->offset;
	w->sectors = (unsigned)(io->length / SECTOR);
	w->dead = calloc(BITMAP_WORDS((size_t)w->sectors), sizeof *w->dead);
	if (io->op == STORE_WRITE)
		w->data = malloc(io->length);
	if (!w->dead || (io->op == STORE_WRITE && !w->data)) {
		pending_free(w);
		return NULL;
	}
	if (w->data)
		iov_gather(w->data, &c, io->length);
	return w;
}

/* Its sectors from `first` on, to where they lie in an image. */
static void pending_copy(
	const struct pending *w, char *image, unsigned first, unsigned count)
{
	size_t at = (size_t)first * SECTOR, length = (size_t)count * SECTOR;

	if (w->data)
		memcpy(image + w->offset + at, w->data + at, length);
	else
		memset(image + w->offset + at, 0, length);
}

/* Bring its living sectors to an image of the medium. */
static void pending_apply(const struct pending *w, char *image)
{
	unsigned at = 0, end;

	while (at < w->sectors) {
		at = bitmap_find(w->dead, at, w->sectors, false);
		end = bitmap_find(w->dead, at, w->sectors, true);
		pending_copy(w, image, at, end - at);
		at = end;
	}
}

/* `older` must not be applied any more where `w` wrote. */
static void pending_overtake(struct pending *older, const struct pending *w)
{
	uint64_t from = older->offset > w->offset ? older->offset : w->offset;
	uint64_t end = older->offset + (uint64_t)older->sectors * SECTOR;
	uint64_t w_end = w->offset + (uint64_t)w->sectors * SECTOR;

	if (end > w_end)
		end = w_end;
	if (from < end)
		bitmap_set(older->dead,
			(unsigned)((from - older->offset) / SECTOR),
			(unsigned)((end - from) / SECTOR));
}

static void volatile_write_done(
	struct volatile_store *v, struct pending *w, unsigned flags)
{
	w->completion = ++v->completed;
	if (!(flags & STORE_FUA))
		return;
	pending_apply(w, v->durable);
	for (struct list *node = w->link.prev; node != &v->pending;
		node = node->prev)
		pending_overtake(list_entry(node, struct pending, link), w);
	pending_free(w);
}

/* All writes up to that completion are durable. */
static void volatile_flush_done(struct volatile_store *v, uint64_t completion)
{
	list_for_each_safe (node, &v->pending) {
		struct pending *w = list_entry(node, struct pending, link);

		if (!w->completion || w->completion > completion)
			continue;
		pending_apply(w, v->durable);
		pending_free(w);
	}
}

/* Every other sector of a read or a write, from sector `half` on. */
static void volatile_half(
	struct volatile_store *v, const struct store_io *io, unsigned half)
{
	const struct command *cmd = io->priv;
	struct iov_cursor c = {.iov = io->iov};
	char *at = v->current + io->offset;

	for (unsigned i = half; i < io->length / SECTOR; i += 2) {
		if (cmd->write) {
			pending_copy(cmd->write, v->current, i, 1);
		} else {
			iov_skip(&c, (i == half ? half : 1) * SECTOR);
			iov_scatter(&c, at + (size_t)i * SECTOR, SECTOR);
		}
	}
}

static void volatile_done(struct reactor_task *task)
{
	struct store_io *io = container_of(task, struct store_io, task);
	struct command *cmd = io->priv;
	struct volatile_store *v = cmd->store;

	pthread_mutex_lock(&v->lock);
	if (!v->off && !io->error && (cmd->write || io->op == STORE_READ))
		volatile_half(v, io, 1);
	if (v->off)
		io->error = -EIO;
	else if (cmd->write)
		volatile_write_done(v, cmd->write, io->flags);
	else if (io->op == STORE_FLUSH)
		volatile_flush_done(v, cmd->completion);
	pthread_mutex_unlock(&v->lock);
	free(cmd);
	io->done(io);
}

static int volatile_write(struct volatile_store *v, struct command *cmd,
	const struct store_io *io)
{
	if (v->base.info.readonly)
		return -EROFS;
	cmd->write = pending_new(io);
	if (!cmd->write)
		return -ENOMEM;
	list_push_tail(&v->pending, &cmd->write->link);
	volatile_half(v, io, 0);
	return 0;
}

/* What is zeroes now is told as such, 4K by 4K, whoever wrote it. */
static void volatile_status(struct volatile_store *v, struct store_io *io)
{
	uint64_t at = io->offset, end = at + io->length, stop;
	int n = 0;

	for (; at < end; at = stop) {
		bool zero;

		stop = (at & ~UINT64_C(4095)) + 4096;
		if (stop > end)
			stop = end;
		zero = memory_is_zero(v->current + at, stop - at);
		if (!store_extent_add(
			    io, &n, stop - at, zero ? STORE_ZEROES : 0))
			break;
	}
	io->nextents = n;
}

static bool volatile_sparse(struct store *s, uint64_t offset, uint64_t end)
{
	(void)s;
	(void)offset;
	(void)end;
	return true;
}

static int volatile_start(
	struct volatile_store *v, struct command *cmd, struct store_io *io)
{
	SCOPED_LOCK(&v->lock);

	if (v->off)
		return -EIO;
	cmd->completion = v->completed;
	switch (io->op) {
	case STORE_READ:
		volatile_half(v, io, 0);
		return 0;
	case STORE_STATUS:
		volatile_status(v, io);
		return 0;
	case STORE_FLUSH:
		return 0;
	default:
		return volatile_write(v, cmd, io);
	}
}

static void volatile_submit(struct store *s, struct store_io *io)
{
	struct volatile_store *v = to_volatile(s);
	struct command *cmd = calloc(1, sizeof *cmd);

	if (!cmd) {
		store_io_post(io, -ENOMEM);
		return;
	}
	cmd->store = v;
	io->priv = cmd;
	io->error = volatile_start(v, cmd, io);
	io->task.fn = volatile_done;
	reactor_post(io->reactor, &io->task);
}

void volatile_flush_failed(struct store *s, uint64_t seed)
{
	struct volatile_store *v = to_volatile(s);
	SCOPED_LOCK(&v->lock);

	list_for_each (node, &v->pending) {
		struct pending *w = list_entry(node, struct pending, link);

		for (unsigned i = 0; w->completion && i < w->sectors; i++) {
			if (random_below(&seed, 2))
				bitmap_set(w->dead, i, 1);
		}
	}
}

/* A power cut's lottery: from nothing to everything had got through. */
struct lottery {
	uint64_t seed, quarters;
};

static struct lottery lottery(uint64_t seed)
{
	struct lottery l = {.seed = seed};

	l.quarters = random_below(&l.seed, 5);
	return l;
}

static bool lottery_won(struct lottery *l)
{
	return random_below(&l->seed, 4) < l->quarters;
}

void volatile_power_cut(struct store *s, uint64_t seed)
{
	struct volatile_store *v = to_volatile(s);
	struct lottery l = lottery(seed);
	SCOPED_LOCK(&v->lock);

	list_for_each_safe (node, &v->pending) {
		struct pending *w = list_entry(node, struct pending, link);

		for (unsigned i = 0; i < w->sectors; i++) {
			if (!lottery_won(&l))
				bitmap_set(w->dead, i, 1);
		}
		pending_apply(w, v->durable);
		pending_free(w);
	}
	v->off = true;
}

void volatile_snapshot(struct store *s, uint64_t seed, void *image)
{
	struct volatile_store *v = to_volatile(s);
	struct lottery l = lottery(seed);
	SCOPED_LOCK(&v->lock);

	memcpy(image, v->durable, v->base.info.size);
	list_for_each (node, &v->pending) {
		struct pending *w = list_entry(node, struct pending, link);

		for (unsigned i = 0; i < w->sectors; i++) {
			if (lottery_won(&l) && !bitmap_test(w->dead, i))
				pending_copy(w, image, i, 1);
		}
	}
}

static void volatile_close(struct store *s)
{
	struct volatile_store *v = to_volatile(s);

	/* Switched off in order, a device writes its cache back. */
	list_for_each_safe (node, &v->pending) {
		struct pending *w = list_entry(node, struct pending, link);

		pending_apply(w, v->durable);
		pending_free(w);
	}
	if (v->current)
		munmap(v->current, v->base.info.size);
	if (v->durable)
		munmap(v->durable, v->base.info.size);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

static const struct store_ops volatile_ops = {
	.kind = "volatile",
	.submit = volatile_submit,
	.close = volatile_close,
	.sparse = volatile_sparse,
};

bool volatile_is(const struct store *s)
{
	return s->ops == &volatile_ops;
}

static int volatile_map(struct volatile_store *v, int fd, size_t size)
{
	int prot = PROT_READ | PROT_WRITE;
	void *current = mmap(NULL, size, prot, MAP_PRIVATE, fd, 0);
	void *durable = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	v->current = current == MAP_FAILED ? NULL : current;
	v->durable = durable == MAP_FAILED ? NULL : durable;
	return v->current && v->durable ? 0 : -ENOMEM;
}

static struct volatile_store *volatile_new(size_t size, unsigned flags)
{
	struct volatile_store *v = calloc(1, sizeof *v);

	if (!v)
		return NULL;
	pthread_mutex_init(&v->lock, NULL);
	list_init(&v->pending);
	v->base.ops = &volatile_ops;
	v->base.info = store_info_able(size, flags);
	v->base.info.align = SECTOR;
	return v;
}

static int volatile_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	CLEANUP_CLOSE int fd = open(args->rest, O_RDWR | O_CLOEXEC);
	struct volatile_store *v;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return error_set(error, -errno, "cannot open: %m");
	if (!st.st_size || st.st_size % SECTOR)
		return error_set(error, -EINVAL,
			"its size must be a multiple of %u", SECTOR);
	v = volatile_new((size_t)st.st_size, args->flags);
	if (!v || volatile_map(v, fd, (size_t)st.st_size)) {
		if (v)
			volatile_close(&v->base);
		return error_set(error, -ENOMEM, "out of memory");
	}
	*out = &v->base;
	return 0;
}

const struct store_kind store_kind_volatile = {
	.name = "volatile",
	.open = volatile_open,
};
