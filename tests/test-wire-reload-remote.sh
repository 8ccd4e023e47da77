#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# SIGHUP: a store on another server is removed while the loops go on: it is
# there, it is gone, it is inside another one, or a command of ours.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

server_only "nbdkit has no reload"
need weir nbdinfo qemu-io nbdkit jq

sock=$tmp/s
ctl=$tmp/ctl
log=$tmp/weir.log
make_image 16M a.img >/dev/null

start_far() {
	background weir-server -f -U "$tmp/far.sock" mem:16M 2>>"$tmp/far.log"
	far_pid=$!
	wait_for "$tmp/far.sock" || bail "the far server does not start"
}

# config [SPEC]: an export that stays, and one of the spec.
config() {
	printf '%s\n' '[server]' "unix = $sock" "control = $ctl" \
		"pidfile = $tmp/pid" '[store a]' "store = $tmp/a.img" \
		'[export stays]' 'store = a'
	[ $# -eq 0 ] || printf '%s\n' '[store far]' "store = $1" \
		'cache-size = 8M' '[export far]' 'store = far'
}

said() {
	tail -n "+$((seen + 1))" "$log" | grep -qE "$1"
}

# reload REGEX WHAT [SPEC]: until the log says so.
reload() {
	config "${@:3}" >"$tmp/weir.conf"
	seen=$(wc -l <"$log")
	kill -HUP "$weir_pid"
	ok "$2" wait_until 30 said "$1"
}

uri() {
	echo "nbd+unix:///$1?socket=$sock"
}

writes() { # an export goes
	qemu-io -f raw -c 'write -P 7 0 1M' -c 'flush' "$(uri "$1")"
}

# A store of that spec comes, is used and goes, three times.
comes_and_goes() {
	local i
	for i in 1 2 3; do
		reload 'read again' "$1: added ($i)" "$2"
		ok "$1: it can be written ($i)" writes far
		reload 'store far: flushed and closed' "$1: removed ($i)"
		ok "$1: the other export goes on ($i)" writes stays
	done
}

config >"$tmp/weir.conf"
background weir-server -f --threads 2 --config "$tmp/weir.conf" 2>"$log"
weir_pid=$!
wait_for "$tmp/pid" || bail "it does not start"
start_far

far="nbd+unix:///?socket=$tmp/far.sock"
comes_and_goes "a remote store" "$far"
comes_and_goes "a stripe of them" "stripe:64K,[$far],[$far]"
comes_and_goes "a command" "exec:nbdkit memory 16M"

reload 'read again' "one that will be lost" "$far"
ok "it can be written" writes far
kill -KILL "$far_pid"
wait_until 10 gone "$far_pid"
ok "it is seen to be lost" wait_until 20 said 'the connection is lost'
reload 'store far: flushed and closed' "removed while it is looked for"
ok "the other export goes on" writes stays

status=0
kill -TERM "$weir_pid"
wait "$weir_pid" || status=$?
is "$status" 0 "it ends well"
done_testing
