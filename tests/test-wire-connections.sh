#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Many clients, silent clients, clients that come and go: a slot is freed
# whichever way one leaves.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit accepts for the plugin"
image=$(make_image 4M)
port=$(free_port)

start_weir_tcp "$port" store="$image"
at=127.0.0.1:$port
before=$(awk '/^VmRSS/ { print $2 }' "/proc/$weir_pid/status")
fds=()
for i in {1..200}; do
	exec {fd}<>"/dev/tcp/127.0.0.1/$port" || break
	fds+=("$fd")
done
is "${#fds[@]}" 200 "200 clients connect and say nothing"
is "$(session "$at" <<<$'write 1 0 512 1\nrecv')" "1 error 0" \
	"a real one gets in at once"
now=$(awk '/^VmRSS/ { print $2 }' "/proc/$weir_pid/status")
ok "the silent ones cost little (+$((now - before))K)" \
	test $((now - before)) -lt $((200 * 64))
stop_weir TERM 10
is "$status" 0 "SIGTERM with them open ends it well"
for fd in "${fds[@]}"; do
	exec {fd}>&-
done

# --- slots --------------------------------------------------------------------

weir_name=slots start_weir --max-connections 3 -- store="$image"
leave() { # leave HOW: connect and go, in one of the ways
	case $1 in
	silent) raw </dev/null ;;
	greeted) raw <<<greet ;;
	abort) printf '%s\n' greet 'opt 2 0' replies eof | raw ;;
	refused) printf '%s\n' greet 'opt 1 4' 'fill 4 97' eof | raw ;;
	garbage) printf '%s\n' greet 'fill 64 1' eof | raw ;;
	disc) session <<<$'write 1 0 512 1\nrecv\ndisc\neof' ;;
	close) session <<<$'write 1 0 512 1\nrecv' ;;
	reset) session <<<$'write 1 0 512 1\nrst' ;;
	half) session <<<$'req 1 0 1 0 100000\nfill 5000 1' ;;
	esac
}
for how in silent greeted abort refused garbage disc close reset half; do
	for _ in {1..4}; do
		leave "$how" >/dev/null 2>&1
	done
	is "$(session <<<$'read 1 0 512\nrecv' | cut -d' ' -f1-3)" "1 error 0" \
		"$how: four of them leave three slots free"
done

# Three hold the slots; the fourth is served when one has gone.
pids=()
for i in 1 2 3; do
	printf '%s\n' 'read 1 0 512' recv "sleep $((i * 400))" |
		session >"$tmp/hold.$i" &
	pids+=($!)
done
ok "three clients are served" wait_until 5 \
	test -s "$tmp/hold.1" -a -s "$tmp/hold.2" -a -s "$tmp/hold.3"
is "$(session <<<$'read 1 0 512\nrecv' | cut -d' ' -f1-3)" "1 error 0" \
	"the fourth waits for its turn"
wait "${pids[@]}"
stop_weir
is "$status" 0 "it ends well"
done_testing
