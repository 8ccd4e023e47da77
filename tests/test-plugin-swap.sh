#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# nbdkit --swap locks all memory there is, and fills it: the cache reserves far
# more address space than it uses, and that must stay empty.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need nbdkit weir

[ "$(id -u)" -eq 0 ] || skip_all "memory can be locked by root alone"
WEIR_FRONTEND=plugin
start_weir --swap -- store=mem:64M cache-size=32M

memory() { # FIELD of /proc/PID/status, in MiB
	awk -v f="$1:" '$1 == f { print int($2 / 1024) }' "/proc/$weir_pid/status"
}

reserved=$(memory VmSize)
locked=$(memory VmLck)
resident=$(memory VmRSS)
diag "reserved $reserved MiB, locked $locked, resident $resident"
ok "much is reserved" test "$reserved" -gt 4096
ok "it is locked" test "$locked" -gt 64
ok "what is not used takes no memory" test "$resident" -lt 1024
ok "it serves" weir bench --rw randwrite --bs 64K --size 64M --verify "$uri"
ok "and stays small" test "$(memory VmRSS)" -lt 1024
stop_weir
is "$status" 0 "it ends well"
done_testing
