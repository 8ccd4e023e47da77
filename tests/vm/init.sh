#!/bin/sh
# shellcheck shell=dash
# SPDX-License-Identifier: BSD-3-Clause
#
# init.sh: the first process of the guest. Takes each filesystem through its
# life on /dev/nbd0 and says what came of it.
#
# /serve DISK LISTEN... (made by the host) becomes the server.

# shellcheck source=tests/vm/guest.sh
. /guest.sh

serve() { # serve DISK: listen as $transport says
	rm -f /run/pid /run/sock
	case $transport in
	unix) /serve "$1" -U /run/sock 2>>/tmp/server.log & ;;
	tls) /serve "$1" -i 127.0.0.1 -p 10809 --tls=require \
		--tls-certificates=/pki 2>>/tmp/server.log & ;;
	*) /serve "$1" -i 127.0.0.1 -p 10809 2>>/tmp/server.log & ;;
	esac
	server_starts $!
}

attach() {
	case $transport in
	unix) nbd-client -unix /run/sock /dev/nbd0 ;;
	tcp1) nbd-client 127.0.0.1 10809 /dev/nbd0 ;;
	tcp4) nbd-client 127.0.0.1 10809 -C 4 /dev/nbd0 ;;
	tls) nbd-client 127.0.0.1 10809 /dev/nbd0 -x -A /pki/ca-cert.pem \
		-H localhost ;;
	esac && wait_size
}

size() {
	cat /sys/block/nbd0/size
}

# The netlink call returns before the size is there, or is gone.
wait_size() {
	n=0
	while [ "$(size)" = 0 ] && [ $n -lt 100 ]; do
		sleep 0.1
		n=$((n + 1))
	done
	[ "$(size)" != 0 ]
}

detach() {
	nbd-client -d /dev/nbd0 || return
	n=0
	while [ -e /sys/block/nbd0/pid ] && [ $n -lt 100 ]; do
		sleep 0.1
		n=$((n + 1))
	done
	[ ! -e /sys/block/nbd0/pid ]
}

make_fs() {
	case $fs in
	xfs) mkfs.xfs -f /dev/nbd0 ;;
	ext4) mkfs.ext4 -q -F /dev/nbd0 ;;
	btrfs) mkfs.btrfs -q -f /dev/nbd0 ;;
	esac
}

check_fs() {
	case $fs in
	xfs) xfs_repair -n /dev/nbd0 ;;
	ext4) e2fsck -f -n /dev/nbd0 ;;
	btrfs) btrfs check --readonly /dev/nbd0 ;;
	esac
}

mount_fs() {
	mount -t "$fs" /dev/nbd0 /mnt
}

# Large files, small files, a file written in odd pieces, one that is removed.
write_tree() {
	mkdir -p /mnt/lib /mnt/small &&
		cp /lib/x86_64-linux-gnu/*.so* /mnt/lib/ &&
		dd if=/dev/urandom of=/mnt/random bs=1M count=8 &&
		dd if=/dev/urandom of=/mnt/pieces bs=1537 count=1000 &&
		dd if=/dev/urandom of=/mnt/removed bs=1M count=8 || return
	i=0
	while [ $i -lt 200 ]; do
		echo "$fs $i" >"/mnt/small/$i" || return
		i=$((i + 1))
	done
	sync
	rm /mnt/removed
	(cd /mnt && find . -type f | sort | xargs md5sum) >/tmp/sums
	[ "$(wc -l </tmp/sums)" -gt 202 ]
}

verify_tree() {
	echo 3 >/proc/sys/vm/drop_caches
	(cd /mnt && md5sum -c -s /tmp/sums) &&
		[ "$(find /mnt -type f | wc -l)" = "$(wc -l </tmp/sums)" ]
}

# fill: over $transport, on what is served already.
fill() {
	check "attach over $transport" attach &&
		check "mkfs" make_fs &&
		check "mount" mount_fs &&
		check "write a tree" write_tree &&
		check "sync" sync &&
		check "unmount" umount /mnt &&
		check "fsck" check_fs &&
		check "detach" detach
}

# look: what fill wrote is there.
look() {
	check "attach again over $transport" attach &&
		check "mount again" mount_fs &&
		check "checksums" verify_tree
}

# trim: what no file uses, and nothing else.
trim() {
	check "fstrim" fstrim /mnt &&
		check "checksums after fstrim" verify_tree
}

leave() {
	check "unmount again" umount /mnt &&
		check "fsck again" check_fs &&
		check "detach again" detach
}

# life DISK FILESYSTEM TRANSPORT TRANSPORT: written and looked at over the
# first, looked at over the second from a server that was started anew. What
# follows a failed step is not tried.
life() {
	disk=$1
	fs=$2
	transport=$3
	serve "$disk"
	fill && look && trim && leave && check "the server ends well" end_server &&
		transport=$4 && serve "$disk" &&
		look && leave && check "the new server ends well" end_server
	if [ -s /tmp/server.log ]; then
		tail -n 20 /tmp/server.log | sed 's/^/# server: /' >&3
		: >/tmp/server.log
	fi
}

life /dev/vda xfs unix tcp4
life /dev/vdb ext4 tcp1 unix
life /dev/vdc btrfs tcp4 tls
finish
