#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# C is laid out as .clang-format says.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need clang-format
cd "$WEIR_SRCDIR" || bail "no source directory"
mapfile -t files < <(sources '*.c' '*.h')
ok "there are files to check" test "${#files[@]}" -gt 10
ok "clang-format would change nothing" \
	clang-format --dry-run -Werror "${files[@]}"
is "$(grep -L -m 1 -xF '/* SPDX-License-Identifier: BSD-3-Clause */' \
	"${files[@]}")" "" "every file names its licence"
done_testing
