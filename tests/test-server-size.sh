#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An export of an odd number of sectors: INFO and GO agree on its size, and its
# last sector can be written and read.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

need nbdinfo qemu-io
size=$((12345 * 512))
image=$(make_image "$size")
start_weir store="$image"

is "$(timeout_run 10 nbdinfo --size "$uri")" "$size" "the size is exact"
text=$(printf 'greet\ninfo\ngo\n' | raw | grep -o ' 0 size .*')
is "$(sort -u <<<"$text" | wc -l) $(wc -l <<<"$text")" "1 2" \
	"INFO and GO say the same"
last=$((size - 512))
says "1 error 0
2 error 0 512 of 0x5a
3 error 0
4 error 0 1 of 0x5b
5 error 22
6 error 28" "the last sector, its last byte, and no further" <<END
write 1 $last 512 0x5a
read 2 $last 512
write 3 $((size - 1)) 1 0x5b
read 4 $((size - 1)) 1
read 5 $last 513
write 6 $last 513 0
recv 6
END
ok "a client that counts in sectors reads it" \
	verified "read -q -P 0x5a $last 511"
stop_weir
is "$status" 0 "it ends well"
ok "it is in the image" holds "$image" 0x5a "$last" 511
is "$(stat -c %s "$image")" "$size" "the image has kept its size"
done_testing
