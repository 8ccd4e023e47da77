#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit in the background: relative paths hold, errors are seen before it
# goes there, the lock goes with it, and its end writes back.
# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
need nbdkit qemu-io cmp stdbuf

cd "$tmp" || bail "no $tmp"
make_image 8M >/dev/null
uri="nbd+unix:///?socket=$tmp/sock"
ctl=$tmp/ctl

ok "it goes to the background" timeout_run 20 \
	nbdkit -U sock -P pid weir disk.img control=ctl dirty-expire=1h
ok "it is ready" wait_for "$tmp/pid"
pid=$(cat "$tmp/pid")
at_exit kill -KILL "$pid"
nok "a second server is refused in the foreground" timeout_run 20 \
	nbdkit -U sock2 -P pid2 weir disk.img
like "$out" "disk.img" "  naming the file"
ok "the control socket is where it was asked for" test -S "$tmp/ctl"

# A client that stays connected and never flushes.
mkfifo commands
exec 9<>commands
# shellcheck disable=SC2016 # the inner shell's
background sh -c 'exec stdbuf -oL qemu-io -t writeback -f raw "$1" <&9' - \
	"$uri" >qemu-io.txt 2>&1
client=$!
echo 'write -P 7 12345 1000000' >&9
ok "a write is answered" wait_until 10 grep -q 'wrote ' qemu-io.txt
ok "it is dirty in memory" test "$(stat_of dirty_bytes)" -ge 1000000
ok "and not in the image" cmp -n 8388608 disk.img /dev/zero

# nbdkit waits for the client, but the data does not.
written() {
	! cmp -n 8388608 disk.img /dev/zero
}
kill -TERM "$pid"
ok "SIGTERM writes back though a client is there" wait_until 20 written
nok "the client is still there" gone "$client"
echo quit >&9
finish "$client"
ok "it ends when the client has gone" wait_until 20 gone "$pid"
ok "the image has the write" timeout_run 20 qemu-io -f raw \
	-c 'read -P 0 0 12345' -c 'read -P 7 12345 1000000' \
	-c 'read -P 0 1012345 10000' disk.img
ok "the control socket is gone" test ! -e "$tmp/ctl"

ok "the image can be served again" timeout_run 20 \
	nbdkit -U - weir disk.img --run 'true'
done_testing
