#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A store of 5 MB/s: a writer of ten times the dirty limit is held to it, in
# bounded memory, while reads of what is cached are served.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 64M)
start_weir store="sim:bandwidth=5M,$image" cache-size=8M dirty-limit=2M

rss() {
	awk '/^VmRSS/ { print $2 }' "/proc/$weir_pid/status"
}

says "1 error 0" "something is cached" <<END
write 1 0 65536 0x51
recv
flush 2
END
before=$(rss)

# 20M in requests of 1M, all sent at once.
for i in {1..20}; do
	echo "write $i $((i << 20)) 1048576 $i"
done >"$tmp/script"
echo "recv 20" >>"$tmp/script"
session <"$tmp/script" >"$tmp/out" &
writer=$!
started+=("$writer")

served=0
while ! gone "$writer"; do
	[ "$(session <<<$'read 1 0 65536\nrecv')" != \
		"1 error 0 65536 of 0x51" ] || served=$((served + 1))
	now=$(rss)
	[ "${most:=0}" -ge "$now" ] || most=$now
	sleep 0.1
done
wait "$writer"
is "$(awk '$3 == 0' "$tmp/out" | wc -l)" 20 "20M are written"
ok "a reader was served meanwhile ($served times)" test "$served" -ge 3
# What is in flight of one connection is bounded by inflight-bytes (32M); the
# rest is the cache.
ok "memory stayed bounded (+$((most - before))K)" \
	test $((most - before)) -lt 60000
if command -v weir >/dev/null; then
	ok "never more dirty than the limit" \
		test "$(stat_of dirty_peak_bytes)" -le $((2 << 20))
fi
stop_weir TERM 40
is "$status" 0 "it ends well"
lost=0
for i in {1..20}; do
	holds "$image" "$i" $((i << 20)) 1048576 ||
		lost=$((lost + 1))
done
is "$lost" 0 "all of it is in the image"
done_testing
