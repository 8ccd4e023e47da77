/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * size.c: sizes and times as people write them, exactly.
 *
 * A number is DIGITS[.DIGITS] and a unit. The fraction is kept as an integer
 * over a power of ten, so that "1.1K" is refused (not whole bytes) rather
 * than rounded.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "size.h"

struct unit {
	const char *name;
	uint64_t scale;
};

static const struct unit size_units[] = {
	{"", 1},
	{"B", 1},
	{"K", UINT64_C(1) << 10},
	{"M", UINT64_C(1) << 20},
	{"G", UINT64_C(1) << 30},
	{"T", UINT64_C(1) << 40},
	{"P", UINT64_C(1) << 50},
	{"E", UINT64_C(1) << 60},
	{NULL, 0},
};

static const struct unit time_units[] = {
	{"", UINT64_C(1000000000)},
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", UINT64_C(1000000000)},
	{"m", UINT64_C(60000000000)},
	{"h", UINT64_C(3600000000000)},
	{NULL, 0},
};

/* A decimal number: `digits` / `over`, `over` a power of ten. */
struct decimal {
	uint64_t digits;
	uint64_t over;
};

static int decimal_digit(struct decimal *d, char c, bool fraction)
{
	if (__builtin_mul_overflow(d->digits, 10, &d->digits) ||
		__builtin_add_overflow(
			d->digits, (uint64_t)(c - '0'), &d->digits))
		return -ERANGE;
	if (fraction && __builtin_mul_overflow(d->over, 10, &d->over))
		return -ERANGE;
	return 0;
}

/* Read the number at *text and move *text past it. */
static int decimal_parse(const char **text, struct decimal *d)
{
	bool fraction = false;
	const char *p = *text;

	*d = (struct decimal){0, 1};
	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p) || (*p == '.' && !fraction); p++) {
		int err = 0;

		if (*p == '.')
			fraction = true;
		else
			err = decimal_digit(d, *p, fraction);
		if (err)
			return err;
	}
	if (p[-1] == '.')
		return -EINVAL;
	*text = p;
	return 0;
}

static const struct unit *unit_find(const struct unit *units, const char *name)
{
	for (; units->name; units++) {
		if (!strcasecmp(units->name, name))
			return units;
	}
	return NULL;
}

static int quantity_parse(
	const char *text, const struct unit *units, uint64_t *out)
{
	const struct unit *unit;
	struct decimal d;
	unsigned __int128 n;
	int err = decimal_parse(&text, &d);

	if (err)
		return err;
	unit = unit_find(units, text);
	if (!unit)
		return -EINVAL;
	n = (unsigned __int128)d.digits * unit->scale;
	if (n % d.over || n / d.over > UINT64_MAX)
		return -ERANGE;
	*out = (uint64_t)(n / d.over);
	return 0;
}

int size_parse(const char *text, uint64_t *bytes)
{
	return quantity_parse(text, size_units, bytes);
}

int time_parse(const char *text, uint64_t *ns)
{
	return quantity_parse(text, time_units, ns);
}

char *size_format(uint64_t bytes, char buf[16])
{
	static const char suffix[] = {0, 'K', 'M', 'G', 'T', 'P', 'E'};
	double n = (double)bytes;
	unsigned unit = 0;
	int decimals;

	/* 1023.5 would print as 1024 of its unit: go to the next. */
	while (n >= 1023.5 && unit + 1 < sizeof suffix) {
		n /= 1024;
		unit++;
	}
	decimals = unit == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
	snprintf(buf, 16, "%.*f", decimals, n);
	if (decimals) { /* "1.50" is "1.5", "1.00" is "1" */
		size_t len = strlen(buf);

		while (buf[len - 1] == '0')
			buf[--len] = '\0';
		if (buf[len - 1] == '.')
			buf[--len] = '\0';
	}
	if (unit)
		strncat(buf, &suffix[unit], 1);
	return buf;
}

int bool_parse(const char *text, bool *value)
{
	static const char *const names[] = {
		"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcasecmp(text, names[i])) {
			*value = i % 2;
			return 0;
		}
	}
	return -EINVAL;
}
