#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The server behind a remote store is killed and started again while a client
# writes and flushes, with its unflushed writes or without; as soon as flushes
# go through again, both servers are killed. All that was flushed is on the far
# one, and nothing that was never written; and the client has seen nothing of
# the first kill. WEIR_KILLS says how often.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-far.sh
. "${WEIR_SRCDIR:-.}/tests/lib-far.sh"

kills=${WEIR_KILLS:-3}
durable=$WEIR_BUILDDIR/tests/durable

start_near() {
	weir_name=near
	start_weir store="$far_uri" cache-size=8M dirty-limit=2M
}

# more_than FILE N: another flush went through.
more_than() {
	[ "$(wc -l <"$1")" -gt "$2" ]
}

# The far server goes and comes while batch after batch is written and flushed.
hiccup() {
	local log=$1 what=$2 had
	wait_until 20 more_than "$log" 2
	sleep "0.$((RANDOM % 2))$((RANDOM % 10))"
	kill_far
	had=$(wc -l <"$log")
	far_slow=fault:delay=20ms, start_far
	ok "$what: flushes go through again" wait_until 30 more_than "$log" "$had"
	nok "$what: the client has seen no error" gone "$writer"
}

round() {
	local what=$1 log=$tmp/flushed seed=$((RANDOM * 32768 + RANDOM)) writer
	far_slow=fault:delay=20ms, start_far
	start_near
	: >"$log"
	background "$durable" write "$uri" "$log" "$seed"
	writer=$!
	hiccup "$log" "$what"
	kill_weir
	kill_far
	wait "$writer"
	start_far
	ok "$what: what was flushed is on the far server (seed $seed)" \
		timeout_run 60 "$durable" verify "$far_uri" "$log" "$seed"
	diag "$out"
	kill_far
}

for far_kind in forgets loses keeps; do
	for ((i = 1; i <= kills; i++)); do
		far_image=$(make_image 16M)
		round "$far_kind $i"
		rm "$far_image"
	done
done
like "$(<"$weir_log")" "the connection is lost: .*; connecting again" \
	"the log says that it was lost"
done_testing
