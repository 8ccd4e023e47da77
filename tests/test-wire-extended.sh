#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Extended headers: every answer is an extended chunk, lengths have 64 bits, and
# payloads nobody wants leave the stream in step.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit negotiates for the plugin"

# extended: the session on stdin with extended headers; the answers only.
extended() {
	{
		printf 'greet\nextended\n%s\ngo\n' "${1-}"
		cat
	} | raw | sed -u '/^greeting /d; /^reply /d' | sort -s -k1,1n
}

start_weir store=mem:8M

is "$(raw <<END
greet
extended
opt 8 0
reply
opt 11 0
reply
opt 11 1 00
reply
opt 2 0
replies
eof
END
)" "greeting newstyle flags 0x3
reply 11 ack 
reply 8 ext-header-required
reply 11 invalid
reply 11 invalid
reply 2 ack 
eof" "once is enough, and it means structured replies too"

is "$(printf 'greet\nextended\nexport\neof\n' | raw | tail -n 1)" eof \
	"EXPORT_NAME is no way on from there"

is "$(extended <<END
write 1 4096 8192 0x33
recv
read 2 4096 8192
recv
flush 3
recv
trim 4 0 4096
recv
zero 5 4096 4096
recv
cache 6 0 8388608
recv
read 7 4096 8192
recv
disc
eof
END
)" "eof
1 of 4096: none
2 of 4096: at 4096 8192 of 0x33
3 of 0: none
4 of 0: none
5 of 4096: none
6 of 0: none
7 of 4096: at 4096 8192 mixed" "each command is answered in an extended chunk"

is "$(extended <<END
read 1 8388608 4096
read 2 0 33554433
recv 2
write 3 8384512 8192 0x11
recv
req 4 0x20 4 0 4096
fill 4096 0x22
recv
req 1 0x20 5 0 33554944
fill 33554944 0x44
recv
req 9 0 6 0 0
recv
req 0 0 7 0xfffffffffffffe00 0xffffffffffffffff
recv
trim 8 0 0x4000000000000000
recv
write 9 0 4096 0x55
recv
read 10 0 4096
recv
END
)" "1 of 8388608: error 22
2 of 0: error 22
3 of 8384512: error 28
4 of 0: error 22
5 of 0: error 22
6 of 0: error 22
7 of 18446744073709551104: error 22
8 of 0: error 22
9 of 0: none
10 of 0: at 0 4096 of 0x55" "what is wrong is refused, and the stream is in step after it"
stop_weir

# A thin device: longer than 32 bits can say.
weir_name=huge start_weir store=null:16T
is "$(extended meta <<END
status 1 0 17592186044416
zero 2 0 17592186044416
trim 3 4096 17592186040320
recv 3
read 4 17592186040320 4096
recv
END
)" "1 of 0: context 1: 17592186044416/3
2 of 0: none
3 of 4096: none
4 of 17592186040320: at 17592186040320 4096 of 0x00" \
	"the whole of a large device in one request"
is "$(stat_of dirty_peak_bytes)" 0 "nothing of that becomes dirty"
stop_weir

# A pool of a petabyte: one record in its map, whatever the length.
ok "a pool of 1P" weir pool create "$tmp/pool.img" --size 1P --space 64M
weir_name=pool start_weir store="pool:$tmp/pool.img"
is "$(extended <<END
write 1 1125899906838528 4096 0x77
recv
flush 2
recv
trim 3 0 1125899906842624
recv
zero 4 0 1125899906842624
recv
read 5 1125899906838528 4096
recv
END
)" "1 of 1125899906838528: none
2 of 0: none
3 of 0: none
4 of 0: none
5 of 1125899906838528: at 1125899906838528 4096 of hole" \
	"all of it is trimmed and zeroed at once"
is "$(stat_of dirty_bytes)" 0 "and nothing is dirty"
is "$(stat_of mapped_bytes)" 0 "or has a place"
stop_weir
is "$status" 0 "it ends well"
ok "the pool is sound" weir pool check "$tmp/pool.img"
done_testing
