#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# SIGKILL under a mounted filesystem of this kernel that is being written: with
# the next server it mounts, every file whose fsync returned is whole, and fsck
# is content. WEIR_KILLS says how often for each filesystem.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-loop.sh
. "${WEIR_SRCDIR:-.}/tests/lib-loop.sh"

kills=${WEIR_KILLS:-1}

# Files of many sizes, each noted when its fsync has returned.
write_files() {
	local round=$1 i=0 name
	while :; do
		name=$mnt/$round.$((i++ % 40))
		sed -i "\\,  $name\$,d" "$tmp/sums"
		dd if=/dev/urandom of="$name.new" bs=$((1000 + RANDOM)) \
			count=$((1 + RANDOM % 40)) conv=fsync status=none &&
			mv "$name.new" "$name" && sync "$mnt" &&
			sha256sum "$name" >>"$tmp/sums" || return
	done
}

# The server goes, and then what stood on it, without a hitch: the writer ends
# at its first error.
kill_under() {
	kill_weir
	ok "$1: the writer has an error" wait_until 60 gone "$writer"
	ok "$1: what was mounted can be let go" timeout_run 60 umount "$mnt"
	detach
}

round() {
	local fs=$1 what="$1 $2"
	write_files "$2" 2>/dev/null &
	writer=$!
	started+=("$writer")
	wait_until 20 test -s "$tmp/sums"
	sleep "$((RANDOM % 2)).$((RANDOM % 10))"
	kill_under "$what"
	start_weir store="$3" cache-size=16M dirty-limit=4M
	attach || bail "nbdfuse and losetup: no block device"
	ok "$what: it mounts" mount -t "$fs" "$loop" "$mnt"
	diag "$(wc -l <"$tmp/sums") files"
	ok "$what: what was fsynced is whole" \
		sha256sum --quiet --strict -c "$tmp/sums"
	ok "$what: it can be unmounted" umount "$mnt"
	ok "$what: fsck" check_fs "$fs" "$loop"
	ok "$what: mount again" mount -t "$fs" "$loop" "$mnt"
}

life() {
	local fs=$1 store=$2 i
	weir_name=$fs
	start_weir store="$store" cache-size=16M dirty-limit=4M
	attach || bail "nbdfuse and losetup: no block device"
	ok "$fs: mkfs" make_fs "$fs" "$loop"
	ok "$fs: mount" mount -t "$fs" "$loop" "$mnt"
	for ((i = 1; i <= kills; i++)); do
		: >"$tmp/sums"
		round "$fs" "$i" "$store"
	done
	umount "$mnt"
	detach || bail "the loop device does not go"
	stop_weir
	is "$status" 0 "$fs: the last server ends well"
}

for fs in xfs ext4; do
	life "$fs" "$(make_image 400M "$fs.img")"
done
ok "a pool" weir pool create "$tmp/pool.img" --size 400M
for fs in xfs ext4; do
	life "$fs" "pool:$tmp/pool.img"
done
ok "the pool is sound" weir pool check "$tmp/pool.img"
done_testing
