#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# SIGKILL while a client writes and flushes, again and again on one store: the
# next server has all that was flushed, and nothing that was never written.
# WEIR_KILLS says how often.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

kills=${WEIR_KILLS:-3}
durable=$WEIR_BUILDDIR/tests/durable

# Each time with a small cache and limit, so that much is under way.
start() {
	start_weir store="$1" cache-size=8M dirty-limit=2M
}

# Write till the server is killed, at some moment after the first flush.
write_and_kill() {
	local log=$1 seed=$2 writer
	: >"$log"
	background "$durable" write "$uri" "$log" "$seed"
	writer=$!
	wait_until 10 test -s "$log"
	sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
	kill_weir
	wait "$writer"
}

survives() {
	local store=$1 what=$2 i seed log
	start "$store"
	for ((i = 1; i <= kills; i++)); do
		seed=$((RANDOM * 32768 + RANDOM))
		log=$tmp/flushed.$what.$i
		ok "$what $i: the export is zeroed for a new round" zero_all
		write_and_kill "$log" "$seed"
		start "$store"
		ok "$what $i: what was flushed is there (seed $seed)" \
			timeout_run 60 "$durable" verify "$uri" "$log" "$seed"
		diag "$out"
	done
	stop_weir
	is "$status" 0 "$what: the last server ends well"
}

zero_all() {
	timeout_run 30 qemu-io -f raw -c 'write -z 0 16M' -c flush "$uri"
}

# In a pool what was flushed has a place that a crash does not lose.
make_pool() {
	weir pool create "$tmp/pool.img" --size 16M >&2 && echo "pool:$tmp/pool.img"
}

need qemu-io
survives "$(make_image 16M)" raw
survives "$(make_pool)" pool
ok "the pool is sound" weir pool check "$tmp/pool.img"
done_testing
