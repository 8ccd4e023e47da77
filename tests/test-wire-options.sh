#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Negotiation: what is known is answered, what is not is refused, and whatever
# the lengths say, the stream stays in step or ends.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit negotiates for the plugin"
image=$(make_image 1M)
start_weir -e disk -- store="$image"

is "$(raw <<END
greet
list
structured
meta disk
opt 77 4 01020304
reply
opt 5 0
reply
opt 12 0
reply
info disk
go nope
go disk
disc
eof
END
)" "greeting newstyle flags 0x3
reply 3 server 4 disk
reply 3 ack 
reply 8 ack 
reply 10 meta 1 base:allocation
reply 10 ack 
reply 77 unsup
reply 5 unsup
reply 12 unsup
reply 6 info 0 size 1048576 flags 0xded
reply 6 info 3 min 1 preferred 4096 max 33554432
reply 6 ack 
reply 7 unknown
reply 7 info 0 size 1048576 flags 0xded
reply 7 info 3 min 1 preferred 4096 max 33554432
reply 7 ack 
eof" "each option has its answer, the unknown ones too"

is "$(raw <<END
greet
meta disk
structured
opt 9 12 000000000000000000000000
reply
opt 9 8 0000000000000000
replies
opt 10 17 00000000000000010000000562617365
hex 3a
replies
opt 10 20 0000000000000001000000087a7a7a3a7a7a7a7a
replies
opt 2 0
replies
eof
END
)" "greeting newstyle flags 0x3
reply 10 invalid
reply 8 ack 
reply 9 invalid
reply 9 meta 0 base:allocation
reply 9 meta 0 x-weir:cache
reply 9 ack 
reply 10 ack 
reply 10 ack 
reply 2 ack 
eof" "meta contexts: after structured replies, by whole names"

# --- lengths ------------------------------------------------------------------

hang_up="greeting newstyle flags 0x3
nbd-raw: the server has hung up"

is "$(printf '%s\n' greet 'export' transmit | raw)" "greeting newstyle flags 0x3
size 1048576 flags 0xd6d" "EXPORT_NAME of no bytes is the default export"
is "$(printf '%s\n' greet 'opt 1 4096' 'fill 4096 97' transmit | raw)" \
	"$hang_up" "4096 bytes: no such export"
is "$(printf '%s\n' greet 'opt 1 4097' 'fill 4097 97' transmit | raw)" \
	"$hang_up" "4097 bytes: too long"
is "$(printf '%s\n' greet 'opt 1 0xffffffff' transmit | raw)" "$hang_up" \
	"4 GiB: the end, at once"

is "$(raw <<END
greet
opt 7 10 ffffffff000000000000
reply
opt 7 6 000010000000
reply
opt 7 3 000000
reply
opt 7 8 0000000000020000
reply
opt 7 4103
fill 2 0
fill 1 16
fill 1 1
fill 4099 0
reply
structured
opt 10 12 0000000000000001ffffffff
reply
opt 10 12 00000000ffffffffffffffff
reply
opt 8 1 00
reply
opt 3 4 00000000
reply
opt 7 100000
fill 100000 0
reply
list
opt 7 0xffffffff
eof
END
)" "greeting newstyle flags 0x3
reply 7 invalid
reply 7 invalid
reply 7 invalid
reply 7 invalid
reply 7 too-big
reply 8 ack 
reply 10 invalid
reply 10 invalid
reply 8 invalid
reply 3 invalid
reply 7 too-big
reply 3 server 4 disk
reply 3 ack 
eof" "lengths that lie are refused, in step"

is "$(printf '%s\n' 'greet 0xfff0' eof | raw)" "greeting newstyle flags 0x3
eof" "unknown client flags end the connection"
is "$(printf '%s\n' greet 'hex 00112233445566778899aabbccddeeff' eof | raw)" \
	"greeting newstyle flags 0x3
eof" "so does what is no option"

# --- EXPORT_NAME's zeroes, and options in pieces ------------------------------

is "$(raw <<END
greet 1
export disk
transmit
sleep 50
read 1 0 512
recv
END
)" "greeting newstyle flags 0x3
size 1048576 flags 0xd6d
nbd-raw: not an answer: out of step" "124 zeroes follow without NO_ZEROES"
is "$(raw <<END
greet
export disk
transmit
read 1 0 512
recv
END
)" "greeting newstyle flags 0x3
size 1048576 flags 0xd6d
1 error 0 512 of 0x00" "and none with it"
is "$(raw <<END
greet
hex 49484156
sleep 20
hex 454f5054000000
sleep 20
hex 0800
sleep 20
hex 000000
sleep 20
replies
go disk
hex 2560
sleep 20
hex 951300000000
sleep 20
hex 00000000000000010000000000000000
sleep 20
hex 00000200
recv
END
)" "greeting newstyle flags 0x3
reply 8 ack 
reply 7 info 0 size 1048576 flags 0xded
reply 7 info 3 min 1 preferred 4096 max 33554432
reply 7 ack 
1 at 0 512 of hole" "an option and a request that come in pieces"
is "$(raw <<END | tail -n 2
greet
opt 8 0
opt 7 6 000000000000
write 1 0 100000 0x77
replies
reply 2
recv
read 2 0 100000
recv
END
)" "1 error 0
2 at 0 100000 of 0x77" "a request sent before the answer to GO"
stop_weir
is "$status" 0 "it ends well"
done_testing
