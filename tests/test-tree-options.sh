#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every option and key that --help names is in the manual page, and the pages
# are clean.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need mandoc
man=$WEIR_SRCDIR/man

# As a reader sees it: bold and underline taken out.
page() {
	mandoc -T ascii "$man/$1" | sed 's/.\x08//g'
}

options() { # of a --help on stdin
	grep -oE '(^|[ |,[])--?[a-zA-Z][a-zA-Z0-9-]*' |
		sed 's/^[^-]*//' | sort -u
}

keys() {
	grep -oE '^ +[a-z][a-z-]*=' | tr -d ' ' | sort -u
}

# documented PAGE WHAT: all the words of stdin are in the page.
documented() {
	local text word end missing=() n=0
	text=$(page "$1")
	while read -r word; do
		n=$((n + 1))
		end='([^a-zA-Z-]|$)'
		[ "$word" = "${word%=}" ] || end= # KEY=VALUE
		grep -qE -- "(^|[^a-zA-Z-])$word$end" <<<"$text" ||
			missing+=("$word")
	done
	is "${missing[*]-}" "" "$1 has all $2"
	ok "$1: there are some ($n)" test "$n" -gt 3
}

for p in "$man"/*.[1-8]; do
	is "$(mandoc -T lint "$p" 2>/dev/null | grep -v 'referenced manual not found')" "" \
		"${p##*/} is clean"
done

if command -v weir-server >/dev/null; then
	help=$(weir-server --help)
	documented weir-server.8 "options" < <(options <<<"$help")
	documented weir-server.8 "keys" < <(keys <<<"$help")
fi

if command -v weir >/dev/null; then
	help=$(weir --help)
	commands=$(sed -nE 's/^  ([a-z][a-z-]*) .*/\1/p' <<<"$help")
	documented weir.1 "commands" <<<"$commands"
	documented weir.1 "options" < <({
		echo "$help"
		for c in $commands; do
			weir "$c" --help
		done
	} | options)
fi

plugin=$WEIR_BUILDDIR/plugin/.libs/nbdkit-weir-plugin.so
if [ -e "$plugin" ]; then
	documented nbdkit-weir-plugin.1 "keys" < <(nbdkit weir --help |
		sed -n '/weir/,$p' | keys)
fi
done_testing
