#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the protocol document says a server has to do, where no other script
# looks: conformance.txt names each rule and its test.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit speaks the protocol for the plugin"

# mode PLAIN|STRUCTURED|EXTENDED: the session on stdin; the errors, by cookie.
mode() {
	{
		printf 'greet\n%s\ngo\n' "${1/plain/#}"
		cat
	} | raw | sed -u '/^greeting /d; /^reply /d' |
		sed -E 's/ of [0-9]+:/:/; s/: none| none/ error 0/; s/:? at [0-9]+ ([0-9]+ of)/ error 0 \1/; s/: error/ error/' |
		sort -s -k1,1n
}

start_weir store=mem:64M

# --- the handshake ------------------------------------------------------------

is "$(printf '%s\n' 'greet 2' 'opt 5 0' reply list 'opt 2 0' replies eof | raw)" \
	"greeting newstyle flags 0x3
reply 5 unsup
reply 3 server 0 
reply 3 ack 
reply 2 ack 
eof" "a client that is not fixed newstyle is served without TLS"
is "$(printf '%s\n' greet 'opt 2 4 01020304' replies eof | raw | tail -n 2)" \
	"reply 2 ack 
eof" "ABORT is acknowledged, whatever data it has"
is "$({
	echo greet
	for i in {1..3000}; do echo 'opt 77 8 0102030405060708'; done
	echo 'reply 3000'
	echo list
} | raw | sort | uniq -c | sort -rn | awk '{ print $1, $2, $3, $4 }')" \
	"3000 reply 77 unsup
1 reply 3 server
1 reply 3 ack
1 greeting newstyle flags" "a flood of options is answered one by one, in step"
is "$({
	printf '%s\n' greet 'opt 78 1048576' 'fill 1048576 1' reply list
	printf '%s\n' 'opt 78 1048577' eof
} | raw)" "greeting newstyle flags 0x3
reply 78 too-big
reply 3 server 0 
reply 3 ack 
eof" "an option of 1M is skipped, a longer one ends it"
is "$(printf '%s\n' greet 'opt 11 0' reply 'opt 8 0' reply 'opt 1 0' eof | raw |
	tail -n 3)" "reply 11 ack 
reply 8 ext-header-required
eof" "extended headers are asked for once, and EXPORT_NAME is no way on"

# --- requests, in each form ---------------------------------------------------

for form in plain structured extended; do
	is "$(session <<<$'write 1 0 65536 7\nrecv')" "1 error 0" "$form: to begin with"
	is "$(mode $form <<END
req 9 0 1 0 0
req 0xffff 0 2 0 0
req 0 0x8000 3 0 512
req 3 0x10 4 0 0
req 4 0x02 5 0 512
req 7 0x08 6 0 512
read 7 0 512
recv 7
END
)" "1 error 22
2 error 22
3 error 22
4 error 22
5 error 22
6 error 22
7 error 0 512 of 0x07" "$form: unknown commands and flags are EINVAL, in step"
	is "$(mode $form <<END
write 1 0 33554433 7
read 2 0 33554433
write 3 67108863 2 7
read 4 67108864 1
read 5 0xffffffffffffffff 2
zero 6 67108863 2
trim 7 67108863 2
cache 8 67108863 2
recv 8
read 9 0 4096
recv
END
)" "1 error 22
2 error 22
3 error 28
4 error 22
5 error 22
6 error 28
7 error 22
8 error 22
9 error 0 4096 of 0x07" "$form: too long or out of bounds is refused, in step"
	is "$(mode $form <<END
write 1 511 3 9
recv
read 2 511 3
recv
write 3 4095 4090 9
recv
read 4 4095 4090
recv
zero 5 0 8195
recv
read 6 8194 1
read 7 8195 1
recv 2
END
)" "1 error 0
2 error 0 3 of 0x09
3 error 0
4 error 0 4090 of 0x09
5 error 0
6 error 0 1 of 0x00
7 error 0 1 of 0x07" "$form: any alignment will do, as the block sizes say"
	is "$(mode $form <<END
write 1 0 0 9
write 2 67108864 0 9
zero 3 0 0
trim 4 0 0
cache 5 0 0
flush 6
recv 6
END
)" "1 error 0
2 error 0
3 error 0
4 error 0
5 error 0
6 error 0" "$form: a length of 0 changes nothing"
	is "$(mode $form <<END
req 0 1 1 4096 0
write 2 0 4096 5 1
req 3 1 3 0 0
req 4 1 4 0 4096
req 5 1 5 0 4096
req 6 1 6 0 4096
recv 6
END
)" "1 error 0
2 error 0
3 error 0
4 error 0
5 error 0
6 error 0" "$form: FUA is taken on every command"
	is "$(mode $form <<END
write 18446744073709551615 0 512 1
write 18364758544493064720 512 512 1
recv 2
END
)" "18364758544493064720 error 0
18446744073709551615 error 0" "$form: a cookie comes back as it was"
done
is "$(session <<<$'write 1 0 65536 8\nread 2 0 65536\nflush 3\ndisc\nrecv 3\neof' |
	sort | head -n 3)" "1 error 0
2 error 0 65536 of 0x08
3 error 0" "what was asked before DISC is answered"
is "$(session <<<$'disc\nread 1 0 512\neof')" eof "and nothing after it"
stop_weir
is "$status" 0 "it ends well"

# FAST_ZERO: a part of a block has to be written.
weir_name=fast start_weir store=mem:1M
is "$(mode structured <<END
write 1 0 65536 6
recv
zero 2 100 200 0x10
recv
read 3 100 200
recv
zero 4 0 65536 0x10
recv
zero 5 100 200
recv
END
)" "1 error 0
2 error 95
3 error 0 200 of 0x06
4 error 0
5 error 0" "FAST_ZERO is ENOTSUP where it would be no faster, and changes nothing"
stop_weir

# --- what is offered ----------------------------------------------------------

weir_name=ro start_weir -r -- store=mem:1M
is "$(printf '%s\n' greet go | raw | sed -n 2p)" \
	"reply 7 info 0 size 1048576 flags 0x50f" "read-only: no change is offered"
is "$(mode structured <<END
write 1 0 512 1
trim 2 0 512
zero 3 0 512
read 4 0 512
recv 4
END
)" "1 error 1
2 error 1
3 error 1
4 error 0 512 of hole" "and each is refused with EPERM"
stop_weir
done_testing
