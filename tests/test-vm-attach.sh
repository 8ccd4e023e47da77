#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A kernel under QEMU that has nbd: weir attach and weir detach by way of it;
# weir-server --swap with every capability it needs; and the installed tree, as
# a service without systemd.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/vm/initramfs.sh
. "$WEIR_SRCDIR/tests/vm/initramfs.sh"

need qemu-system-x86_64 busybox cpio modprobe nbd-client mkfs.ext4 e2fsck \
	blockdev
vm_kernel || bail "no kernel with modules in /boot: run ./setup deps"

root=$tmp/root
vm_root "$root" "$WEIR_SRCDIR/tests/vm/attach.sh"
vm_modules "$root" nbd ext4
vm_programs "$root" weir-server weir nbd-client mkfs.ext4 e2fsck blockdev
cp /etc/mke2fs.conf "$root/etc/"

dest=$tmp/dest
ok "make install" make -s -C "$WEIR_BUILDDIR" --no-print-directory install \
	DESTDIR="$dest"
for f in sbin/weir-server bin/weir; do
	vm_file "$root" "$dest/usr/local/$f" "/usr/local/$f"
done
vm_pack "$root" "$tmp/initramfs"
rm -rf "$root"

vm_boot 300 "$tmp/initramfs" "$tmp/console.log" "$tmp/results"
vm_results "$tmp/results"
done_testing
