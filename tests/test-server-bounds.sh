#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests outside the export and requests that make no sense are answered with
# an error, and the connection goes on.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 1M)
start_weir store="$image"

says "1 error 22
2 error 0 512 of 0x00" "READ at 2^64-512 is EINVAL, and no more" <<END
read 1 0xfffffffffffffe00 4096
recv
read 2 0 512
recv
END
says "1 error 28
2 error 28
3 error 0 4096 of 0x00
4 error 0" "WRITE past the end is ENOSPC, its payload is not taken" <<END
write 1 0xff000 8192 0x25
write 2 0xfffffffffffffe00 4096 0x25
recv 2
read 3 0xff000 4096
recv
write 4 0xff000 4096 0x26
recv
END
says "1 error 22
2 error 28
3 error 22
4 error 0" "TRIM, WRITE_ZEROES and CACHE past the end" <<END
trim 1 0xff000 8192
zero 2 0xff000 8192
cache 3 0xff000 8192
flush 4
recv 4
END
says "1 error 22
2 error 22
3 error 0 512 of 0x00" "an unknown command, a flag that is no flag" <<END
req 99 0 1 0 0
req 0 0x4000 2 0 512
read 3 0 512
recv 3
END
is "$(session <<END | awk '{print $1, ($3 != 0)}' | xargs
read 1 0 100000000
write 2 0 40000000 1
read 3 0 512
recv 3
END
)" "1 1 2 1 3 0" "lengths over the limit are refused, in step"
stop_weir
is "$status" 0 "it ends well"

weir_name=ro start_weir -r -- store="$image"
says "1 error 1
2 error 1
3 error 0 4096 of 0x26
4 error 0" "a read-only export refuses to change" <<END
write 1 0 4096 1
zero 2 0 4096
read 3 0xff000 4096
flush 4
recv 4
END
done_testing
