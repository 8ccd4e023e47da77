#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Writes of one range that are in flight at the same time, in one connection
# and in several: each block ends as one of them, never a mix.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 4M)
start_weir store="sim:latency=2ms,$image" cache-size=1M dirty-limit=256K

writer() { # writer NUMBER: 24 writes of different lengths, unread till the end
	local i
	for i in {1..24}; do
		echo "write $i $((65536 - i % 3 * 4096)) $((65536 + i % 5 * 4096))" \
			$((16 * $1 + i % 16))
	done
	echo "recv 24"
}

pids=()
for n in {1..4}; do
	writer "$n" | session >"$tmp/out.$n" &
	pids+=($!)
done
wait "${pids[@]}"
is "$(sort "$tmp"/out.* | uniq -c | awk '{print $1, $3, $4}' | sort -u)" \
	"4 error 0" "96 overlapping writes are answered"

blocks() {
	local i
	for i in {0..19}; do
		echo "read $i $((57344 + 4096 * i)) 4096"
		echo "recv"
	done
}
read_back=$(blocks | session)
is "$(grep -c ' 4096 of 0x' <<<"$read_back")" 20 "no block is a mix"
stop_weir
is "$status" 0 "it ends well"
weir_name=again start_weir store="$image"
is "$(blocks | session)" "$read_back" "the store has what was read"
done_testing
