#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A store that takes no write any more is removed by a reload, under a client:
# others go on, further reloads too, and the server still ends, in time and
# with the loss said.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

server_only "nbdkit has no reload"
need weir nbdinfo qemu-io jq

sock=$tmp/s
log=$tmp/weir.log
make_image 16M a.img >/dev/null
make_image 16M b.img >/dev/null

config() { # config EXTRA
	cat >"$tmp/weir.conf" <<END
[server]
unix = $sock
control = $tmp/ctl
pidfile = $tmp/pid
shutdown-timeout = 2s
[store good]
store = $tmp/a.img
cache-size = 8M
[export good]
store = good
$1
END
}
reload() {
	local before
	before=$(grep -c 'is read again' "$log")
	kill -HUP "$weir_pid"
	wait_until 10 eval "[ \$(grep -c 'is read again' '$log') -gt $before ]"
}
uri() {
	echo "nbd+unix:///$1?socket=$sock"
}

bad="[store dead]
store = fault:hang=always,op=write,[$tmp/b.img]
cache-size = 8M
[export dead]
store = dead"
config "$bad"
background weir-server -f --config "$tmp/weir.conf" 2>"$log"
weir_pid=$!
wait_for "$tmp/pid" || bail "it does not start"

writer() {
	exec qemu-io -f raw -c 'write -P 1 0 1M' -c 'flush' "$(uri dead)" \
		>"$tmp/writer.out" 2>&1
}
background writer
writer=$!
stuck() {
	weir stats --json "$tmp/ctl" | jq -e '[.stores[] |
		select(.name == "dead") | .writeback_bytes][0] > 0'
}
wait_until 10 stuck ||
	bail "the flush does not come"

config ""
ok "its removal is read" reload
ok "and said" grep -q 'export "dead": removed' "$log"
nok "nobody can connect" nbdinfo "$(uri dead)"
ok "others are served" qemu-io -f raw -c 'write 0 1M' -c flush "$(uri good)"
config $'[export more]\nstore = good'
ok "another reload" reload
ok "does what it says" nbdinfo --size "$(uri more)"
config "$bad"
ok "the dead store comes back in the file" reload
nok "and is not opened while the old one is there" nbdinfo "$(uri dead)"
ok "the others are" nbdinfo --size "$(uri good)"
# The client was ended after the time it has for its last answers.
ok "the client is ended" wait_until 30 gone "$writer"

stop_weir TERM 30
is "$status" 2 "the end comes in time, with a loss"
ok "which is said" grep -q 'store dead: shutdown-timeout has passed' "$log"
ok "by its bytes" grep -q 'dead.*\|.*b.img.*not written: bytes 0 to' "$log"
done_testing
