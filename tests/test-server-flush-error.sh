#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The store answers writes, then fails the flush. The data is written again,
# and no flush succeeds without it.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 16M)
start_weir store="fault:flush-error=1,$image"
answers=$(session <<END
write 1 0 1048576 0x71
recv
flush 2
recv
flush 3
recv
read 4 0 1048576
recv
END
)
# A flush may be tried again before it is answered; an error or none, but the
# second stands for data that is there.
like "$answers" $'^1 error 0\n2 error [05]\n3 error 0\n4 error 0 1048576 of 0x71$' \
	"after a failed flush the next one succeeds"
ok "with the data there" holds "$image" 0x71 0 1048576
stop_weir
is "$status" 0 "it ends well"

# The writes fail for a while; the flush says so, and nothing is lost.
weir_name=writes start_weir store="fault:write-error=3,$image"
session >"$tmp/out" <<END
write 1 0 1048576 0x72
recv
flush 2
recv
read 3 0 1048576
recv
END
like "$(cat "$tmp/out")" \
	$'^1 error 0\n2 error [05]\n3 error 0 1048576 of 0x72$' \
	"a refused write stays readable"
flushed() {
	[ "$(session <<<$'flush 1\nrecv')" = "1 error 0" ]
}
ok "soon a flush succeeds" wait_until 20 flushed
ok "with the data there" holds "$image" 0x72 0 1048576
stop_weir
is "$status" 0 "it ends well"
done_testing
