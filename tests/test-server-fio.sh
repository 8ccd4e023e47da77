#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# fio writes at random and verifies every block, while a cache much smaller
# than the data is written back under it.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need fio
image=$(make_image 32M)
start_weir store="$image" cache-size=4M

verify() { # verify OPTION...
	timeout_run 60 fio --name=v --ioengine=nbd --uri="$uri" --size=32M \
		--verify=crc32c --verify_fatal=1 --verify_state_save=0 --group_reporting "$@"
}

ok "4K at random, 32 deep" verify --rw=randwrite --bs=4k --iodepth=32
ok "512 bytes to 128K, unaligned, mixed" \
	verify --rw=randrw --bsrange=512-128k --bs_unaligned=1 --iodepth=16
ok "1M in order" verify --rw=write --bs=1m --iodepth=4
ok "with a flush after each 16th write" \
	verify --rw=randwrite --bs=16k --iodepth=8 --fsync=16 --io_size=8M
stop_weir
is "$status" 0 "it ends well"

weir_name=small start_weir store="$image" cache-size=1M page-size=4K \
	block-size=1K
ok "page-size=4K block-size=1K: 1K at random" \
	verify --rw=randwrite --bs=1k --iodepth=32 --io_size=8M
stop_weir
is "$status" 0 "it ends well"
done_testing
