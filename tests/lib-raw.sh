# shellcheck shell=bash disable=SC2154 # sock and uri: start_weir
# SPDX-License-Identifier: BSD-3-Clause
#
# lib-raw.sh: talk to the server a script started with nbd-raw, which says what
# no library would. Read after lib.sh.

# raw [ADDRESS]: run the script on stdin.
raw() {
	timeout_run 60 "$WEIR_BUILDDIR/tests/nbd-raw" "${1:-$sock}" 2>&1
}

# session [ADDRESS]: the same from the first request on: the default export is
# chosen before, and only the answers to requests are printed.
session() {
	{
		printf 'greet\ngo\n'
		cat
	} | raw "$@" | sed -u '/^greeting /d; /^reply /d'
}

# says TEXT DESCRIPTION: what the session on stdin prints, the answers by their
# cookies: they come in any order.
says() {
	is "$(session | sort -s -k1,1n)" "$(sort -s -k1,1n <<<"$1")" "$2"
}

# qemu COMMAND...: qemu-io with a cache of its own that is honest: without
# `-t writeback` each write would carry FUA and hide faults of ours.
qemu() {
	local args=() c
	for c; do
		args+=(-c "$c")
	done
	timeout_run 60 qemu-io -t writeback -f raw "${args[@]}" "$uri"
}

# verified COMMAND...: qemu() for reads with -P: it says so in its output only.
verified() {
	local text
	text=$(qemu "$@" 2>&1) || return
	! grep -E 'failed|error|mismatch' <<<"$text"
}

# holds FILE BYTE OFFSET LENGTH: these bytes of it are all that one.
holds() {
	head -c "$4" /dev/zero | tr '\0' "\\$(printf %03o "$2")" |
		cmp -n "$4" -i "0:$3" - "$1"
}
