#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The whole chain under a filesystem of this kernel:
#
#	mounted -> cache beside the client -> TLS, a slow link -> far server -> pool
#
# The far server is killed twice while files are written and fsynced: the client
# sees a pause. Then the near one is too: with the next one it mounts, what was
# fsynced is whole, and fsck is content. The link is the loopback of a network
# of its own, throttled where tc(8) can.

if [ -z "${WEIR_OWN_NET-}" ] && unshare -n true 2>/dev/null; then
	WEIR_OWN_NET=yes exec unshare -n "$BASH" "$0"
fi

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-loop.sh
. "${WEIR_SRCDIR:-.}/tests/lib-loop.sh"
# shellcheck source=tests/lib-tls.sh
. "${WEIR_SRCDIR:-.}/tests/lib-tls.sh"
# shellcheck source=tests/lib-far.sh
. "${WEIR_SRCDIR:-.}/tests/lib-far.sh"
need certtool

if [ -n "${WEIR_OWN_NET-}" ]; then
	ip link set lo up || bail "no network of its own"
	tc qdisc add dev lo root tbf rate 800mbit burst 256k latency 100ms ||
		diag "the link is not throttled"
fi

ca=$tmp/ca
authority "$ca" || bail "no certificates can be made"
certificate "$ca" "$tmp/server" server 'cn = localhost' 'dns_name = localhost'
certificate "$ca" "$tmp/client" client 'cn = near'
weir pool create "$tmp/pool.img" --size 400M >/dev/null || bail "no pool"
far_kind=forgets far_image=pool:$tmp/pool.img far_port=$(free_port)
far_tls=(--tls=require --tls-certificates="$tmp/server" --tls-verify-peer --)
remote="nbds://localhost:$far_port/?tls-certificates=$tmp/client"

start_near() {
	weir_name=near
	start_weir store="$remote" cache-size=32M dirty-limit=8M
	attach || bail "nbdfuse and losetup: no block device"
}

# Files of many sizes, each noted when its fsync has returned.
write_files() {
	local i=0 name
	while :; do
		name=$mnt/$((i++))
		dd if=/dev/urandom of="$name" bs=$((1000 + RANDOM)) \
			count=$((1 + RANDOM % 20)) conv=fsync status=none &&
			sync "$mnt" && sha256sum "$name" >>"$tmp/sums" ||
			return
	done
}

more_files_than() {
	[ "$(wc -l <"$tmp/sums")" -gt "$1" ]
}

start_far "${far_tls[@]}"
start_near
ok "mkfs" make_fs ext4 "$loop"
ok "mount" mount -t ext4 "$loop" "$mnt"
: >"$tmp/sums"
write_files 2>/dev/null &
writer=$!
started+=("$writer")
for i in 1 2; do
	wait_until 30 more_files_than "$((3 * i))"
	sleep "0.$((RANDOM % 10))"
	kill_far
	had=$(wc -l <"$tmp/sums")
	sleep 0.3
	start_far "${far_tls[@]}"
	ok "far server $i killed: more is fsynced with the next" \
		wait_until 40 more_files_than "$((had + 1))"
done
nok "the writer has seen no error" gone "$writer"
kill_weir
kill_far
wait_until 60 gone "$writer"
ok "both killed: what was mounted can be let go" timeout_run 60 umount "$mnt"
detach
start_far "${far_tls[@]}"
start_near
ok "it mounts" mount -t ext4 "$loop" "$mnt"
diag "$(wc -l <"$tmp/sums") files"
ok "what was fsynced is whole" sha256sum --quiet --strict -c "$tmp/sums"
ok "it can be unmounted" umount "$mnt"
ok "fsck" check_fs ext4 "$loop"
detach
stop_weir
is "$status" 0 "the near server ends well"
finish "$far_pid"
is "$status" 0 "the far server too"
ok "the pool is sound" weir pool check "$tmp/pool.img"
done_testing
