#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Clients vanish with requests in flight, some half-sent. Nothing of them
# stays, others go on, and what was answered and flushed is there.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit 1.32 aborts: raw_send_socket: Assertion \`sock >= 0'"
image=$(make_image 64M)
port=$(free_port)
start_weir_tcp "$port" store="sim:latency=5ms,$image" cache-size=8M
at=127.0.0.1:$port

rss() {
	awk '/^VmRSS/ { print $2 }' "/proc/$weir_pid/status"
}

is "$(session "$at" <<END
write 1 0 1048576 0x44
recv
flush 2
recv
END
)" "1 error 0
2 error 0" "a client writes and flushes"

vanish() { # vanish N: a hundred requests, then half of a write
	local i
	for i in {1..50}; do
		echo "read $i $((i * 65536 * 8 % 67000000)) 65536"
		echo "write $((i + 50)) $((1048576 + i * 65536)) 65536 $1"
	done
	echo "req 1 0 200 8388608 1048576"
	echo "fill $((1000 + 100000 * ($1 % 3))) 9"
	[ $(($1 % 2)) = 0 ] || echo "hex 2560"
	echo rst
}

for n in {1..5}; do
	vanish "$n" | session "$at" >/dev/null
done
before=$(rss)
for n in {1..40}; do
	vanish "$n" | session "$at" >/dev/null
done
is "$(session "$at" <<END
read 1 0 1048576
recv
write 2 33554432 65536 0x45
recv
flush 3
recv
read 4 33554432 65536
recv
END
)" "1 error 0 1048576 of 0x44
2 error 0
3 error 0
4 error 0 65536 of 0x45" "after 45 of them a client is served as ever"

# 40 clients with 3M of writes each would show.
ok "and nothing is kept of them" test $(($(rss) - before)) -lt 30000
stop_weir
is "$status" 0 "it ends well"
ok "what was flushed is in the image" holds "$image" 0x44 0 1048576
done_testing
