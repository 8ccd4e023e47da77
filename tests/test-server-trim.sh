#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Trims and zeroes: huge, unaligned, over data that is dirty and data that is
# not cached; what is beside them stays.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

need qemu-io
head -c 128M /dev/zero | tr '\0' '\125' >"$tmp/disk.img"
start_weir store="$tmp/disk.img" cache-size=32M

at=67109888
end=$((at + (8 << 20)))
ok "8M are discarded at $at" verified "discard -q $at 8M" flush
ok "the neighbours are intact" verified \
	"read -q -P 0x55 $((at - 65536)) 65536" "read -q -P 0x55 $end 65536"
says "1 error 0
2 error 0 8388608 of 0x00
3 error 0" "zeroes over it read as zeroes" <<END
zero 1 $at 8388608
recv
read 2 $at 8388608
recv
flush 3
recv
END
ok "the neighbours are still intact" verified \
	"read -q -P 0x55 $((at - 65536)) 65536" "read -q -P 0x55 $end 65536"

says "1 error 0
2 error 0
3 error 0 1000 of 0x66
4 error 0 3000 of 0x00
5 error 0 1000 of 0x66" "zeroes over dirty data, at odd ends" <<END
write 1 1000 5000 0x66
recv
zero 2 2000 3000
recv
read 3 1000 1000
read 4 2000 3000
read 5 5000 1000
recv 3
END
stop_weir
is "$status" 0 "it ends well"
is "$(od -An -v -tx1 -w1 -j 1000 -N 5000 "$tmp/disk.img" | uniq -c | xargs)" \
	"1000 66 3000 00 1000 66" "the image has it"

# 32-bit lengths to their end.
image=$(make_image 5G)
big=$((4294967296 - 512))
weir_name=big start_weir store="$image" cache-size=32M
says "1 error 0
2 error 0
3 error 0
4 error 0
5 error 0
6 error 0
7 error 0 1 of 0x11
8 error 0 4096 of 0x00
9 error 0 1 of 0x22
10 error 28" "2G and 4G-512 at unaligned ends" <<END
write 1 0 1 0x11
write 2 $((big + 1)) 1 0x22
recv 2
trim 3 1 $big
recv
zero 4 1 $big
recv
zero 5 513 0x80000000
recv
flush 6
recv
read 7 0 1
read 8 0x80000000 4096
read 9 $((big + 1)) 1
zero 10 $((2 << 30)) $big
recv 4
END
stop_weir
is "$status" 0 "it ends well"
ok "and the image is sparse" test "$(du -m "$image" | cut -f1)" -lt 64
done_testing
