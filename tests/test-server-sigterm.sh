#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# SIGTERM with dirty data and clients connected: all of it is in the image.
# weir-server hangs up; nbdkit waits for the client to go, and leaves its socket.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 32M)
last=eof
[ "$WEIR_FRONTEND" = server ] || last='sleep 3000'

for signal in TERM INT; do
	weir_name=$signal start_weir store="$image" cache-size=64M
	{
		printf '%s\n' 'write 1 0 16777216 0x91' recv
		# Stay connected, with nothing to do.
		echo "$last"
	} | session >"$tmp/client.$signal" &
	client=$!
	ok "$signal: the client's write is answered" \
		wait_until 10 grep -q '^1 error 0' "$tmp/client.$signal"
	stop_weir "$signal"
	wait "$client"
	is "$status" 0 "$signal: the server ends well"
	[ "$WEIR_FRONTEND" = plugin ] || is "$(cat "$tmp/client.$signal")" \
		"1 error 0
eof" "$signal: the client's connection is closed"
	ok "$signal: the image has it all" holds "$image" 0x91 0 16777216
	[ "$WEIR_FRONTEND" = plugin ] ||
		ok "$signal: the socket is removed" test ! -e "$sock"
	truncate -s 0 "$image"
	truncate -s 32M "$image"
done
done_testing
