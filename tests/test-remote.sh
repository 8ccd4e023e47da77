#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A store on another server: how it is reached, what is refused, what it does
# while there is none, and what of a direct write is lost.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-far.sh
. "${WEIR_SRCDIR:-.}/tests/lib-far.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
need certtool psktool nbdcopy qemu-io cmp

near() {
	weir_name=near
	start_weir "$@"
}

io() { # COMMAND...: of qemu-io, on the near server
	local c args=() text
	for c; do args+=(-c "$c"); done
	text=$(timeout_run 30 qemu-io -f raw -t none "${args[@]}" "$uri" 2>&1) ||
		return
	echo "$text"
	! grep -qiE 'error|failed' <<<"$text"
}

# over_a_gap WRITE: it and, after another far server came, a flush, on one
# connection; $status is how that ended.
over_a_gap() {
	local had gap
	had=$(stat_of store_write_bytes)
	timeout_run 40 qemu-io -f raw -t none -c "$1" -c 'sleep 1500' \
		-c flush "$uri" >/dev/null 2>&1 &
	gap=$!
	started+=("$gap")
	wait_until 10 wrote_more_than "$had"
	far_again
	status=0
	wait "$gap" || status=$?
}

wrote_more_than() {
	[ "$(stat_of store_write_bytes)" -gt "$1" ]
}

# refused REGEX DESCRIPTION SPEC: no near server starts on it; one line says why.
refused() {
	local what=$2
	out=$(timeout_run 20 weir-server -f -U "$tmp/no.sock" store="$3" 2>&1)
	is "$?" 1 "$what: it does not start"
	like "$(tail -n 1 <<<"$out")" "^weir-server: .*$1" "$what: it says why"
}

seq 1 1500000 | head -c 9M >"$tmp/source.img"
far_kind=keeps
far_image=$(make_image 16M)

# --- reached ------------------------------------------------------------------

start_far
near store="$far_uri"
ok "in the clear: what goes in comes out" through "$uri" "$tmp/source.img"
ok "zeroes and trims" io 'write -P 9 0 1M' 'write -z 64K 128K' \
	'discard 512K 256K' flush 'read -P 0 64K 128K' 'read -P 9 192K 320K'
stop_weir
is "$status" 0 "it ends well"
ok "it was all there" cmp <(head -c 64K /dev/zero | tr '\0' '\11') \
	<(head -c 64K "$far_image")
finish "$far_pid"

ca=$tmp/ca
authority "$ca" || bail "no certificates can be made"
certificate "$ca" "$tmp/server" server 'cn = localhost' 'dns_name = localhost'
certificate "$ca" "$tmp/client" client 'cn = near'
authority "$tmp/other"
start_far --tls=require --tls-certificates="$tmp/server" --tls-verify-peer --
tls="nbds+unix://localhost/?socket=$tmp/far.sock"
near store="$tls&tls-certificates=$tmp/client"
ok "certificates, in the URI" through "$uri" "$tmp/source.img"
stop_weir
near store="nbd:connections=2,tls-certificates=$tmp/client,$tls"
ok "certificates, by a key" through "$uri" "$tmp/source.img"
stop_weir
refused "the server hung up .* certificate" "no certificate for it" \
	"$tls&tls-certificates=$tmp/server"
refused "doesnt exist|No such file|cannot|not find" "no such folder" \
	"$tls&tls-certificates=$tmp/nowhere"
refused 'requires TLS|TLS' "without TLS" "$far_uri"
finish "$far_pid"
far_port=$(free_port)
start_far --tls=require --tls-certificates="$tmp/server" --
tcp="nbds://localhost:$far_port/"
near store="$tcp?tls-certificates=$tmp/client"
ok "by TCP" through "$uri" "$tmp/source.img"
stop_weir
refused "certificate.*(issuer|not trusted|verif)" "another authority" \
	"$tcp?tls-certificates=$tmp/other"
refused "certificate.*(name|match|verif)" "another host" \
	"nbds://127.0.0.1:$far_port/?tls-certificates=$tmp/client"
