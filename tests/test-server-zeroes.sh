#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What zeroes take in the image: write-zeroes and trims, and plain writes of
# zeroes (mkfs writes gigabytes of them) with each setting of detect-zeroes.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

need qemu-io
at_once=$((32 << 20))
image=$(make_image 64M)
blocks() { stat -c %b "$image"; }

refill() {
	tr '\0' '\125' </dev/zero | head -c 64M | dd of="$image" bs=1M \
		iflag=fullblock conv=notrunc,fsync status=none
	full=$(blocks)
}

truncate -s 1M "$tmp/probe"
if fallocate -zn -l 1M "$tmp/probe" 2>/dev/null &&
	fallocate -pn -l 1M "$tmp/probe" 2>/dev/null; then
	frees=true
else
	frees=
fi

# keeps DESCRIPTION; frees_some DESCRIPTION: the space of the image.
keeps() {
	if [ "$frees" ]; then
		is "$(blocks)" "$full" "$1"
	else
		skip "no holes, or no zero ranges, here" "$1"
	fi
}
frees_some() {
	if [ "$frees" ]; then
		ok "$1" test "$(blocks)" -le $((full - 2 * 31 * 1024))
	else
		skip "no holes, or no zero ranges, here" "$1"
	fi
}
intact() {
	is "$(stat -c %s "$image")" $((64 << 20)) "and its size"
	ok "the rest is as it was" verified "read -q -P 0x55 $at_once $at_once"
	stop_weir
	is "$status" 0 "it ends well"
	ok "the image has the zeroes" holds "$image" 0 0 "$at_once"
}

refill
start_weir store="$image"
ok "write-zeroes with no hole" verified "write -q -z 0 32M" flush
keeps "keeps the space"
ok "write-zeroes" verified "write -q -z -u 0 32M" flush
frees_some "frees it"
intact
refill
weir_name=trim start_weir store="$image"
ok "a trim" verified "discard -q 0 32M" flush
frees_some "frees it, too"
ok "and reads as zeroes" verified "read -q -P 0 0 32M"
intact

for how in off on unmap; do
	refill
	weir_name=$how start_weir store="$image" detect-zeroes="$how"
	ok "detect-zeroes=$how: plain writes of zeroes" \
		verified "write -q -P 0 0 20M" "write -q -P 0 20M 12M" flush
	ok "read as zeroes" verified "read -q -P 0 0 32M"
	if [ "$how" = off ]; then
		is "$(stat_of store_write_bytes)" "$at_once" "they are data"
	else
		is "$(stat_of store_write_bytes)" 0 "no data is written"
	fi
	if [ "$how" = unmap ]; then
		frees_some "the space is freed"
	else
		keeps "the space is kept"
	fi
	intact
done
nok "detect-zeroes=maybe is refused" \
	timeout_run 10 weir-server -f -U "$tmp/no" store="$image" \
	detect-zeroes=maybe
done_testing
