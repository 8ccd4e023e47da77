#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir attach and weir detach on this kernel: the round trip, read-only, and
# whatever can be left half done.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq nbdkit mkfs.ext4 e2fsck losetup cmp
[ "$(id -u)" -eq 0 ] || skip_all "only root may attach"
if [ ! -e /sys/module/nbd ]; then
	[ -w /dev/fuse ] || skip_all "this machine has no /dev/fuse"
	losetup -f >/dev/null 2>&1 || skip_all "this machine has no loop device"
fi

export WEIR_RUNTIME_DIR=$tmp/run
at_exit weir detach --all --force

# attach OPTION...: sets $dev.
attach() {
	dev=$(weir attach "$@" 2>"$tmp/attach.log")
}

is_empty() {
	[ -z "$(ls -A "$WEIR_RUNTIME_DIR" 2>/dev/null)" ]
}

image=$(make_image 64M)
start_weir store="$image"

# --- the round trip ---

attach "$uri"
ok "an export is attached" test -b "$dev"
is "$(blockdev --getsize64 "$dev")" 67108864 "of the export's size"
is "$(blockdev --getss "$dev")" 512 "with sectors of 512 bytes"
mkdir "$tmp/mnt"
at_exit umount "$tmp/mnt"
ok "a filesystem is made on it" mkfs.ext4 -q "$dev"
ok "and mounted" mount "$dev" "$tmp/mnt"
ok "a file is written" dd if=/dev/urandom of="$tmp/mnt/f" bs=1M count=8
cp "$tmp/mnt/f" "$tmp/f"
exits 1 "a mounted device is not detached" weir detach "$dev"
like "$out" "is mounted on $tmp/mnt" "and it says where it is mounted"
ok "it is unmounted" umount "$tmp/mnt"
ok "and detached" weir detach "$dev"
ok "nothing is left of it" is_empty

attach -C 1 "$uri"
ok "again" test -b "$dev"
ok "it mounts" mount "$dev" "$tmp/mnt"
ok "the file is there" cmp "$tmp/f" "$tmp/mnt/f"
umount "$tmp/mnt"
ok "detached again" weir detach "$dev"
exits 1 "twice is once too often" weir detach "$dev"

# --- without a filesystem: detach flushes what was written ---

attach "$uri"
ok "attached" test -b "$dev"
ok "written, not flushed" dd if="$tmp/f" of="$dev" bs=1M seek=32 \
	conv=notrunc
ok "detached" weir detach "$dev"
kill_weir
ok "the image has it, though the server was killed after" \
	cmp -n $((8 << 20)) -i 0:$((32 << 20)) "$tmp/f" "$image"
start_weir store="$image"

# --- read-only, sectors ---

attach -r -b 4096 "$uri"
ok "read-only" test -b "$dev"
is "$(blockdev --getro "$dev")" 1 "is what the device is"
is "$(blockdev --getss "$dev")" 4096 "and it has the sectors asked for"
nok "it cannot be written" dd if=/dev/zero of="$dev" bs=4K count=1 oflag=direct
ok "detached" weir detach "$dev"

# --- nbdfuse dies ---

attach --via nbdfuse "$uri"
ok "attached by nbdfuse" test -b "$dev"
pid=$(jq -r .pid "$WEIR_RUNTIME_DIR"/attach-*/state.json)
kill -KILL "$pid"
wait_until 10 gone "$pid"
exits 2 "nbdfuse gone: detach says that data may be lost" weir detach "$dev"
ok "but takes all of it apart" is_empty
nok "the loop device is free" losetup "$dev"

# --- an attach cut short, at each step ---

mkdir -p "$WEIR_RUNTIME_DIR/attach-empty"
mkdir -p "$WEIR_RUNTIME_DIR/attach-early/disk"
echo '{"uri":"x","via":"nbdfu' >"$WEIR_RUNTIME_DIR/attach-early/state.json"
ok "remains of an attach that ended early" weir detach --all
ok "are removed" is_empty

attach --via nbdfuse "$uri"
ok "attached, then its state lost" test -b "$dev"
echo >"$(echo "$WEIR_RUNTIME_DIR"/attach-*/state.json)"
ok "it is found by its loop device" weir detach "$dev"
ok "nothing is left" is_empty

attach --via nbdfuse "$uri"
ok "attached, then the loop device taken away" test -b "$dev"
losetup -d "$dev"
ok "--all finds the rest" weir detach --all
ok "nothing is left" is_empty

# --- refusals ---

exits 2 "no server" weir attach "nbd+unix:///?socket=$tmp/none"
background nbdkit -f -U "$tmp/small.sock" memory 511
wait_for "$tmp/small.sock"
exits 2 "less than a sector" weir attach "nbd+unix:///?socket=$tmp/small.sock"
like "$out" '^weir attach: .* its 511 bytes are less than one sector of 512' \
	"says so"
exits 1 "a bad sector size" weir attach -b 700 "$uri"
exits 1 "a bad way" weir attach --via carrier-pigeon "$uri"
exits 1 "a device that is not ours" weir detach /dev/null
exits 1 "--all with a device" weir detach --all /dev/null
ok "nothing was left by any of them" is_empty

stop_weir
is "$status" 0 "the server ends well"
done_testing
