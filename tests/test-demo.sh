#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ./setup demo, with less to write: it runs to its end, and leaves nothing
# behind, also when it is interrupted.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need fio jq mkfs.xfs xfs_repair setsid
export DEMO_SECONDS=1 DEMO_FILE_SIZE=64M TMPDIR=$tmp

# Folders, loop devices, mounts and processes that name our folder.
left_behind() {
	find "$tmp" -name 'weir-demo.*'
	losetup -l -n -O BACK-FILE 2>/dev/null | grep -F "$tmp/"
	grep -F "$tmp/" /proc/mounts
	pgrep -f "$tmp/weir-demo"
}

demo() {
	timeout -k 5 90 "$BASH" "$WEIR_SRCDIR/tests/demo.sh" "$@"
}

ok "the demo runs with TLS" demo --tls
like "$out" "ready: .* at nbds" "it is TLS"
ok "the demo runs" demo
like "$out" "IOPS" "it shows figures"
is "$(left_behind)" "" "nothing is left"

if grep -q "not root\|no /dev/fuse\|no xfs" <<<"$out"; then
	skip "nothing can be mounted here" "^C cleans up"
	done_testing
	exit
fi

# A terminal sends SIGINT to the whole group.
background setsid env --default-signal=INT \
	"$BASH" "$WEIR_SRCDIR/tests/demo.sh" >"$tmp/demo.log" 2>&1
pid=$!
ok "it gets to mounting" wait_until 30 grep -q "write 1M" "$tmp/demo.log"
kill -INT -- "-$pid"
ok "^C ends it" wait_until 60 gone "$pid"
like "$(cat "$tmp/demo.log")" "interrupted" "it says so"
is "$(left_behind)" "" "^C leaves nothing"
done_testing
