#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Clients that ask and take no answer: they cost bounded memory, others are
# served as ever, and SIGTERM ends the server with them there.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit reads for the plugin"
image=$tmp/disk.img
# Data, for holes are answered in no memory.
dd if=/dev/urandom of="$image" bs=1M count=64 status=none
start_weir --threads 1 -- store="$image" cache-size=8M inflight-bytes=4M

rss() {
	awk '/^VmRSS/ { print $2 }' "/proc/$weir_pid/status"
}

# What is parsed of a client that does not read stops somewhere.
stuck() {
	weir stats --json "$ctl" | jq -e "$(printf '[.clients[] |
		select(.inflight_bytes >= 3 * 1048576)] | length >= %d' "$1")"
}

# ask COUNT COMMAND: that many, all over the image, and never an
# answer read.
ask() {
	{
		printf '%s\n' greet structured meta go
		awk -v n="$1" -v what="$2" 'BEGIN {
			for (i = 0; i < n; i++)
				print what, i, i * 69632 % 66000000, 4096
		}'
		printf '%s\n' send 'sleep 60000'
	} >"$tmp/asks.$2"
	# Its input is named here: in the background it would be /dev/null.
	# shellcheck disable=SC2016 # its own arguments
	background bash -c 'exec "$0" "$1" <"$2" >"$3"' \
		"$WEIR_BUILDDIR/tests/nbd-raw" "$sock" "$tmp/asks.$2" \
		"$tmp/asked.log"
}

is "$(session <<<$'write 1 0 65536 7\nrecv')" "1 error 0" "one client writes"
before=$(rss)
ask 10000 read
# Small answers: more of them than the buffers of a socket take.
ask 100000 status
ok "two clients ask, until no more is taken" wait_until 30 stuck 2
for i in 1 2 3; do
	is "$(session <<<$'read 1 0 65536\nrecv\nwrite 2 4096 512 9\nrecv')" \
		"1 error 0 65536 of 0x07
2 error 0" "another is served ($i)"
	printf '%s\n' 'write 1 0 65536 7' recv | session >/dev/null
done
grown=$(($(rss) - before))
# 4M of small reads in flight hold a page of 64K each, which is 64M, beside 8M
# of cache and the buffers; all that was asked would be 640M.
ok "memory is bounded (+${grown}K)" test "$grown" -lt $((96 << 10))
stop_weir TERM 20
is "$status" 0 "SIGTERM with them there ends it well"
done_testing
