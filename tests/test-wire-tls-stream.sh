#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The border between plain and TLS: what was said before is forgotten, what is
# sent plain behind STARTTLS ends the connection; a handshake that hangs is cut
# off; and a peer that goes in the middle of anything costs nothing.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
need certtool nbdinfo

authority "$tmp/ca" || bail "no certificates can be made"
certificate "$tmp/ca" "$tmp/server" server 'cn = localhost'
start_weir --tls=on --tls-certificates="$tmp/server" --max-connections 4 -- \
	store=mem:8M inflight-bytes=1M
tls=$(x509_uri "$tmp/ca")

# The handshake that hangs, in the background: it takes ten seconds.
printf '%s\n' greet 'opt 5 0' reply 'hex 160301' eof | raw >"$tmp/slow" &
slow=$!
slow_start=$SECONDS

# --- before and after ---------------------------------------------------------

is "$(printf '%s\n' greet starttls 'go' 'read 1 0 512' recv | raw | tail -n 1)" \
	"1 error 0 512 of 0x00" "a request in TLS"
out=$(printf '%s\n' greet structured 'meta' starttls 'go' \
	'read 1 0 512' recv 'status 2 0 4096' recv | raw)
like "$out" "reply 8 .*reply 10 .*TLSv1.3" "negotiated in the clear, then TLS"
like "$out" $'\n'"1 error 0 512 of 0x00" "structured replies are forgotten"
like "$out" $'\n'"2 error 22" "so are meta contexts"
out=$(printf '%s\n' greet 'opt 11 0' reply starttls 'go' 'read 1 0 512' recv | raw)
like "$out" $'\n'"1 error 0 512 of 0x00" "and extended headers"
out=$(printf '%s\n' greet starttls structured 'meta' go \
	'status 2 0 4096' recv | raw)
like "$out" "2 context 1: 4096" "negotiated in TLS, they hold"
out=$(printf '%s\n' greet starttls 'opt 5 0' reply 'list' go | raw)
like "$out" "TLSv1.3"$'\n'"reply 5 invalid" "a second STARTTLS is refused"
is "$(printf '%s\n' 'greet 2' 'opt 5 0' reply go 'read 1 0 512' recv | raw |
	sed -n '2p; $p')" "reply 5 policy
1 error 0 512 of 0x00" "who is not fixed newstyle is served without"
out=$(printf '%s\n' greet 'opt 5 4 00000000' reply go 'read 1 0 512' recv | raw)
like "$out" "reply 5 invalid.*1 error 0 512" "one with data is too; that is all"

# Requests right behind the choice, in the same record.
{
	printf '%s\n' greet starttls 'opt 7 6 000000000000'
	for i in {1..50}; do
		echo "write $i $((i * 65536)) 65536 $i"
	done
	printf '%s\n' 'replies' 'recv 50' 'read 60 3276800 65536' 'recv'
} | raw >"$tmp/packed"
is "$(tail -n 1 "$tmp/packed")" "60 error 0 65536 of 0x32" \
	"requests sent with the choice are all served"

# More requests than may be in flight, a little more than fits a receive
# buffer, and then silence: what the server has decrypted by then, but not looked
# at, no readiness tells of. They come while it stands still.
{
	printf '%s\n' greet starttls go 'read 1 0 1' recv
	sleep 0.5
	kill -STOP "$weir_pid"
	for i in {1..9500}; do
		echo "read $i 0 1"
	done
	echo send
	sleep 1
	kill -CONT "$weir_pid"
	echo 'recv 9500'
} | raw >"$tmp/many"
is "$(grep -c ' error 0 1 of ' "$tmp/many")" 9501 \
	"a burst larger than what may be in flight is all served"

# --- injected -----------------------------------------------------------------

: >"$weir_log"
is "$(printf '%s\n' greet 'opt 5 0' 'opt 3 0' eof | raw | tail -n 1)" eof \
	"an option sent behind STARTTLS ends the connection"
logged "pid [0-9]+: TLS refused: plain bytes behind STARTTLS" "which the log says"
: >"$weir_log"
is "$(printf '%s\n' greet 'opt 5 0' reply 'opt 3 0' eof | raw | tail -n 1)" eof \
	"so do plain bytes instead of a handshake"
logged "pid [0-9]+: TLS refused: what came is not TLS" "which the log says"
: >"$weir_log"
printf '%s\n' greet 'opt 5 0' reply 'hex 16030100' rst | raw >/dev/null
logged "TLS refused: (the client hung up|Connection reset)" "and a client that goes"

# --- the end ------------------------------------------------------------------

ticks() {
	awk '{ print $14 + $15 }' "/proc/$weir_pid/stat"
}
nobody() {
	weir stats --json "$ctl" | jq -e '.clients | length <= 1'
}
# More of them than there are slots, each in the middle of something.
for i in {1..6}; do
	printf '%s\n' greet starttls go 'req 1 0 1 0 1048576' 'fill 300000 1' \
		send | raw >/dev/null
	printf '%s\n' greet starttls go 'read 1 0 8388608' \
		'read 2 0 8388608' 'sleep 100' rst | raw >/dev/null
	printf '%s\n' greet starttls send | raw >/dev/null
done
ok "who goes in the middle of a request frees the slot" wait_until 5 nobody
before=$(ticks)
sleep 2
after=$(ticks)
ok "and costs no time after ($((after - before)) of 200 ticks)" \
	test $((after - before)) -le 4

# A client that has gone half: it sends nothing more, and does not hang up.
{
	printf '%s\n' greet starttls go 'read 1 0 8388608' send
	sleep 3
} | raw >/dev/null &
idle=$!
sleep 1
before=$(ticks)
sleep 1
after=$(ticks)
ok "nor does one that reads no answer ($((after - before)) of 100 ticks)" \
	test $((after - before)) -le 4
wait "$idle"

wait "$slow"
is "$(tail -n 1 "$tmp/slow")" eof "a handshake that hangs is cut off"
ok "in its time" test $((SECONDS - slow_start)) -le 14
logged "TLS refused: the handshake takes too long" "which the log says"
ok "a client is served still" connects "$tls"
stop_weir
is "$status" 0 "it ends well"
done_testing
