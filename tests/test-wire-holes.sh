#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Holes of a read: chunks of their own for who can tell them, zeroes for who
# cannot, and in neither case a read of the store or a page in the cache.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit answers for the plugin"
need nbdcopy cmp

# chunks [OPTION]: a session with structured replies; the answers only.
chunks() {
	{
		printf 'greet\n%s\ngo\n' "${1:-structured}"
		cat
	} | raw | sed -u '/^greeting /d; /^reply /d'
}

# Data of 1M at 1M and at 4M, and 200001 bytes that end the image at 8M.
data() {
	local at
	for at in 1048576 4194304; do
		head -c 1M /dev/zero | tr '\0' '\125' |
			dd of="$1" conv=notrunc oflag=seek_bytes seek="$at" status=none
	done
	head -c 200001 /dev/zero | tr '\0' '\063' | dd of="$1" conv=notrunc \
		oflag=seek_bytes seek=$((8388608 - 200001)) status=none
}

# what READ of a store answers; with the store's name.
answers() {
	is "$(chunks <<END
read 1 0 1048576
recv
read 2 1044479 8194
recv 2
read 3 524288 4194304
recv 4
read 4 524288 4194304 4
recv
read 5 2097152 1048576 4
recv
read 6 8187904 4096
recv
END
)" "1 at 0 1048576 of hole
2 at 1044479 4097 of hole ...
2 at 1048576 4097 of 0x55
3 at 524288 524288 of hole ...
3 at 1048576 1048576 of 0x55 ...
3 at 2097152 2097152 of hole ...
3 at 4194304 524288 of 0x55
4 at 524288 4194304 mixed
5 at 2097152 1048576 of hole
6 at 8187904 4096 mixed" "$1: structured: a chunk each, one with DF"
	is "$(chunks extended <<<$'read 1 2097152 4194304\nrecv 3')" \
		"1 of 2097152: at 2097152 2097152 of hole ...
1 of 2097152: at 4194304 1048576 of 0x55 ...
1 of 2097152: at 5242880 1048576 of hole" "$1: extended"
	is "$(session <<END
read 1 2097152 2097152
read 2 1048575 2
recv 2
read 3 0 8388608
recv
END
)" "1 error 0 2097152 of 0x00
2 error 0 2 mixed
3 error 0 8388608 mixed" "$1: plain: zeroes"
}

# reads of the store for COMMAND..., and what they leave in the cache.
unread() {
	local before
	before=$(stat_of store_reads)
	chunks <<<$'read 1 5242880 1048576\nrecv' >/dev/null
	session <<<$'read 1 6291456 1048576\nrecv' >/dev/null
	is "$(stat_of store_reads)" "$before" "$1: the store is not read"
}

image=$(make_image 8M)
truncate -s 0 "$image"
truncate -s 8M "$image"
data "$image"
cp --sparse=always "$image" "$tmp/want"

start_weir store="$image" cache-size=4M
answers raw
unread raw
is "$(chunks <<END
trim 1 4194304 1048576
recv
read 2 4194304 1048576
recv
write 3 4259840 4096 0x11
recv
read 4 4194304 1048576
recv 3
flush 5
recv
END
)" "1 error 0
2 at 4194304 1048576 of hole
3 error 0
4 at 4194304 65536 of hole ...
4 at 4259840 65536 mixed ...
4 at 4325376 917504 of hole
5 error 0" "raw: what is trimmed is a hole, what is written is none"
stop_weir
is "$status" 0 "it ends well"

ok "a pool" weir pool create "$tmp/pool.img" --size 8M --space 64M
weir_name=pool start_weir store="pool:$tmp/pool.img" cache-size=4M
ok "the pool is filled" timeout_run 60 nbdcopy --flush "$tmp/want" "$uri"
ok "and its cache emptied" weir drop "$ctl"
answers pool
unread pool
ok "copied out with its holes" timeout_run 60 nbdcopy "$uri" "$tmp/out"
ok "the same" cmp "$tmp/want" "$tmp/out"
ok "copied out without asking what is allocated" \
	timeout_run 60 nbdcopy --no-extents "$uri" "$tmp/out"
ok "the same" cmp "$tmp/want" "$tmp/out"
stop_weir

weir_name=mem start_weir store=mem:8M
is "$(chunks <<END
write 1 1048576 65536 0x55
recv
flush 2
recv
read 3 0 2097152
recv 3
END
)" "1 error 0
2 error 0
3 at 0 1048576 of hole ...
3 at 1048576 65536 of 0x55 ...
3 at 1114112 983040 of hole" "mem: around what is cached"
is "$(stat_of store_reads)" 0 "mem: the store is not read"
stop_weir

# The place of an error; the bytes before it are not sent.
weir_name=bad start_weir store="fault:read-error=always,range=1114112+4096,$image"
is "$(chunks <<<$'read 1 0 2097152\nrecv\nread 2 1048576 4096\nrecv')" \
	"1 error 5 at 1048576
2 at 1048576 4096 of 0x55" "an error says where it is"
is "$(chunks extended <<<$'read 1 1114112 65536\nrecv\nread 2 9000000 1\nrecv')" \
	"1 of 1114112: error 5 at 1114112
2 of 9000000: error 22" "and is of no place if the request is wrong"
is "$(session <<<$'read 1 1048576 131072\nrecv\nread 2 0 1\nrecv')" \
	"1 error 5
2 error 0 1 of 0x00" "plain: no data follows it"
stop_weir
done_testing
