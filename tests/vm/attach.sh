#!/bin/sh
# shellcheck shell=dash
# SPDX-License-Identifier: BSD-3-Clause
#
# attach.sh: the first process of the guest: weir attach on a kernel that has
# nbd; a server that locks its memory; and what make install has installed, as
# a service.

# shellcheck source=tests/vm/guest.sh
. /guest.sh

unix='nbd+unix:///?socket=/run/sock'

serve() { # serve OPTION...
	rm -f /run/pid
	weir-server -f -P /run/pid "$@" 2>>/tmp/server.log &
	server_starts $!
}

# attach OPTION...: sets $dev; the device is whole when it returns.
attach() {
	dev=$(weir attach "$@") && [ -b "$dev" ] &&
		[ "$(blockdev --getsize64 "$dev")" = 67108864 ]
}

is_nbd() {
	case $dev in /dev/nbd*) ;; *) return 1 ;; esac
}

is_free() {
	[ ! -e "/sys/block/${dev#/dev/}/pid" ] &&
		[ -z "$(ls /run/weir 2>/dev/null)" ]
}

reads_back() {
	mount "$dev" /mnt && [ "$(cat /mnt/word)" = "$1" ] && umount /mnt
}

make_and_write() {
	mkfs.ext4 -q "$dev" && mount "$dev" /mnt && echo kept >/mnt/word &&
		umount /mnt
}

refused() { # refused CODE TEXT COMMAND...
	want=$1
	text=$2
	shift 2
	code=0
	"$@" >/tmp/refusal 2>&1 || code=$?
	cat /tmp/refusal
	[ $code -eq "$want" ] && grep -q "$text" /tmp/refusal
}

has_sectors() {
	[ "$(blockdev --getss "$dev")" = "$1" ]
}

is_readonly() {
	[ "$(blockdev --getro "$dev")" = 1 ]
}

fs=unix
serve -U /run/sock store=mem:64M
check "attach" attach "$unix"
check "is the kernel's nbd" is_nbd
check "a filesystem" make_and_write
check "mounted" mount "$dev" /mnt
check "is not detached while it is" refused 1 mounted weir detach "$dev"
check "unmount" umount /mnt
check "detach" weir detach "$dev"
check "nothing is left" is_free
check "attach with sectors of 4K" attach -b 4096 "$unix"
check "has them" has_sectors 4096
first=$dev
check "a second device" attach -r "$unix"
check "is another one" [ "$dev" != "$first" ]
check "and read-only" is_readonly
check "the data is there" reads_back kept
check "detach all" weir detach --all
check "nothing is left of either" is_free
check "the server ends well" end_server
check "no server" refused 2 'No such file\|refused' weir attach "$unix"
check "nothing is left" is_free

fs=TCP
serve -i 127.0.0.1 -p 10809 -e disk store=mem:64M
check "attach with four connections" attach -C 4 nbd://127.0.0.1/disk
check "a filesystem" make_and_write
check "detach" weir detach "$dev"
check "attach again, by another spelling" attach nbd://localhost:10809/disk
check "the data is there" reads_back kept
check "no such export" refused 2 'no such export; the server has "disk"' \
	weir attach nbd://127.0.0.1/disc
check "detach again" weir detach "$dev"
check "the server ends well" end_server

fs=small
serve -U /run/sock store=mem:100
check "less than a sector is refused" refused 2 'less than one sector' \
	weir attach "$unix"
check "nothing is left" is_free
check "the server ends well" end_server

fs=swap
# PF_MEMALLOC_NOIO and PF_LOCAL_THROTTLE
flushers() {
	for t in /proc/"$server"/task/*; do
		flags=$(sed 's/.*) //' "$t/stat" | cut -d' ' -f7)
		[ $((flags & 0x180000)) -eq $((0x180000)) ] || return 1
	done
}

memory() { # memory FIELD: of the server, in MiB
	awk -v f="$1:" '$1 == f { print int($2 / 1024) }' \
		"/proc/$server/status"
}

holds_its_cache() {
	echo "locked $(memory VmLck), resident $(memory VmRSS) MiB"
	[ "$(memory VmLck)" -gt 64 ] && [ "$(memory VmRSS)" -ge 64 ] &&
		[ "$(memory VmRSS)" -lt 256 ]
}

no_flusher() {
	! flushers
}

killed_last() {
	[ "$(cat "/proc/$server/oom_score_adj")" = -1000 ]
}

swap_device() {
	mkswap "$dev" && swapon "$dev" && [ "$(wc -l </proc/swaps)" = 2 ] &&
		swapoff "$dev"
}

serve -U /run/sock store=mem:64M
check "nobody is a flusher without it" no_flusher
check "the server ends well" end_server
serve --swap -U /run/sock store=mem:64M cache-size=64M
check "memory is locked, and the cache's is there" holds_its_cache
check "each thread is a flusher of I/O" flushers
check "it is killed last" killed_last
check "attach" attach "$unix"
check "a swap device" swap_device
check "detach" weir detach "$dev"
check "the server ends well" end_server
fs=installed
# What make install has put there, in the background, from a file.
cat >/etc/weir.conf <<'END'
[server]
control = /run/weir.ctl
pidfile = /run/weir.pid
[store disk]
store = raw:/var/disk.img
cache-size = 16M
[export disk]
store = disk
END
truncate -s 64M /var/disk.img

start_service() {
	/usr/local/sbin/weir-server --config /etc/weir.conf &&
		[ -s /run/weir.pid ]
}

stop_service() {
	kill -TERM "$(cat /run/weir.pid)"
	n=0
	while [ -e /run/weir.pid ] && [ $n -lt 100 ]; do
		sleep 0.1
		n=$((n + 1))
	done
	[ ! -e /run/weir.pid ]
}

# On PATH are the build tree's.
weir() {
	/usr/local/bin/weir "$@"
}

check "the file is in order" /usr/local/sbin/weir-server --check-config \
	--config /etc/weir.conf
check "it starts" start_service
check "attach" attach nbd://127.0.0.1/disk
check "a filesystem" make_and_write
check "its figures" weir top -b -n 1 --interval 100ms /run/weir.ctl
check "detach" weir detach "$dev"
check "it stops" stop_service
check "fsck of the image" e2fsck -f -n /var/disk.img
check "it starts again" start_service
check "attach again" attach nbd://127.0.0.1/disk
check "the data is there" reads_back kept
check "detach again" weir detach "$dev"
check "it stops again" stop_service
if [ -s /tmp/server.log ]; then
	tail -n 20 /tmp/server.log | sed 's/^/# server: /' >&3
fi
finish
