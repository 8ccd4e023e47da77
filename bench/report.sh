# shellcheck shell=bash disable=SC2154 # names of race
# SPDX-License-Identifier: BSD-3-Clause
#
# report.sh: the table for people, and the same with every round as JSON.
#
# A cell has two lines: best and median of the rounds, in MB/s for requests of
# 64K and more, else in thousands of requests a second; below it the median CPU
# microseconds of a request. In brackets the ratio of the medians to the class's
# reference, its own column having none.

report_head() {
	echo "weir race: $(uname -sr), $(nproc) CPUs, $(weir --version)," \
		"load: $load, $rounds rounds of $runtime s, $size"
	[ "$tls" = no ] || echo "Every server with TLS."
	echo "Each cell: best / median (median against the reference);" \
		"below, server CPU us per request."
	echo "Writes to images end with a flush that is measured; writes to" \
		"memory do not."
	echo "CPU of kernel threads (page cache writeback) is not counted."
}

report_table() {
	local class=$1 transport=$2
	[ "${#running[@]}" -gt 0 ] || return 0
	awk -F '\t' -v class="$class" -v transport="$transport" \
		-v peers="${running[*]}" -v reference="${class_reference[$class]}" \
		-f "$here/table.awk" "$results"
}

report_foot() {
	local f
	echo
	[ "${#missing[@]}" -eq 0 ] || echo "missing (not installed): ${missing[*]}"
	echo "note: nbdkit's cache filter runs unbounded here; with" \
		"cache-max-size it drops dirty"
	echo "blocks: nbdkit 1.32 with cache=writeback cache-max-size=4M reads" \
		"32M back wrong."
	for f in "${failures[@]}"; do
		echo "failed: $f"
	done
}

# A line of $results: class, transport, connections, row, peer, round, MB/s,
# IOPS, p50, p99, CPU.
report_json() {
	jq -Rn --arg kernel "$(uname -sr)" --arg cpus "$(nproc)" \
		--arg weir "$(weir --version)" --arg load "$load" \
		--arg rounds "$rounds" --arg runtime "$runtime" \
		--arg size "$size_bytes" --arg keys "${weir_keys[*]-}" \
		--arg tls "$tls" --arg missing "${missing[*]-}" --args '
	def median: sort | if length % 2 == 1 then .[length / 2 | floor]
		else (.[length / 2 - 1] + .[length / 2]) / 2 end;
	[inputs | split("\t") | {class: .[0], transport: .[1],
		connections: (.[2] | tonumber), row: .[3], peer: .[4],
		mb_per_s: (.[6] | tonumber), iops: (.[7] | tonumber),
		p50_ms: (.[8] | tonumber), p99_ms: (.[9] | tonumber),
		server_cpu_us_per_op: (.[10] | tonumber)}] |
	group_by([.class, .transport, .connections, .row, .peer]) |
	map((.[0] | {class, transport, connections, row, peer}) + {
		best: {mb_per_s: map(.mb_per_s) | max,
			iops: map(.iops) | max},
		median: {mb_per_s: map(.mb_per_s) | median,
			iops: map(.iops) | median,
			p50_ms: map(.p50_ms) | median,
			p99_ms: map(.p99_ms) | median,
			server_cpu_us_per_op:
				map(.server_cpu_us_per_op) | median},
		rounds: map({mb_per_s, iops, p50_ms, p99_ms,
			server_cpu_us_per_op})}) |
	{weir: $weir, kernel: $kernel, cpus: ($cpus | tonumber), load: $load,
		rounds: ($rounds | tonumber), runtime_s: ($runtime | tonumber),
		size_bytes: ($size | tonumber), tls: ($tls == "yes"),
		weir_keys: ($keys | split(" ")),
		missing: ($missing | split(" ")), failed: $ARGS.positional,
		cells: .}' "${failures[@]}" <"$results"
}
