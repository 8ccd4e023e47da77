#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir compare: tables from fixed inputs, the JSON of each kind of measurement,
# and the exit code that a CI asks for.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq

# bench NAME WRITE READ P99: as weir bench --json has it, one run.
bench() {
	jq -n --argjson w "$2" --argjson r "$3" --argjson p "$4" '{weir: "1",
		runs: [{options: {rw: "rw", bs_bytes: 65536, iodepth: 8,
				numjobs: 1},
			read: {ios: ($r / 65536), bytes_per_s: $r,
				latency: {p99_ns: $p}},
			write: {ios: ($w / 65536), bytes_per_s: $w,
				latency: {p99_ns: 5}}}]}' >"$tmp/$1"
}

# fio NAME BYTES_PER_SECOND: two jobs of one name, the second twice as fast.
fio() {
	echo 'fio: this is a remark'
	jq -n --argjson w "$2" '{"fio version": "fio-3.33", jobs: [
		{jobname: "j", read: {bw_bytes: 0, total_ios: 0},
			write: {bw_bytes: $w, total_ios: 9,
				lat_ns: {mean: 7, stddev: 1}}},
		{jobname: "j", read: {bw_bytes: 0, total_ios: 0},
			write: {bw_bytes: ($w * 2), total_ios: 9,
				lat_ns: {mean: 9, stddev: 2}}}]}'
}

table() { # the output without its first line and the runs of blanks
	tail -n +2 <<<"$out" | sed 's/^ *//; s/  */ /g'
}

line() { # line LINE DESCRIPTION: the table has exactly that one
	local found
	found=$(table | grep -xF -- "$1")
	is "$found" "$1" "$2"
}

bench a.json 100000000 200000000 1000
bench b.json 110000000 150000000 3000
ok "two runs of weir bench" weir compare "$tmp/a.json" "$tmp/b.json"
is "$(table)" "100.00 +10.0% 110.00 rw 64K depth 8 x1
100.00 +10.0% 110.00 TOTAL write_bw
200.00 -25.0% 150.00 rw 64K depth 8 x1
200.00 -25.0% 150.00 TOTAL read_bw" "a line a case, a sum each"
like "$out" '^ +a.json +b.json' "the files are named above"

exits 0 "within the threshold" \
	weir compare --threshold 30% "$tmp/a.json" "$tmp/b.json"
exits 1 "reads are worse than that" \
	weir compare --threshold 20% "$tmp/a.json" "$tmp/b.json"
like "$out" '-25.0%.* WORSE' "which it says"
exits 0 "an improvement is none" \
	weir compare --threshold 5 "$tmp/b.json" "$tmp/b.json"
exits 1 "a longer latency is worse" \
	weir compare --all --threshold 30% "$tmp/a.json" "$tmp/b.json"
like "$out" '1000.00 +\+200.0% +3000.00  read.latency.p99_ns  WORSE' "by name"
is "$(grep -c WORSE <<<"$out")" 1 "but not the one that is equal"

bench c.json 50000000 200000000 1000
ok "three files" weir compare "$tmp/a.json" "$tmp/b.json" "$tmp/c.json"
line '100.00 +10.0% 110.00 -50.0% 50.00 rw 64K depth 8 x1' \
	"a column each, against the first"

fio f 10000000 >"$tmp/f.json"
fio f 10500000 >"$tmp/g.json"
ok "fio, with remarks ahead of it" weir compare "$tmp/f.json" "$tmp/g.json"
is "$(table)" "10.00 +5.0% 10.50 j
20.00 +5.0% 21.00 j#2
30.00 +5.0% 31.50 TOTAL write_bw" "jobs of one name are told apart"
sed -n '/^{/,$p' "$tmp/f.json" | jq '{"fio version", client_stats: .jobs}' \
	>"$tmp/h.json"
ok "fio of a client and a server" weir compare "$tmp/f.json" "$tmp/h.json"
line '10.00 +0.0% 10.00 j' "is the same"

jq -n '{experiment: "throttle", cells: [{case: "thresh=1M/1dd",
	before_bytes_per_second: 40e6, after_bytes_per_second: 50e6,
	before: [{store_writes: 4, series: [{ms: 1}]}],
	after: [{store_writes: 3, series: [{ms: 1}]}]}]}' >"$tmp/e.json"
ok "an experiment alone" weir compare "$tmp/e.json"
is "$(table)" "40.00 +25.0% 50.00 thresh=1M/1dd
40.00 +25.0% 50.00 TOTAL write_bw" "its before and its after"
ok "all of it" weir compare --all "$tmp/e.json"
all=$out
line '4.00 -25.0% 3.00 store_writes' "counters as well"
is "$(grep -c 'ms$' <<<"$all")" 0 "but no time series"
ok "and two of them" weir compare "$tmp/e.json" "$tmp/e.json"
line '50.00 +0.0% 50.00 thresh=1M/1dd' "by what came after"

jq '.runs += [.runs[0] | .options.bs_bytes = 4096]' "$tmp/a.json" >"$tmp/two.json"
ok "a case that one has" weir compare "$tmp/two.json" "$tmp/a.json"
two=$out
like "$two" "a.json: no case 'rw 4K depth 8 x1', of .*two.json" "is named"
like "$two" '100.00 +-  rw 4K' "and has no number there"
like "$two" '100.00 +\+0.0% +100.00  TOTAL write_bw' "nor part in the sum"
exits 1 "to a CI it is a fault" \
	weir compare --threshold 5% "$tmp/two.json" "$tmp/a.json"

exits 2 "no file" weir compare
exits 2 "one without sides" weir compare "$tmp/a.json"
like "$out" 'a.json: has no before and after' "says so"
exits 2 "nothing in common" weir compare "$tmp/a.json" "$tmp/f.json"
like "$out" 'no case in common' "says so"
exits 2 "not there" weir compare "$tmp/a.json" "$tmp/none"
like "$out" "$tmp/none: cannot be read: No such file" "says so"
printf '{\n"a": 1,\n,}\n' >"$tmp/bad.json"
exits 2 "not JSON" weir compare "$tmp/a.json" "$tmp/bad.json"
like "$out" 'bad.json:3: not JSON' "says where"
echo '{"a": 1}' >"$tmp/other.json"
exits 2 "no measurement" weir compare "$tmp/other.json" "$tmp/a.json"
like "$out" 'other.json: no results: neither of weir bench' "says what it takes"
exits 2 "a bad threshold" weir compare --threshold x "$tmp/a.json" "$tmp/b.json"
like "$out" 'threshold x: not a percentage' "says so"
done_testing
