#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# weir bench --verify finds every kind of wrong block, and no other.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"

need jq qemu-io nbdkit

bench=(weir bench --verify --bs 4K --iodepth 16 --size 1M)

start_weir store=mem:16M cache-size=1M page-size=64K
for rw in write randwrite rw randrw; do
	ok "$rw, read back" "${bench[@]}" --rw "$rw" "$uri"
	like "$out" 'verified [0-9]+ blocks, 0 wrong' "all blocks are right"
done
ok "blocks written several times, by four jobs" "${bench[@]}" --rw randwrite \
	--numjobs 4 --io-size 3M --json "$uri"
is "$(jq '.runs[0].verified_blocks' <<<"$out")" 1024 \
	"four regions of 256 blocks are checked"
ok "another run checks them again" "${bench[@]}" --rw read --numjobs 4 "$uri"
ok "in any order" "${bench[@]}" --rw randread --numjobs 4 "$uri"
stop_weir

# A plain image, changed from behind.
image=$(make_image 1M)
background nbdkit -f -U "$tmp/m.sock" file "$image"
wait_for "$tmp/m.sock"
uri="nbd+unix:///?socket=$tmp/m.sock"
io() {
	qemu-io -f raw -t writeback "$@" "$image" >/dev/null
}
write_again() {
	"${bench[@]}" --rw write "$uri" >/dev/null
}

ok "a good region" "${bench[@]}" --rw write "$uri"
wrong() { # OFFSET REGEX DESCRIPTION
	exits 2 "$3 is found" "${bench[@]}" --rw read "$uri"
	like "$out" "offset $1: .*$2" "with its offset, and what it is"
	like "$out" '1 of 256 blocks' "and it is the only one"
	write_again
}

io -c 'write -P 7 40999 1'
wrong 40960 'checksum' "one changed byte"
io -c 'write -z 80K 4K'
wrong 81920 'zeroes' "a block that is gone"
io -c 'write -P 9 120K 4K'
wrong 122880 'not a block' "a block of somebody else"
dd if="$image" of="$image" bs=4K skip=2 seek=40 count=1 conv=notrunc status=none
wrong 163840 'block of offset 8192' "a block in the wrong place"
weir bench --rw write --verify --bs 4K --offset 200K --size 4K --seed 5 \
	"$uri" >/dev/null
wrong 204800 'seed 5' "a block of another run"

# A write that was lost: the block is the older one.
cat >"$tmp/lossy.sh" <<'END'
case $1 in
get_size) echo 1M ;;
can_write | can_flush) exit 0 ;;
thread_model) echo serialize_all_requests ;;
pread) dd if="$dir/lossy" iflag=skip_bytes,count_bytes skip="$4" count="$3" \
	status=none ;;
pwrite)
	n=$(cat "$dir/count")
	echo $((n + 1)) >"$dir/count"
	if [ "$n" = 13 ]; then
		cat >/dev/null
	else
		dd of="$dir/lossy" oflag=seek_bytes seek="$4" conv=notrunc \
			status=none
	fi
	;;
flush) ;;
*) exit 2 ;;
esac
END
chmod +x "$tmp/lossy.sh"
truncate -s 1M "$tmp/lossy"
echo 0 >"$tmp/count"
dir=$tmp background nbdkit -f -U "$tmp/lossy.sock" sh "$tmp/lossy.sh"
wait_for "$tmp/lossy.sock"
# Two passes over 8 blocks: write number 13, from 0, is block 5's second.
exits 2 "a lost write is found" weir bench --rw write --verify --bs 4K \
	--size 32K --io-size 64K "nbd+unix:///?socket=$tmp/lossy.sock"
like "$out" 'offset 20480: found its write number 1, not 2' \
	"the older block gives it away"
done_testing
