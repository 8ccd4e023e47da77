#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every script is clean under shellcheck.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need shellcheck
cd "$WEIR_SRCDIR" || bail "no source directory"
# Those with the name, and those that begin like one.
mapfile -t files < <({
	sources '*.sh'
	sources '*' | xargs -d '\n' awk '
		FNR == 1 && /^#! *\/(usr\/)?bin\/(env +)?(ba)?sh/ {
			print FILENAME
		}
		{ nextfile }'
} | sort -u)
ok "there are scripts to check" test "${#files[@]}" -gt 3
ok "shellcheck is content" shellcheck -x setup .ci/run bench/far bench/race \
	"$WEIR_BUILDDIR/run" "$WEIR_BUILDDIR/wrappers/nbdkit" "${files[@]}"
done_testing
