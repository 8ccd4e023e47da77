#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A whole image copied in and out is the same image, over one connection and
# several, whatever the cache mode.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need nbdcopy cmp
# An odd number of sectors; data, a hole, data.
size=$((24 * 1024 * 1024 + 512))
truncate -s "$size" "$tmp/in"
head -c 7M /dev/urandom | dd of="$tmp/in" conv=notrunc status=none
head -c 300000 /dev/urandom |
	dd of="$tmp/in" conv=notrunc oflag=seek_bytes seek=20000000 status=none

try() { # try KEY=VALUE...
	local image
	image=$(make_image "$size")
	truncate -s 0 "$image"
	truncate -s "$size" "$image"
	start_weir store="$image" "$@"
	ok "$*: copied in" timeout_run 60 nbdcopy --flush "$tmp/in" "$uri"
	ok "$*: the image has it" cmp "$tmp/in" "$image"
	ok "$*: copied out over one connection" \
		timeout_run 60 nbdcopy --connections=1 "$uri" "$tmp/out"
	ok "$*: the same" cmp "$tmp/in" "$tmp/out"
	ok "$*: copied out in small requests" \
		timeout_run 60 nbdcopy --request-size=4096 "$uri" "$tmp/out"
	ok "$*: the same" cmp "$tmp/in" "$tmp/out"
	stop_weir
	is "$status" 0 "$*: it ends well"
}

try cache=writeback cache-size=4M
try cache=writethrough
try cache=none
done_testing
