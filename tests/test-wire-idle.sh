#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A connection that is silent costs little memory, also with TLS, also after
# it was busy, and no processor time.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit reads for the plugin"
need weir
image=$(make_image 4M)
ok "certificates are made" weir tls-init "$tmp/pki"

rss() {
	awk '/^VmRSS/ { print $2 }' "/proc/$weir_pid/status"
}

cpu() { # in ticks
	awk '{ print $14 + $15 }' "/proc/$weir_pid/stat"
}

connected() { # connected COUNT: so many clients have had their answer
	[ "$(cat "$tmp"/idle.* | grep -c '^1 error 0')" -ge "$1" ]
}

# idle FROM TO FIRST...: as many clients; each reads 64K and is silent then.
idle() {
	local i
	printf '%s\n' "${@:3}" 'read 1 0 65536' recv 'sleep 60000' >"$tmp/asks"
	for ((i = $1; i <= $2; i++)); do
		# shellcheck disable=SC2016 # its own arguments
		background bash -c 'exec "$0" "$1" <"$2" >"$3"' \
			"$WEIR_BUILDDIR/tests/nbd-raw" "$sock" "$tmp/asks" \
			"$tmp/idle.$i"
	done
	ok "clients $1 to $2 are served" wait_until 60 connected "$2"
}

# cost HOW MOST FIRST...: KiB of each client.
cost() {
	local before each how=$1 most=$2
	shift 2
	rm -f "$tmp"/idle.*
	idle 1 10 "$@"
	before=$(rss)
	idle 11 90 "$@"
	each=$((($(rss) - before) / 80))
	ok "$how: each costs ${each}K" test "$each" -lt "$most"
	before=$(cpu)
	sleep 1
	ok "$how: and no time" test $(($(cpu) - before)) -lt 20
}

start_weir -- store="$image"
cost plain 16 greet go
stop_weir
is "$status" 0 "it ends well"
weir_name=tls start_weir --tls=require --tls-certificates="$tmp/pki" -- \
	store="$image"
cost TLS 48 greet starttls go
stop_weir
is "$status" 0 "it ends well"
done_testing
