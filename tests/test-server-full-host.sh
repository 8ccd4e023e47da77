#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The host's filesystem is full under a sparse image: flushes fail, the data is
# kept, and when there is space all goes on.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

mkdir "$tmp/fs"
mount -t tmpfs -o size=4M none "$tmp/fs" 2>/dev/null ||
	skip_all "a filesystem can be mounted by root only"
at_exit umount -l "$tmp/fs"
image=$tmp/fs/disk.img
truncate -s 32M "$image"
start_weir store="$image" cache-size=32M

answers=$(session <<END
write 1 0 8388608 0x81
recv
flush 2
recv
read 3 0 8388608
recv
END
)
like "$answers" $'^1 error 0\n2 error (5|28)\n3 error 0 8388608 of 0x81$' \
	"8M do not fit in 4M: the flush fails, the data is kept"
like "$(session <<<$'flush 1\nrecv')" '^1 error (5|28)$' \
	"for another connection too"

ok "space is made" mount -o remount,size=32M "$tmp/fs"
flushed() {
	[ "$(session <<<$'flush 1\nrecv')" = "1 error 0" ]
}
ok "soon a flush succeeds" wait_until 30 flushed
ok "with the data there" holds "$image" 0x81 0 8388608
stop_weir
is "$status" 0 "it ends well"
done_testing
