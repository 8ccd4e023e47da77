/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mem.c: "mem:SIZE", blocks in memory. Nothing survives a close.
 *
 *   data   one sparse mapping: pages never written take no memory
 *   used   one bit a 4K page: written since it was last trimmed
 *
 * 1. A page whose bit is clear reads as zeroes and takes no memory. Zeroes that
 *    are written to such pages leave them so.
 * 2. Memory is handled in stripes of 1M; a stripe's lock is held while its
 *    bytes or bits are touched, one stripe at a time. So a read beside a
 *    write sees each stripe before or after it.
 *
 * Any number of loops at once.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../base/bitmap.h"
#include "../base/cleanup.h"
#include "../base/iov.h"
#include "../base/size.h"
#include "../base/zero.h"
#include "kind.h"

#define MEM_PAGE 4096U
#define MEM_STRIPE (1U << 20)
#define MEM_STRIPE_PAGES (MEM_STRIPE / MEM_PAGE)
#define MEM_LOCKS 64U
#define MEM_STATUS_SCAN (16ULL << 30) /* bytes one STATUS looks at */

struct mem {
	struct store base;
	char *data;
	uint64_t *used;
	size_t data_bytes, used_bytes; /* of the mappings */
	pthread_mutex_t lock[MEM_LOCKS];
};

/* The part of a range that lies in one stripe. */
struct mem_part {
	uint64_t offset;
	size_t length;
	char *data;
	uint64_t *used;       /* of the whole stripe */
	unsigned first, last; /* pages of the stripe it touches */
};

static struct mem_part mem_part(struct mem *m, uint64_t offset, uint64_t end)
{
	uint64_t stripe = offset / MEM_STRIPE;
	unsigned at = (unsigned)(offset % MEM_STRIPE);
	size_t length = MEM_STRIPE - at;

	if (length > end - offset)
		length = end - offset;
	return (struct mem_part){
		.offset = offset,
		.length = length,
		.data = m->data + offset,
		.used = m->used + stripe * (MEM_STRIPE_PAGES / 64),
		.first = at / MEM_PAGE,
		.last = (unsigned)((at + length - 1) / MEM_PAGE),
	};
}

static pthread_mutex_t *mem_lock(struct mem *m, const struct mem_part *p)
{
	return &m->lock[p->offset / MEM_STRIPE % MEM_LOCKS];
}

static void mem_read(struct mem *m, struct mem_part *p, struct iov_cursor *c)
{
	SCOPED_LOCK(mem_lock(m, p));

	/* Reading a page would make the kernel map it. */
	if (bitmap_any(p->used, p->first, p->last - p->first + 1))
		iov_scatter(c, p->data, p->length);
	else
		iov_zero(c, p->length);
}

/* Are the next bytes zeroes? Many pieces of one buffer are looked at once. */
static bool mem_zeroes_next(struct iov_cursor c, size_t n)
{
	void *piece = NULL, *seen = NULL;
	size_t length, zeroes = 0;

	for (; n; n -= length) {
		length = iov_take(&c, n, &piece);
		if (piece == seen && length <= zeroes)
			continue;
		if (!memory_is_zero(piece, length))
			return false;
		seen = piece;
		zeroes = length;
	}
	return true;
}

static void mem_write(struct mem *m, struct mem_part *p, struct iov_cursor *c)
{
	SCOPED_LOCK(mem_lock(m, p));

	if (!bitmap_any(p->used, p->first, p->last - p->first + 1) &&
		mem_zeroes_next(*c, p->length)) {
		iov_skip(c, p->length);
		return;
	}
	iov_gather(p->data, c, p->length);
	bitmap_set(p->used, p->first, p->last - p->first + 1);
}

/* Zero bytes [from, to) of the store that lie in one page, if it is used. */
static void mem_clear_edge(
	struct mem *m, struct mem_part *p, uint64_t from, uint64_t to)
{
	unsigned page = (unsigned)(from / MEM_PAGE % MEM_STRIPE_PAGES);

	if (from < to && bitmap_test(p->used, page))
		memset(m->data + from, 0, to - from);
}

/* Give whole pages [from, to) of the store back. */
static void mem_release(
	struct mem *m, struct mem_part *p, uint64_t from, uint64_t to)
{
	unsigned first = (unsigned)(from / MEM_PAGE % MEM_STRIPE_PAGES);
	unsigned count = (unsigned)((to - from) / MEM_PAGE);

	if (!bitmap_any(p->used, first, count))
		return;
	madvise(m->data + from, to - from, MADV_DONTNEED);
	bitmap_clear(p->used, first, count);
}

