#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A cache much smaller than what is written loses none of it.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

need qemu-io cmp
image=$(make_image 64M)
start_weir store="$image" cache-size=1M

for i in {0..31}; do
	commands+=("write -q -P $((i + 1)) ${i}M 1M")
done
ok "32M are written through a cache of 1M" verified "${commands[@]}" flush
commands=()
for i in {0..31}; do
	commands+=("read -q -P $((i + 1)) ${i}M 1M")
done
ok "and all read back" verified "${commands[@]}"

for i in {0..31}; do
	head -c 1M /dev/zero | tr '\0' "\\$(printf %03o $((i + 1)))"
done >"$tmp/want"
ok "and all are in the image, without ending the server" \
	cmp -n $((32 << 20)) "$tmp/want" "$image"
stop_weir
is "$status" 0 "it ends well"
done_testing
