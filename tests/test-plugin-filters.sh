#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nbdkit's filters on top of the plugin: data goes through them both ways.
# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
need nbdkit qemu-io cmp

WEIR_FRONTEND=plugin

# A pattern with unaligned ends over zeroes, as qemu-io commands.
write='write -P 7 1000 100001'
reads=(-c 'read -P 0 0 1000' -c 'read -P 7 1000 100001'
	-c 'read -P 0 101001 10000')

for filter in blocksize stats log cow readahead; do
	image=$(make_image 8M "$filter.img")
	weir_name=$filter
	options=(--filter="$filter")
	keys=(store="$image" cache-size=2M page-size=16K)
	case $filter in
	blocksize) keys+=(minblock=4K maxdata=64K) ;;
	stats) keys+=(statsfile="$tmp/stats.txt") ;;
	log) keys+=(logfile="$tmp/requests.txt") ;;
	esac
	start_weir "${options[@]}" -- "${keys[@]}"
	ok "$filter: write" timeout_run 20 \
		qemu-io -t writeback -f raw -c "$write" -c flush "$uri"
	ok "$filter: read on another connection" timeout_run 20 \
		qemu-io -t writeback -f raw "${reads[@]}" "$uri"
	stop_weir TERM
	is "$status" 0 "$filter: ends well"
	if [ "$filter" = cow ]; then
		ok "cow: the image is as it was" \
			cmp -n 8388608 "$image" /dev/zero
	else
		ok "$filter: the image has it" timeout_run 20 \
			qemu-io -f raw "${reads[@]}" "$image"
	fi
done

ok "stats counted the writes" grep -q '^write: ' "$tmp/stats.txt"
ok "log has the writes" grep -q 'Write' "$tmp/requests.txt"
done_testing
