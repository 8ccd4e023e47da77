#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# In the background: the command ends when the server is ready, or with its
# error; relative paths mean what they meant where it was started.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit goes to the background for the plugin"
image=$(make_image 4M)
sock=$tmp/weir.sock
end_background() {
	local pid
	pid=$(cat "$tmp/weir.pid" 2>/dev/null) && kill "$pid"
}
at_exit end_background

cd "$tmp" || bail "no $tmp"
exits 0 "it goes to the background" timeout_run 10 \
	weir-server -U weir.sock -P weir.pid --control weir.ctl disk.img
like "$out" '^weir-server: ready: disk.img at nbd\+unix:///\?socket=weir.sock$' \
	"saying that it is ready, and where"
pid=$(cat weir.pid)
ok "the pid file names it" kill -0 "$pid"
is "$(readlink "/proc/$pid/cwd")" / "it holds no directory"
is "$(session <<<$'write 1 0 4096 0x61\nrecv')" "1 error 0" "it serves"

exits 1 "an error comes back to the command" timeout_run 10 \
	weir-server -U other.sock -P other.pid disk.img
like "$out" 'disk.img' "with its text"
ok "and no pid file" test ! -e other.pid

ok "SIGTERM" kill "$pid"
ok "it ends" wait_until 10 gone "$pid"
ok "pid file and sockets are gone" \
	test ! -e weir.pid -a ! -e weir.sock -a ! -e weir.ctl
ok "the data is in the image" holds disk.img 0x61 0 4096

# TCP: any free port, and said which.
exits 0 "-p 0 takes a free port" timeout_run 10 \
	weir-server -p 0 -P weir.pid -e disk "$image"
at=${out##*nbd://}
is "$(printf '%s\n' greet 'go disk' 'read 1 0 4096' recv |
	raw "${at%/disk}" | tail -n 1)" "1 error 0 4096 of 0x61" \
	"the line names it"
pid=$(cat weir.pid)
ok "SIGTERM" kill "$pid"
ok "it ends" wait_until 10 gone "$pid"
done_testing
