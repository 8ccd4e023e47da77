#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Out of descriptors, the server waits for one and does not spin.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit accepts for the plugin"
image=$(make_image 4M)
port=$(free_port)
ulimit -Sn 64
start_weir_tcp "$port" --threads 1 -- store="$image"
at=127.0.0.1:$port
ulimit -Sn 512

cpu() { # in ticks
	awk '{ print $14 + $15 }' "/proc/$weir_pid/stat"
}

fds=()
for _ in {1..100}; do
	exec {fd}<>"/dev/tcp/127.0.0.1/$port" || break
	fds+=("$fd")
done
is "${#fds[@]}" 100 "more clients connect than it has descriptors"
ok "it says so" wait_until 5 grep -q 'cannot accept: Too many open files' \
	"$weir_log"
before=$(cpu)
sleep 1
ok "it does not spin" test $(($(cpu) - before)) -lt 30
for fd in "${fds[@]}"; do
	exec {fd}>&-
done
is "$(session "$at" <<<$'read 1 0 512\nrecv')" "1 error 0 512 of 0x00" \
	"when they have gone, a client is served"
stop_weir
is "$status" 0 "it ends well"
done_testing
