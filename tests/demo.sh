#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# demo.sh: weir from end to end, beside a plain file. A sparse image is served,
# attached as a block device, given a filesystem, mounted, written, read,
# unmounted, checked and detached. All of it goes away at the end, also on ^C.
# With --tls, client and server speak TLS.

set -u
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

image_size=4G
file_size=${DEMO_FILE_SIZE:-512M}
seconds=${DEMO_SECONDS:-5}

tls=()
tmp=
server=
device=
mounted=

bold='' plain=''
[ ! -t 1 ] || bold=$'\033[1m' plain=$'\033[0m'

step() {
	printf '\n%s\n' "$bold$*$plain"
}

run() { # say it, do it
	printf '  $ %s\n' "$*"
	"$@" 2>&1 | sed 's/^/    /'
	return "${PIPESTATUS[0]}"
}

die() {
	echo "demo: $*" >&2
	[ -z "$tmp" ] || [ ! -s "$tmp/server.log" ] || cat "$tmp/server.log" >&2
	exit 2
}

end_server() {
	kill "$server" 2>/dev/null
	timeout 30 tail --pid="$server" -f /dev/null || kill -KILL "$server"
	wait "$server" 2>/dev/null
}

# Again while it is busy: ^C does not wait for fio, which may be in a flush.
unmount() {
	for ((i = 0; i < 300; i++)); do
		mountpoint -q "$1" || return 0
		umount "$1" 2>"$tmp/umount.log" && return 0
		sleep 0.2
	done
	cat "$tmp/umount.log" >&2
	return 1
}

# shellcheck disable=SC2317 # called by the trap
clean_up() {
	trap '' INT TERM HUP
	if [ -n "$mounted" ] && ! unmount "$mounted"; then
		echo "demo: $mounted stays mounted, process $server serves it" >&2
		return
	fi
	[ -z "$device" ] || weir detach "$device"
	[ -z "$server" ] || end_server
	[ -z "$tmp" ] || rm -rf "$tmp"
}
trap clean_up EXIT
trap 'echo; echo "demo: interrupted, cleaning up"; exit 130' INT
trap 'exit 143' TERM HUP

# A session of its own, so that ^C reaches the demo and not the server, which
# the mounted filesystem still needs while it is cleaned up.
start_server() {
	printf '  $ %s\n' "truncate -s $image_size $tmp/disk.img" \
		"weir-server -f -U $tmp/sock --control $tmp/control ${tls[*]-} $tmp/disk.img &"
	truncate -s "$image_size" "$tmp/disk.img" || die "no image"
	setsid weir-server -f -U "$tmp/sock" --control "$tmp/control" \
		-P "$tmp/pid" "${tls[@]}" "$tmp/disk.img" 2>"$tmp/server.log" &
	server=$!
	for ((i = 0; i < 100; i++)); do
		[ ! -s "$tmp/pid" ] || return 0
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	die "weir-server does not start"
}

can_attach() {
	if [ "$(id -u)" -ne 0 ]; then
		why="this is not root, so nothing can be mounted"
	elif [ ! -e /sys/module/nbd ] && ! modprobe -q nbd 2>/dev/null &&
		[ ! -w /dev/fuse ]; then
		why="the kernel has no nbd and there is no /dev/fuse"
	elif ! grep -qw xfs /proc/filesystems && ! modprobe -q xfs; then
		why="this kernel has no xfs"
	else
		return 0
	fi
	return 1
}

# --- measuring ------------------------------------------------------------------

# job DIRECTORY FIO-OPTION...: print "MB/s IOPS".
job() {
	local directory=$1
	shift
	fio --name=demo --filename="$directory/demo.fio" --size="$file_size" \
		--output-format=json "$@" 2>"$tmp/fio.log" |
		jq -r '.jobs[0] | [.read, .write] | max_by(.bw_bytes) |
			"\(.bw_bytes / 1e6) \(.iops)"'
}

