# shellcheck shell=bash disable=SC2034,SC2154 # names shared with the scripts
# SPDX-License-Identifier: BSD-3-Clause
#
# lib-loop.sh: an export as a disk of this kernel, which may have no nbd:
# nbdfuse shows it as a file and a loop device makes it a disk. Read after
# lib.sh; skips the whole test where that cannot be.
#
#	start_weir store="$image"
#	attach || bail "no block device"
#	make_fs xfs "$loop"; mount -t xfs "$loop" "$mnt"; ...
#	umount "$mnt"; check_fs xfs "$loop"; detach

need flock nbdfuse fusermount3 losetup mkfs.xfs xfs_repair mkfs.ext4 e2fsck \
	mkfs.btrfs btrfs sha256sum
[ "$(id -u)" -eq 0 ] || skip_all "only root may mount"
[ -w /dev/fuse ] || skip_all "this machine has no /dev/fuse"
losetup -f >/dev/null 2>&1 || skip_all "this machine has no loop device"

# One such test at a time: mkfs.btrfs asks the file behind every mounted loop
# device, and fails where that file's nbdfuse is dead, as a test makes it.
exec {loop_lock}>"${TMPDIR:-/tmp}/weir-loop.lock"
flock -w 600 "$loop_lock" || bail "another test keeps the loop devices"

fuse=$tmp/fuse
mnt=$tmp/mnt
mkdir "$fuse" "$mnt"
loop=

attach() {
	background nbdfuse "$fuse/disk" "$uri" 2>>"$tmp/nbdfuse.log"
	nbdfuse_pid=$!
	wait_until 10 test -s "$fuse/disk" &&
		loop=$(losetup --direct-io=on --find --show "$fuse/disk")
}

detach() {
	losetup -d "$loop" && wait_until 10 loop_free || return
	loop=
	fusermount3 -u "$fuse" && wait_until 10 gone "$nbdfuse_pid"
}

loop_free() {
	! losetup "$loop"
}

let_go() {
	umount "$mnt"
	[ -z "$loop" ] || losetup -d "$loop"
	fusermount3 -u "$fuse"
}
at_exit let_go

make_fs() {
	case $1 in
	xfs) mkfs.xfs -q -f "$2" ;;
	ext4) mkfs.ext4 -q -F "$2" ;;
	btrfs) mkfs.btrfs -q -f "$2" ;;
	esac
}

check_fs() {
	case $1 in
	xfs) xfs_repair -n -f "$2" ;;
	ext4) e2fsck -f -n "$2" ;;
	btrfs) btrfs check --readonly "$2" ;;
	esac
}
