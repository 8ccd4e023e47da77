#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir stats and weir reset, against the server's control socket.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq

start_weir store=mem:16M cache-size=8M
ok "4M are written" weir bench --rw write --bs 64K --size 4M "$uri"

ok "stats as a table" weir stats "$ctl"
like "$out" 'store mem:16M' "has a section for the store"
like "$out" 'cache_size_bytes +8M' "sizes are for people"
like "$out" 'latency.write.p99_us +[0-9.]+ ms' "times are in ms"
like "$out" 'export ""' "has a section for the export"

ok "stats as JSON" weir stats --json "$ctl"
is "$(jq -r '.stores[0].cache_size_bytes' <<<"$out")" 8388608 \
	"numbers are exact"
is "$(jq -r '.stores[0].requests.write.bytes' <<<"$out")" 4194304 \
	"what was written was counted"
is "$(jq -r '.process.pid' <<<"$out")" "$weir_pid" "the process is named"
ok "its CPU time is told" jq -e '.process.cpu_user_us >= 0' <<<"$out"

peak=$(stat_of dirty_peak_bytes)
ok "dirty bytes had a peak ($peak)" test "$peak" -gt 0
ok "reset" weir reset "$ctl"
is "$(stat_of latency.write.count)" 0 "the histograms are empty"

exits 2 "no control socket" weir stats "$tmp/none"
like "$out" '^weir stats: control socket .*No such file' "says why"
exits 1 "no argument" weir stats
exits 1 "no argument to reset" weir reset

# A thing that is no control socket.
exits 2 "an NBD socket is no control socket" timeout_run 20 weir stats "$sock"
like "$out" "^weir stats: $sock is where NBD clients .*--control" "it says so"
exits 2 "a file is none" weir stats "$weir_log"
like "$out" "^weir stats: $weir_log is not a socket; .*--control" "it says so"

stop_weir
exits 2 "the server is gone" weir stats "$ctl"
done_testing
