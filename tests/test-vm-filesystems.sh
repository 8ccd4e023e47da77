#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A kernel under QEMU attaches an export with nbd-client, over a unix socket
# over TCP with one and four connections, and over TLS; makes, fills, checks and trims
# xfs, ext4 and btrfs on it. The images are then checked here.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/vm/initramfs.sh
. "$WEIR_SRCDIR/tests/vm/initramfs.sh"

need qemu-system-x86_64 busybox cpio modprobe nbd-client mkfs.xfs xfs_repair \
	mkfs.ext4 e2fsck mkfs.btrfs btrfs
vm_kernel || bail "no kernel with modules in /boot: run ./setup deps"

root=$tmp/root
vm_root "$root" "$WEIR_SRCDIR/tests/vm/init.sh"
vm_modules "$root" virtio_pci virtio_blk nbd xfs ext4 btrfs
vm_programs "$root" nbd-client mkfs.xfs xfs_repair mkfs.ext4 e2fsck \
	mkfs.btrfs btrfs
weir tls-init "$root/pki" >/dev/null || bail "no certificates"
cp /etc/mke2fs.conf "$root/etc/"

case $WEIR_FRONTEND in
server)
	vm_programs "$root" weir-server
	serve="weir-server -f"
	;;
plugin)
	# On PATH is the wrapper that finds the plugin.
	plugin=/lib/nbdkit-weir-plugin.so
	vm_file "$root" "$(PATH=/usr/sbin:/usr/bin command -v nbdkit)" /bin/nbdkit
	vm_file "$root" \
		"$WEIR_BUILDDIR/plugin/.libs/nbdkit-weir-plugin.so" "$plugin"
	serve="nbdkit -f"
	;;
esac
cat >"$root/serve" <<END
#!/bin/sh
disk=\$1
shift
exec $serve -P /run/pid "\$@" ${plugin-} store="raw:\$disk" cache-size=64M
END
chmod 755 "$root/serve"
vm_pack "$root" "$tmp/initramfs"
rm -rf "$root"

for fs in xfs ext4 btrfs; do
	make_image 640M "$fs.img" >/dev/null
done
vm_boot 600 "$tmp/initramfs" "$tmp/console.log" "$tmp/results" \
	"$tmp/xfs.img" "$tmp/ext4.img" "$tmp/btrfs.img"

vm_results "$tmp/results"
ok "xfs: fsck of the image" xfs_repair -n -f "$tmp/xfs.img"
ok "ext4: fsck of the image" e2fsck -f -n "$tmp/ext4.img"
ok "btrfs: fsck of the image" btrfs check --readonly "$tmp/btrfs.img"
done_testing