static void mem_zero(struct mem *m, struct mem_part *p, bool keep)
{
	uint64_t end = p->offset + p->length;
	/* The end of the store ends its last page. */
	uint64_t limit = end == m->base.info.size ? m->data_bytes : end;
	uint64_t from = (p->offset + MEM_PAGE - 1) / MEM_PAGE * MEM_PAGE;
	uint64_t to = limit / MEM_PAGE * MEM_PAGE;
	SCOPED_LOCK(mem_lock(m, p));

	if (from > to) {
		mem_clear_edge(m, p, p->offset, end);
	} else {
		mem_clear_edge(m, p, p->offset, from);
		if (from < to)
			mem_release(m, p, from, to);
		mem_clear_edge(m, p, to, end);
	}
	if (keep)
		bitmap_set(p->used, p->first, p->last - p->first + 1);
}

static void mem_transfer(struct mem *m, struct store_io *io)
{
	struct iov_cursor c = {.iov = io->iov};
	uint64_t end = io->offset + io->length;
	struct mem_part p;

	for (uint64_t at = io->offset; at < end; at += p.length) {
		p = mem_part(m, at, end);
		switch (io->op) {
		case STORE_READ:
			mem_read(m, &p, &c);
			break;
		case STORE_WRITE:
			mem_write(m, &p, &c);
			break;
		default:
			mem_zero(m, &p, io->flags & STORE_NO_HOLE);
		}
	}
}

/* Report one stripe's part run by run; false: no room for more extents. */
static bool mem_status_part(
	struct mem *m, struct mem_part *p, struct store_io *io, int *n)
{
	uint64_t base = p->offset / MEM_STRIPE * MEM_STRIPE;
	uint64_t end = p->offset + p->length;
	unsigned page = p->first;
	SCOPED_LOCK(mem_lock(m, p));

	for (uint64_t at = p->offset, next; at < end; at = next) {
		bool used = bitmap_test(p->used, page);

		page = bitmap_find(p->used, page, p->last + 1, !used);
		next = base + (uint64_t)page * MEM_PAGE;
		if (next > end)
			next = end;
		if (!store_extent_add(io, n, next - at,
			    used ? 0 : STORE_HOLE | STORE_ZEROES))
			return false;
	}
	return true;
}

static void mem_status(struct mem *m, struct store_io *io)
{
	uint64_t end = io->offset + io->length;
	struct mem_part p;
	int n = 0;

	if (io->length > MEM_STATUS_SCAN)
		end = io->offset + MEM_STATUS_SCAN;
	for (uint64_t at = io->offset; at < end; at += p.length) {
		p = mem_part(m, at, end);
		if (!mem_status_part(m, &p, io, &n))
			break;
	}
	io->nextents = n;
}

static bool mem_sparse(struct store *s, uint64_t offset, uint64_t end)
{
	struct mem *m = container_of(s, struct mem, base);
	struct mem_part p;
	bool used = true;

	for (; used && offset < end; offset += p.length) {
		p = mem_part(m, offset, end);
		SCOPED_LOCK(mem_lock(m, &p));

		used = bitmap_all(p.used, p.first, p.last - p.first + 1);
	}
	return !used;
}

static void mem_submit(struct store *s, struct store_io *io)
{
	struct mem *m = container_of(s, struct mem, base);
	int error = 0;

	if (store_io_modifies(io) && s->info.readonly)
		error = -EROFS;
	else if (io->op == STORE_STATUS)
		mem_status(m, io);
	else if (io->op != STORE_FLUSH)
		mem_transfer(m, io);
	store_io_post(io, error);
}

static void mem_close(struct store *s)
{
	struct mem *m = container_of(s, struct mem, base);

	if (m->data)
		munmap(m->data, m->data_bytes);
	if (m->used)
		munmap(m->used, m->used_bytes);
	for (unsigned i = 0; i < MEM_LOCKS; i++)
		pthread_mutex_destroy(&m->lock[i]);
	free(m);
}

static const struct store_ops mem_ops = {
	.kind = "mem",
	.submit = mem_submit,
	.close = mem_close,
	.sparse = mem_sparse,
};

static void *mem_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int mem_open(const struct store_open_args *args, struct store **out,
	struct error *error)
{
	uint64_t size, stripes;
	struct mem *m;

	if (size_parse(args->rest, &size) || !size || size > 1ULL << 46)
		return error_set(error, -EINVAL,
			"bad size \"%s\" (such as 512M; up to 64T)",
			args->rest);
	m = calloc(1, sizeof *m);
	if (!m)
		return error_set(error, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < MEM_LOCKS; i++)
		pthread_mutex_init(&m->lock[i], NULL);
	stripes = (size + MEM_STRIPE - 1) / MEM_STRIPE;
	m->base.ops = &mem_ops;
	m->base.info = store_info_able(size, args->flags);
	m->data_bytes = (size + MEM_PAGE - 1) / MEM_PAGE * MEM_PAGE;
	m->used_bytes = stripes * (MEM_STRIPE_PAGES / 8);
	m->data = mem_map(m->data_bytes);
	m->used = mem_map(m->used_bytes);
	if (!m->data || !m->used) {
		mem_close(&m->base);
		return error_set(error, -ENOMEM, "cannot map that much");
	}
	*out = &m->base;
	return 0;
}

const struct store_kind store_kind_mem = {.name = "mem", .open = mem_open};