near store="$tcp?tls-certificates=$tmp/other&tls-verify-peer=no"
ok "and taken unseen, if one insists" connects "$uri"
stop_weir
far_port=
finish "$far_pid"

psktool -u near -p "$tmp/keys.psk" >/dev/null 2>&1
psktool -u near -p "$tmp/wrong.psk" >/dev/null 2>&1
start_far --tls=require --tls-psk="$tmp/keys.psk" --
near store="nbds+unix://near@/?socket=$tmp/far.sock&tls-psk-file=$tmp/keys.psk"
ok "a shared key" through "$uri" "$tmp/source.img"
stop_weir
refused "TLS|decrypt|key|alert|closed|reset" "a wrong key" \
	"nbd:tls-username=near,tls-psk-file=$tmp/wrong.psk,$tls"
finish "$far_pid"

# --- without a server ---------------------------------------------------------

start_far
near store="$far_uri&reconnect-timeout=1s" cache-size=1M
ok "something is written" io 'write -P 3 8M 64K' flush
kill_far
nok "what is not cached cannot be read for ever" io 'read 0 64K'
logged "no connection for 1 seconds" "the log says so"
start_far
ok "there is one again" wait_until 20 io 'read 2M 64K'
ok "it can be written" io 'write -P 4 8M 64K' flush 'read -P 4 8M 64K'
kill_far
truncate -s 8M "$far_image"
start_far
logged "refused: its size was 16777216 bytes and is 8388608 now" \
	"another size is refused"
nok "and is not read" io 'read 0 4K'
kill_far
truncate -s 16M "$far_image"
start_far
ok "the right size is taken again" wait_until 20 io 'read 0 4K'
stop_weir
kill_far

# A direct write has no copy here.
far_kind=forgets
start_far
near store="$far_uri" cache=none
over_a_gap 'write -P 5 0 64K'
is "$status" 1 "a direct write was answered and is lost: the flush says so"
nok "and every other" io 'write -P 6 0 64K' flush
stop_weir
# nbdkit's exit code is its own.
[ "$WEIR_FRONTEND" = plugin ] || is "$status" 2 "the end says so too"
kill_far

# --- a pool -------------------------------------------------------------------

weir pool create "$tmp/pool.img" --size 16M >/dev/null
far_image=$tmp/pool.img
start_far
near store="pool:[$far_uri]" cache-size=8M dirty-limit=1M
ok "a pool: data goes in" io 'write -P 7 1M 4M' flush
over_a_gap 'write -P 8 3M 4M'
is "$status" 0 "more, and another server before its flush"
stop_weir
is "$status" 0 "it ends well"
near store="pool:[$far_uri]"
ok "it is all there" io 'read -P 7 1M 2M' 'read -P 8 3M 4M'
stop_weir
finish "$far_pid"
ok "the pool is sound" weir pool check "$tmp/pool.img"

# --- a command ----------------------------------------------------------------

child() { # its pid
	cat "$tmp/child.pid"
}
truncate -s 16M "$tmp/exec.img"
near store="exec:nbdkit -P '$tmp/child.pid' file \"$tmp/exec.img\" cache=none"
ok "exec: what goes in comes out" through "$uri" "$tmp/source.img"
ok "something more" io 'write -P 1 0 64K'
first=$(child)
rm "$tmp/child.pid"
kill -KILL "$first"
ok "it is started again" wait_for "$tmp/child.pid"
ok "and goes on" io flush 'write -P 2 64K 64K' flush 'read -P 1 0 64K'
ok "on the same file" cmp <(head -c 64K /dev/zero | tr '\0' '\1') \
	<(head -c 64K "$tmp/exec.img")
logged "nbdkit was killed by signal 9" "the log says how it died"
last=$(child)
kill_weir
ok "it does not outlive us" wait_until 10 gone "$last"
refused "nbdkit ended with exit code 1: .*nosuch" "exec: a bad command" \
	"exec:nbdkit nosuch"
# Under TSan vfork() is fork(), and the child's errno stays with the child.
refused "(cannot start nosuchcommand: No such file|ended with exit code 127)" \
	"exec: no command" "exec:nosuchcommand"
done_testing
