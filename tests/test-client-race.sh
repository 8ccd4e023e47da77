#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench/race measures every server that is there, names those that are not, and
# its JSON has every round. What it measures is no matter here.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq nbdkit setsid numfmt
race=$WEIR_SRCDIR/bench/race
short=(--rounds 2 --runtime 0.1 --size 8M --transports unix --connections 1
	--dir "$tmp" --json "$tmp/race.json")

cells() {
	jq -r "$1" "$tmp/race.json"
}

ok "two servers in the class of memory" timeout_run 60 bash "$race" \
	"${short[@]}" --classes memory --peers weir-server,nbdkit-memory \
	--rows '^(write-64K|randread-4K-d1)$'
like "$out" 'randread-4K-d1 +kIOPS' "the table has the row"
is "$(cells '[.cells[] | "\(.row) \(.peer)"] | sort | join(", ")')" \
	"randread-4K-d1 nbdkit-memory, randread-4K-d1 weir-server, write-64K nbdkit-memory, write-64K weir-server" \
	"the JSON has each row and server"
is "$(cells '[.cells[].rounds | length] | unique | join(" ")')" 2 \
	"with each round"
ok "best is not below the median" jq -e '.cells | all(
	.best.iops >= .median.iops and .median.iops > 0)' "$tmp/race.json"
is "$(find "$tmp" -name 'weir-race.*')" "" "the images are gone"

ok "TCP, four connections, an image, fio's load" timeout_run 60 bash "$race" \
	"${short[@]}" --classes file --transports tcp --connections 4 \
	--rounds 1 --load fio --peers weir-server,nbdkit-file --rows '^write-1M$'
is "$(cells '[.cells[].connections] | join(" ")')" "4 4" "are measured"

ok "two servers with TLS" timeout_run 60 bash "$race" --tls \
	--classes memory --peers weir-server,nbdkit-memory --transports tcp \
	--connections 1 --rounds 1 --runtime 0.2 --rows read-1M --size 4M \
	--dir "$tmp" --json "$tmp/race.json"
is "$(jq '.tls, (.cells | length)' "$tmp/race.json" | xargs)" "true 2" \
	"both are measured"

# Of all the programs only those that the race itself needs.
mkdir "$tmp/bin"
for program in weir jq awk setsid dirname cat sed sleep numfmt getconf nproc uname \
	mktemp rm tail truncate bash env; do
	ln -s "$(command -v "$program")" "$tmp/bin/$program"
done
ok "a machine without any server" env PATH="$tmp/bin" bash "$race" \
	"${short[@]}" --classes memory
like "$out" 'missing.*weir-server nbdkit-weir nbdkit-memory' \
	"they are named as missing"
is "$(cells '.missing | length')" 3 "in the JSON too"

exits 1 "a bad option" bash "$race" --fast
exits 1 "a bad class" bash "$race" --classes tape --json "$tmp/x"
done_testing
