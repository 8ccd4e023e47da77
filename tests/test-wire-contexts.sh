#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Several metadata contexts in one session: found by name and by namespace,
# chosen with others that nobody knows, and answered in a chunk each.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit has base:allocation only"
need nbdinfo

# chosen [OPTION]: a session that has chosen both contexts; the answers only.
chosen() {
	{
		printf 'greet\n%s\ncontexts - x-weir:cache base:allocation\ngo\n' \
			"${1:-structured}"
		cat
	} | raw | sed -u '/^greeting /d; /^reply /d'
}

start_weir store=mem:8M dirty-expire=10m

is "$(raw <<END
greet
structured
find -
find - base:
find - x-weir:
find - x-weir: base:allocation x-weir:cache
find - base x-weir x-weir:cach x-weir:cache: : zzz:cache
contexts -
contexts - base: x-weir:
contexts - zzz:a x-weir:cache x-weir:other base:nothing
contexts - x-weir:cache zzz:a base:allocation base:allocation
contexts nope base:allocation
find nope
END
)" "greeting newstyle flags 0x3
reply 8 ack 
reply 9 meta 0 base:allocation
reply 9 meta 0 x-weir:cache
reply 9 ack 
reply 9 meta 0 base:allocation
reply 9 ack 
reply 9 meta 0 x-weir:cache
reply 9 ack 
reply 9 meta 0 base:allocation
reply 9 meta 0 x-weir:cache
reply 9 ack 
reply 9 ack 
reply 10 ack 
reply 10 ack 
reply 10 meta 2 x-weir:cache
reply 10 ack 
reply 10 meta 1 base:allocation
reply 10 meta 2 x-weir:cache
reply 10 ack 
reply 10 unknown
reply 9 unknown" "found and chosen by name, unknown ones passed over"

is "$(chosen <<END
write 1 1048576 65536 0x11
recv
status 2 0 8388608
recv 2
status 3 1052672 4194304
recv 2
status 4 0 8388608 8
recv 2
END
)" "1 error 0
2 context 1: 1048576/3 65536/0 7274496/3 ...
2 context 2: 1048576/0 65536/3 7274496/0
3 context 1: 61440/0 4132864/3 ...
3 context 2: 61440/3 4132864/0
4 context 1: 1048576/3 ...
4 context 2: 1048576/0" "a chunk for each context, the last one last"
# What a client wrote is made durable when it leaves: one stays.
stay() {
	raw >"$tmp/stay" <<END
greet
go
write 1 1048576 65536 0x11
recv
sleep 60000
END
}
background stay
stays=$!
ok "a client writes and stays" wait_until 10 grep -q '^1 error 0' "$tmp/stay"

is "$(chosen extended <<END
status 1 0 8388608
recv 2
END
)" "1 of 0: context 1: 1048576/3 65536/0 7274496/3 ...
1 of 0: context 2: 1048576/0 65536/3 7274496/0" "and with extended headers"

only() { # only CONTEXT...: the session on stdin with these
	{
		printf 'greet\nstructured\ncontexts - base:allocation x-weir:cache\n'
		printf 'contexts - %s\ngo\n' "$*"
		cat
	} | raw | sed -u '/^greeting /d; /^reply /d'
}
is "$(only x-weir:cache <<<$'status 1 0 8388608\nrecv')" \
	"1 context 2: 1048576/0 65536/3 7274496/0" "the last choice counts: one"
is "$(only zzz:none <<<$'status 1 0 8388608\nrecv')" "1 error 22" "or none"
is "$(only x-weir:cache <<<$'status 1 8388608 1\nstatus 2 0 0\nrecv 2')" \
	"1 error 22
2 error 22" "nothing is known of what lies outside"

# As a client shows it: offset, length and flags of each extent.
map() {
	timeout_run 20 nbdinfo --map=x-weir:cache "$uri" | awk '{ print $1, $2, $3 }'
}
is "$(map)" "0 1048576 0
1048576 65536 3
1114112 7274496 0" "nbdinfo shows what is dirty"
is "$(session <<<$'flush 1\nrecv')" "1 error 0" "after a flush"
is "$(map)" "0 1048576 0
1048576 65536 1
1114112 7274496 0" "it is cached and clean"
kill "$stays"
ok "the clean pages can be dropped" weir drop "$ctl"
is "$(map)" "0 8388608 0" "and nothing is cached then"
like "$(timeout_run 20 nbdinfo "$uri")" \
	"base:allocation.*x-weir:cache" "nbdinfo lists both"
stop_weir
is "$status" 0 "it ends well"
done_testing
