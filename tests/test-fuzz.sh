#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What comes from outside never ends the server, hangs it or has it answer
# what is no answer: every input that once did, and some thousands made from
# those. WEIR_FUZZ_RUNS: how many for each target; WEIR_FUZZ_SEED: which.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

runs=${WEIR_FUZZ_RUNS:-2000}
seed=${WEIR_FUZZ_SEED:-1}
corpus=$WEIR_SRCDIR/tests/fuzz/corpus
for folder in "$corpus"/*/; do
	name=$(basename "$folder")
	program=$WEIR_BUILDDIR/tests/fuzz-$name
	if ! grep -q -- '--keep' "$program"; then
		skip "libFuzzer runs it in this tree" "$name"
		continue
	fi
	ok "$name: no input of $runs does harm" "$program" --runs "$runs" \
		--seed "$seed" --keep "$tmp/$name" "$folder"
	[ ! -f "$tmp/$name" ] ||
		diag "it was (base64): $(base64 -w 0 "$tmp/$name")"
done
done_testing
