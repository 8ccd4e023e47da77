#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A store of 5 MB/s: a writer of ten times the dirty limit is held to it and
# gets all of it, in bounded memory, while reads of what is cached are fast.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 64M)
start_weir store="sim:bandwidth=5M,$image" cache-size=8M dirty-limit=2M

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

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
started_ms=$(now_ms)
session <"$tmp/script" >"$tmp/out" &
writer=$!
started+=("$writer")

# The store takes 400 ms for the dirty limit: nothing may wait for that.
if command -v weir >/dev/null; then
	p99=$(weir bench --rw randread --bs 4K --size 64K --rate 4M \
		--time-based --runtime 1s --json "$uri" |
		jq '.runs[0].read.latency.p99_ns / 1e6 | floor')
	ok "99 of 100 cached reads take less than 50 ms ($p99)" \
		test "$p99" -lt 50
fi
served=0
while ! gone "$writer"; do
	[ "$(session <<<$'read 1 0 65536\nrecv')" != \
		"1 error 0 65536 of 0x51" ] || served=$((served + 1))
	now=$(rss)
	[ "${most:=0}" -ge "$now" ] || most=$now
	sleep 0.1
done
wait "$writer"
took=$(($(now_ms) - started_ms))
if command -v weir >/dev/null; then
	written=$(stat_of store_write_bytes)
	ok "the store was kept busy ($((written / took)) bytes a ms)" \
		test $((written / took)) -ge $(((5 << 20) * 8 / 10000))
fi
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
