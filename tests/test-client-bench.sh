#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir bench: each option does what it says, counted by the server where it
# can be.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq nbdkit qemu-io

start_weir store=mem:64M

# bench ARGUMENT...: sets $json; a failed run is a failed test.
bench() {
	exits 0 "weir bench $*" weir bench --json "$@" "$uri"
	json=$out
}

# run FILTER WANT DESCRIPTION: of the first run.
run() {
	is "$(jq -r ".runs[0] | $1" <<<"$json")" "$2" "$3"
}

served() { # OP
	stat_of "requests.$1.ops"
}

# --- how much, and what ---

before=$(served write)
bench --rw write --bs 16K --size 1M
run .write.ios 64 "64 writes of 16K in 1M"
run .write.bytes 1048576 "1M in all"
run .read.ios 0 "no read"
run .flush.ios 1 "and the final flush"
is $(($(served write) - before)) 64 "the server counted as many"

bench --rw read --bs 4K --size 1M --io-size 3M --iodepth 8
run .read.ios 768 "io-size goes over the region three times"
bench --rw randread --bs 4K --size 512K --numjobs 3
run .read.ios 384 "size is per job"
bench --rw randwrite --bs 4K --size 256K --end-fsync=0
run .flush.ios 0 "end-fsync=0 leaves the flush out"
bench --rw write --bs 4K --size 256K --end_fsync=1 --fsync=8
run .flush.ios 8 "a flush after every 8th of 64 writes, the last one at the end"
bench --rw randrw --rwmixread 75 --bs 512 --size 2M --seed 7
ok "rwmixread: about 75% reads" \
	jq -e '.runs[0] | .read.ios / 4096 > 0.7 and .read.ios / 4096 < 0.8' \
	<<<"$json"
reads=$(jq '.runs[0].read.ios' <<<"$json")
bench --rw randrw --rwmixread 75 --bs 512 --size 2M --seed 7
run .read.ios "$reads" "the same seed, the same choices"
bench --rw rw --rwmixread 100 --bs 4K --size 1M
run .write.ios 0 "rwmixread 100 writes nothing"

# --- where ---

ok "a pattern is laid under it" qemu-io -f raw -c 'write -P 0xaa 0 4M' "$uri"
bench --rw write --bs 64K --offset 1M --size 512K --numjobs 2 \
	--offset-increment 1M
kept() { # OFFSET: the 64K there are still the pattern
	out=$(timeout_run 20 qemu-io -r -f raw -c "read -P 0xaa $1 64K" "$uri") &&
		! grep -q 'verification failed' <<<"$out"
}
ok "nothing before --offset" kept 960K
nok "written at --offset" kept 1M
ok "nothing past --size" kept 1536K
nok "the second job: --offset-increment" kept 2M
ok "and its end" kept 2560K

# --- how long, how fast ---

bench --rw randread --bs 4K --runtime 300ms
run '.elapsed_us >= 300000' true "runtime: not less"
run '.options.time_based' true "without --size the runtime decides"
bench --rw read --bs 4K --size 64K --runtime 200ms --time-based
run '.read.ios > 16' true "time-based: over and over"
bench --rw write --bs 4K --size 400K --rate 1M
run '.elapsed_us > 350000' true "rate: 400K at 1M a second take 0.39 s"

# --- figures ---

bench --rw randwrite --bs 4K --size 4M --iodepth 16 --control "$ctl"
run '.write.latency | .p50_ns <= .p99_ns and .p99_ns <= .p99_9_ns
	and .p99_9_ns <= .max_ns and .p50_ns > 0' true "latencies are in order"
run '.client_cpu_us > 0' true "the client's CPU"
run '.server_cpu_us > 0' true "the server's CPU, through its control socket"
ok "for people" weir bench --rw randrw --bs 4K --size 1M "$uri"
like "$out" 'write +[0-9.]+ MB/s +[0-9]+ IOPS .*p50 .*p99\.9' \
	"MB/s, IOPS and latencies"
like "$out" 'with the final flush' "it says that the flush is included"

# --- several URIs ---

background nbdkit -f -U "$tmp/second.sock" memory 16M
wait_for "$tmp/second.sock"
before=$(served read)
exits 0 "two URIs" weir bench --rw read --bs 4K --size 1M --json "$uri" \
	"nbd+unix:///?socket=$tmp/second.sock"
json=$out
run .options.numjobs 2 "are two jobs"
run .read.ios 512 "each with its size"
is $(($(served read) - before)) 256 "half of it from the first"

# --- the default table ---

exits 0 "without --rw" weir bench --runtime 100ms --json --force "$uri"
is "$(jq -r '[.runs[].options.rw] | join(" ")' <<<"$out")" \
	"write read randwrite randread" "four kinds of run"
exits 0 "as a table" weir bench --runtime 50ms "$uri"
like "$out" 'randread +4K' "with a row each"
like "$out" 'include the final flush' "that says what the writes include"

background nbdkit -f -U "$tmp/data.sock" data '"somebody" @0x1fffff 0'
wait_for "$tmp/data.sock"
exits 0 "an export that holds data" weir bench --runtime 50ms --json \
	"nbd+unix:///?socket=$tmp/data.sock"
like "$out" 'holding data' "is not written"
nok "not a single row" grep -q '"rw": ".*write"' <<<"$out"

stop_weir
done_testing