# row TITLE FIO-OPTION...: the same job on both.
row() {
	local title=$1 weir beside
	shift
	printf '  %-36s' "$title"
	read -r -a weir < <(job "$tmp/mnt" "$@")
	[ "${#weir[@]}" -eq 2 ] || die "fio: $(cat "$tmp/fio.log")"
	printf '%8.0f MB/s %7.0f IOPS' "${weir[@]}"
	read -r -a beside < <(job "$tmp/plain" "$@")
	[ "${#beside[@]}" -eq 2 ] || die "fio: $(cat "$tmp/fio.log")"
	printf '%8.0f MB/s %7.0f IOPS\n' "${beside[@]}"
}

measure() {
	local timed=(--time_based --runtime="$seconds")
	mkdir "$tmp/plain" || die "no folder"
	printf '  %-36s%22s%26s\n' "" "xfs on weir" "plain file"
	row "write 1M in sequence, then fsync" --rw=write --bs=1M --end_fsync=1
	row "read 1M in sequence" --rw=read --bs=1M
	row "write 4K at random, then fsync" --rw=randwrite --bs=4k \
		--io_size=64M --end_fsync=1
	row "write 4K at random, fsync each" --rw=randwrite --bs=4k --fsync=1 \
		"${timed[@]}"
	row "read 4K at random" --rw=randread --bs=4k "${timed[@]}"
	echo
	echo "  Buffered I/O through the kernel's page cache on both sides; the"
	echo "  plain file lies in $tmp/plain, beside the image."
}

# --- the demo -------------------------------------------------------------------

tmp=$(mktemp -d "${TMPDIR:-/var/tmp}/weir-demo.XXXXXX") || exit 1
free=$(df --output=avail -B1M "$tmp" | tail -n 1)
[ "$free" -gt 2048 ] || die "$tmp: needs 2G free, has ${free}M; set TMPDIR"

uri="nbd+unix:///?socket=$tmp/sock"
if [ "${1-}" = --tls ]; then
	step "Make certificates"
	run weir tls-init "$tmp/pki" || die "no certificates"
	tls=(--tls=require --tls-certificates="$tmp/pki")
	# nbdfuse takes no file names from a URI; over a unix socket the client
	# asks for no authority either.
	uri="nbds+unix:///?socket=$tmp/sock"
fi

step "Serve a sparse $image_size image"
start_server
sed 's/^/    /' "$tmp/server.log"

if ! can_attach; then
	step "Measure through the NBD client: $why"
	run weir bench "$uri" || die "weir bench failed"
	exit 0
fi

step "Attach it as a block device"
printf "  $ weir attach '%s'\\n" "$uri"
device=$(weir attach "$uri") || die "cannot attach"
printf '    %s\n' "$device"

step "Make a filesystem and mount it"
run mkfs.xfs -q "$device" || die "mkfs.xfs failed"
mkdir "$tmp/mnt"
mounted=$tmp/mnt
run mount "$device" "$mounted" || die "cannot mount"

step "Write, read, fsync (about $((seconds * 6)) seconds)"
measure

step "What the server did"
printf '  $ weir stats %s/control    (some of it)\n' "$tmp"
weir stats "$tmp/control" | grep -E '^ +(dirty_peak|cached|store_write)_bytes |^ +(hits|misses|store_(writes|flushes)) |latency.*(p50|p99)_us ' |
	sed 's/^/  /'

step "Unmount, check, detach"
run umount "$tmp/mnt" || die "cannot unmount"
mounted=
printf '  $ xfs_repair -n %s\n' "$device"
xfs_repair -n "$device" >"$tmp/fsck.log" 2>&1 || {
	cat "$tmp/fsck.log"
	die "xfs_repair found damage"
}
printf '    clean\n'
run weir detach "$device" || die "cannot detach"
device=
printf '  $ kill %s\n' "$server"
end_server || die "weir-server ended with $?"
server=
printf '    flushed and gone\n'
