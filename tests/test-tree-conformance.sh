#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# conformance.txt: each rule of the protocol has a test, and the test is there.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

table=$WEIR_SRCDIR/tests/conformance.txt

# Lines that begin in the first column are rules; below each, indented, its
# tests: "SCRIPT: NAME", the name as it stands in the script, or the start of
# it before what a variable fills in.
rules=0 tests=0 bad=() open=
while IFS= read -r line; do
	case $line in
	'' | '#'* | '['*) ;;
	$'\t'*)
		open=
		tests=$((tests + 1))
		script=${line#$'\t'}
		name=${script#*: }
		script=${script%%: *}
		grep -qF -- "$name" "$WEIR_SRCDIR/tests/$script" 2>/dev/null ||
			bad+=("no test: $line")
		grep -qE "^\s+${script%.c}( |$)|[+= ]${script%.c}( |$)" \
			"$WEIR_SRCDIR/tests/Makefile.am" ||
			bad+=("never run: $script")
		;;
	*)
		[ -z "$open" ] || bad+=("no test for: $open")
		rules=$((rules + 1))
		open=$line
		;;
	esac
done <"$table"
[ -z "$open" ] || bad+=("no test for: $open")
is "$(printf '%s\n' "${bad[@]+"${bad[@]}"}" | sort -u)" "" \
	"each rule has a test that is there"
ok "there are some ($rules rules, $tests tests)" \
	test "$rules" -gt 60 -a "$tests" -ge "$rules"
done_testing
