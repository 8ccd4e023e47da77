/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-profile.c: devices by name, and what can be said of one.
 *
 * Rates of the profiles are in millions of bytes, as devices are sold. They
 * are listed in weir-server(8).
 *
 *  hdd   a desktop disk of 7200 revolutions a minute, its write cache off, as
 *        where it must not lie about what is durable; cache=16M turns it on.
 *  usb   a stick: one command at a time, no cache, erase blocks.
 *  ssd   SATA.
 *  nvme  writes are answered from the drive's own protected memory.
 *  msa   a disk array: eight disks share the seeks, so `seek` is an eighth of
 *        one disk's 8 ms and one read alone is answered too soon; the
 *        controller's cache has a battery, and is small, so that a measurement
 *        of seconds is not one of the cache.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "../base/size.h"
#include "../base/spell.h"
#include "sim-profile.h"

#define MB UINT64_C(1000000)
#define USEC NSEC_PER_USEC

struct profile {
	const char *name;
	struct sim_model model;
};

#define BANDWIDTH(r, w) .read_bandwidth = (r), .write_bandwidth = (w)
#define LATENCY(r, w) .read_latency_ns = (r), .write_latency_ns = (w)
#define COMMON .settle_ns = SIM_SETTLE_AUTO, .open_blocks = 4, .elevator = true

static const struct profile profiles[] = {
	{"hdd",
		{
			COMMON,
			BANDWIDTH(60 * MB, 60 * MB),
			LATENCY(100 * USEC, 100 * USEC),
			.depth = 32,
			.seek_ns = 8000 * USEC,
			.rotation_ns = NSEC_PER_SEC * 60 / 7200,
		}},
	{"usb",
		{
			COMMON,
			BANDWIDTH(20 * MB, 6300000),
			LATENCY(500 * USEC, 500 * USEC),
			.depth = 1,
			.erase_block = 1 << 20,
		}},
	{"ssd",
		{
			COMMON,
			BANDWIDTH(500 * MB, 500 * MB),
			LATENCY(80 * USEC, 80 * USEC),
			.depth = 32,
		}},
	{"nvme",
		{
			COMMON,
			BANDWIDTH(3000 * MB, 2200 * MB),
			LATENCY(80 * USEC, 20 * USEC),
			.depth = 64,
		}},
	{"msa",
		{
			COMMON,
			BANDWIDTH(170 * MB, 170 * MB),
			LATENCY(200 * USEC, 200 * USEC),
			.depth = 64,
			.seek_ns = 1000 * USEC,
			.cache = 32 << 20,
			.battery = true,
		}},
};

#define NPROFILES (sizeof profiles / sizeof profiles[0])

static const struct sim_model plain = {COMMON, .depth = 32};

/* --- options ------------------------------------------------------------- */

enum option_kind {
	OPTION_SIZE,
	OPTION_TIME,
	OPTION_COUNT, /* not 0 */
	OPTION_FLAG,
};

struct option {
	const char *name;
	enum option_kind kind;
	size_t at, too; /* what it sets in the model, one or two */
};

#define AT(member) offsetof(struct sim_model, member)
#define ONE(member) AT(member), AT(member)

static const struct option options[] = {
	{"bandwidth", OPTION_SIZE, AT(read_bandwidth), AT(write_bandwidth)},
	{"read-bandwidth", OPTION_SIZE, ONE(read_bandwidth)},
	{"write-bandwidth", OPTION_SIZE, ONE(write_bandwidth)},
	{"latency", OPTION_TIME, AT(read_latency_ns), AT(write_latency_ns)},
	{"read-latency", OPTION_TIME, ONE(read_latency_ns)},
	{"write-latency", OPTION_TIME, ONE(write_latency_ns)},
	{"depth", OPTION_COUNT, ONE(depth)},
	{"seek", OPTION_TIME, ONE(seek_ns)},
	{"settle", OPTION_TIME, ONE(settle_ns)},
	{"rotation", OPTION_TIME, ONE(rotation_ns)},
	{"elevator", OPTION_FLAG, ONE(elevator)},
	{"cache", OPTION_SIZE, ONE(cache)},
	{"battery", OPTION_FLAG, ONE(battery)},
	{"erase-block", OPTION_SIZE, ONE(erase_block)},
	{"open-blocks", OPTION_COUNT, ONE(open_blocks)},
};

