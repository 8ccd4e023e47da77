#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What a reader can hold: no file over 500 lines, no function over 80.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

cd "$WEIR_SRCDIR" || bail "no source directory"
mapfile -t files < <(sources '*.c' '*.h' '*.sh' setup)
ok "there are files to check" test "${#files[@]}" -gt 10

long_functions() {
	awk 'FNR == 1 { start = 0 }
		/^\{/ || /\) \{$/ && /^[a-z_]/ { start = FNR }
		/^\}/ {
			if (start && FNR - start > 80)
				print FILENAME ":" start
			start = 0
		}' "$@"
}

{
	echo 'int long_one(void)'
	echo '{'
	yes '	;' | head -n 80
	echo '}'
} >"$tmp/probe.c"
is "$(long_functions "$tmp/probe.c")" "$tmp/probe.c:2" \
	"a long function is seen"
is "$(long_functions "${files[@]}")" "" "no function is over 80 lines"
is "$(wc -l "${files[@]}" | awk '$2 != "total" && $1 > 500 { print $2 }')" "" \
	"no file is over 500 lines"
done_testing
