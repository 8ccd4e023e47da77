#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Out of descriptors, the server waits for one and does not spin. With few from
# the start it serves fewer at once, or says how many it needs.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

need prlimit

server_only "nbdkit accepts for the plugin"
image=$(make_image 4M)
port=$(free_port)
ulimit -Sn 512
start_weir_tcp "$port" --threads 1 -- store="$image"
at=127.0.0.1:$port
ok "its limit is lowered while it runs" \
	prlimit --pid "$weir_pid" --nofile=64:64

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

# --- few from the start -------------------------------------------------------

nok "with 8 it does not start" prlimit --nofile=8 \
	weir-server -f -U "$tmp/few.sock" --threads 2 mem:1M
like "$out" 'limit of open files is 8 .* at least [0-9]+ are needed' \
	"and says why"
weir_under=(prlimit --nofile=14)
weir_name=few start_weir --threads 1 -- store=mem:1M
ok "with 14 it warns" grep -qE \
	'limit of open files is 14 .*, enough for [1-3] at once' "$weir_log"
pids=()
for i in 1 2 3 4 5 6; do
	printf '%s\n' 'read 1 0 512' recv 'sleep 300' | session >"$tmp/few.$i" &
	pids+=($!)
done
wait "${pids[@]}"
is "$(cat "$tmp"/few.? | sort | uniq -c | xargs)" \
	"6 1 error 0 512 of 0x00" "and serves six clients, after each other"
nok "none met the limit" grep -q 'cannot accept' "$weir_log"
stop_weir
is "$status" 0 "it ends well"
weir_under=(prlimit --nofile=64:4096)
weir_name=raised start_weir --threads 1 -- store=mem:1M
nok "a limit that can be raised is not spoken of" grep -q limit "$weir_log"
like "$(cat "/proc/$weir_pid/limits")" 'Max open files +1[0-9]{3} ' \
	"it is raised"
stop_weir
is "$status" 0 "it ends well"
done_testing