#define NOPTIONS (sizeof options / sizeof options[0])

static const struct profile *profile_find(const char *name)
{
	for (size_t i = 0; i < NPROFILES; i++) {
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	}
	return NULL;
}

static const struct option *option_find(const char *name, size_t length)
{
	for (size_t i = 0; i < NOPTIONS; i++) {
		if (!strncmp(options[i].name, name, length) &&
			!options[i].name[length])
			return &options[i];
	}
	return NULL;
}

bool sim_profile_knows(const char *part)
{
	size_t length = strcspn(part, "=");

	return part[length] ? !!option_find(part, length)
			    : !!profile_find(part);
}

static int unknown_option(const char *name, struct error *error)
{
	const char *nearest = NULL;
	unsigned best = SPELL_FAR;

	for (size_t i = 0; i < NOPTIONS; i++) {
		if (spell_nearer(name, options[i].name, &best))
			nearest = options[i].name;
	}
	if (nearest)
		return error_set(error, -EINVAL,
			"%s: no such option; did you mean %s?", name, nearest);
	return error_set(
		error, -EINVAL, "%s: no such option, see weir-server(8)", name);
}

static int unknown_profile(const char *name, struct error *error)
{
	char names[80] = "";

	for (size_t i = 0; i < NPROFILES; i++) {
		if (i)
			strcat(names, ", ");
		strcat(names, profiles[i].name);
	}
	return error_set(error, -EINVAL, "%s: no such profile (there are %s)",
		name, names);
}

/* "on" and "off"; true if it is one. */
static bool flag_parse(const char *value, bool *flag)
{
	*flag = !strcmp(value, "on");
	return *flag || !strcmp(value, "off");
}

static int option_set(
	struct sim_model *m, const struct option *o, const char *value)
{
	char *base = (char *)m;
	uint64_t n = 0;
	int err;

	if (o->kind == OPTION_FLAG)
		return flag_parse(value, (bool *)(base + o->at)) ? 0 : -EINVAL;
	if (o->kind == OPTION_TIME)
		err = time_parse(value, &n);
	else if (!strcmp(value, "off"))
		err = o->kind == OPTION_SIZE ? 0 : -EINVAL;
	else
		err = size_parse(value, &n);
	if (err || (o->kind == OPTION_COUNT && !n))
		return -EINVAL;
	*(uint64_t *)(void *)(base + o->at) = n;
	*(uint64_t *)(void *)(base + o->too) = n;
	return 0;
}

static int part_parse(struct sim_model *m, char *part, struct error *error)
{
	const struct option *o;
	char *value;
	int err = spec_option(part, &value, error);

	if (err)
		return err;
	o = option_find(part, strlen(part));
	if (!o)
		return unknown_option(part, error);
	if (option_set(m, o, value))
		return error_set(error, -EINVAL, "bad %s \"%s\"", part, value);
	return 0;
}

/* What does not fit together. */
static int model_check(const struct sim_model *m, struct error *error)
{
	if (m->settle_ns != SIM_SETTLE_AUTO && m->settle_ns > m->seek_ns)
		return error_set(error, -EINVAL,
			"settle, the shortest seek, is longer than seek, the "
			"average");
	if (m->open_blocks > SIM_MAX_OPEN)
		return error_set(error, -EINVAL, "open-blocks: at most %d",
			SIM_MAX_OPEN);
	if (m->erase_block && m->erase_block < 4096)
		return error_set(
			error, -EINVAL, "erase-block: 4K or more, or off");
	return 0;
}

int sim_profile_parse(struct sim_model *m, const struct spec_list *parts,
	uint64_t size, struct error *error)
{
	const struct profile *profile = NULL;
	unsigned i = 0;

	if (parts->count && !strchr(parts->part[0], '=')) {
		profile = profile_find(parts->part[0]);
		if (!profile)
			return unknown_profile(parts->part[0], error);
		i = 1;
	}
	*m = profile ? profile->model : plain;
	m->size = size;
	for (; i < parts->count; i++) {
		int err = part_parse(m, parts->part[i], error);

		if (err)
			return err;
	}
	return model_check(m, error);
}
