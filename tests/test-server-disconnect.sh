#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A client that goes leaves what it wrote in the store, however it goes; one
# that only read does not wait for the dirty data of others.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

image=$(make_image 16M)
start_weir store="$image"

says "1 error 0" "a client writes and disconnects" <<END
write 1 0 1048576 0x31
recv
disc
END
ok "soon it is in the image" wait_until 10 holds "$image" 0x31 0 1048576
says "1 error 0" "a client writes and just closes" <<END
write 1 1048576 1048576 0x32
recv
END
ok "soon it is in the image" wait_until 10 holds "$image" 0x32 1048576 1048576
says "1 error 0" "a client writes and resets" <<END
write 1 2097152 1048576 0x33
recv
rst
END
ok "soon it is in the image" wait_until 10 holds "$image" 0x33 2097152 1048576
stop_weir

# At 1 MB/s, 8M dirty take as many seconds.
weir_name=slow start_weir store="sim:bandwidth=1M,$image" \
	dirty-background=50% cache-size=64M
says "1 error 0" "8M are dirty over a slow store" <<END
write 1 4194304 8388608 0x34
recv
END
says "1 error 0 512 of 0x34
eof" "a client that reads is let go" <<END
read 1 4194304 512
recv
disc
eof
END
if command -v weir >/dev/null; then
	ok "while most is dirty yet" \
		test "$(($(stat_of dirty_bytes) + $(stat_of writeback_bytes)))" \
		-gt $((4 << 20))
fi
stop_weir TERM 40
is "$status" 0 "it ends well"
ok "and with all in the image" holds "$image" 0x34 4194304 8388608
done_testing
