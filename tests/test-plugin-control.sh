#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# control=PATH: the same control socket as weir-server's, and who counts as
# dirty when a connection closes.
# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
need nbdkit qemu-io weir jq cmp

WEIR_FRONTEND=plugin
image=$(make_image 16M)
start_weir store="$image" cache-size=8M dirty-expire=1h

ok "stats are there" weir stats --json "$ctl"
ok "they are JSON with a store" jq -e '.stores[0].name' <<<"$out"
is "$(stat_of dirty_bytes)" 0 "nothing is dirty at first"

# A client that stays connected and never flushes.
mkfifo "$tmp/commands"
exec 9<>"$tmp/commands"
# shellcheck disable=SC2016 # the inner shell's
background sh -c 'exec stdbuf -oL qemu-io -t writeback -f raw "$1" <&9' - \
	"$uri" >"$tmp/qemu-io.txt" 2>&1
client=$!
echo 'write -P 7 0 1M' >&9
ok "a write is answered" wait_until 10 grep -q 'wrote ' "$tmp/qemu-io.txt"
is "$(stat_of dirty_bytes)" 1048576 "it is dirty"

ok "another client reads it and leaves" timeout_run 20 \
	qemu-io -r -t writeback -f raw -c 'read -P 7 0 1M' "$uri"
is "$(stat_of dirty_bytes)" 1048576 "a reader's goodbye flushes nothing"
hits=$(stat_of hits)
ok "the read was a hit" test "$hits" -gt 0
is "$(stat_of fill_reads)" 0 "with no store read"

# Killed, so that no flush of its own comes before the end.
finish "$client" KILL
ok "a writer's disconnect flushes" wait_until 10 \
	sh -c "weir stats --json '$ctl' | jq -e '.stores[0].dirty_bytes == 0'"
head -c 1M /dev/zero | tr '\0' '\7' >"$tmp/sevens"
ok "the image has it" cmp -n 1048576 "$tmp/sevens" "$image"
stop_weir TERM
is "$status" 0 "it ends well"
ok "the control socket is gone" test ! -e "$ctl"
done_testing
