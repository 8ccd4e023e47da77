#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir-server --config: several stores and exports from a file, and two exports
# of one store that see each other's writes.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

server_only "nbdkit has no such file"
need nbdinfo qemu-io jq weir

make_image 64M a.img >/dev/null
make_image 8M b.img >/dev/null
sock=$tmp/s
ctl=$tmp/ctl
cat >"$tmp/weir.conf" <<END
[export]
store = a
[server]
  unix = $sock	; the socket
control = $ctl
pidfile = $tmp/pid
threads = 2
[store a]
store = $tmp/a.img
cache-size = 16M
[store the other]
store: $tmp/b.img
cache-size = 4M
# a view of the first
[export look]
store = a
readonly = yes
description = only  to look at, = not to touch # really
[export through]
store = a
cache = none
[export b]
store = the other
cache = writethrough
END

ok "a good file" weir-server --check-config --config "$tmp/weir.conf"
like "$out" '^OK: stores: 2, exports: 4; .*not checked' "says what it did not do"
ok "nothing was opened" test ! -e "$sock"

background weir-server -f --config "$tmp/weir.conf" 2>"$tmp/weir.log"
weir_pid=$!
wait_for "$tmp/pid" || bail "it does not start"
like "$(cat "$tmp/weir.log")" 'ready: 4 exports of 2 stores' "it is ready"

uri() { # uri [EXPORT]
	echo "nbd+unix:///${1-}?socket=$sock"
}

is "$(nbdinfo --list --json "$(uri)" | jq -c '[.exports[] | ."export-name"]')" \
	'["","look","through","b"]' "the exports, as in the file"
is "$(nbdinfo --size "$(uri b)")" $((8 << 20)) "each has its store's size"
nok "there is no other" nbdinfo "$(uri c)"
is "$(weir stats --json "$ctl" | jq -c '[.stores[].name]')" \
	'["a","the other"]' "the stores, as in the file"
is "$(weir stats --json "$ctl" | jq -r '.exports[1].description')" \
	"only  to look at, = not to touch # really" "a description, as written"

# Coherent: what one wrote, the others read, through their own path.
io() { # io EXPORT COMMAND...: fails if a pattern differs, too
	local at command args=()
	at=$(uri "$1")
	for command in "${@:2}"; do
		args+=(-c "$command")
	done
	qemu-io -f raw "${args[@]}" "$at" >"$tmp/io.log" 2>&1 &&
		! grep -q 'failed' "$tmp/io.log"
}
look() { # the same of the read-only one
	qemu-io -r -f raw -c "$1" "$(uri look)" >"$tmp/io.log" 2>&1 &&
		! grep -q 'failed' "$tmp/io.log"
}
ok "a cached write" io "" 'write -P 7 0 1M' 'write -P 8 1500 300'
ok "is seen by the read-only export" look 'read -P 7 4K 100K'
ok "and by the direct one" io through 'read -P 7 64K 64K'
ok "a direct write" io through 'write -P 9 64K 64K'
ok "is seen by the cached export" io "" 'read -P 9 64K 64K' 'read -P 7 0 1K'
ok "and by the read-only one" look 'read -P 9 64K 64K'
nok "which refuses to write" qemu-io -f raw -c 'write 0 4K' "$(uri look)"
ok "another store" io b 'read -P 0 0 1M' 'write -P 5 0 64K'
ok "keeps what is its own" io "" 'read -P 7 0 1K' 'read -P 8 1500 300'
finish "$weir_pid"
is "$status" 0 "it ends well"
ok "all is in the stores" cmp -n 65536 "$tmp/b.img" \
	<(head -c 65536 /dev/zero | tr '\0' '\5')

# The command line goes over the file.
background weir-server -f --config "$tmp/weir.conf" -U "$tmp/other" \
	2>>"$tmp/weir.log"
weir_pid=$!
wait_for "$tmp/other" || bail "it does not start"
ok "the socket of the command line" test ! -e "$sock"
finish "$weir_pid"

# Names are as the system has them.
exits 0 "the example is a good one" weir-server --check-config \
	--config "$WEIR_SRCDIR/examples/weir.conf"
done_testing
