#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The control socket: a line in, a line out, for its owner alone.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

need jq python3
image=$(make_image 4M)
start_weir store="$image" cache-size=8M

# control TEXT: send it as it is, print what comes back within its lines.
control() {
	timeout_run 10 python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
text = sys.argv[2].encode()
s.sendall(text)
s.shutdown(socket.SHUT_WR)
while data := s.recv(65536):
    sys.stdout.write(data.decode())
' "$ctl" "$1"
}

is "$(stat -c %a "$ctl")" 600 "it is its owner's alone"
answer=$(control $'{"cmd":"stats"}\n')
is "$(wc -l <<<"$answer")" 1 "the answer is a line"
is "$(jq -r '.stores[0].name' <<<"$answer")" "$image" "with the store"
is "$(jq -r '.exports[0].name' <<<"$answer")" "" "with the export"
is "$(jq -r '.clients | length' <<<"$answer")" 0 "and no client"

# A client that stays until we are done with it.
mkfifo "$tmp/say"
session <"$tmp/say" >"$tmp/client" &
client=$!
exec {say}>"$tmp/say"
printf '%s\n' 'write 1 0 65536 1' 'read 2 0 65536' 'recv 2' >&"$say"
ok "a client comes" wait_until 5 test -s "$tmp/client"
answer=$(control $'{"cmd":"stats"}\n')
is "$(jq -r '.clients | length' <<<"$answer")" 1 "it is told of"
is "$(jq -r '.exports[0].connections' <<<"$answer")" 1 "with its export"
ok "and its bytes are dirty or written" jq -e \
	'.stores[0] | .dirty_bytes + .writeback_bytes + .store_write_bytes >= 65536' \
	<<<"$answer"

is "$(control $'{"cmd":"reset"}\n{ "cmd" : "reset" , "x" : 1 }\n' |
	jq -c .ok | xargs)" "true true" "two lines, two answers"
is "$(control $'{"cmd":"dance"}\nhello\n{"cmd":1\n{}\n\n' | jq -r .error |
	cut -d: -f1 | sort | uniq -c | awk '{ print $1, $2, $3 }')" \
	"4 expected a
1 unknown command" "what makes no sense is refused"
is "$(head -c 5000 /dev/zero | tr '\0' x | { control "$(cat)" 2>&1; } |
	grep -c error:)" 0 "a line too long is the end"
is "$(control $'{"cmd":"reset"}\n' | jq .ok)" true "and no more than that"
exec {say}>&-
wait "$client"
stop_weir
is "$status" 0 "it ends well"
ok "the socket is removed" test ! -e "$ctl"
done_testing
