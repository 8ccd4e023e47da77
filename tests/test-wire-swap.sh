#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir-server --swap: memory is locked and there from the start, every thread
# is a flusher of I/O, and the server is killed last; refused where it may not.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need weir-server weir setpriv

[ "$(id -u)" -eq 0 ] || skip_all "--swap needs root"

exits 1 "refused without the capability" setpriv --bounding-set=-sys_resource \
	--inh-caps=-sys_resource weir-server --swap -f -U "$tmp/s" mem:1M
like "$out" '^weir-server: --swap: cannot become a flusher of I/O: .*CAP_SYS_' \
	"says what it needs"
is "$(wc -l <<<"$out")" 1 "in one line"
ok "and leaves no socket" test ! -e "$tmp/s"

out=$(timeout 10 weir-server --swap -f -U "$tmp/s" mem:0 2>&1)
if [[ $out == *CAP_SYS_RESOURCE* ]]; then
	skip "no CAP_SYS_RESOURCE here" "the server as it should be"
	done_testing
	exit
fi

start_weir --swap -- store=mem:64M cache-size=64M

memory() { # FIELD of /proc/PID/status, in MiB
	awk -v f="$1:" '$1 == f { print int($2 / 1024) }' "/proc/$weir_pid/status"
}

ok "memory is locked" test "$(memory VmLck)" -gt 64
resident=$(memory VmRSS)
ok "the cache's is there ($resident MiB)" test "$resident" -ge 64
ok "and no more" test "$resident" -lt 256
is "$(cat "/proc/$weir_pid/oom_score_adj")" -1000 "it is killed last"
flags=$(awk '{ print $9 }' "/proc/$weir_pid"/task/*/stat)
others=0
for f in $flags; do
	# PF_MEMALLOC_NOIO and PF_LOCAL_THROTTLE, since Linux 5.8
	[ $((f & 0x180000)) -eq $((0x180000)) ] || others=$((others + 1))
done
is "$others" 0 "each thread is a flusher of I/O ($(wc -l <<<"$flags"))"
ok "it serves" weir bench --rw randwrite --bs 64K --size 64M --verify "$uri"
ok "and stays as it is" test "$(memory VmRSS)" -lt 320
stop_weir
is "$status" 0 "it ends well"
done_testing
