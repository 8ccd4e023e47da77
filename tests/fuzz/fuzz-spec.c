/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz-spec.c: store=SPEC, opened and closed.
 *
 * Only specs of stores in memory are opened: others would open files, or
 * connect, or start programs.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "store/store.h"

/* No path, and no kind of store but these? */
static bool is_harmless(const char *spec)
{
	static const char *const kinds[] = {
		"mem", "null", "sim", "fault", "stripe"};
	const char *p = spec;

	if (strchr(spec, '/'))
		return false;
	while ((p = strchr(p, ':'))) {
		bool known = false;

		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			size_t n = strlen(kinds[i]);

			known |= (size_t)(p - spec) >= n &&
				!memcmp(p - n, kinds[i], n);
		}
		if (!known)
			return false;
		p++;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error = {""};
	char *spec = malloc(size + 1);
	struct store *s = NULL;

	if (!spec)
		abort();
	memcpy(spec, data, size);
	spec[size] = '\0';
	if (is_harmless(spec)) {
		if (!store_open(spec, STORE_OPEN_READONLY, &s, &error))
			store_close(s);
		else if (!*error.text)
			abort(); /* refused without a word */
	}
	free(spec);
	return 0;
}
