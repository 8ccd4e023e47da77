#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ten interleaved sequential writers leave large extents in a pool: a quarter
# of a stream on average, which is 64M where each writes 256M (make bench).

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

ok "ten streams of 16M, in simulated time" \
	timeout_run 60 "$WEIR_BUILDDIR/bench/fragments" --size=16M
printf '%s\n' "$out" | sed 's/^/# /'

# field PLACEMENT N: of its line.
field() {
	awk -v p="$1" -v n="$2" '$1 == p { print $n }' <<<"$out"
}

extents=$(field delalloc 2)
immediate=$(field immediate 2)
ok "delalloc: $extents extents, of 4M or more" test "${extents:-1000}" -le 40
ok "immediate: $immediate, more than twice as many" \
	test "${immediate:-0}" -gt $((2 * extents))
done_testing
