#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests as no library sends them: thousands in a segment, in pieces, with
# structured answers, from a client that does not read.

# shellcheck source=tests/lib.sh
. "${WEIR_SRCDIR:-.}/tests/lib.sh"
# shellcheck source=tests/lib-raw.sh
. "${WEIR_SRCDIR:-.}/tests/lib-raw.sh"

server_only "nbdkit reads requests for the plugin"
image=$(make_image 64M)
start_weir store="$image" inflight-bytes=4M

# The answers of writes and reads, by cookie, whatever their order.
checked() {
	session | sort -n
}

round() { # round BYTE
	local i
	for i in {1..2000}; do
		echo "write $i $((i * 4096)) 4096 $1"
	done
	echo "recv 2000"
	for i in {1..2000}; do
		echo "read $i $((i * 4096)) 4096"
	done
	echo "recv 2000"
}
is "$(round 0x21 | session | sort | cut -d' ' -f2- | sort | uniq -c | xargs)" \
	"2000 error 0 2000 error 0 4096 of 0x21" \
	"2000 writes of 4K, then 2000 reads, sent at once"

# Lengths around what is received in place, at odd offsets, in odd pieces.
lengths="1 511 4095 4097 65535 65536 65537 100000 262144 300001 1048577"
odd() {
	local i=0 n at
	for n in $lengths; do
		i=$((i + 1))
		at=$((10000000 + i * 3000001 + n % 7))
		echo "write $i $at $n $i"
		echo "read $((i + 100)) $((at - 1)) 1"
	done
	echo "recv $((2 * i))"
	i=0
	for n in $lengths; do
		i=$((i + 1))
		echo "read $((i + 200)) $((10000000 + i * 3000001 + n % 7)) $n"
	done
	echo "recv $i"
}
want=$(
	i=0
	for n in $lengths; do
		i=$((i + 1))
		echo "$i error 0"
		echo "$((i + 100)) error 0 1 of 0x00"
		printf '%d error 0 %d of 0x%02x\n' $((i + 200)) "$n" "$i"
	done | sort -n
)
is "$(odd | checked)" "$want" "lengths around what is received in place"
is "$(odd | while read -r word a b c d; do
		if [ "$word" = write ]; then
			echo "req 1 0 $a $b $c"
			echo "sleep 5"
			echo "fill $((c / 3)) $d"
			echo "sleep 5"
			echo "fill $((c - c / 3)) $d"
		else
			echo "$word $a $b $c"
		fi
	done | checked)" "$want" "the same, header and payload in pieces"

# 64M of answers wait for a client that sleeps; the server must not hold them.
before=$(awk '/^VmRSS/ { print $2 }' "/proc/$weir_pid/status")
{
	for i in {1..64}; do
		echo "read $i 0 1048576"
	done
	echo "sleep 1000"
	echo "recv 64"
} | session >"$tmp/lazy" &
lazy=$!
sleep 0.7
is "$(session <<<$'read 1 4096 512\nrecv')" "1 error 0 512 of 0x21" \
	"a client that does not read stops no other"
now=$(awk '/^VmRSS/ { print $2 }' "/proc/$weir_pid/status")
ok "nor fills the memory (+$((now - before))K)" test $((now - before)) -lt 20000
wait "$lazy"
is "$(wc -l <"$tmp/lazy")" 64 "and is answered when it does"

is "$(raw <<END | sed '/^greeting /d; /^reply /d'
greet
structured
meta
go
write 1 0 4096 0x11
recv
read 2 0 4096 4
recv
read 3 0 0
recv
read 4 0xfffffffffffffe00 4096
recv
status 5 0 1048576 8
recv
status 6 0 0
recv
req 2 0 7 0 0
eof
END
)" "$(printf '%s\n' '1 error 0' '2 at 0 4096 of 0x11' '3 none' '4 error 22' \
	'5 context 1: 1048576/0' '6 error 22' eof)" "structured answers"
is "$(session <<END
status 1 0 4096
read 2 0 512 4
read 3 0 512
recv 3
hex 00000000000000000000000000000000000000000000000000000000
eof
END
)" "1 error 22
2 error 22
3 error 0 512 of 0x11
eof" "what was not negotiated is refused; no magic is the end"
stop_weir
is "$status" 0 "it ends well"
done_testing
