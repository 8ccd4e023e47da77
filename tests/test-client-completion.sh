#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What bash suggests: every command, option and key that --help names.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

lib=/usr/share/bash-completion/bash_completion
[ -e "$lib" ] || bail "bash-completion is missing: run ./setup deps"
set +u
# shellcheck disable=SC1090 # of the system
. "$lib"
# shellcheck source=completion/weir
. "$WEIR_SRCDIR/completion/weir"
# shellcheck source=completion/weir-server
. "$WEIR_SRCDIR/completion/weir-server"
compopt() { :; } # there is no completion under way

# suggest FUNCTION WORD...: what the last word may become.
suggest() {
	local f=$1
	shift
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMP_LINE="$*"
	COMP_POINT=${#COMP_LINE}
	COMPREPLY=()
	"$f" "$1" "${*: -1}" "${@: -2:1}" 2>"$tmp/errors"
	printf '%s\n' "${COMPREPLY[@]}" | sort -u
}

long() { # of a --help on stdin
	grep -oE '(^|[ |,[])--[a-z][a-z-]*' | tr -d ' |,[' | sort -u
}

commands=$(weir --help | sed -nE 's/^  ([a-z][a-z-]*) .*/\1/p')
is "$(suggest _weir weir '' | grep -v '^--')" "$(sort <<<"$commands")" \
	"every command of weir"
is "$(suggest _weir weir det)" detach "the one that begins so"
for c in $commands; do
	is "$(suggest _weir weir "$c" --)" "$(weir "$c" --help | long)" \
		"the options of weir $c"
done
is "$(suggest _weir weir pool gr)" grow "a verb"
is "$(suggest _weir weir top --sort d)" dirty "a word of an option"

help=$(weir-server --help)
is "$(suggest _weir_server weir-server --)" "$(long <<<"$help")" \
	"the options of weir-server"
is "$(suggest _weir_server weir-server dirty-l)" "dirty-limit=" "a key"
is "$(suggest _weir_server weir-server --tls r)" require "a word"
touch "$tmp/disk.img"
is "$(suggest _weir_server weir-server "$tmp/di")" "$tmp/disk.img" "a path"
is "$(cat "$tmp/errors")" "" "nothing is said"
done_testing
