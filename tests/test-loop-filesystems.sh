#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Filesystems on this kernel, which may have no nbd: nbdfuse shows an export as
# a file and a loop device makes it a disk. Written, checked, attached again,
# verified, trimmed; at the end the image itself is checked.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-loop.sh
. "${WEIR_SRCDIR:-.}/tests/lib-loop.sh"

write_tree() {
	local i
	mkdir "$mnt/small" &&
		dd if=/dev/urandom of="$mnt/large" bs=1M count=48 &&
		dd if=/dev/urandom of="$mnt/pieces" bs=1537 count=1000 &&
		dd if=/dev/urandom of="$mnt/removed" bs=1M count=16 || return
	for ((i = 0; i < 300; i++)); do
		echo "file $i" >"$mnt/small/$i" || return
	done
	sync -f "$mnt"
	rm "$mnt/removed"
	(cd "$mnt" && find . -type f -print0 | xargs -0 sha256sum) >"$tmp/sums"
}

verify_tree() {
	(cd "$mnt" && sha256sum --quiet --strict -c "$tmp/sums")
}

life() {
	local fs=$1 image
	if ! grep -qw "$fs" /proc/filesystems && ! modprobe -q "$fs"; then
		skip "this kernel has no $fs" "$fs"
		return
	fi
	image=$(make_image 640M "$fs.img")
	weir_name=$fs
	start_weir store="$image" cache-size=32M
	attach || bail "nbdfuse and losetup: no block device"
	ok "$fs: mkfs" make_fs "$fs" "$loop"
	ok "$fs: mount" mount -t "$fs" "$loop" "$mnt"
	ok "$fs: write a tree" write_tree
	ok "$fs: unmount" umount "$mnt"
	ok "$fs: fsck" check_fs "$fs" "$loop"
	detach || bail "the loop device does not go"
	attach || bail "nbdfuse and losetup: no block device"
	ok "$fs: mount again" mount -t "$fs" "$loop" "$mnt"
	ok "$fs: checksums" verify_tree
	ok "$fs: fstrim" fstrim "$mnt"
	ok "$fs: unmount again" umount "$mnt"
	detach || bail "the loop device does not go"
	stop_weir
	is "$status" 0 "$fs: the server ends well"
	ok "$fs: fsck of the image" check_fs "$fs" "$image"
}

for fs in xfs ext4 btrfs; do
	life "$fs"
done
done_testing
