# shellcheck shell=bash disable=SC2154 # names of race
# SPDX-License-Identifier: BSD-3-Clause
#
# load.sh: one turn of one server.
#
#  1. Writes to an image end with a flush inside the measured time, for every
#     server: the figure is of data that is on the disk.
#  2. Several connections have a part of the export each.
#  3. CPU is that of the server's processes, user and system, over the turn,
#     divided by the requests. What the kernel's own threads do for it
#     (page cache writeback) is not in it: that favours the servers that
#     write through the page cache.

# cpu_ticks PID: of the process, what descends from it, and what did.
cpu_ticks() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$1" '
		{
			pid = $1
			sub(/^.*\) /, "")
			parent[pid] = $2
			ticks[pid] = $12 + $13 + $14 + $15
		}
		END {
			for (pid in parent) {
				p = pid
				while (p != root && p in parent && p > 1)
					p = parent[p]
				if (p == root)
					sum += ticks[pid]
			}
			print sum + 0
		}'
}

# Each prints: MB/s, IOPS, p50 ms, p99 ms, requests.
load_weir() {
	local uri=$1 end_flush=$2 rw=$3 bs=$4 depth=$5 conns=$6
	weir bench --json --rw "$rw" --bs "$bs" --iodepth "$depth" \
		--numjobs "$conns" --size $((size_bytes / conns)) \
		--offset-increment $((size_bytes / conns)) \
		--time-based --runtime "${runtime_ms}ms" \
		--end-fsync="$end_flush" "$uri" | jq -r '.runs[0] |
		(if .write.ios > 0 then .write else .read end) |
		[.bytes_per_s / 1e6, .iops, .latency.p50_ns / 1e6,
		 .latency.p99_ns / 1e6, .ios] | @tsv'
}

load_fio() {
	local uri=$1 end_flush=$2 rw=$3 bs=$4 depth=$5 conns=$6
	fio --name=race --ioengine=nbd --uri="$uri" --rw="$rw" --bs="$bs" \
		--iodepth="$depth" --numjobs="$conns" --thread \
		--group_reporting --size=$((size_bytes / conns)) \
		--offset_increment=$((size_bytes / conns)) --time_based \
		--runtime="${runtime_ms}ms" --end_fsync="$end_flush" \
		--output-format=json | sed -n '/^{/,$p' | jq -r '.jobs[0] |
		(if .write.total_ios > 0 then .write else .read end) |
		[.bw_bytes / 1e6, .iops,
		 (.clat_ns.percentile."50.000000" // 0) / 1e6,
		 (.clat_ns.percentile."99.000000" // 0) / 1e6,
		 .total_ios] | @tsv'
}

# measure PEER CLASS RW BS DEPTH CONNECTIONS: MB/s, IOPS, p50 ms, p99 ms, CPU
# microseconds per request.
measure() {
	local peer=$1 class=$2 end_flush=0 before after line hz
	local runtime_ms
	shift 2
	runtime_ms=$(awk -v s="$runtime" 'BEGIN { printf "%d", s * 1000 }')
	[ "$class" = memory ] || end_flush=1
	hz=$(getconf CLK_TCK)
	before=$(cpu_ticks "${peer_pid[$peer]}")
	line=$(set -o pipefail
		"load_$load" "${peer_uri[$peer]}" "$end_flush" "$@") || return
	# A process that served a connection is counted once it has ended.
	sleep 0.03
	after=$(cpu_ticks "${peer_pid[$peer]}")
	awk -v ticks=$((after - before)) -v hz="$hz" -v OFS='\t' \
		'{ print $1, $2, $3, $4, $5 ? ticks * 1e6 / hz / $5 : 0 }' \
		<<<"$line"
}
