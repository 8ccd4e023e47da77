#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# With the cache full of dirty data, a request larger than the dirty limit, and
# than the whole cache, goes through.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 64M)
start_weir store="sim:bandwidth=40M,$image" cache-size=2M dirty-limit=100%

says "1 error 0
2 error 0
3 error 0
4 error 0 16777216 of 0x62" "16M at once through 2M of cache" <<END
write 1 0 2097152 0x61
recv
write 2 4194304 16777216 0x62
recv
flush 3
recv
read 4 4194304 16777216
recv
END
says "1 error 0
2 error 0 33554432 of 0x63" "and the most there can be" <<END
write 1 8388608 33554432 0x63
recv
read 2 8388608 33554432
recv
END
stop_weir
is "$status" 0 "it ends well"
ok "the image has the first" holds "$image" 0x61 0 2097152
ok "the second" holds "$image" 0x62 4194304 4194304
ok "the third over it" holds "$image" 0x63 8388608 33554432
ok "and nothing beside them" holds "$image" 0 41943040 25165824
done_testing
