/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errors.c: see errors.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "errors.h"

int errors_add(struct errors *e, int err, const char *fmt, ...)
{
	va_list args;

	if (!e->all)
		e->all = calloc(ERRORS_MAX, sizeof(*e->all));
	if (!e->all || e->n++ >= ERRORS_MAX)
		return err;
	va_start(args, fmt);
	vsnprintf(e->all[e->n - 1].text, sizeof(e->all->text), fmt, args);
	va_end(args);
	return err;
}

void errors_log(const struct errors *e)
{
	unsigned kept = e->n < ERRORS_MAX ? e->n : ERRORS_MAX;

	if (e->n && !e->all)
		log_error("no memory");
	for (unsigned i = 0; e->all && i < kept; i++)
		log_error("%s", e->all[i].text);
	if (e->n > kept)
		log_error("and %u more errors", e->n - kept);
}

void errors_free(struct errors *e)
{
	free(e->all);
	*e = (struct errors){0};
}
