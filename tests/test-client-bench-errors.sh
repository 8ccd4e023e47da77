#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir bench when things are wrong: usage 1, I/O 2, one line that says what.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need nbdkit

serve() { # NAME ARGUMENT...: nbdkit on $tmp/NAME.sock
	local name=$1
	shift
	background nbdkit -f -U "$tmp/$name.sock" "$@" 2>>"$tmp/$name.log"
	wait_for "$tmp/$name.sock"
}

uri_of() {
	echo "nbd+unix:///?socket=$tmp/$1.sock"
}

serve good memory 1M
serve readonly -r memory 1M
serve failing --filter=error memory 1M error-pwrite=ENOSPC \
	error-pwrite-rate=100%
serve blocks --filter=blocksize-policy memory 1M blocksize-minimum=4K \
	blocksize-preferred=4K blocksize-maximum=1M blocksize-error-policy=error
good=$(uri_of good)

refused() { # REGEX ARGUMENT...
	local regex=$1
	shift
	exits 1 "usage: $*" timeout_run 20 weir bench "$@"
	like "$out" "$regex" "says what is wrong"
	is "$(wc -l <<<"$out")" 1 "in one line"
}

refused 'URI is missing' --rw read
refused "not 'sideways'" --rw sideways "$good"
refused "--bs: 'big' is not a size" --rw read --bs big "$good"
refused 'out of range' --rw read --iodepth 0 "$good"
refused "'10 parsecs' is not a time" --rw read --runtime '10 parsecs' "$good"
refused '0 or 1' --rw write --end-fsync=maybe "$good"
refused 'bs needs --rw' --bs 4K "$good"
refused 'needs --runtime' --rw read --time-based --size 1M "$good"
refused 'multiple of 512' --rw write --verify --bs 1000 "$good"
refused 'fewer than the 2 URIs' --rw read --numjobs 1 "$good" "$good"
refused 'past the export' --rw read --size 2M "$good"
refused 'past the export' --rw read --size 512K --numjobs 3 \
	--offset-increment 512K "$good"
refused 'no room' --rw read --bs 2M "$good"
refused 'read-only' --rw write --size 64K "$(uri_of readonly)"
refused 'minimum, 4096' --rw write --bs 512 --size 64K "$(uri_of blocks)"
refused 'at most' --rw write --bs 2M --size 64K "$(uri_of blocks)"
refused 'unknown option' --rw write --depth 3 "$good"
refused 'not an NBD URI' --rw read "$tmp/good.sock"

exits 2 "no server" weir bench --rw read "$(uri_of none)"
exits 2 "a failing write" weir bench --rw write --bs 4K --offset 8K --size 64K \
	"$(uri_of failing)"
like "$out" 'write of 4096 bytes at offset [0-9]+: No space left' \
	"names request, offset and error"
exits 2 "no control socket" weir bench --rw read --size 64K \
	--control "$tmp/none" "$good"

serve dying --filter=delay memory 1M delay-read=1
dying=${started[-1]}
timeout_run 20 weir bench --rw read --bs 4K --size 1M "$(uri_of dying)" \
	>"$tmp/dying.out" 2>&1 &
bench=$!
sleep 0.5
finish "$dying" KILL
rc=0
wait "$bench" || rc=$?
is "$rc" 2 "the server dies during a run: exit 2, and no hang"

serve hanging --filter=delay memory 1M delay-read=60
hanging=${started[-1]}
# The shell has background jobs ignore SIGINT; env gives it back.
env --default-signal=INT weir bench --rw read --bs 4K --size 1M \
	"$(uri_of hanging)" >"$tmp/hanging.out" 2>&1 &
bench=$!
sleep 0.5
finish "$bench" INT 10
is "$status" 0 "^C ends a run that gets no answer"
like "$(cat "$tmp/hanging.out")" interrupted "and says so"
finish "$hanging" KILL
done_testing
