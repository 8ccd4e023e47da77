#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir experiment: its table, its JSON, that it repeats itself, what it refuses.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq

rows='^thresh=(1M|100M)/10dd$|^fio/rates$'
ok "a few rows" weir experiment throttle --seconds 20 --rows "$rows" \
	--json "$tmp/a.json"
table=$out
like "$out" '[0-9.]+ +[+-][0-9.]+% +[0-9.]+ .* thresh=1M/10dd' "a row"
like "$out" 'TOTAL write_bw' "and the sum"
is "$(grep -c dd <<<"$table")" 2 "no other rows"

field() {
	jq -r "$1" "$tmp/a.json"
}
is "$(field '.cells | length')" 3 "as many cells in the JSON"
is "$(field '[.cells[].after[0].series | length] | unique | .[]')" 120 \
	"each with its time series"
is "$(field '.cells[] | select(.case == "thresh=100M/10dd") |
	.after[0].series[119].written_bytes | length')" 10 \
	"and the progress of each writer"
is "$(field '[.cells[] | .before[], .after[] | .dirty_peak_bytes <=
	.series[0].dirty_limit_bytes] | all')" true "the limit held"
is "$(field '[.cells[] | .after_bytes_per_second <
	1.05 * .bound_bytes_per_second] | all')" true "nothing beats its bound"

ok "a pool beside raw" weir experiment throttle --seconds 10 \
	--rows '^(pool/)?thresh=10M/10dd$|UKEY-7G.*/1dd' --json "$tmp/p.json"
is "$(grep -c TOTAL <<<"$out")" 2 "a sum of raw cases and one of pools"
like "$out" 'TOTAL write_bw on pools' "the second"
is "$(jq -r '[.cells[].placement] | join(" ")' "$tmp/p.json")" \
	"raw pool pool" "each says where it was"
is "$(jq '.cells[2].after[0].series[0].written_bytes[0] > 6e9' \
	"$tmp/p.json")" true "a full pool was written full first"

ok "the same again" weir experiment throttle --seconds 20 --rows "$rows"
is "$out" "$table" "prints the same"

field() {
	jq -r "$1" "$tmp/b.json"
}

ok "direct against buffered" weir experiment direct --quick --json "$tmp/b.json"
like "$out" 'direct +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+x' \
	"a line over one to four arrays"
is "$(field '.cells | map(.case) | join(" ")')" \
	"write/1 write/2 write/3 write/4 read/4 randread/4 randwrite/4" \
	"all cases are in the JSON"
is "$(field '.cells | map(.after_bytes_per_second) | .[3] >= 3.95 * .[0]')" \
	true "four arrays are as fast as 3.95"
is "$(field '[.cells[0:4][] | .after_bytes_per_second >=
	0.999 * .before_bytes_per_second] | all')" true \
	"direct is no slower than buffered on sequential writes"

ok "appends" weir experiment append --quick --json "$tmp/b.json"
is "$(field '[.cells[] | .request_bytes] | unique | join(" ")')" \
	"4096 8192 16384" "of three sizes"
is "$(field '[.cells[] | select(.request_bytes < 16384) |
	.after_bytes_per_second >= 10 * .before_bytes_per_second] | all')" \
	true "at once they are ten times as fast"
ok "appends on a disk" weir experiment append --quick --runs 2 --rows 4k \
	--live "$tmp" --json "$tmp/b.json"
is "$(field '.cells | map(.case, (.after_runs | length)) | join(" ")')" "4k 2" \
	"run as often as asked for, that case alone"
is "$(find "$tmp" -name 'weir-experiment*')" "" "and leave no file behind"
exits 2 "no such folder" weir experiment append --live "$tmp/none"
like "$out" 'none/weir-experiment-.*: cannot be made' "says so"
exits 1 "no runs" weir experiment append --runs 0

exits 1 "no name" weir experiment
exits 1 "an unknown name" weir experiment flying
like "$out" 'flying: no such experiment \(throttle, direct, append\)' "says what there is"
exits 1 "no rows" weir experiment throttle --rows nothing
like "$out" '^weir experiment: --rows nothing: matches no case' "says so"
exits 1 "a bad expression" weir experiment throttle --rows '('
exits 1 "too short" weir experiment throttle --seconds 1
exits 2 "a file that cannot be written" weir experiment throttle \
	--seconds 10 --rows 'thresh=1M/1dd$' --json "$tmp/none/x.json"
like "$out" 'none/x.json: cannot be written: No such file' "says why"

done_testing
