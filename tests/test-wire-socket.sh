#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A unix socket left over is replaced, a live one is not touched; nor is a file
# that is no socket.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit opens the plugin's sockets"
image=$(make_image 4M)

start_weir store="$image"
ok "the socket is there" test -S "$sock"
is "$(stat -c %a "$ctl")" 600 "the control socket is its user's alone"
kill_weir
ok "a kill leaves them behind" test -S "$sock" -a -S "$ctl"
start_weir store="$image"
is "$(session <<<$'read 1 0 512\nrecv')" "1 error 0 512 of 0x00" \
	"they are replaced"

exits 1 "a live one is refused" \
	timeout_run 10 weir-server -f -U "$sock" mem:1M
like "$out" "^weir-server: $sock: in use" "saying which"
exits 1 "a live control socket too" \
	timeout_run 10 weir-server -f -U "$tmp/b.sock" --control "$ctl" mem:1M
like "$out" "^weir-server: $ctl: in use" "saying which"
is "$(session <<<$'read 1 0 512\nrecv')" "1 error 0 512 of 0x00" \
	"the first server goes on"
ok "what was refused leaves no socket" test ! -e "$tmp/b.sock"

echo precious >"$tmp/file"
exits 1 "a file is no socket" \
	timeout_run 10 weir-server -f -U "$tmp/file" mem:1M
is "$(cat "$tmp/file")" precious "and is left alone"

# Another server takes the place of a name that was removed: it keeps it.
rm "$sock"
first=$weir_pid
background weir-server -f -U "$sock" -P "$tmp/second.pid" mem:1M
second=$!
ok "a second server at the same name" wait_for "$tmp/second.pid"
finish "$first"
is "$status" 0 "the first one ends"
ok "and leaves the name to the second" test -S "$sock"
finish "$second"
ok "which removes it" test ! -e "$sock"
done_testing
