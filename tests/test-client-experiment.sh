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

ok "the same again" weir experiment throttle --seconds 20 --rows "$rows"
is "$out" "$table" "prints the same"

exits 1 "no name" weir experiment
exits 1 "an unknown name" weir experiment flying
like "$out" 'flying: no such experiment \(throttle\)' "says what there is"
exits 1 "no rows" weir experiment throttle --rows nothing
like "$out" '^weir experiment: --rows nothing: matches no case' "says so"
exits 1 "a bad expression" weir experiment throttle --rows '('
exits 1 "too short" weir experiment throttle --seconds 1
exits 2 "a file that cannot be written" weir experiment throttle \
	--seconds 10 --rows 'thresh=1M/1dd$' --json "$tmp/none/x.json"
like "$out" 'none/x.json: cannot be written: No such file' "says why"

done_testing
