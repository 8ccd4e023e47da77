#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Writes of less than a block, and across blocks, keep what is around them.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

need qemu-io
head -c 1M /dev/zero | tr '\0' '\377' >"$tmp/disk.img"
start_weir store="$tmp/disk.img"

# Eight connections, each with a sector of the same block, nothing cached.
pids=()
for i in {0..7}; do
	session >"$tmp/out.$i" <<END &
write $i $((8192 + i * 512)) 512 $((i + 1))
recv
END
	pids+=($!)
done
wait "${pids[@]}"
is "$(cat "$tmp"/out.* | sort)" "$(printf '%d error 0\n' {0..7})" \
	"eight clients write a sector each of one block"
commands=()
for i in {0..7}; do
	commands+=("read -q -P $((i + 1)) $((8192 + i * 512)) 512")
done
ok "all eight are there" verified "${commands[@]}" \
	'read -q -P 255 4096 4096' 'read -q -P 255 12288 4096'

says "1 error 0
2 error 0" "12K are written at 65536 and 12K at 65636" <<END
write 1 65536 12288 0x11
write 2 65636 12288 0x22
recv 2
END
ok "another connection reads both" verified \
	'read -q -P 255 65000 536' 'read -q -P 0x11 65536 100' \
	'read -q -P 0x22 65636 12288' 'read -q -P 255 77924 1000'

says "1 error 0
2 error 0 1 of 0x77
3 error 0 1 of 0xff" "one byte in the middle of a block" <<END
write 1 300001 1 0x77
recv
read 2 300001 1
read 3 300002 1
recv 2
END
stop_weir
is "$status" 0 "it ends well"
is "$(od -An -tx1 -j 300000 -N 3 "$tmp/disk.img" | xargs)" "ff 77 ff" \
	"the image has it"
done_testing
