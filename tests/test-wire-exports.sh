#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What a client is told of an export: its name, its description, its size, the
# same by every option that can be asked.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit negotiates for the plugin"
need nbdinfo

long=$(printf '%04096d' 7)
truncate -s 1537 "$tmp/odd.img"
start_weir -e grün -D 'the garden, north' -- store="$tmp/odd.img"

is "$(raw <<END
greet
list
info grün 0 1 2 3 77 0xffff
info - 2 1
info grün 2
go grün 2
read 1 1536 1
recv
END
)" "greeting newstyle flags 0x3
reply 3 server 5 grün -- the garden, north
reply 3 ack 
reply 6 info 0 size 1537 flags 0xd6d
reply 6 info 1 grün
reply 6 info 2 the garden, north
reply 6 info 3 min 1 preferred 4096 max 33554432
reply 6 ack 
reply 6 info 0 size 1537 flags 0xd6d
reply 6 info 1 grün
reply 6 info 2 the garden, north
reply 6 ack 
reply 6 info 0 size 1537 flags 0xd6d
reply 6 info 2 the garden, north
reply 6 ack 
reply 7 info 0 size 1537 flags 0xd6d
reply 7 info 2 the garden, north
reply 7 ack 
1 error 0 1 of 0x00" "LIST, INFO and GO agree, by name and by the empty name"
is "$(printf '%s\n' greet 'info - 0' 'export' transmit 'read 1 1536 1' recv |
	raw | tail -n 2)" "size 1537 flags 0xd6d
1 error 0 1 of 0x00" "and so does EXPORT_NAME, after INFO"
list=$(timeout_run 20 nbdinfo --list "$uri")
like "$list" 'export="gr' "nbdinfo lists the name"
like "$list" 'description: the garden, north' "and the description"
stop_weir

# Names are compared byte by byte, up to their full length.
start_weir -e "$long" -- store="$tmp/odd.img"
is "$(raw <<END
greet
info $long 1
info ${long%7} 1
info ${long%7}8 1
go ${long}7
export $long
transmit
END
)" "greeting newstyle flags 0x3
reply 6 info 0 size 1537 flags 0xd6d
reply 6 info 1 $long
reply 6 ack 
reply 6 unknown
reply 6 unknown
reply 7 too-big
size 1537 flags 0xd6d" "a name of 4096 bytes, and one of 4097"
stop_weir

start_weir store="$tmp/odd.img"
is "$(raw <<END
greet
list
info - 1 2
go nope 1
go - 1 2
disc
eof
END
)" "greeting newstyle flags 0x3
reply 3 server 0 
reply 3 ack 
reply 6 info 0 size 1537 flags 0xd6d
reply 6 info 1 
reply 6 ack 
reply 7 unknown
reply 7 info 0 size 1537 flags 0xd6d
reply 7 info 1 
reply 7 ack 
eof" "no name, no description: nothing is made up"
stop_weir

for option in -e -D; do
	exits 1 "$option: more than 4096 bytes" timeout_run 10 weir-server -f \
		-U "$tmp/s" "$option" "${long}7" "$tmp/odd.img"
	like "$out" "^weir-server: $option: .*at most 4096 bytes$" "are refused"
	exits 1 "$option: what is no UTF-8" timeout_run 10 weir-server -f \
		-U "$tmp/s" "$option" $'caf\xe9' "$tmp/odd.img"
	like "$out" "^weir-server: $option: .*UTF-8" "is refused"
done
done_testing
