/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spell.c: see spell.h.
 */
#include <stddef.h>
#include <string.h>

#include "spell.h"

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[32];
	size_t n = strlen(b);

	if (n >= 32 || strlen(a) >= 32)
		return 32;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		char ch = a[i - 1] == '_' ? '-' : a[i - 1];
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned cost = diagonal + (ch != b[j - 1]);

			diagonal = row[j];
			row[j] = min3(cost, row[j] + 1, row[j - 1] + 1);
		}
	}
	return row[n];
}

bool spell_nearer(const char *word, const char *name, unsigned *best)
{
	unsigned d = edit_distance(word, name);

	if (d >= *best || 2 * d >= strlen(name))
		return false;
	*best = d;
	return true;
}
