/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model-image.c: what the device would hold after a power cut.
 *
 *   the store's file --cut: any of what is not flushed--> a copy
 *   a copy --read as the placement has it--> the device's bytes
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model.h"
#include "store/fault.h"

void image_make(struct run *run)
{
	uint64_t size = run->plan.size;

	run->store_size = size;
	run->image = memfd_create("weir-model", 0);
	if (run->image < 0 || ftruncate(run->image, (off_t)size) != 0)
		abort();
	run->map = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, run->image, 0);
	assert(run->map != MAP_FAILED);
	run->copy = malloc(size);
	assert(run->copy);
	run->last_id = 1;
	data_fill(run->map, run->plan.prefilled ? 1 : 0, 0, size);
}

void image_free(struct run *run)
{
	munmap(run->map, run->store_size);
	close(run->image);
	free(run->copy);
}

const unsigned char *image_now(struct run *run)
{
	memcpy(run->copy, run->map, run->store_size);
	return run->copy;
}

const unsigned char *image_cut(struct run *run)
{
	store_fault_snapshot(engine_store(run->engine),
		random_next(&run->random), run->copy);
	return run->copy;
}
