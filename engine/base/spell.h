/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spell.h: which word was meant.
 */
#ifndef WEIR_BASE_SPELL_H
#define WEIR_BASE_SPELL_H

#include <stdbool.h>

/* Further than three letters off is another word. */
#define SPELL_FAR 4U

/*
 * Is `word` nearer to `name` than *best, which begins as SPELL_FAR? Then
 * *best is how near. By edit distance (Levenshtein), '_' as '-'; less than
 * half of the name may be wrong. Words of 31 letters at most. Any thread.
 */
bool spell_nearer(const char *word, const char *name, unsigned *best);

#endif
